//! Tests of the older tools that a table cannot say: they depend on who asks
//! or answer with words of their own.

use crate::shlex;
use crate::{Blacklist, Subject};

use super::WholeText;

/// One such test. It refuses or has no opinion.
#[derive(Debug)]
pub(crate) enum ToolCheck {
    /// `ExecuteCommand`: texts that no command may contain.
    Blacklist(Blacklist),
    /// `terminal`: there must be a command.
    Empty,
    /// `terminal`: which programs administrators and others may start.
    Allowed(AllowedPrograms),
    /// `Bash`: what the command is for must be said.
    Description,
    /// `run_command`: the first word must be on the agent's list.
    First(Vec<String>),
    /// `run_command`: the agent has no such tool.
    NoTool(String),
}

/// Who may start which programs.
#[derive(Debug)]
pub(crate) struct AllowedPrograms {
    /// For administrators and where there are no users; none means all.
    pub(crate) admins: Option<Vec<String>>,
    /// For everybody else.
    pub(crate) users: Vec<String>,
}

/// What a test says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolRefusal {
    pub(crate) code: String,
    pub(crate) text: String,
    /// What it found, if the rule is a list of things to find.
    pub(crate) found: Option<String>,
}

impl ToolCheck {
    pub(crate) fn refuse(
        &self,
        subject: &Subject<'_>,
        whole: &WholeText<'_>,
    ) -> Option<ToolRefusal> {
        let refusal = |code: &str, text: String| {
            Some(ToolRefusal {
                code: code.to_owned(),
                text,
                found: None,
            })
        };
        match self {
            Self::Blacklist(list) => list.find(whole.normal()).map(|entry| ToolRefusal {
                code: "blacklist".into(),
                text: "Command is not allowed by terminal blacklist.".into(),
                found: Some(entry.to_owned()),
            }),
            Self::Empty if !shlex::strip(subject.text).is_empty() => None,
            Self::Empty => match subject.terminal {
                true => refusal("empty_command", "Missing 'command' for open.".into()),
                false => refusal("empty_command", "Empty command.".into()),
            },
            Self::Allowed(allowed) => allowed.argv(subject).err(),
            Self::Description
                if subject
                    .description
                    .is_some_and(|said| !said.trim().is_empty()) =>
            {
                None
            }
            Self::Description => refusal(
                "description_required",
                "A description of what the command does is required.".into(),
            ),
            Self::First(allow) => {
                let word = whole.first_word();
                match allow.iter().any(|entry| entry == word) {
                    true => None,
                    false => refusal("not_allowed", not_on_list(word, allow)),
                }
            }
            Self::NoTool(agent) => refusal(
                "no_tool",
                format!(
                    "Agent '{agent}' may not run commands: run_command is not among its tools."
                ),
            ),
        }
    }

    /// Returns in short what it is about.
    pub(crate) fn about(&self) -> String {
        match self {
            Self::Blacklist(list) => list.entries().join(", "),
            Self::Empty => "no command".into(),
            Self::Allowed(_) => "what is not on the list".into(),
            Self::Description => "no description".into(),
            Self::First(_) => "a first word that is not on the list".into(),
            Self::NoTool(_) => "everything".into(),
        }
    }
}

/// Says it as `run_command` does. The list is sorted.
pub(crate) fn not_on_list(word: &str, allow: &[String]) -> String {
    format!(
        "Command not allowed: '{word}'. Allowed: {}",
        allow.join(", ")
    )
}

impl AllowedPrograms {
    /// Returns the words to start without a shell, if that is how; or why the
    /// command may not run.
    pub(crate) fn argv(&self, subject: &Subject<'_>) -> Result<Option<Vec<String>>, ToolRefusal> {
        let user = subject.who.is_user();
        let allowed = match (&self.admins, user) {
            (_, true) => &self.users,
            (Some(admins), false) => admins,
            (None, false) => return Ok(None),
        };
        let command = shlex::strip(subject.text);
        let refusal = |code: String, text: String| ToolRefusal {
            code,
            text,
            found: None,
        };
        let words = shlex::split(command).map_err(|error| {
            refusal(
                error.to_string(),
                format!("Invalid command syntax: {error}"),
            )
        })?;
        let Some(first) = words.first() else {
            return Err(refusal("empty_command".into(), "Empty command.".into()));
        };
        if !allowed.contains(first) {
            let list = shlex::list(allowed);
            let text = match (subject.terminal, user) {
                (false, false) => format!(
                    "Command '{first}' is not in the allowed list. Allowed: {list}. \
                     Set TERMINAL_ALLOWED_COMMANDS=* to allow all."
                ),
                (false, true) => format!(
                    "Command '{first}' is not in the allowed list for non-admin users. \
                     Allowed: {list}."
                ),
                (true, false) => format!("Command '{first}' not allowed. Allowed: {list}."),
                (true, true) => {
                    format!("Command '{first}' not allowed for non-admin users. Allowed: {list}.")
                }
            };
            return Err(refusal("not_allowed".into(), text));
        }
        // Users get a shell for one command, but not in a terminal that stays.
        Ok((!user || subject.terminal).then_some(words))
    }
}
