//! What a blacklist would have blocked.

pub use weighlock_api::Listed;
use weighlock_policy::Blacklist;
use weighlock_store::Filter;

use super::Rules;
use super::past::past_command;
use crate::error::Error;
use crate::principal::{Principal, Right};

/// How far back it is looked, in microseconds.
const WEEK: i64 = 7 * 24 * 3600 * 1_000_000;

/// How many commands are looked at; a busy week has fewer.
const LOOK_BACK: usize = 10_000;

/// How many of them are named.
const NAMED: usize = 50;

impl Rules {
    /// Says which commands of the last 7 days a blacklist is about.
    pub fn try_blacklist(&self, list: &Blacklist, who: &Principal) -> Result<Listed, Error> {
        who.check(Right::Look)?;
        let latest = Filter {
            since: Some(self.core.clock.micros() - WEEK),
            limit: LOOK_BACK,
            ..Filter::default()
        };
        let past = self.list_newest(&latest, who)?.commands;
        let blocked = past.iter().filter(|command| list.blocks(&command.command));
        let blocked: Vec<_> = blocked.collect();
        Ok(Listed {
            looked_at: past.len(),
            matched: blocked.len(),
            commands: { blocked.into_iter().take(NAMED) }
                .map(past_command)
                .collect(),
        })
    }
}
