//! Somebody at the server's socket. Servers die here: an answer may not come.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

/// Every call returns. One that is silent for so long hangs.
const PATIENCE: Duration = Duration::from_secs(90);

/// When somebody who was not answered asks for something else.
const LATER: Duration = Duration::from_millis(100);

/// Who asks.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) socket: PathBuf,
    /// None for the owner.
    pub(super) token: Option<String>,
}

/// What came back.
pub(super) enum Said {
    Answer(u16, Value),
    /// The server was not there, or died meanwhile.
    Gone,
    /// It is there, and says nothing.
    Silent,
}

impl Client {
    /// Asks, and waits for the answer.
    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> Said {
        let answer = || {
            let mut line = BufReader::new(self.send(method, path, body)?);
            read(&mut line)
        };
        match answer() {
            Ok((status, body)) => Said::Answer(status, body),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Said::Silent,
            Err(_) => {
                // Whoever finds nobody there tries again in a moment.
                std::thread::sleep(LATER);
                Said::Gone
            }
        }
    }

    pub(super) fn get(&self, path: &str) -> Said {
        self.ask("GET", path, &Value::Null)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Said {
        self.ask("POST", path, body)
    }

    /// Asks, and leaves the answer to be read, or not.
    pub(super) fn send(&self, method: &str, path: &str, body: &Value) -> io::Result<UnixStream> {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let fields = format!(
            "content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
            body.len()
        );
        self.send_with(method, path, &fields, &body)
    }

    /// Asks for a WebSocket.
    pub(super) fn watch(&self, path: &str) -> io::Result<UnixStream> {
        let fields = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                      sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        self.send_with("GET", path, fields, "")
    }

    fn send_with(
        &self,
        method: &str,
        path: &str,
        fields: &str,
        body: &str,
    ) -> io::Result<UnixStream> {
        let mut line = UnixStream::connect(&self.socket)?;
        line.set_read_timeout(Some(PATIENCE))?;
        let token = self.token.as_ref();
        let token = token.map_or(String::new(), |token| {
            format!("authorization: Bearer {token}\r\n")
        });
        let request = format!(
            "{method} /agent/terminal{path} HTTP/1.1\r\nhost: localhost\r\n{token}{fields}\r\n{body}"
        );
        line.write_all(request.as_bytes())?;
        Ok(line)
    }
}

impl Said {
    /// The answer, if it is this.
    pub(super) fn only(self, wanted: u16) -> Option<Value> {
        match self {
            Self::Answer(status, body) if status == wanted => Some(body),
            _ => None,
        }
    }

    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Answer(status, _) => Some(*status),
            _ => None,
        }
    }
}

fn read(line: &mut BufReader<UnixStream>) -> io::Result<(u16, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if line.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or(io::ErrorKind::InvalidData)?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let named = name.eq_ignore_ascii_case("content-length");
        named.then(|| value.trim().parse::<usize>().ok()).flatten()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    line.read_exact(&mut body)?;
    match body.is_empty() {
        true => Ok((status, Value::Null)),
        false => Ok((status, serde_json::from_slice(&body)?)),
    }
}
