//! A small blocking client for the stream of a terminal: a WebSocket.

use std::io::{BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::Result;
use crate::server::Server;

/// Whole messages of these kinds, with the bit that says so.
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// What a client sends is masked. A mask of zeros leaves it as it is.
const MASKED: u8 = 0x80;
const MASK: [u8; 4] = [0; 4];

/// Bytes of the offset before output.
const OFFSET: usize = 8;

/// How often a viewer says how far it is, as the server asks for.
const ACK_EVERY: u64 = 64 * 1024;

/// Somebody who watches a terminal.
pub(crate) struct Viewer {
    connection: BufReader<UnixStream>,
    /// Output came up to this offset.
    came: u64,
    acked: u64,
}

/// What a viewer is told.
pub(crate) enum Told {
    Output(Vec<u8>),
    /// Anything else, by its `type`.
    Else(Value),
}

impl Viewer {
    /// Begins to watch a terminal, and waits until its screen is shown.
    pub(crate) fn open(server: &Server, terminal: &str) -> Result<Self> {
        let path = format!("/terminals/{terminal}/stream");
        let mut viewer = Self {
            connection: server.connect()?.upgrade(&path)?,
            came: 0,
            acked: 0,
        };
        viewer.until("snapshot")?;
        Ok(viewer)
    }

    /// Takes the keyboard, and waits until it is there.
    pub(crate) fn take(&mut self) -> Result<()> {
        self.say(TEXT, json!({ "type": "take" }).to_string().as_bytes())?;
        self.until("control")
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &[u8]) -> Result<()> {
        self.say(BINARY, keys)
    }

    /// Waits for output, and says from time to time that it came.
    pub(crate) fn output(&mut self) -> Result<Vec<u8>> {
        loop {
            match self.next()? {
                Told::Output(bytes) => return Ok(bytes),
                Told::Else(told) if told["type"] == "error" => return Err(told.to_string().into()),
                Told::Else(_) => {}
            }
        }
    }

    /// Returns what ends the watching from another thread.
    pub(crate) fn end(&self) -> Result<impl FnOnce() + use<>> {
        let connection = self.connection.get_ref().try_clone()?;
        Ok(move || {
            let _ = connection.shutdown(Shutdown::Both);
        })
    }

    fn until(&mut self, kind: &str) -> Result<()> {
        loop {
            match self.next()? {
                Told::Else(told) if told["type"] == kind => return Ok(()),
                Told::Else(told) if told["type"] == "error" => return Err(told.to_string().into()),
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<Told> {
        loop {
            let (kind, mut body) = self.hear()?;
            match kind {
                TEXT => {
                    let told: Value = serde_json::from_slice(&body)?;
                    if let ("snapshot", Some(offset)) =
                        (told["type"].as_str().unwrap_or(""), told["offset"].as_u64())
                    {
                        (self.came, self.acked) = (offset, offset);
                    }
                    return Ok(Told::Else(told));
                }
                BINARY if body.len() >= OFFSET => {
                    let bytes = body.split_off(OFFSET);
                    let offset = u64::from_be_bytes(body.as_slice().try_into()?);
                    self.came = offset + bytes.len() as u64;
                    self.ack()?;
                    return Ok(Told::Output(bytes));
                }
                PING => self.say(PONG, &body)?,
                CLOSE => return Err("the terminal is closed".into()),
                _ => return Err(format!("a message of kind {kind:#x}").into()),
            }
        }
    }

    fn ack(&mut self) -> Result<()> {
        if self.came - self.acked < ACK_EVERY {
            return Ok(());
        }
        self.acked = self.came;
        let said = json!({ "type": "ack", "offset": self.came });
        self.say(TEXT, said.to_string().as_bytes())
    }

    fn say(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        let length = u8::try_from(body.len()).ok().filter(|length| *length < 126);
        let length = length.ok_or("too long to be said at once")?;
        let mut message = vec![kind, MASKED | length];
        message.extend_from_slice(&MASK);
        message.extend_from_slice(body);
        Ok(self.connection.get_mut().write_all(&message)?)
    }

    fn hear(&mut self) -> Result<(u8, Vec<u8>)> {
        let [kind, length] = self.exactly()?;
        let length = match length {
            126 => u64::from(u16::from_be_bytes(self.exactly()?)),
            127 => u64::from_be_bytes(self.exactly()?),
            length => u64::from(length),
        };
        let mut body = vec![0; usize::try_from(length)?];
        self.connection.read_exact(&mut body)?;
        Ok((kind, body))
    }

    fn exactly<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.connection.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
