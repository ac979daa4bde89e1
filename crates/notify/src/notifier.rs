//! The way out: delivers what people are to be told elsewhere. The engine says
//! what and when, and keeps it until it hears how that went.

mod form;
mod reach;
mod send;
pub(crate) mod traces;
mod trust;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use weighlock_engine::{Engine, Parcel, Posted};

/// Deliveries at once. One that is slow takes ten seconds; others go on.
const AT_ONCE: usize = 32;

/// How to reach others, and how they reach us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outward {
    /// What links to the pages begin with.
    pub address: String,
    /// Certificates that are trusted beside the system's, as PEM.
    pub ca_file: Option<PathBuf>,
    /// Where spans are told, if anywhere.
    pub traces: Option<String>,
}

/// Delivers for as long as the server lives. What is under way when it ends is
/// told again by the next one, under the same id.
pub(crate) async fn deliver(engine: Arc<Engine>, outward: Arc<Outward>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut under_way = JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let parcel = engine.next_parcel(&outward.address).await;
        let (engine, outward) = (Arc::clone(&engine), Arc::clone(&outward));
        under_way.spawn(async move {
            let _place = place;
            let how = post(&parcel, &outward).await;
            note(&engine, parcel, &how).await;
        });
        while under_way.try_join_next().is_some() {}
    }
}

/// Delivers one message.
pub(crate) async fn post(parcel: &Parcel, outward: &Outward) -> Posted {
    let how = send::send(parcel, outward.ca_file.clone()).await;
    how.unwrap_or_else(|why| Posted::Failed { why, wait: None })
}

/// Has the engine note how it went.
pub(crate) async fn note(engine: &Engine, parcel: Parcel, how: &Posted) {
    let webhook = parcel.webhook.clone();
    if let Posted::Failed { why, .. } = how {
        tracing::warn!(webhook, why, "a webhook was not told");
    }
    if let Err(error) = engine.posted(parcel, how).await {
        tracing::error!(webhook, %error, "cannot note how a delivery went");
    }
}
