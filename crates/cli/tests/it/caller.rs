//! Somebody at a door: over the socket or TCP, with a token, a cookie or
//! nothing to show.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderName;
use tokio_tungstenite::tungstenite::{self, HandshakeError, WebSocket};

use crate::support::{Home, Server};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody, and where they come in.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    door: Door,
    /// Sent with every request, in this order.
    headers: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
enum Door {
    Socket(PathBuf),
    Tcp(String),
}

/// What a server answered.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) status: u16,
    /// As it was sent.
    pub(crate) head: String,
    pub(crate) bytes: Vec<u8>,
}

/// A connection of either kind.
pub(crate) trait Line: Read + Write {}

impl<T: Read + Write> Line for T {}

impl Caller {
    /// Whoever runs this, over the socket.
    pub(crate) fn owner(home: &Home) -> Self {
        Self {
            door: Door::Socket(home.state().join("weighlock.sock")),
            headers: vec![("host".into(), "localhost".into())],
        }
    }

    /// Nobody, over TCP.
    pub(crate) fn stranger(server: &Server) -> Self {
        let address = server.address();
        Self {
            headers: vec![("host".into(), address.clone())],
            door: Door::Tcp(address),
        }
    }

    /// The same with a token.
    pub(crate) fn bearing(&self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    /// The same with a header, in place of one of this name.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut with = self.clone();
        with.headers.retain(|(before, _)| before != name);
        with.headers.push((name.to_owned(), value.to_owned()));
        with
    }

    /// Asks, and waits for the whole answer; of a stream of events, for its
    /// beginning.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Said {
        let text = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        self.send(method, &format!("/agent/terminal{path}"), text.as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Said {
        self.ask("GET", path, &Value::Null)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Said {
        self.ask("POST", path, body)
    }

    /// The same by the whole address, with bytes.
    pub(crate) fn send(&self, method: &str, address: &str, body: &[u8]) -> Said {
        let mut line = BufReader::new(self.open(method, address, body));
        let (status, head) = read_head(&mut line);
        let bytes = read_body(&mut line, &head.to_lowercase());
        Said {
            status,
            head,
            bytes,
        }
    }

    /// Sends a request, and leaves the answer to be read.
    pub(crate) fn open(&self, method: &str, address: &str, body: &[u8]) -> Box<dyn Line> {
        let mut line = self.begin(method, address, body.len());
        // A server that refuses what it is sent need not read it all.
        let _ = line.write_all(body);
        line
    }

    /// Sends a request but for its body.
    pub(crate) fn begin(&self, method: &str, address: &str, length: usize) -> Box<dyn Line> {
        let mut line = self.connect();
        let mut head = format!("{method} {address} HTTP/1.1\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!(
            "content-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n"
        ));
        line.write_all(head.as_bytes()).unwrap();
        line
    }

    /// Asks for a WebSocket; or returns what was answered instead.
    pub(crate) fn upgrade(&self, path: &str) -> Result<WebSocket<Box<dyn Line>>, Said> {
        let uri = format!("ws://localhost/agent/terminal{path}");
        let mut request = uri.into_client_request().unwrap();
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        match tungstenite::client(request, self.connect()) {
            Ok((line, _)) => Ok(line),
            Err(HandshakeError::Failure(tungstenite::Error::Http(answer))) => Err(Said {
                status: answer.status().as_u16(),
                head: String::new(),
                bytes: answer.body().clone().unwrap_or_default(),
            }),
            Err(error) => panic!("no answer: {error}"),
        }
    }

    fn connect(&self) -> Box<dyn Line> {
        match &self.door {
            Door::Socket(path) => {
                let line = UnixStream::connect(path).unwrap();
                line.set_read_timeout(Some(PATIENCE)).unwrap();
                Box::new(line)
            }
            Door::Tcp(address) => {
                let line = TcpStream::connect(address).unwrap();
                line.set_read_timeout(Some(PATIENCE)).unwrap();
                Box::new(line)
            }
        }
    }
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    /// The body of an answer that is as it should be.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status, status, "{text}");
        self.json()
    }

    /// The status and, of a problem, its code.
    pub(crate) fn outcome(&self) -> (u16, String) {
        let code = self.json()["code"].as_str().unwrap_or_default().to_owned();
        (self.status, code)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Adds a person or an agent, and returns a token of theirs.
#[track_caller]
pub(crate) fn add(home: &Home, name: &str, role: &str, more: Value) -> String {
    let mut person = json!({ "principal_id": name, "role": role });
    for (key, value) in more.as_object().into_iter().flatten() {
        person[key] = value.clone();
    }
    let owner = Caller::owner(home);
    owner.post("/people", &person).expect(201);
    home.token(name)
}

/// The same for one whose own sandbox is the default one.
#[track_caller]
pub(crate) fn add_here(home: &Home, name: &str, role: &str) -> String {
    add(home, name, role, json!({ "default_sandbox": "default" }))
}

/// Sets a sandbox up below the base directory, and returns it.
#[track_caller]
pub(crate) fn sandbox(home: &Home, label: &str, guard: Value) -> Value {
    let dir = home.base().join(label);
    std::fs::create_dir_all(&dir).unwrap();
    let new = json!({ "label": label, "path": dir, "guard": guard });
    Caller::owner(home).post("/sandboxes", &new).expect(201)
}

/// Entries of the audit, as its reader gets them.
#[track_caller]
pub(crate) fn audit(home: &Home, query: &str) -> Vec<Value> {
    let found = Caller::owner(home).get(&format!("/audit?limit=1000&{query}"));
    found.expect(200)["entries"].as_array().unwrap().clone()
}

pub(crate) fn read_head(line: &mut impl BufRead) -> (u16, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(line.read_line(&mut head).unwrap(), 0, "hung up: {head}");
    }
    let status = head.split(' ').nth(1).expect("a status").parse();
    (status.expect("a number"), head)
}

/// Reads one piece of a body in pieces; nothing is its end.
pub(crate) fn read_piece(line: &mut impl BufRead) -> Vec<u8> {
    let mut size = String::new();
    if line.read_line(&mut size).unwrap() == 0 {
        return vec![];
    }
    let size = usize::from_str_radix(size.trim(), 16).expect("a size");
    let mut piece = vec![0; size + 2];
    line.read_exact(&mut piece).unwrap();
    piece.truncate(size);
    piece
}

fn read_body(line: &mut impl BufRead, head: &str) -> Vec<u8> {
    let mut body = vec![];
    if head.contains("text/event-stream") {
        return body;
    }
    if head.contains("transfer-encoding: chunked") {
        loop {
            let piece = read_piece(line);
            if piece.is_empty() {
                return body;
            }
            body.extend(piece);
        }
    }
    // It may close with some of ours unread; what it said counts.
    let _ = line.read_to_end(&mut body);
    body
}
