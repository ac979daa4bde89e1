//! What was asked for before, understood once more: to say what a rule would
//! have meant for it.

pub use weighlock_api::PastCommand;
use weighlock_policy::{Facts, Granted, Place, Reader, Subject, understand};
use weighlock_store::{Command, Filter};

use super::Rules;
use crate::error::Error;
use crate::id;
use crate::policy;
use crate::principal::Principal;
use crate::time;

/// Bytes of past commands that one request judges again: all of the past as
/// people know it, and less than a second even if every text is made to be costly.
const MAX_JUDGED: usize = 1 << 20;

/// How many commands are read from the store at once: there may be no room for
/// many long ones.
const PAGE: usize = 50;

/// The newest commands of the past.
pub(crate) struct Newest {
    pub(crate) commands: Vec<Command>,
    /// There are no older ones that were asked for.
    pub(crate) all: bool,
}

/// A command of the past, and what it did.
pub(crate) struct Past {
    pub(crate) command: Command,
    facts: Facts,
    place: Place,
}

impl Rules {
    /// Returns what somebody may see of the past, newest first.
    pub(crate) fn list_past(&self, filter: Filter, who: &Principal) -> Result<Vec<Past>, Error> {
        let found = self.list_newest(&filter, who)?.commands.into_iter();
        Ok(found.map(|command| self.read(command)).collect())
    }

    /// Returns the newest commands that one request may judge again.
    pub(crate) fn list_newest(&self, filter: &Filter, who: &Principal) -> Result<Newest, Error> {
        let (mut commands, mut bytes) = (Vec::<Command>::new(), 0);
        while commands.len() < filter.limit {
            let limit = PAGE.min(filter.limit - commands.len());
            let page = Filter {
                before: commands.last().map(|last| last.id.clone()),
                limit,
                ..filter.clone()
            };
            let page = self.core.list_visible(page, who)?;
            let last = page.len() < limit;
            for command in page {
                bytes += command.command.len();
                if bytes > MAX_JUDGED {
                    return Ok(Newest {
                        commands,
                        all: false,
                    });
                }
                commands.push(command);
            }
            if last {
                return Ok(Newest {
                    commands,
                    all: true,
                });
            }
        }
        Ok(Newest {
            commands,
            all: false,
        })
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
        let sandbox = command
            .sandbox
            .as_deref()
            .map(|id| self.sandboxes.name_of(id));
        let sandbox = sandbox.and_then(|name| self.sandboxes.find_by_name(&name));
        let root = match &sandbox {
            Some(sandbox) => self.walls.directory_of(sandbox),
            None => self.core.config.base.as_path(),
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

/// Describes a command of the past.
pub(crate) fn past_command(command: &Command) -> PastCommand {
    PastCommand {
        short_id: id::short(&command.id),
        command_id: command.id.clone(),
        command: command.command.clone(),
        state: command.state,
        requested_by: command.requested_by.clone(),
        created_at: time(command.created_at),
    }
}
