//! What a client's configuration says: whose tools these are, and which.

use std::fmt;
use std::str::FromStr;

/// What a client has chosen. Nothing in a call of a tool can change it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The tools that there are; [`Toolset::Weighlock`] when none is named.
    pub toolsets: Vec<Toolset>,
    /// The profile that the agent works under.
    pub agent: Option<String>,
    /// Groups its runs: a client that names the session again finds them.
    pub session: Option<String>,
    /// The sandbox, by id or name.
    pub sandbox: Option<String>,
    /// Where commands run if they do not say.
    pub cwd: Option<String>,
    /// Ask the client's person where a command waits for one who may decide.
    pub ask: bool,
    /// No command without a word on what it is for.
    pub require_description: bool,
}

/// Tools that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Toolset {
    /// Our own.
    Weighlock,
    /// `ExecuteCommand`.
    ExecuteCommand,
    /// `terminal`.
    Terminal,
    /// `run_command`.
    Shell,
    /// `Bash` and its tasks.
    Bash,
}

impl Toolset {
    /// All that there are, by the names that people type. The first one of
    /// each is its own; others are those of the tools that it has.
    pub const ALL: &[(&str, Self)] = &[
        ("weighlock", Self::Weighlock),
        ("execute-command", Self::ExecuteCommand),
        ("ExecuteCommand", Self::ExecuteCommand),
        ("terminal", Self::Terminal),
        ("shell", Self::Shell),
        ("coding", Self::Shell),
        ("run_command", Self::Shell),
        ("bash", Self::Bash),
        ("Bash", Self::Bash),
    ];
}

impl FromStr for Toolset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|&(_, toolset)| toolset).ok_or_else(|| {
            let mut own: Vec<String> = Self::ALL.iter().map(|(_, one)| one.to_string()).collect();
            own.dedup();
            format!("there is no toolset `{name}`; there are {}", own.join(", "))
        })
    }
}

impl fmt::Display for Toolset {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::ALL.iter().find(|(_, toolset)| toolset == self);
        to.write_str(known.map_or("", |(name, _)| name))
    }
}
