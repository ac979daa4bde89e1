//! What the server and a keeper say to each other.
//!
//! Each message is a frame: its length, its kind, its bytes. The protocol is
//! versioned, because a keeper may be older than the server that finds it.

use std::io;

use serde::{Deserialize, Serialize};

use weighlock_confine::{Alarm, Size};

use crate::diary::Mark;
use crate::spec::Spec;
use crate::status::{Status, TerminalState, Totals};

/// Raised when an old peer would misunderstand a new message.
pub(crate) const VERSION: u32 = 7;

/// No frame is larger: a command is at most 128 KiB, as is an environment
/// variable, and input comes in pieces of 64 KiB.
const MAX_FRAME: usize = 4 * 1024 * 1024;

/// A frame's length and kind.
const HEADER: usize = 5;

/// From the server.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeeperOrder {
    /// Build walls for this; comes first and once.
    Start {
        version: u32,
        spec: Box<Spec>,
        command: String,
        /// What the command finds as `$0`, `$1` and so on.
        #[serde(default)]
        args: Vec<String>,
    },
    /// Start it now: that is on record. Comes next, and once.
    Go,
    /// End the run: politely, and after the grace time by force.
    Stop { signal: Polite, grace_millis: u64 },
    /// The command's input is complete.
    CloseStdin,
    /// Its terminal has another size now; answered by [`KeeperReport::Resized`].
    Resize(Size),
    /// A signal for what is in the foreground of its terminal.
    Signal(i32),
    /// A key that its terminal makes a signal of: it is pressed ahead of all
    /// input that nobody has read, which is dropped.
    Interrupt(u8),
    /// Something for its diary.
    Note(Mark),
    /// Tell how its terminal is set; answered by [`KeeperReport::Terminal`].
    LookAtTerminal,
    /// What [`KeeperReport::Resting`] asked for has come: look what the run uses.
    Look,
    /// More input for the command.
    #[serde(skip)]
    Stdin(Vec<u8>),
}

/// A signal that a program may handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Polite {
    Interrupt,
    Terminate,
}

/// From the keeper.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeeperReport {
    /// Comes first on every connection, and with every change.
    Status { version: u32, status: Box<Status> },
    /// There is more output: how much in all so far.
    Output(Totals),
    /// This much input was handed to the command, or it reads no more.
    StdinTaken(u64),
    /// How its terminal is set; nothing if it has none.
    Terminal(Option<TerminalState>),
    /// Its terminal has another size, and its diary says so.
    Resized,
    /// Nothing happens in the run; nobody looks before this is due.
    Resting(Alarm),
    /// The run could not be started at all; nothing ran.
    Refused(String),
    /// The same, because its walls could not be built.
    NoWalls(String),
    /// The same, because there is no room for its files.
    Full,
}

/// A message that travels in a frame.
pub(crate) trait Message: Sized {
    fn encode(&self) -> Vec<u8>;
    fn decode(kind: u8, bytes: &[u8]) -> io::Result<Self>;
}

const JSON: u8 = 0;
const INPUT: u8 = 1;

impl Message for KeeperOrder {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Stdin(bytes) => frame(INPUT, bytes),
            other => frame(JSON, &json(other)),
        }
    }

    fn decode(kind: u8, bytes: &[u8]) -> io::Result<Self> {
        match kind {
            INPUT => Ok(Self::Stdin(bytes.to_vec())),
            _ => Ok(serde_json::from_slice(bytes)?),
        }
    }
}

impl Message for KeeperReport {
    fn encode(&self) -> Vec<u8> {
        frame(JSON, &json(self))
    }

    fn decode(_: u8, bytes: &[u8]) -> io::Result<Self> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// Takes one whole message from the front of `buffer`, if there is one.
pub(crate) fn take<M: Message>(buffer: &mut Vec<u8>) -> io::Result<Option<M>> {
    let Some(header) = buffer.get(..HEADER) else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(header[..4].try_into().expect("4 bytes")) as usize;
    if length > MAX_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let kind = header[4];
    let Some(body) = buffer.get(HEADER..HEADER + length) else {
        return Ok(None);
    };
    let message = M::decode(kind, body)?;
    buffer.drain(..HEADER + length);
    Ok(Some(message))
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(body);
    bytes
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("messages hold only what JSON can say")
}

/// Takes any bytes as either peer would, and panics unless what it understands
/// is the same when it is said again. For `fuzz/` alone.
#[cfg(fuzzing)]
pub fn check(bytes: &[u8]) {
    fn same<M: Message + PartialEq + std::fmt::Debug>(mut buffer: Vec<u8>) {
        while let Ok(Some(message)) = take::<M>(&mut buffer) {
            let mut again = message.encode();
            let heard = take::<M>(&mut again).expect("what we say is understood");
            assert_eq!(heard, Some(message));
            assert!(again.is_empty(), "one message is one frame");
        }
    }
    // As they came, and as the body of a frame, which is hard to guess.
    let (kind, body) = bytes.split_first().unwrap_or((&JSON, &[]));
    for buffer in [bytes.to_vec(), frame(kind % 2, body)] {
        same::<KeeperOrder>(buffer.clone());
        same::<KeeperReport>(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_being_cut_anywhere() {
        let orders = [
            KeeperOrder::Stop {
                signal: Polite::Interrupt,
                grace_millis: 2000,
            },
            KeeperOrder::Stdin(vec![0, 255, 10]),
            KeeperOrder::CloseStdin,
        ];
        let bytes: Vec<u8> = orders.iter().flat_map(Message::encode).collect();
        let (mut buffer, mut found) = (vec![], vec![]);
        for byte in bytes {
            buffer.push(byte);
            while let Some(order) = take::<KeeperOrder>(&mut buffer).expect("valid") {
                found.push(order);
            }
        }
        assert_eq!(found, orders);
        assert!(buffer.is_empty());
    }

    #[test]
    fn garbage_is_an_error_not_a_panic() {
        assert!(take::<KeeperOrder>(&mut vec![255; 64]).is_err());
        assert!(take::<KeeperReport>(&mut vec![1, 0, 0, 0, 0, b'{']).is_err());
    }
}
