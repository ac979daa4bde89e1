//! Opening the doors and closing them in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use weighlock_engine::Engine;

use crate::api::app;
use crate::auth::Peer;

/// How long requests under way may take once the server was asked to end.
/// Most wait for a run, and a run goes on without us.
const FINISH_WITHIN: Duration = Duration::from_millis(500);

/// What the server listens on.
pub struct Doors {
    /// For local users.
    pub socket: UnixListener,
    /// For everyone with a token.
    pub tcp: Option<TcpListener>,
}

/// A listener whose small answers are not held back by the kernel: that costs
/// up to 40 ms.
pub(crate) struct Tcp(TcpListener);

impl Listener for Tcp {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        let (stream, from) = Listener::accept(&mut self.0).await;
        // Without it everything still works, only slower.
        let _ = stream.set_nodelay(true);
        (stream, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Serves until `stop` resolves.
pub async fn serve(
    engine: Arc<Engine>,
    doors: Doors,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (closing, closed) = tokio::sync::watch::channel(false);
    let wait = |mut closed: tokio::sync::watch::Receiver<bool>| async move {
        let _ = closed.wait_for(|&closed| closed).await;
    };
    let app = app(Arc::clone(&engine)).into_make_service_with_connect_info::<Peer>();
    let mut tasks = tokio::task::JoinSet::new();
    if let Some(tcp) = doors.tcp {
        let server =
            axum::serve(Tcp(tcp), app.clone()).with_graceful_shutdown(wait(closed.clone()));
        tasks.spawn(server.into_future());
    }
    let server = axum::serve(doors.socket, app).with_graceful_shutdown(wait(closed));
    tasks.spawn(server.into_future());
    stop.await;
    let _ = closing.send(true);
    let finish = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FINISH_WITHIN, finish).await;
    Ok(())
}
