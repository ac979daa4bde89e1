//! The rule files themselves: reading them, trying others in their place,
//! saving them, and going back.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weighlock_policy::{Judgement, Layer, LoadError, Outline, RuleForm, Verdict};
use weighlock_store::{Command, Filter, RulesVersion};

use super::Rules;
use super::past::Newest;
use crate::error::{Error, brief};
use crate::policy::{RuleDraft, RuleFile};
use crate::principal::{Principal, Right};
use crate::time;
use crate::view::RuleInForce;

/// In how many commands hits are counted at most. Judging so many takes a blink.
const COUNTED: usize = 1000;

/// How far back hits are counted, in microseconds.
const WEEK: i64 = 7 * 24 * 3600 * 1_000_000;

/// After so long without one, a rule is perhaps not needed.
const MONTH: i64 = 30 * 24 * 3600 * 1_000_000;

/// How many versions are looked at to tell how old a rule is.
const VERSIONS: usize = 200;

/// A rule file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyText {
    /// `server`, or `sandbox.` and the sandbox's name.
    pub id: String,
    /// Where it is.
    pub file: String,
    /// What it says; empty where there is none yet.
    pub text: String,
    /// Names exactly this text; a change must repeat it.
    pub etag: i64,
    /// The version it was saved as; none where it was written otherwise.
    pub version: Option<i64>,
    /// Its rules, in their order; empty while it cannot be read.
    pub rules: Vec<RuleInfo>,
    /// What is wrong with it.
    pub errors: Vec<LoadErrorView>,
    /// In how many commands hits were counted: the newest of the last 7 days.
    pub looked_at: usize,
}

/// One rule of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleInfo {
    /// Its name.
    pub name: String,
    /// Where it begins, from 1.
    pub line: usize,
    /// What it says about what it matches.
    pub verdict: Verdict,
    /// In short, what it is about.
    pub about: String,
    /// Why.
    pub because: String,
    /// It is about changes of files, in which hits are not counted.
    pub change: bool,
    /// How many commands it is about, as the rules are now.
    pub hits: u64,
    /// When the newest of them was asked for, of the last 30 days.
    pub last_hit: Option<String>,
    /// It has been there for 30 days, and no command of these was about it.
    pub unused: bool,
    /// As a form has it; none where it can only be changed as text.
    pub form: Option<RuleForm>,
}

/// One rule that is put into a text, changed or taken out of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleEdit {
    /// The whole text.
    pub text: String,
    /// The line on which the rule begins; without it, the rule is new.
    #[serde(default)]
    pub line: Option<usize>,
    /// The rule; without it, the one on that line goes.
    #[serde(default)]
    pub rule: Option<RuleForm>,
}

/// A text in which one rule was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleEdited {
    /// The whole text; every line that is not the rule's is as it was.
    pub text: String,
    /// What is wrong with it, and what rules it has.
    #[serde(flatten)]
    pub checked: RulesChecked,
}

/// One mistake in rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadErrorView {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

/// A text that might become a rule file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulesChecked {
    /// Nothing is wrong with it.
    pub ok: bool,
    /// All mistakes, in their order.
    pub errors: Vec<LoadErrorView>,
    /// Its rules, if nothing is wrong.
    pub rules: Vec<RuleInfo>,
}

/// A text that a rule file has had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionView {
    /// From 1.
    pub version: i64,
    /// Who saved it; none where it was written by other means.
    pub author: Option<String>,
    /// When.
    pub created_at: String,
    /// What they said about it.
    pub note: String,
    /// The whole text.
    pub text: String,
    /// The file says this now.
    pub current: bool,
}

impl Rules {
    /// Returns a rule file with what its rules were about lately.
    pub fn read_file(&self, id: &str, who: &Principal) -> Result<PolicyText, Error> {
        who.check(Right::Look)?;
        let file = self.rule_file(id)?;
        let text = self.text_of(&file)?;
        let newest = self.core.store.rules_versions(&file.id, None, 1)?.pop();
        let version = newest.filter(|newest| newest.text == text);
        let (mut rules, errors) = match file.layer(&text) {
            Ok(layer) => (infos(&layer, &text), vec![]),
            Err(errors) => (vec![], errors),
        };
        let looked_at = self.count_hits(&file, &mut rules, who)?;
        Ok(PolicyText {
            id: file.id,
            file: file.path.display().to_string(),
            etag: tag(&text),
            version: version.map(|newest| newest.version),
            rules,
            errors: errors.into_iter().map(LoadErrorView::from).collect(),
            looked_at,
            text,
        })
    }

    /// Says what is wrong with a text, and what rules it has.
    pub fn check_text(&self, id: &str, text: &str, who: &Principal) -> Result<RulesChecked, Error> {
        who.check(Right::Look)?;
        Ok(match self.rule_file(id)?.layer(text) {
            Ok(layer) => RulesChecked {
                ok: true,
                errors: vec![],
                rules: infos(&layer, text),
            },
            Err(errors) => RulesChecked {
                errors: errors.into_iter().map(LoadErrorView::from).collect(),
                ..RulesChecked::default()
            },
        })
    }

    /// Changes one rule in a text. Nothing is saved.
    pub fn edit_text(
        &self,
        id: &str,
        edit: &RuleEdit,
        who: &Principal,
    ) -> Result<RuleEdited, Error> {
        let edited = weighlock_policy::edit(&edit.text, edit.line, edit.rule.as_ref());
        let text = edited.ok_or_else(|| {
            Error::invalid(
                "not_by_form",
                "this rule cannot be changed without changing other lines; nothing was changed"
                    .into(),
                "edit it as text",
            )
        })?;
        Ok(RuleEdited {
            checked: self.check_text(id, &text, who)?,
            text,
        })
    }

    /// Returns what a rule file says.
    pub(crate) fn file_text(&self, id: &str, who: &Principal) -> Result<String, Error> {
        who.check(Right::Look)?;
        self.text_of(&self.rule_file(id)?)
    }

    /// Returns the texts that a rule file has had, newest first.
    pub fn list_versions(
        &self,
        id: &str,
        before: Option<i64>,
        limit: usize,
        who: &Principal,
    ) -> Result<Vec<VersionView>, Error> {
        who.check(Right::Look)?;
        let file = self.rule_file(id)?;
        let text = self.text_of(&file)?;
        let versions = self.core.store.rules_versions(&file.id, before, limit)?;
        let mut views: Vec<VersionView> = versions.into_iter().map(VersionView::from).collect();
        if before.is_none()
            && let Some(newest) = views.first_mut()
        {
            newest.current = newest.text == text;
        }
        Ok(views)
    }

    /// Reads a text in the place of a rule file. For the server there need be
    /// none: a draft can be tried before there are rules.
    pub(crate) fn read_draft(&self, id: &str, text: &str) -> Result<RuleDraft, Error> {
        let file = match self.rule_file(id) {
            Err(_) if id == "server" => RuleFile::none(),
            found => found?,
        };
        file.draft(text).map_err(|errors| Error::Rules { errors })
    }

    pub(super) fn rule_file(&self, id: &str) -> Result<RuleFile, Error> {
        let files = self.policy.rule_files();
        let known: Vec<String> = files.iter().map(|file| file.id.clone()).collect();
        let found = files.into_iter().find(|file| file.id == id);
        found.ok_or_else(|| Error::NoSuchPolicy {
            id: brief(id),
            known: known.join(", "),
        })
    }

    /// Notes which version of the server's rules is in force, for the record of
    /// each run.
    pub(super) fn reload_version(&self) -> Result<(), Error> {
        let newest = self.core.store.rules_versions("server", None, 1)?.pop();
        let version = newest.map_or(0, |newest| newest.version);
        self.version.store(version, Ordering::Relaxed);
        Ok(())
    }

    /// Returns that version.
    pub(crate) fn version(&self) -> Option<i64> {
        let version = self.version.load(Ordering::Relaxed);
        (version > 0).then_some(version)
    }

    pub(super) fn text_of(&self, file: &RuleFile) -> Result<String, Error> {
        file.text().map_err(Error::file(&file.path))
    }

    /// Counts what each rule was about in the last days. Returns in how many
    /// commands.
    fn count_hits(
        &self,
        file: &RuleFile,
        rules: &mut [RuleInfo],
        who: &Principal,
    ) -> Result<usize, Error> {
        if rules.is_empty() {
            return Ok(0);
        }
        let now = self.core.clock.micros();
        let past = self.lately(file.sandbox.clone(), now, who)?;
        let hits = self.hits(&past.commands, now, |judgement| {
            let met = judgement.met(file.kind());
            met.into_iter().map(str::to_owned).collect()
        });
        for rule in rules.iter_mut().filter(|rule| !rule.change) {
            if let Some((count, last)) = hits.get(&rule.name) {
                rule.hits = *count;
                rule.last_hit = Some(time(*last));
            }
        }
        // Where there were more commands than were looked at, nobody knows.
        if past.all {
            self.mark_unused(file, rules, now - MONTH)?;
        }
        Ok(of_the_week(&past.commands, now))
    }

    /// The same for rules of any origin.
    pub(super) fn count_all(
        &self,
        rules: &mut [RuleInForce],
        who: &Principal,
    ) -> Result<usize, Error> {
        let now = self.core.clock.micros();
        let past = self.lately(None, now, who)?;
        let hits = self.hits(&past.commands, now, |judgement| {
            let met = judgement.tried().into_iter().filter(|rule| rule.matched);
            met.map(|rule| (rule.layer, rule.name)).collect()
        });
        for RuleInForce {
            rule,
            hits: counted,
            last_hit,
        } in rules
        {
            let met = hits.get(&(rule.layer.clone(), rule.name.clone()));
            *counted = Some(met.map_or(0, |(count, _)| *count));
            *last_hit = met.map(|(_, last)| time(*last));
        }
        Ok(of_the_week(&past.commands, now))
    }

    /// Returns the newest commands of the last days.
    fn lately(&self, sandbox: Option<String>, now: i64, who: &Principal) -> Result<Newest, Error> {
        let latest = Filter {
            sandbox,
            since: Some(now - MONTH),
            limit: COUNTED,
            ..Filter::default()
        };
        self.list_newest(&latest, who)
    }

    /// Judges commands again, and counts the rules that each has met: how often
    /// in the last week, and when last.
    fn hits<R: Hash + Eq>(
        &self,
        past: &[Command],
        now: i64,
        met: impl Fn(&Judgement) -> Vec<R>,
    ) -> HashMap<R, (u64, i64)> {
        let mut hits: HashMap<R, (u64, i64)> = HashMap::new();
        for command in past {
            let Ok(judged) = self.judge_past(command, None) else {
                continue;
            };
            for rule in met(&judged.judgement) {
                let (count, last) = hits.entry(rule).or_default();
                *count += u64::from(command.created_at >= now - WEEK);
                *last = (*last).max(command.created_at);
            }
        }
        hits
    }

    /// Marks the rules without a hit that were there at a time already.
    fn mark_unused(&self, file: &RuleFile, rules: &mut [RuleInfo], then: i64) -> Result<(), Error> {
        let versions = self.core.store.rules_versions(&file.id, None, VERSIONS)?;
        let Some(old) = versions.into_iter().find(|version| version.at <= then) else {
            return Ok(());
        };
        let Ok(old) = file.layer(&old.text) else {
            return Ok(());
        };
        let known: Vec<String> = old.outline().into_iter().map(|rule| rule.name).collect();
        for rule in rules.iter_mut().filter(|rule| !rule.change) {
            rule.unused = rule.last_hit.is_none() && known.contains(&rule.name);
        }
        Ok(())
    }
}

fn of_the_week(past: &[Command], now: i64) -> usize {
    let week = past.iter().filter(|past| past.created_at >= now - WEEK);
    week.count()
}

/// Names a text: a number that a header can hold, and that no other text has.
pub(crate) fn tag(text: &str) -> i64 {
    let hash = Sha256::digest(text.as_bytes());
    let first = i64::from_be_bytes(hash[..8].try_into().expect("32 bytes"));
    // As many bits as a browser's numbers hold.
    first & (i64::MAX >> 10)
}

fn infos(layer: &Layer, text: &str) -> Vec<RuleInfo> {
    let mut forms: HashMap<usize, RuleForm> =
        { weighlock_policy::forms(text).into_iter().flatten() }.collect();
    { layer.outline().into_iter() }
        .map(|rule| RuleInfo {
            form: forms.remove(&rule.line),
            ..RuleInfo::from(rule)
        })
        .collect()
}

impl From<Outline> for RuleInfo {
    fn from(rule: Outline) -> Self {
        Self {
            name: rule.name,
            line: rule.line,
            verdict: rule.verdict,
            about: rule.about,
            because: rule.because,
            change: rule.change,
            hits: 0,
            last_hit: None,
            unused: false,
            form: None,
        }
    }
}

impl From<LoadError> for LoadErrorView {
    fn from(error: LoadError) -> Self {
        Self {
            line: error.line,
            column: error.column,
            message: error.message,
            hint: error.hint,
        }
    }
}

impl From<RulesVersion> for VersionView {
    fn from(version: RulesVersion) -> Self {
        Self {
            version: version.version,
            author: Some(version.author).filter(|author| !author.is_empty()),
            created_at: time(version.at),
            note: version.note,
            text: version.text,
            current: false,
        }
    }
}
