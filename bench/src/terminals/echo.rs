//! A line sent to an open `cat`: until it is seen there, as the terminal itself
//! echoes it, and until `cat` has said it again.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use memchr::memmem;
use serde_json::json;

use super::pty::Bare;
use super::tmux::{Control, Tmux};
use super::{CAT, open};
use crate::http::{Answer, Client};
use crate::server::Server;
use crate::table::{Goal, Row, Samples, Unit};
use crate::web_socket::Viewer;
use crate::{Effort, Result};

/// Lines before the first that counts.
const WARM_UP: usize = 10;

/// What a line leaves to be done after its answer is not charged to the next.
const PAUSE: Duration = Duration::from_millis(5);

/// Of a line that is read back over the socket, in milliseconds.
const GOAL: f64 = 1.0;

/// More than is shown at once.
const PIECE: usize = 4096;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start("")?;
    let mut client = server.connect()?;
    let terminals = ["rest", "viewer", "keyboard"].map(|name| open(&mut client, name, CAT));
    let [rest, viewer, keyboard] = terminals;
    let (rest, viewer, keyboard) = (rest?, viewer?, keyboard?);
    let mut following = server.connect()?;
    let mut with_keyboard = Viewer::open(&server, &keyboard)?;
    with_keyboard.take()?;
    let tmux = Tmux::start()?;
    // Who, whether that is ours, and how they type.
    let mut typists: Vec<(&str, bool, Box<dyn Typist + '_>)> = vec![
        ("a bare terminal", false, Box::new(Bare::open(CAT)?)),
        (
            "a WebSocket with the keyboard",
            true,
            Box::new(with_keyboard),
        ),
        (
            "a WebSocket without it, each line recorded",
            true,
            Box::new(Viewer::open(&server, &viewer)?),
        ),
        (
            "REST, each line recorded",
            true,
            Box::new(Rest {
                client,
                path: format!("/terminals/{rest}/input"),
                output: following.follow_bytes(&rest)?,
            }),
        ),
    ];
    if let Some(tmux) = &tmux {
        typists.push(("tmux in control mode", false, Box::new(tmux.control()?)));
        typists.push(("tmux `send-keys`, `capture-pane`", false, Box::new(tmux)));
    }
    let mut echoes: Vec<Samples> = typists.iter().map(|_| Samples::default()).collect();
    let mut answers: Vec<Samples> = typists.iter().map(|_| Samples::default()).collect();
    for round in 0..WARM_UP + effort.runs {
        for turn in 0..typists.len() {
            // Back and forth, so that no one always follows the same other.
            let turn = match round % 2 {
                0 => turn,
                _ => typists.len() - 1 - turn,
            };
            std::thread::sleep(PAUSE);
            // Of the two of tmux, which share a window, each has its own.
            let line = format!("line-{round}-{turn}.");
            let (echo, answer) = exchange(&mut *typists[turn].2, &line)?;
            if round >= WARM_UP {
                echoes[turn].push_millis(echo);
                answers[turn].push_millis(answer);
            }
        }
    }
    let mut rows = vec![];
    for (what, samples) in [("echo", &echoes), ("answer", &answers)] {
        for ((by, ours, _), own) in typists.iter().zip(samples) {
            let row = Row::new(format!("{what}: {by}"), Unit::Millis, own);
            let row = row.against("bare", &samples[0]);
            rows.push(match *ours {
                true if what == "echo" => row.promise(Goal::Under(GOAL)),
                true => row.goal(Goal::Under(GOAL)),
                false => row,
            });
        }
    }
    Ok(rows)
}

/// Somebody who types at a `cat`.
trait Typist {
    /// Sends a line, and Enter.
    fn send(&mut self, line: &str) -> Result<()>;

    /// Waits for more of what is shown, or looks at all of it.
    fn look(&mut self, shown: &mut Vec<u8>) -> Result<()>;

    /// Does what is left to be done when the line was answered.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Returns how long it took until the line was seen once, and twice.
fn exchange(typist: &mut dyn Typist, line: &str) -> Result<(Duration, Duration)> {
    let mut shown = vec![];
    let began = Instant::now();
    typist.send(line)?;
    let mut until_seen = |times| -> Result<Duration> {
        while memmem::find_iter(&shown, line).count() < times {
            typist.look(&mut shown)?;
        }
        Ok(began.elapsed())
    };
    let (echo, answer) = (until_seen(1)?, until_seen(2)?);
    typist.settle()?;
    Ok((echo, answer))
}

impl Typist for Bare {
    fn send(&mut self, line: &str) -> Result<()> {
        Ok(write!(self.master, "{line}\r")?)
    }

    fn look(&mut self, shown: &mut Vec<u8>) -> Result<()> {
        read(&mut self.master, shown)
    }
}

impl Typist for Viewer {
    fn send(&mut self, line: &str) -> Result<()> {
        self.press(format!("{line}\r").as_bytes())
    }

    fn look(&mut self, shown: &mut Vec<u8>) -> Result<()> {
        shown.extend(self.output()?);
        Ok(())
    }
}

/// Types by one connection and follows the output on another.
struct Rest<'a> {
    client: Client,
    path: String,
    output: Answer<'a>,
}

impl Typist for Rest<'_> {
    fn send(&mut self, line: &str) -> Result<()> {
        let typed = json!({ "text": line, "submit": true });
        self.client.ask("POST", &self.path, &typed)
    }

    fn look(&mut self, shown: &mut Vec<u8>) -> Result<()> {
        read(&mut self.output, shown)
    }

    fn settle(&mut self) -> Result<()> {
        self.client.answer().map(drop)
    }
}

impl Typist for Control {
    fn send(&mut self, line: &str) -> Result<()> {
        self.order(&format!("send-keys {line} Enter"))
    }

    fn look(&mut self, shown: &mut Vec<u8>) -> Result<()> {
        shown.extend(self.output()?.into_bytes());
        Ok(())
    }
}

impl Typist for &Tmux {
    fn send(&mut self, line: &str) -> Result<()> {
        self.call(&["send-keys", line, "Enter"]).map(drop)
    }

    fn look(&mut self, shown: &mut Vec<u8>) -> Result<()> {
        *shown = self.call(&["capture-pane", "-p"])?;
        Ok(())
    }
}

fn read(from: &mut impl Read, shown: &mut Vec<u8>) -> Result<()> {
    let mut piece = [0; PIECE];
    match from.read(&mut piece)? {
        0 => Err("the terminal is closed".into()),
        read => {
            shown.extend_from_slice(&piece[..read]);
            Ok(())
        }
    }
}
