//! A small blocking client: one connection, kept open, HTTP/1.1.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::Result;

/// A connection to the server.
pub(crate) struct Client<S = UnixStream> {
    connection: BufReader<S>,
}

/// An answer whose body is still to be read.
pub(crate) struct Answer<'a, S = UnixStream> {
    pub(crate) status: u16,
    /// The session that a client of the door for agents is in from now on.
    pub(crate) session: Option<String>,
    from: &'a mut BufReader<S>,
    chunked: bool,
    /// Bytes left of the body, or of the chunk at hand.
    left: u64,
    /// A chunk was begun before, and its last newline is not yet read.
    begun: bool,
}

impl Client {
    pub(crate) fn open(socket: &Path) -> Result<Self> {
        Ok(Self {
            connection: BufReader::new(UnixStream::connect(socket)?),
        })
    }

    /// Runs a command to its end and returns the record.
    pub(crate) fn run(&mut self, command: &str) -> Result<Value> {
        let record = self.post(&json!({ "command": command }))?;
        if record["exit_code"] != 0 {
            return Err(format!("`{command}` did not succeed: {record}").into());
        }
        Ok(record)
    }

    /// Starts a command and returns its id.
    pub(crate) fn start(&mut self, command: &str) -> Result<String> {
        let record = self.post(&json!({ "command": command, "background": true }))?;
        match record["command_id"].as_str() {
            Some(id) => Ok(id.to_owned()),
            None => Err(format!("no id: {record}").into()),
        }
    }

    /// Follows the output of a run, in frames.
    pub(crate) fn follow(&mut self, id: &str) -> Result<Answer<'_>> {
        let path = format!("/commands/{id}/output/raw?frames=true&follow=closed");
        self.ask("GET", &path, &Value::Null)?;
        self.head()
    }

    /// Follows the output of a run, as it is.
    pub(crate) fn follow_bytes(&mut self, id: &str) -> Result<Answer<'_>> {
        let path = format!("/commands/{id}/output/raw?follow=closed");
        self.ask("GET", &path, &Value::Null)?;
        self.head()
    }

    fn post(&mut self, body: &Value) -> Result<Value> {
        self.call("POST", "/commands", body)
    }

    /// Asks for anything and returns the whole answer.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        self.ask(method, path, body)?;
        self.answer()
    }

    /// Asks for anything, and does not wait for the answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<()> {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let fields = format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
        self.send(method, path, &fields, &body)
    }

    /// Reads the whole answer to what was asked; nothing if it is empty.
    pub(crate) fn answer(&mut self) -> Result<Value> {
        let mut answer = self.head()?;
        let mut text = vec![];
        answer.read_to_end(&mut text)?;
        if !(200..300).contains(&answer.status) {
            return Err(String::from_utf8_lossy(&text).into());
        }
        match text.is_empty() {
            true => Ok(Value::Null),
            false => Ok(serde_json::from_slice(&text)?),
        }
    }

    /// Makes the connection a WebSocket.
    pub(crate) fn upgrade(mut self, path: &str) -> Result<BufReader<UnixStream>> {
        let fields = "connection: upgrade\r\nupgrade: websocket\r\n\
                      sec-websocket-version: 13\r\n\
                      sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        self.send("GET", path, fields, "")?;
        match self.head()?.status {
            101 => Ok(self.connection),
            status => Err(format!("no WebSocket: {status}").into()),
        }
    }

    fn send(&mut self, method: &str, path: &str, fields: &str, body: &str) -> Result<()> {
        self.send_to(method, &format!("/agent/terminal{path}"), fields, body)
    }
}

impl Client<TcpStream> {
    pub(crate) fn open_tcp(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            connection: BufReader::new(stream),
        })
    }
}

impl<S: Read + Write> Client<S> {
    /// Sends a request to any address.
    pub(crate) fn send_to(
        &mut self,
        method: &str,
        path: &str,
        fields: &str,
        body: &str,
    ) -> Result<()> {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n{body}");
        Ok(self.connection.get_mut().write_all(request.as_bytes())?)
    }

    /// Reads up to where the body of the answer begins.
    pub(crate) fn head(&mut self) -> Result<Answer<'_, S>> {
        let first = line(&mut self.connection)?;
        let status = first.split(' ').nth(1).unwrap_or_default().parse()?;
        let (mut left, mut chunked, mut session) = (0, false, None);
        loop {
            let field = line(&mut self.connection)?;
            let Some((name, value)) = field.split_once(':') else {
                break;
            };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => left = value.parse()?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "mcp-session-id" => session = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(Answer {
            status,
            session,
            from: &mut self.connection,
            chunked,
            left,
            begun: false,
        })
    }
}

impl<S: Read> Answer<'_, S> {
    /// Moves on to the next chunk; an empty one is the last.
    fn next_chunk(&mut self) -> io::Result<()> {
        if self.begun {
            line(self.from)?;
        }
        let size = line(self.from)?;
        self.left = u64::from_str_radix(&size, 16).map_err(io::Error::other)?;
        self.begun = true;
        if self.left == 0 {
            line(self.from)?;
            self.chunked = false;
        }
        Ok(())
    }
}

impl<S: Read> Read for Answer<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && self.chunked {
            self.next_chunk()?;
        }
        let read = self.from.by_ref().take(self.left).read(buffer)?;
        self.left -= read as u64;
        Ok(read)
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}
