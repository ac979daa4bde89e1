//! A client that comes over HTTP, with a token.

use std::io::Read;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::message::{self, REVISION, answers, check};
use super::our_tool;
use crate::Result;
use crate::http;
use crate::server::Server;

/// Makes an agent, and returns its token.
pub(super) fn token(server: &Server) -> Result<String> {
    let agent = json!({ "principal_id": "coder", "role": "agent",
                        "sandboxes": ["default"], "default_sandbox": "default" });
    let mut client = server.connect()?;
    client.call("POST", "/people", &agent)?;
    let made = client.call("POST", "/people/coder/tokens", &json!({}))?;
    match made["token"].as_str() {
        Some(token) => Ok(token.to_owned()),
        None => Err(format!("no token: {made}").into()),
    }
}

/// A connection that stays open, and a session.
pub(super) struct Client {
    http: http::Client<TcpStream>,
    /// What every request has.
    fields: String,
    /// What the latest request was numbered.
    asked: u64,
}

impl Client {
    pub(super) fn open(server: &Server, token: &str) -> Result<Self> {
        let mut client = Self {
            http: http::Client::open_tcp(server.address()?)?,
            fields: format!(
                "authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
                 accept: application/json, text/event-stream\r\n\
                 mcp-protocol-version: {REVISION}\r\n"
            ),
            asked: 0,
        };
        let (session, _) = client.post(&message::initialize())?;
        let session = session.ok_or("there is no session")?;
        client.fields += &format!("mcp-session-id: {session}\r\n");
        client.post(&message::initialized())?;
        Ok(client)
    }

    /// Calls our tool and waits until it is answered.
    pub(super) fn call(&mut self) -> Result<()> {
        self.asked += 1;
        let (_, said) = self.post(&message::call(self.asked, &our_tool()))?;
        check(&answer(&said, self.asked)?)
    }

    /// Says something; returns the session, and all that is answered.
    fn post(&mut self, message: &Value) -> Result<(Option<String>, String)> {
        let body = message.to_string();
        let fields = format!("{}content-length: {}\r\n", self.fields, body.len());
        self.http.send_to("POST", "/mcp", &fields, &body)?;
        let mut head = self.http.head()?;
        let mut said = String::new();
        head.read_to_string(&mut said)?;
        match head.status {
            200..300 => Ok((head.session, said)),
            status => Err(format!("{status}: {said}").into()),
        }
    }
}

/// Finds an answer in a stream of events.
fn answer(said: &str, id: u64) -> Result<Value> {
    for data in said.lines().filter_map(|line| line.strip_prefix("data:")) {
        // The first event may have nothing in it.
        let message: Value = serde_json::from_str(data.trim()).unwrap_or_default();
        if answers(&message) == Some(id) {
            return Ok(message);
        }
    }
    Err(format!("there is no answer: {said}").into())
}
