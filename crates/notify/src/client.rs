//! Sends one request to a receiver, within bounds: it follows no redirect and
//! reads only the head of the answer.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::address::resolve;
use crate::attempt::Attempt;
use crate::delivery::Delivery;
use crate::payload::{HttpPayload, format_message};
use crate::tls::client_config;

/// From the resolution of the name to the head of the answer. A receiver should
/// accept a message first and process it later.
const TIMEOUT: Duration = Duration::from_secs(10);

/// For one address of several, so that another can be tried in time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// The largest head of an answer that is read.
const HEAD_BYTES: usize = 16 * 1024;

/// Sends requests to receivers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpClient {
    ca_file: Option<PathBuf>,
}

/// A parsed URL, with what a connection needs.
struct Target {
    uri: Uri,
    host: String,
    port: u16,
    is_plain: bool,
}

impl HttpClient {
    /// Creates a client that trusts the system's CA certificates, and those of a
    /// PEM file.
    pub fn new(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file }
    }

    /// Posts JSON to a URL from the configuration. Returns why it was not
    /// accepted. Unlike a webhook's URL it may lead to any address.
    pub async fn post_json(&self, url: &str, body: String) -> Result<(), String> {
        let target = Target::parse(url)?;
        let host = (bare(&target.host), target.port);
        let found = tokio::net::lookup_host(host).await;
        let addresses: Vec<_> = found.map_err(|error| error.to_string())?.collect();
        let payload = HttpPayload {
            headers: vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
            body,
        };
        let status = self.post(&target, &addresses, payload).await?.status();
        if status.is_success() {
            Ok(())
        } else {
            Err(format!("answered {}", status.as_u16()))
        }
    }

    /// Makes one attempt to deliver a message.
    pub(crate) async fn deliver(&self, delivery: &Delivery) -> Attempt {
        let result = tokio::time::timeout(TIMEOUT, self.try_deliver(delivery)).await;
        let result = result
            .unwrap_or_else(|_| Err(format!("no answer within {} seconds", TIMEOUT.as_secs())));
        result.unwrap_or_else(|reason| Attempt::Failed {
            reason,
            retry_after: None,
        })
    }

    async fn try_deliver(&self, delivery: &Delivery) -> Result<Attempt, String> {
        // The receiver compares it with its own clock, so it is the machine's.
        let now = jiff::Timestamp::now().as_second();
        let payload = format_message(delivery, now)?;
        let target = Target::parse(&delivery.url)?;
        let may_reach_private = delivery.may_reach_private;
        let addresses = resolve(
            &target.host,
            target.port,
            may_reach_private,
            target.is_plain,
        )
        .await?;
        let answer = self.post(&target, &addresses, payload).await?;
        Ok(read_answer(&answer))
    }

    async fn post(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
        payload: HttpPayload,
    ) -> Result<Response<()>, String> {
        let stream = connect(addresses).await?;
        let request = request(&target.uri, payload)?;
        if target.is_plain {
            exchange(stream, request).await
        } else {
            let stream = encrypt(stream, &target.host, self.ca_file.clone()).await?;
            exchange(stream, request).await
        }
    }
}

impl Target {
    fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| "that is not a URL".to_owned())?;
        let host = uri.host().ok_or("that is not a URL")?.to_owned();
        let is_plain = match uri.scheme_str() {
            Some("https") => false,
            Some("http") => true,
            _ => return Err("only https:// and http:// are supported".into()),
        };
        Ok(Self {
            port: uri.port_u16().unwrap_or(if is_plain { 80 } else { 443 }),
            host,
            is_plain,
            uri,
        })
    }
}

/// Returns a host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut why = "there is no address".to_owned();
    for address in addresses {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = format!("cannot connect: {error}"),
            Err(_) => why = "cannot connect: no answer".into(),
        }
    }
    Err(why)
}

async fn encrypt(
    stream: TcpStream,
    host: &str,
    ca_file: Option<PathBuf>,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, String> {
    let config = tokio::task::spawn_blocking(move || client_config(ca_file.as_deref()));
    let config = config.await.map_err(|error| error.to_string())??;
    let name = ServerName::try_from(bare(host).to_owned());
    let name = name.map_err(|_| "the host name cannot be verified".to_owned())?;
    let stream = TlsConnector::from(config).connect(name, stream).await;
    stream.map_err(|error| format!("TLS failed: {error}"))
}

fn request(uri: &Uri, payload: HttpPayload) -> Result<Request<Full<Bytes>>, String> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    // Without a user name, which would not be for the receiver.
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let mut request = Request::post(path)
        .header(HOST, authority)
        .header(USER_AGENT, concat!("weighlock/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_LENGTH, payload.body.len())
        .header(CONNECTION, "close");
    for (name, value) in payload.headers {
        request = request.header(name, value);
    }
    let body = Full::new(Bytes::from(payload.body));
    request.body(body).map_err(|error| error.to_string())
}

/// Sends a request and reads the head of its answer.
async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<()>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bad = |error: hyper::Error| format!("invalid answer: {error}");
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(bad)?;
    let answer = async { sender.send_request(request).await.map_err(bad) };
    tokio::pin!(connection);
    tokio::pin!(answer);
    // Dropping the connection here also ends what is still being sent.
    let answer = tokio::select! {
        answer = &mut answer => answer,
        ended = &mut connection => match ended {
            Ok(()) => answer.await,
            Err(error) => Err(bad(error)),
        },
    }?;
    Ok(answer.map(drop))
}

fn read_answer(answer: &Response<()>) -> Attempt {
    let status = answer.status();
    let failed = |reason: String| Attempt::Failed {
        reason,
        retry_after: retry_after(answer),
    };
    match status {
        _ if status.is_success() => Attempt::Accepted,
        StatusCode::GONE => Attempt::Gone,
        _ if status.is_redirection() => failed(format!(
            "answered {}; redirects are not followed",
            status.as_u16()
        )),
        _ => failed(format!("answered {}", status.as_u16())),
    }
}

/// Returns the delay that the receiver asks for.
fn retry_after(answer: &Response<()>) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}
