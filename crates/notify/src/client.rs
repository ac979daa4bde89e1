//! One request to a receiver, with everything about it bounded: no redirect is
//! followed, and of the answer only the head is read.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use weighlock_engine::{Parcel, Posted};

use super::form::{self, Form};
use super::{reach, trust};

/// From the look-up of the name to the head of the answer. A receiver should
/// take what it gets, and work on it afterwards.
const WITHIN: Duration = Duration::from_secs(10);

/// For one address of several.
const CONNECT_WITHIN: Duration = Duration::from_secs(4);

/// Bytes of an answer before its body.
const HEAD_BYTES: usize = 16 * 1024;

/// Sends a message; says in a few words why it could not.
pub(super) async fn send(parcel: &Parcel, ca_file: Option<PathBuf>) -> Result<Posted, String> {
    match tokio::time::timeout(WITHIN, attempt(parcel, ca_file)).await {
        Ok(done) => done,
        Err(_) => Err(format!("no answer within {} seconds", WITHIN.as_secs())),
    }
}

async fn attempt(parcel: &Parcel, ca_file: Option<PathBuf>) -> Result<Posted, String> {
    let now = jiff::Timestamp::now().as_second();
    let form = form::of(parcel, now)?;
    let uri: Uri = { parcel.url.parse() }.map_err(|_| "that is no address".to_owned())?;
    let host = uri.host().ok_or("that is no address")?.to_owned();
    let plain = match uri.scheme_str() {
        Some("https") => false,
        Some("http") => true,
        _ => return Err("only https:// is told anything".into()),
    };
    let port = uri.port_u16().unwrap_or(if plain { 80 } else { 443 });
    let places = reach::find(&host, port, parcel.inside, plain).await?;
    let stream = connect(&places).await?;
    let request = request(&uri, form)?;
    let answer = match plain {
        true => exchange(stream, request).await?,
        false => exchange(encrypted(stream, &host, ca_file).await?, request).await?,
    };
    Ok(read(&answer))
}

/// Sends something to a place that the settings name, and returns the status
/// of the answer.
pub(super) async fn post(
    uri: &Uri,
    form: Form,
    ca_file: Option<PathBuf>,
) -> Result<StatusCode, String> {
    let host = uri.host().ok_or("that is no address")?.to_owned();
    let plain = uri.scheme_str() == Some("http");
    let port = uri.port_u16().unwrap_or(if plain { 80 } else { 443 });
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let places = tokio::net::lookup_host((bare, port)).await;
    let places: Vec<_> = places.map_err(|error| error.to_string())?.collect();
    let stream = connect(&places).await?;
    let request = request(uri, form)?;
    let answer = match plain {
        true => exchange(stream, request).await?,
        false => exchange(encrypted(stream, &host, ca_file).await?, request).await?,
    };
    Ok(answer.status())
}

async fn connect(places: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut why = "there is no address".to_owned();
    for place in places {
        match tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(place)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = format!("cannot connect: {error}"),
            Err(_) => why = "cannot connect: no answer".into(),
        }
    }
    Err(why)
}

async fn encrypted(
    stream: TcpStream,
    host: &str,
    ca_file: Option<PathBuf>,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, String> {
    let trusted = tokio::task::spawn_blocking(move || trust::read(ca_file.as_deref()));
    let trusted = trusted.await.map_err(|error| error.to_string())??;
    let bare = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let name = ServerName::try_from(bare).map_err(|_| "the name cannot be checked".to_owned())?;
    let stream = TlsConnector::from(trusted).connect(name, stream).await;
    stream.map_err(|error| format!("not encrypted: {error}"))
}

fn request(uri: &Uri, form: Form) -> Result<Request<Full<Bytes>>, String> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    // Without what may stand before the host: that is for nobody.
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let mut request = Request::post(path)
        .header(HOST, authority)
        .header(USER_AGENT, concat!("weighlock/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_LENGTH, form.body.len())
        .header(CONNECTION, "close");
    for (name, value) in form.headers {
        request = request.header(name, value);
    }
    let body = Full::new(Bytes::from(form.body));
    request.body(body).map_err(|error| error.to_string())
}

/// Sends a request and reads the head of its answer.
async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<()>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bad = |error: hyper::Error| format!("no proper answer: {error}");
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(bad)?;
    let answer = async { sender.send_request(request).await.map_err(bad) };
    tokio::pin!(connection);
    tokio::pin!(answer);
    // Nothing outlives this: with the connection goes whatever is still sent.
    let answer = tokio::select! {
        answer = &mut answer => answer,
        ended = &mut connection => match ended {
            Ok(()) => answer.await,
            Err(error) => Err(bad(error)),
        },
    }?;
    Ok(answer.map(drop))
}

fn read(answer: &Response<()>) -> Posted {
    let status = answer.status();
    let failed = |why: String| Posted::Failed {
        why,
        wait: wait(answer),
    };
    match status {
        _ if status.is_success() => Posted::Taken,
        StatusCode::GONE => Posted::Gone,
        _ if status.is_redirection() => failed(format!(
            "answered {}; redirects are not followed",
            status.as_u16()
        )),
        _ => failed(format!("answered {}", status.as_u16())),
    }
}

/// How long the receiver asks to be left alone.
fn wait(answer: &Response<()>) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}
