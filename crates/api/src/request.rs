//! One request to a server, with what its sender means by it.

use serde::Serialize;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Asks for something to be done.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// Returns the word that HTTP has for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// How long a request may take, and who waits for its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Waiting {
    /// It is answered at once.
    #[default]
    Brief,
    /// The answer may take as long as somebody is willing to wait.
    Patient,
    /// The same, and the run ends if the client disconnects.
    Attended,
}

/// One request to a server's REST interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRequest {
    /// What it does.
    pub method: Method,
    /// The path below the root of all addresses, with its query.
    pub path: String,
    /// JSON, or nothing.
    pub body: Vec<u8>,
    /// A request that is made twice with the same key is done once.
    pub key: Option<String>,
    /// How long the answer may take.
    pub waiting: Waiting,
    /// Making it again does no harm although it does not read only.
    is_harmless: bool,
}

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiResponse {
    /// The HTTP status.
    pub status: u16,
    /// JSON, or nothing.
    pub body: Vec<u8>,
}

impl ApiRequest {
    /// Makes a request without a body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: vec![],
            key: None,
            waiting: Waiting::Brief,
            is_harmless: method == Method::Get,
        }
    }

    /// Makes a request that reads.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::Get, path)
    }

    /// Makes a request that asks for something to be done.
    pub fn post(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self {
            body: serde_json::to_vec(body).expect("requests are always JSON"),
            ..Self::new(Method::Post, path)
        }
    }

    /// Makes a request that reads a run, and waits for its end for
    /// `wait_ms`. `attend` says whether the run ends without its requester, or
    /// goes on; without it, that stays as it was.
    pub fn run(id: &str, wait_ms: Option<u64>, attend: Option<bool>) -> Self {
        let mut query = vec![];
        query.extend(wait_ms.map(|wait_ms| format!("wait_ms={wait_ms}")));
        query.extend(attend.map(|attend| format!("attend={attend}")));
        let mark = if query.is_empty() { "" } else { "?" };
        let path = format!("/commands/{id}{mark}{}", query.join("&"));
        Self {
            waiting: match (wait_ms, attend) {
                (None, _) => Waiting::Brief,
                (Some(_), Some(true)) => Waiting::Attended,
                (Some(_), _) => Waiting::Patient,
            },
            ..Self::get(path)
        }
    }

    /// Makes a request that waits for what runs do.
    pub fn wait(wanted: &crate::WaitRequest) -> Self {
        Self {
            waiting: Waiting::Patient,
            is_harmless: true,
            ..Self::post("/wait", wanted)
        }
    }

    /// Returns the same with a key: made twice, it is done once.
    pub fn with_key(self, key: String) -> Self {
        Self {
            key: Some(key),
            ..self
        }
    }

    /// Returns whether it may be made again if nobody knows whether it was done.
    pub fn is_repeatable(&self) -> bool {
        self.is_harmless || self.key.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_who_waits_for_it() {
        let run = |wait_ms, attend| {
            let request = ApiRequest::run("r_1", wait_ms, attend);
            (request.path, request.waiting)
        };
        let path = |path: &str| path.to_owned();
        assert_eq!(run(None, None), (path("/commands/r_1"), Waiting::Brief));
        assert_eq!(
            run(None, Some(false)),
            (path("/commands/r_1?attend=false"), Waiting::Brief)
        );
        assert_eq!(
            run(Some(5), None),
            (path("/commands/r_1?wait_ms=5"), Waiting::Patient)
        );
        assert_eq!(
            run(Some(5), Some(true)),
            (
                path("/commands/r_1?wait_ms=5&attend=true"),
                Waiting::Attended
            )
        );
    }

    #[test]
    fn what_reads_or_has_a_key_may_be_made_again() {
        let post = ApiRequest::post("/commands", &());
        assert!(!post.is_repeatable());
        assert!(post.with_key("k".into()).is_repeatable());
        assert!(ApiRequest::get("/me").is_repeatable());
        assert!(ApiRequest::wait(&crate::WaitRequest::default()).is_repeatable());
    }
}
