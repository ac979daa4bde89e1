//! The REST service as the door for agents calls it, in this process.

use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::future::BoxFuture;
use weighlock_engine::Principal;
use weighlock_mcp::LocalRest;
use weighlock_server::Within;

/// The server's own REST service.
#[derive(Clone)]
pub(super) struct Rest(pub(super) Within);

impl LocalRest for Rest {
    fn caller(&self, head: &Parts) -> Option<String> {
        let who = head.extensions.get::<Principal>()?;
        Some(who.name().to_owned())
    }

    fn call<'a>(&'a self, head: &'a Parts, request: Request) -> BoxFuture<'a, Response> {
        Box::pin(self.0.ask(head, request))
    }
}
