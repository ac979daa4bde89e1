//! Webhooks: what people are notified of elsewhere, when, and the delivery.
//!
//! ```text
//! audit ─▶ Collector ─▶ outbox table ─▶ Outbox ─▶ Delivery ─▶ HttpClient ─▶ receiver
//!          who wants it    (store)      what is due    message       the only I/O
//! ```
//!
//! A [`Notifier`] follows the audit, so that a server that was down notifies of
//! what it missed. Each notice is in the store until a receiver accepts it or
//! it is too old. Nothing in a message decides anything: an answer needs a
//! fingerprint, which only a person who signs in sees.
//!
//! Callers check who may manage webhooks. People and sandboxes are behind
//! [`Directory`].

#![warn(missing_docs)]

mod address;
mod attempt;
mod client;
mod collector;
mod delivery;
mod directory;
mod error;
mod message;
mod notifier;
mod outbox;
mod payload;
mod quiet_hours;
mod registry;
mod secret;
mod settings;
mod tls;
mod url;

pub use attempt::Attempt;
pub use client::HttpClient;
pub use directory::{Directory, Recipient};
pub use error::Error;
pub use notifier::{Config, Notifier, Outbound, WebhookSummary};
pub use quiet_hours::QuietHours;
pub use registry::{Actor, WebhookRegistry};
pub use settings::{
    NoticeView, Topic, WebhookFormat, WebhookPatch, WebhookSettings, WebhookView, WebhookWithSecret,
};
