//! The door of a client that has started us.

use std::io;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;

use crate::api::Api;
use crate::desk::ClientDesk;
use crate::handler::Handler;
use crate::lines::StdioTransport;
use crate::options::Options;

/// Answers on standard input and output until the client is gone.
pub async fn serve_stdio(api: Box<dyn Api>, options: Options) -> io::Result<()> {
    let desk = ClientDesk::new(api, options);
    let handler = Handler::new(move |_| Arc::clone(&desk));
    let service = handler
        .serve(StdioTransport::new(stdio_pipes()))
        .await
        .map_err(io::Error::other)?;
    service.waiting().await.map_err(io::Error::other)?;
    Ok(())
}
