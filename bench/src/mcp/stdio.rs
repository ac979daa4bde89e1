//! A client that starts its server, and talks with it in lines.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::message::{self, answers, check};
use crate::Result;

/// Nothing that is measured takes as long.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// A server that ends with this value.
pub(super) struct Client {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// What the latest request was numbered.
    asked: u64,
}

impl Client {
    /// Starts a server and waits until it is ready for calls.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Some say a lot there, at every call.
            .stderr(Stdio::null())
            .spawn()?;
        let to = process.stdin.take().ok_or("no standard input")?;
        let from = process.stdout.take().ok_or("no standard output")?;
        let mut client = Self {
            process,
            to,
            from: BufReader::new(from),
            asked: 0,
        };
        client.say(&message::initialize())?;
        client.answer_to(0)?;
        client.say(&message::initialized())?;
        Ok(client)
    }

    /// Calls a tool and waits until it is answered.
    pub(super) fn call(&mut self, tool: &Value) -> Result<()> {
        let id = self.next();
        self.say(&message::call(id, tool))?;
        check(&self.answer_to(id)?)
    }

    /// Calls it so many times at once, and waits until all are answered.
    pub(super) fn calls(&mut self, tool: &Value, count: usize) -> Result<()> {
        let mut open = HashSet::new();
        for _ in 0..count {
            let id = self.next();
            self.say(&message::call(id, tool))?;
            open.insert(id);
        }
        while !open.is_empty() {
            let message = self.hear()?;
            if answers(&message).is_some_and(|id| open.remove(&id)) {
                check(&message)?;
            }
        }
        Ok(())
    }

    /// Asks for the names of all tools.
    pub(super) fn tools(&mut self) -> Result<Vec<String>> {
        let id = self.next();
        self.say(&message::request(id, "tools/list", &json!({})))?;
        let answer = self.answer_to(id)?;
        let tools = answer["result"]["tools"].as_array().into_iter().flatten();
        let names = tools.filter_map(|tool| tool["name"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    fn next(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    fn say(&mut self, message: &Value) -> Result<()> {
        Ok(self.to.write_all(format!("{message}\n").as_bytes())?)
    }

    fn answer_to(&mut self, id: u64) -> Result<Value> {
        loop {
            let message = self.hear()?;
            if answers(&message) == Some(id) {
                return Ok(message);
            }
        }
    }

    fn hear(&mut self) -> Result<Value> {
        if self.from.buffer().is_empty() {
            let mut ready = [PollFd::new(self.from.get_ref(), PollFlags::IN)];
            if poll(&mut ready, Some(&PATIENCE))? == 0 {
                return Err("there is no answer".into());
            }
        }
        let mut line = String::new();
        match self.from.read_line(&mut line)? {
            0 => Err("it has ended".into()),
            _ => Ok(serde_json::from_str(&line)?),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
