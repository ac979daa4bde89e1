//! Saving a rule file, so that nobody's change is lost and nothing is changed
//! unrecorded.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;
use weighlock_policy::{Subject, Verdict};
use weighlock_store::RulesVersion;

use super::Rules;
use super::files::{PolicyText, tag};
use crate::error::Error;
use crate::policy::{For, RuleFile, for_examples};
use crate::principal::{Principal, Right};

/// What a person has to say to let everything run unasked.
const PHRASE: &str = "allow everything";

/// What nobody allows all of by mistake: it deletes, runs foreign code, brings
/// something from elsewhere, sends something there.
const PROBES: &[&str] = &[
    "rm -rf src",
    "./unheard-of --all",
    "python3 build.py",
    "curl -o tool https://example.com/tool",
    "git push origin main",
];

/// What a rule file is to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Save {
    /// The whole text.
    pub text: String,
    /// What it is for.
    pub note: String,
    /// The tag of the text that was read before.
    pub etag: Option<i64>,
    /// What was typed, where something has to be.
    pub phrase: Option<String>,
}

impl Rules {
    /// Puts a text in the place of a rule file's.
    pub async fn save_file(
        &self,
        id: &str,
        save: Save,
        who: &Principal,
    ) -> Result<PolicyText, Error> {
        let file = self.file_to_save(id, who).await?;
        let draft = self.read_draft(id, &save.text)?;
        let _turn = self.saving.lock().await;
        let before = self.text_of(&file)?;
        if save.etag.is_some_and(|etag| etag != tag(&before)) {
            return Err(Error::Stale);
        }
        if save.phrase.as_deref() != Some(PHRASE) && self.would_allow_everything(&file, &draft) {
            return Err(allows_everything());
        }
        if save.text != before {
            self.replace(&file, before, save, who).await?;
        }
        self.policy.current();
        self.record_changes().await?;
        self.reload_version()?;
        self.read_file(id, who)
    }

    /// Puts a text that a rule file has had in its place again.
    pub async fn restore_version(
        &self,
        id: &str,
        version: i64,
        save: Save,
        who: &Principal,
    ) -> Result<PolicyText, Error> {
        self.file_to_save(id, who).await?;
        let found = self.core.store.rules_version(id, version)?;
        let found = found.ok_or_else(|| {
            Error::invalid(
                "no_such_version",
                format!("`{id}` has no version {version}; nothing was changed"),
                "`weighlock policy log` lists all versions",
            )
        })?;
        let note = match save.note.is_empty() {
            true => format!("Back to version {version}"),
            false => save.note,
        };
        let save = Save {
            text: found.text,
            note,
            ..save
        };
        self.save_file(id, save, who).await
    }

    /// Finds a rule file for somebody who may change it.
    async fn file_to_save(&self, id: &str, who: &Principal) -> Result<RuleFile, Error> {
        if who.is_agent() {
            return Err(self.core.refuse_agent("change rules", Some(id), who).await);
        }
        who.check(Right::Administer)?;
        self.rule_file(id)
    }

    /// Writes the new text beside the old one, records it, and renames: what
    /// cannot be recorded is not in force.
    async fn replace(
        &self,
        file: &RuleFile,
        before: String,
        save: Save,
        who: &Principal,
    ) -> Result<(), Error> {
        let failed = Error::file(&file.path);
        let written = beside(&file.path, &save.text).map_err(&failed)?;
        let versions = self.versions(file, before, &save, who)?;
        let detail = json!({ "policy": file.id, "file": file.path, "note": save.note,
                             "bytes": save.text.len(), "origin": who.origin() });
        let entry = self.core.entry("rules.saved", who.name(), None, detail);
        let recorded = self
            .core
            .store
            .save_rules(versions, |version| {
                let mut entry = entry;
                entry.detail["version"] = version.into();
                entry
            })
            .await;
        match recorded {
            Ok(_) => written.take_place().map_err(failed),
            Err(error) => {
                written.forget();
                Err(error.into())
            }
        }
    }

    /// The texts to remember: what stood there without our knowledge, and the
    /// new one.
    fn versions(
        &self,
        file: &RuleFile,
        before: String,
        save: &Save,
        who: &Principal,
    ) -> Result<Vec<RulesVersion>, Error> {
        let newest = self.core.store.rules_versions(&file.id, None, 1)?.pop();
        let version = |author: &str, note: &str, text: String| RulesVersion {
            policy: file.id.clone(),
            version: 0,
            author: author.to_owned(),
            note: note.to_owned(),
            text,
            at: self.core.clock.micros(),
        };
        let known = newest.map_or_else(String::new, |newest| newest.text) == before;
        let mut versions = vec![];
        if !known {
            versions.push(version("", "Found in the file", before));
        }
        versions.push(version(who.name(), &save.note, save.text.clone()));
        Ok(versions)
    }

    /// Returns whether a draft lets everything run unasked that is not refused.
    fn would_allow_everything(&self, file: &RuleFile, draft: &crate::policy::RuleDraft) -> bool {
        let in_force = self.policy.current();
        let asker = For {
            agent: None,
            sandbox: file.sandbox.as_deref().unwrap_or_default(),
            layers: &[],
        };
        let allowed = |draft| {
            let rules = self.policy.rules(&in_force, None, &asker, draft);
            let judge = |text: &&str| {
                let subject = Subject {
                    text,
                    ..Subject::default()
                };
                rules.decide(for_examples(text), &subject).verdict == Verdict::Auto
            };
            PROBES.iter().all(judge)
        };
        // Where presets ask for nothing, no file makes it worse.
        allowed(Some(draft)) && !allowed(None)
    }
}

fn allows_everything() -> Error {
    Error::invalid(
        "allows_everything",
        "with these rules every command that is not refused would run without approval; \
         nothing was changed"
            .into(),
        format!("name what to allow, or type `{PHRASE}`"),
    )
}

/// A file that is written, and not yet in its place.
struct Written {
    new: PathBuf,
    place: PathBuf,
}

/// Writes a text beside a file: a reader sees the old one or the new one.
fn beside(path: &Path, text: &str) -> io::Result<Written> {
    // A link stays one: people keep their rules in a repository.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let dir = place.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir)?;
    let mode = fs::metadata(&place).map_or(0o600, |meta| meta.permissions().mode() & 0o777);
    let mut chance = [0; 8];
    getrandom::fill(&mut chance).map_err(io::Error::other)?;
    let new = dir.join(format!(".rules.{:016x}", u64::from_ne_bytes(chance)));
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
    let written = Written { new, place };
    match file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
    {
        Ok(()) => Ok(written),
        Err(error) => {
            written.forget();
            Err(error)
        }
    }
}

impl Written {
    fn take_place(self) -> io::Result<()> {
        fs::rename(&self.new, &self.place)
    }

    fn forget(self) {
        let _ = fs::remove_file(&self.new);
    }
}
