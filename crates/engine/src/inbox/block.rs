//! Blocking from now on what was rejected: a rule for everybody, in the
//! server's rule file.

use weighlock_policy::{RuleForm, Verdict};
use weighlock_store::Approval;

use super::Inbox;
use crate::error::Error;
use crate::id;
use crate::principal::{Principal, Right};
use crate::rules::Save;

/// The rule file that counts for everybody.
const SERVER: &str = "server";

/// How often somebody else may save the same file meanwhile.
const TRIES: usize = 5;

impl Inbox {
    /// Refuses, before anything is decided, what could not be blocked.
    pub(super) fn check_blocks(&self, blocks: &[String], who: &Principal) -> Result<(), Error> {
        if blocks.is_empty() {
            return Ok(());
        }
        who.check(Right::Administer)?;
        let text = self.rules.file_text(SERVER, who)?;
        let text = with_blocks(&text, blocks, "x", who)?;
        self.rules.read_draft(SERVER, &text).map(drop)
    }

    /// Puts a rule for each pattern into the rule file.
    pub(super) async fn block_from_now_on(
        &self,
        blocks: &[String],
        approval: &Approval,
        who: &Principal,
    ) -> Result<(), Error> {
        if blocks.is_empty() {
            return Ok(());
        }
        let question = id::short(&approval.id);
        let mut tries = TRIES;
        loop {
            let before = self.rules.file_text(SERVER, who)?;
            let save = Save {
                text: with_blocks(&before, blocks, &question, who)?,
                note: format!("Blocked when {question} was rejected"),
                etag: Some(crate::rules::tag(&before)),
                phrase: None,
            };
            tries -= 1;
            match self.rules.save_file(SERVER, save, who).await {
                Err(Error::Stale) if tries > 0 => {}
                saved => return saved.map(drop),
            }
        }
    }
}

/// Puts a rule for each pattern behind those of a text.
fn with_blocks(
    text: &str,
    blocks: &[String],
    question: &str,
    who: &Principal,
) -> Result<String, Error> {
    let mut text = text.to_owned();
    for (at, pattern) in blocks.iter().enumerate() {
        let name = match at {
            0 => format!("blocked-{question}"),
            at => format!("blocked-{question}-{}", at + 1),
        };
        let rule = RuleForm {
            name,
            verdict: Verdict::Reject,
            because: format!("was blocked by {} when it was asked for", who.name()),
            ..RuleForm::about(pattern)
        };
        let edited = weighlock_policy::edit(&text, None, Some(&rule));
        text = edited.ok_or_else(|| {
            Error::invalid(
                "cannot_block",
                format!("no rule can be made of `{pattern}`; nothing was decided"),
                "reject it without blocking, and write the rule under Policies",
            )
        })?;
    }
    Ok(text)
}
