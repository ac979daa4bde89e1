//! Somebody who watches a terminal over a WebSocket, and may type at it.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket};

use crate::caller::{Caller, Line, Said};

/// A line to a terminal, and all that came over it.
pub(crate) struct Watcher {
    line: WebSocket<Box<dyn Line>>,
    /// Output since the beginning, or the last look.
    pub(crate) output: Vec<u8>,
    /// Up to this offset.
    pub(crate) at: u64,
}

/// One thing that came.
#[derive(Debug)]
pub(crate) enum Came {
    /// Output that goes on where the last ended.
    Output,
    Said(Value),
    /// The server has hung up.
    Over,
}

impl Watcher {
    /// Watches a terminal from now on.
    #[track_caller]
    pub(crate) fn at(who: &Caller, name: &str) -> Self {
        Self::try_at(who, name, "").expect("let in")
    }

    /// Watches from an offset on.
    #[track_caller]
    pub(crate) fn from(who: &Caller, name: &str, offset: u64) -> Self {
        let mut watcher = Self::try_at(who, name, &format!("?from={offset}")).expect("let in");
        watcher.at = offset;
        watcher
    }

    pub(crate) fn try_at(who: &Caller, name: &str, query: &str) -> Result<Self, Said> {
        let line = who.upgrade(&format!("/terminals/{name}/stream{query}"))?;
        Ok(Self {
            line,
            output: vec![],
            at: 0,
        })
    }

    #[track_caller]
    pub(crate) fn say(&mut self, message: Value) {
        let text = message.to_string();
        self.line.send(Message::Text(text.into())).unwrap();
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        let keys = keys.as_bytes().to_vec();
        self.line.send(Message::Binary(keys.into())).unwrap();
    }

    /// Says that all output came.
    pub(crate) fn ack(&mut self) {
        self.say(json!({ "type": "ack", "offset": self.at }));
    }

    /// Takes the keyboard, and waits until it has it.
    #[track_caller]
    pub(crate) fn take(&mut self, columns: u16, rows: u16) -> Value {
        self.say(json!({ "type": "take", "columns": columns, "rows": rows }));
        self.control(true)
    }

    /// Waits until the keyboard is its own, or is not.
    #[track_caller]
    pub(crate) fn control(&mut self, yours: bool) -> Value {
        loop {
            let control = self.until("control");
            if control["yours"] == yours {
                return control;
            }
        }
    }

    /// Waits for a message of some type.
    #[track_caller]
    pub(crate) fn until(&mut self, kind: &str) -> Value {
        loop {
            match self.next() {
                Came::Said(said) if said["type"] == kind => return said,
                Came::Over => panic!("it was hung up before `{kind}`"),
                _ => {}
            }
        }
    }

    /// Waits until output has come up to an offset.
    #[track_caller]
    pub(crate) fn until_at(&mut self, offset: u64) {
        while self.at < offset {
            assert!(!matches!(self.next(), Came::Over), "it was hung up");
        }
    }

    /// Waits for the next thing, whatever it is.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Came {
        loop {
            match self.line.read() {
                Ok(Message::Binary(message)) => {
                    let (offset, bytes) = message.split_at(8);
                    let offset = u64::from_be_bytes(offset.try_into().unwrap());
                    assert_eq!(offset, self.at, "nothing is missing or repeated");
                    self.output.extend_from_slice(bytes);
                    self.at += bytes.len() as u64;
                    return Came::Output;
                }
                Ok(Message::Text(text)) => {
                    let said: Value = serde_json::from_str(&text).unwrap();
                    if said["type"] == "snapshot" {
                        self.at = said["offset"].as_u64().unwrap();
                        self.output.clear();
                    }
                    return Came::Said(said);
                }
                Ok(Message::Close(_)) => return Came::Over,
                Ok(_) => {}
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }
}
