//! Opening the doors and closing them in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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

/// Connections over TCP at once. Anyone on this machine can open them without
/// a token; the descriptors that are left are for the owner's socket and runs.
const TCP_CONNECTIONS: usize = 256;

/// A listener that takes so many and no more.
pub(crate) struct Tcp {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

/// A connection and its place among those that may be.
pub(crate) struct Placed {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl Listener for Tcp {
    type Io = Placed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Placed, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.expect("nobody closes it");
        let (stream, from) = Listener::accept(&mut self.listener).await;
        // Held back by the kernel, small answers take up to 40 ms.
        let _ = stream.set_nodelay(true);
        let placed = Placed {
            stream,
            _place: place,
        };
        (placed, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Placed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
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
        let tcp = Tcp {
            listener: tcp,
            places: Arc::new(Semaphore::new(TCP_CONNECTIONS)),
        };
        let server = axum::serve(tcp, app.clone()).with_graceful_shutdown(wait(closed.clone()));
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
