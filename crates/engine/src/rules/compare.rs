//! What a draft would mean for what was asked before.

use std::collections::HashMap;

pub use weighlock_api::{Compared, ComparedCommand};
use weighlock_policy::Verdict;
use weighlock_store::{Command, Filter, State};

use super::Rules;
use super::past::past_command;
use crate::error::Error;
use crate::policy::RuleDraft;
use crate::principal::{Principal, Right};

/// How many commands of the past are judged.
const LOOK_BACK: usize = 1000;

/// How many commands of each list are named.
const NAMED: usize = 100;

impl Rules {
    /// Compares a text for a rule file with the rules in force.
    pub fn compare_draft(&self, id: &str, text: &str, who: &Principal) -> Result<Compared, Error> {
        who.check(Right::Look)?;
        let draft = self.read_draft(id, text)?;
        let latest = Filter {
            limit: LOOK_BACK,
            ..Filter::default()
        };
        let past = self.list_newest(&latest, who)?.commands;
        let mut compared = Compared {
            looked_at: past.len(),
            ..Compared::default()
        };
        for command in self.differing(&past, &draft) {
            let (count, list) = match command.draft {
                Verdict::Auto => (&mut compared.newly_allowed, &mut compared.allowed),
                Verdict::Ask => (&mut compared.newly_asked, &mut compared.asked),
                Verdict::Reject => (&mut compared.newly_blocked, &mut compared.blocked),
            };
            *count += command.times;
            list.push(command);
        }
        compared.allowed.sort_by_key(|command| !command.refused);
        for list in [
            &mut compared.allowed,
            &mut compared.asked,
            &mut compared.blocked,
        ] {
            list.truncate(NAMED);
        }
        Ok(compared)
    }

    /// Returns what gets another verdict, the newest first. What was asked for
    /// many times in one place is judged once.
    fn differing(&self, past: &[Command], draft: &RuleDraft) -> Vec<ComparedCommand> {
        let mut all: Vec<(ComparedCommand, bool)> = vec![];
        let mut known: HashMap<Same<'_>, usize> = HashMap::new();
        for command in past {
            let at = *known.entry(same(command)).or_insert_with(|| {
                all.push(self.compared(command, draft));
                all.len() - 1
            });
            let (compared, _) = &mut all[at];
            compared.times += 1;
            compared.refused |= matches!(command.state, State::Rejected | State::Blocked);
        }
        { all.into_iter() }
            .filter_map(|(compared, differs)| differs.then_some(compared))
            .collect()
    }

    fn compared(&self, command: &Command, draft: &RuleDraft) -> (ComparedCommand, bool) {
        let verdict = |draft| {
            let judged = self.judge_past(command, draft);
            judged.map_or(Verdict::Reject, |judged| judged.judgement.verdict)
        };
        let (now, draft) = (verdict(None), verdict(Some(draft)));
        let compared = ComparedCommand {
            newest: past_command(command),
            times: 0,
            now,
            draft,
            refused: false,
        };
        (compared, now != draft)
    }
}

/// What a verdict depends on, of a command of the past.
type Same<'a> = (&'a str, &'a str, Option<&'a str>, &'a str, Option<&'a str>);

fn same(command: &Command) -> Same<'_> {
    (
        &command.command,
        &command.cwd,
        command.sandbox.as_deref(),
        &command.requested_by,
        command.session.as_deref(),
    )
}
