//! Servers that agents are given to run commands with. None has walls, and each
//! is installed by its name.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::stdio::Client;
use crate::Result;
use crate::install::{Registry, cache};
use crate::table::not_measured;

/// One that runs commands.
pub(super) struct Peer {
    known: &'static Known,
    program: PathBuf,
    /// Its own, so that it finds and leaves nothing in the person's.
    home: PathBuf,
    /// What is called of it.
    pub(super) tool: Value,
}

/// What there is to know of one.
struct Known {
    name: &'static str,
    registry: Registry,
    package: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// What it has been called with over time, as names and arguments.
    tools: &'static [(&'static str, &'static str)],
}

const KNOWN: [Known; 3] = [
    Known {
        name: "mcp-server-commands",
        registry: Registry::Npm,
        package: "mcp-server-commands",
        program: "mcp-server-commands",
        args: &[],
        env: &[],
        tools: &[
            (
                "run_process",
                r#"{ "mode": "shell", "command_line": "echo hi" }"#,
            ),
            ("run_command", r#"{ "command": "echo hi" }"#),
        ],
    },
    Known {
        name: "mcp-shell-server",
        registry: Registry::PyPi,
        package: "mcp-shell-server",
        program: "mcp-shell-server",
        args: &[],
        env: &[("ALLOW_COMMANDS", "echo")],
        tools: &[("shell_execute", r#"{ "command": ["echo", "hi"] }"#)],
    },
    Known {
        name: "Desktop Commander",
        registry: Registry::Npm,
        package: "@wonderwhy-er/desktop-commander",
        program: "desktop-commander",
        args: &["--no-onboarding"],
        env: &[
            ("DESKTOP_COMMANDER_DISABLE_TELEMETRY", "1"),
            // Nobody listens there, which is known at once.
            ("DC_FLAG_URL", "http://127.0.0.1:9/"),
        ],
        tools: &[(
            "start_process",
            r#"{ "command": "echo hi", "timeout_ms": 10000 }"#,
        )],
    },
];

impl Peer {
    pub(super) fn name(&self) -> &'static str {
        self.known.name
    }

    /// Starts it, or notes that it is not measured.
    pub(super) fn try_start(&self) -> Option<Client> {
        let started = self.start();
        started
            .map_err(|error| not_measured(self.name(), error))
            .ok()
    }

    /// Starts it and waits until it is ready for calls.
    pub(super) fn start(&self) -> Result<Client> {
        Client::start(&mut self.command())
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(self.known.args)
            .env("HOME", &self.home)
            .envs(self.known.env.iter().copied())
            .current_dir(&self.home);
        command
    }

    /// Installs it, and tries it.
    fn ready(known: &'static Known) -> Result<Self> {
        let dir = cache()?.join(known.program);
        let registry = known.registry;
        let program = registry.install(&dir, known.package, known.program)?;
        let home = dir.join("home");
        fs::create_dir_all(&home)?;
        let mut peer = Self {
            known,
            program,
            home,
            tool: Value::Null,
        };
        let mut client = peer.start()?;
        let names = client.tools()?;
        let mut tools = known.tools.iter();
        let tool = tools.find(|(name, _)| names.iter().any(|there| there == name));
        let (name, arguments) = tool.ok_or_else(|| format!("it only has {names:?}"))?;
        let arguments: Value = serde_json::from_str(arguments)?;
        peer.tool = json!({ "name": name, "arguments": arguments });
        client.call(&peer.tool)?;
        Ok(peer)
    }
}

/// Returns all that can be had, and says of the others why not.
pub(super) fn all() -> Vec<Peer> {
    let ready = |known: &'static Known| match Peer::ready(known) {
        Ok(peer) => Some(peer),
        Err(error) => {
            not_measured(known.name, error);
            None
        }
    };
    KNOWN.iter().filter_map(ready).collect()
}
