//! What was asked for before, understood once more: to say what a rule would
//! have meant for it.

use weighlock_policy::{Facts, Granted, Place, Reader, Subject, understand};
use weighlock_store::{Command, Filter};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_store::State;

use crate::engine::Engine;
use crate::error::Error;
use crate::id;
use crate::policy;
use crate::principal::Principal;
use crate::view::time;

/// A command of the past, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PastCommand {
    /// The run.
    pub command_id: String,
    /// What people type.
    pub short_id: String,
    /// The text.
    pub command: String,
    /// What became of it.
    pub state: State,
    /// Who asked.
    pub requested_by: String,
    /// When.
    pub created_at: String,
}

/// A command of the past, and what it did.
pub(crate) struct Past {
    pub(crate) command: Command,
    facts: Facts,
    place: Place,
}

impl Engine {
    /// Returns what somebody may see of the past, newest first.
    pub(crate) fn past(&self, filter: Filter, who: &Principal) -> Result<Vec<Past>, Error> {
        let found = self.commands(filter, who)?.into_iter();
        Ok(found.map(|command| self.read(command)).collect())
    }

    fn read(&self, command: Command) -> Past {
        let place = self.place_of(&command);
        let facts = understand(&command.command, Reader::Either, &[], &place);
        Past {
            command,
            facts,
            place,
        }
    }

    /// Returns where a command was run, as far as that is still there.
    pub(crate) fn place_of(&self, command: &Command) -> Place {
        let sandbox = command.sandbox.as_deref().map(|id| self.sandbox_name(id));
        let sandbox = sandbox.and_then(|name| self.sandbox_called(&name));
        let root = match &sandbox {
            Some(sandbox) => self.walls.directory_of(sandbox),
            None => self.config.base.as_path(),
        };
        policy::place(root, command.cwd.as_ref(), self.walls.home())
    }
}

impl Past {
    /// Returns whether a part of it is what a person would allow.
    pub(crate) fn is_met_by(&self, granted: &Granted) -> bool {
        let subject = Subject {
            text: &self.command.command,
            place: Some(&self.place),
            ..Subject::default()
        };
        granted.is_about(&self.facts, &subject)
    }
}

impl From<&Command> for PastCommand {
    fn from(command: &Command) -> Self {
        Self {
            short_id: id::short(&command.id),
            command_id: command.id.clone(),
            command: command.command.clone(),
            state: command.state,
            requested_by: command.requested_by.clone(),
            created_at: time(command.created_at),
        }
    }
}
