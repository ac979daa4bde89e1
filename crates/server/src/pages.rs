//! The web pages. Everything comes from the program itself, and a page can
//! reach nothing else.

use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;

use crate::problem::Problem;

/// Where the pages come from: a directory while they are developed, else the
/// program.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) dir: Option<PathBuf>,
}

/// Stands in the page where each answer has a nonce of its own.
const NONCE: &str = "__NONCE__";

/// Files below this have their content's hash in their name.
const HASHED: &str = "assets/";

/// Returns whether an address is a page's, which anybody may have: there is
/// nothing in a page but the program.
pub(crate) fn is_page(method: &Method, uri: &Uri) -> bool {
    let path = uri.path();
    let other = ["/agent", "/mcp"].iter().any(|door| {
        let rest = path.strip_prefix(door);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    !other && matches!(*method, Method::GET | Method::HEAD)
}

/// Answers with a file of the pages; with the page itself for every address
/// that a person's browser asks for.
pub(crate) async fn answer(
    Extension(pages): Extension<Arc<Pages>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if !is_page(&method, &uri) {
        return no_such_address().into_response();
    }
    let path = uri.path().trim_start_matches('/');
    if let Some(packed) = { path != "index.html" }.then(|| pages.read(path)).flatten() {
        return file(path, packed, &headers);
    }
    let accepts = headers.get(header::ACCEPT);
    let accepts = accepts.and_then(|kinds| kinds.to_str().ok());
    let wants_page = accepts.is_some_and(|kinds| kinds.contains("text/html"));
    match pages.read("index.html") {
        Some(page) if wants_page && !path.starts_with(HASHED) => index(&unpacked(page)),
        _ => no_such_address().into_response(),
    }
}

/// What is at no address.
pub(crate) fn no_such_address() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no_such_address",
        "there is nothing at this URL".into(),
        "see /agent/terminal/openapi.json",
    )
}

/// A file's content, compressed or as it is.
enum PageContent {
    Packed(&'static weighlock_ui::File),
    Plain(Vec<u8>),
}

impl Pages {
    fn read(&self, path: &str) -> Option<PageContent> {
        let Some(dir) = &self.dir else {
            return weighlock_ui::file(path).map(PageContent::Packed);
        };
        let mut parts = Path::new(path).components();
        let inside = parts.all(|part| matches!(part, Component::Normal(_)));
        let read = inside.then(|| fs::read(dir.join(path)))?;
        read.ok().map(PageContent::Plain)
    }
}

fn file(path: &str, content: PageContent, headers: &HeaderMap) -> Response {
    let coding = headers.get(header::ACCEPT_ENCODING);
    let coding = coding.and_then(|coding| coding.to_str().ok());
    let mut response = match (packed(&content, coding.unwrap_or_default()), content) {
        (Some((coding, bytes)), _) => {
            let mut response = Response::new(Body::from(bytes));
            let coding = HeaderValue::from_static(coding);
            { response.headers_mut() }.insert(header::CONTENT_ENCODING, coding);
            response
        }
        (None, content) => Response::new(Body::from(unpacked(content).into_owned())),
    };
    let keep = match path.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let told = [
        (header::CONTENT_TYPE, kind(path)),
        (header::CACHE_CONTROL, keep),
        (header::VARY, "accept-encoding"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // A picture is no page, whoever opens it as one.
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ];
    for (name, value) in told {
        { response.headers_mut() }.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the smallest encoding of a file that the client accepts.
fn packed(content: &PageContent, accepted: &str) -> Option<(&'static str, &'static [u8])> {
    let PageContent::Packed(file) = content else {
        return None;
    };
    let accepts = |coding: &str| {
        let mut codings = accepted.split(',');
        codings.any(|one| one.trim() == coding)
    };
    match file.brotli {
        Some(brotli) if accepts("br") => Some(("br", brotli)),
        _ => accepts("gzip").then_some(("gzip", file.gzip)),
    }
}

fn unpacked(content: PageContent) -> Cow<'static, [u8]> {
    match content {
        PageContent::Plain(bytes) => bytes.into(),
        PageContent::Packed(file) => {
            let mut plain = vec![];
            let read = GzDecoder::new(file.gzip).read_to_end(&mut plain);
            read.expect("the build has packed it");
            plain.into()
        }
    }
}

fn index(page: &[u8]) -> Response {
    let Ok(nonce) = nonce() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let page = String::from_utf8_lossy(page).replace(NONCE, &nonce);
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy(&nonce)),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, page).into_response()
}

fn nonce() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Nothing but what is our own, nobody's frame, and no markup made of text:
/// the one policy for that is Svelte's own, for what was compiled.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'nonce-{nonce}'; \
         img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types svelte-trusted-html"
    )
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webmanifest") => "application/manifest+json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
