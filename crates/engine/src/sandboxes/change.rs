//! Making, changing and removing sandboxes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weighlock_confine::FileId;
use weighlock_store::{Changed, SandboxRow};
use weighlock_walls::{
    PasswdEntry, RUN_VARIABLE, SandboxSource, is_complete_path, is_sandbox_name, is_too_wide,
    is_variable_name,
};

use super::guard::{Guard, merged};
use super::{Known, SandboxInfo, Sandboxes, is_called, private_dirs};
use crate::error::{Error, brief};
use crate::principal::{Principal, Right};

/// A sandbox to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({
    "label": "webshop", "path": "/srv/webshop", "guard": { "files": "write", "network": "off" },
}))]
pub struct NewSandbox {
    /// What people call it: letters, digits, `-` and `_`.
    pub label: String,
    /// An existing directory, as a whole path.
    pub path: String,
    /// Whose it is; the maker's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_principal_id: Option<String>,
    /// How it is guarded.
    #[serde(default)]
    pub guard: Guard,
    /// Variables whose values nobody is shown again. They are set for commands
    /// that a person or a rule has allowed, and for no others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
}

/// What to change of a sandbox; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxPatch {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether new runs are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_principal_id: Option<String>,
    /// How it is guarded, in JSON Merge Patch: only what is to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<serde_json::Map<String, serde_json::Value>>,
    /// Variables whose values nobody is shown again; with `null`, one goes.
    /// Those that are not named stay.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Option<String>>,
}

/// What the store keeps beside the columns.
#[derive(Serialize, Deserialize)]
pub(super) struct Body {
    pub(super) guard: Guard,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Not part of how it is guarded, which is shown and recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) secrets: BTreeMap<String, String>,
}

impl Sandboxes {
    /// Makes a sandbox.
    pub async fn add(&self, mut new: NewSandbox, who: &Principal) -> Result<SandboxInfo, Error> {
        who.check(Right::Administer)?;
        check_label(&new.label)?;
        self.check_free(&new.label)?;
        check_variables(new.secrets.iter())?;
        new.guard.secrets = new.secrets.keys().cloned().collect();
        self.check_guard(&new.label, &new.guard)?;
        let owner = self.owner_of(new.owner_principal_id, who)?;
        let dir = self.check_directory(&new.path, &owner)?;
        let meta = dir.metadata().map_err(Error::file(&dir))?;
        let now = self.core.clock.micros();
        let FileId { device, inode } = FileId::from(&meta);
        let row = SandboxRow {
            id: self.core.ids.next_as("sb", now),
            owner,
            label: new.label,
            path: text(&dir)?,
            active: true,
            body: body(&Body {
                guard: new.guard,
                device,
                inode,
                secrets: new.secrets,
            }),
            version: 1,
            created_at: now,
            updated_at: now,
        };
        let entry = self.core.entry_in(
            "sandbox.created",
            who,
            &row.id,
            json!({ "sandbox": shown(&row) }),
        );
        let (id, label) = (row.id.clone(), row.label.clone());
        if !self.core.store.add_sandbox(row, vec![entry]).await? {
            return Err(taken(&label));
        }
        self.reload()?;
        self.find(&id, who)
    }

    /// Changes a sandbox; only if it is still at `version`, where one is given.
    pub async fn change(
        &self,
        id: &str,
        patch: SandboxPatch,
        version: Option<i64>,
        who: &Principal,
    ) -> Result<SandboxInfo, Error> {
        let known = self.changeable(id, version, who)?;
        let mut row = self.row_of(&known)?;
        let mut inside: Body = serde_json::from_value(row.body)
            .map_err(|error| bad(format!("sandbox {}: {error}", known.sandbox.name)))?;
        if let Some(label) = patch.label.filter(|label| *label != row.label) {
            check_label(&label)?;
            self.check_free(&label)?;
            row.label = label;
        }
        for (name, value) in patch.secrets {
            match value {
                Some(value) => inside.secrets.insert(name, value),
                None => inside.secrets.remove(&name),
            };
        }
        check_variables(inside.secrets.iter())?;
        if let Some(change) = patch.guard {
            inside.guard = merged(&inside.guard, change)?;
            self.check_guard(&row.label, &inside.guard)?;
        }
        inside.guard.secrets = inside.secrets.keys().cloned().collect();
        if let Some(owner) = patch.owner_principal_id {
            row.owner = self.owner_of(Some(owner), who)?;
        }
        row.active = patch.is_active.unwrap_or(row.active);
        row.body = body(&inside);
        row.updated_at = self.core.clock.micros();
        let entry = self.core.entry_in(
            "sandbox.changed",
            who,
            &row.id,
            json!({ "sandbox": shown(&row) }),
        );
        let (id, label) = (row.id.clone(), row.label.clone());
        match self.core.store.change_sandbox(row, vec![entry]).await? {
            Changed::Done => {}
            Changed::Stale => return Err(Error::Stale),
            Changed::Taken => return Err(taken(&label)),
        }
        self.reload()?;
        self.find(&id, who)
    }

    /// Takes a sandbox away. Its runs stay on record, its directory as it is.
    pub async fn remove(
        &self,
        id: &str,
        version: Option<i64>,
        who: &Principal,
    ) -> Result<(), Error> {
        let known = self.changeable(id, version, who)?;
        let id = known.sandbox.id.clone();
        let entry = self.core.entry_in(
            "sandbox.deleted",
            who,
            &id,
            json!({ "label": known.sandbox.name }),
        );
        let now = self.core.clock.micros();
        let version = Some(known.version);
        match self
            .core
            .store
            .delete_sandbox(id, version, now, vec![entry])
            .await?
        {
            Changed::Done => self.reload(),
            Changed::Stale | Changed::Taken => Err(Error::Stale),
        }
    }

    fn changeable(&self, id: &str, version: Option<i64>, who: &Principal) -> Result<Known, Error> {
        let known = self.seen(id, who)?;
        who.check(Right::Administer)?;
        let name = known.sandbox.name.clone();
        match known.sandbox.source {
            SandboxSource::Store => {}
            SandboxSource::BuiltIn => return Err(Error::BuiltIn { name }),
            SandboxSource::Settings | SandboxSource::Private => {
                return Err(Error::InSettings { name });
            }
        }
        match version {
            Some(version) if version != known.version => Err(Error::Stale),
            _ => Ok(known),
        }
    }

    fn row_of(&self, known: &Known) -> Result<SandboxRow, Error> {
        let rows = self.core.store.sandboxes()?;
        let row = { rows.into_iter() }.find(|row| row.id == known.sandbox.id);
        row.filter(|row| row.version == known.version)
            .ok_or(Error::Stale)
    }

    /// Refuses a name that another sandbox has, as its id or name.
    fn check_free(&self, label: &str) -> Result<(), Error> {
        let all = self.all();
        let private = label.starts_with("user-");
        match private || all.iter().any(|known| is_called(known, label)) {
            true => Err(taken(label)),
            false => Ok(()),
        }
    }

    fn owner_of(&self, named: Option<String>, who: &Principal) -> Result<String, Error> {
        match named {
            Some(name) => Ok(self.core.find_person(&name, who)?.name),
            None => Ok(who.name().to_owned()),
        }
    }

    /// Refuses what cannot be kept.
    fn check_guard(&self, label: &str, guard: &Guard) -> Result<(), Error> {
        let paths = guard.read.iter().chain(&guard.write).chain(&guard.hidden);
        if let Some(path) = { paths }.find(|path| !is_complete_path(path)) {
            let path = brief(&path.to_string_lossy());
            return Err(bad(format!("{path} is not a whole path")));
        }
        let patterns = guard.secret_files.iter().map(String::as_str);
        weighlock_policy::SecretFiles::new(patterns).map_err(|why| bad(brief(&why)))?;
        check_variables(guard.set.iter())?;
        if let Some(name) = { guard.pass.iter() }.find(|name| !is_variable_name(name)) {
            return Err(not_a_variable(name));
        }
        if let Some(user) = &guard.user
            && PasswdEntry::find_ordinary(user).is_none()
        {
            let user = brief(user);
            return Err(bad(format!("`{user}` does not exist, or is root")));
        }
        self.layers_of(label, guard).map(drop)
    }

    /// Resolves a directory, and refuses one that is no workplace.
    pub(super) fn check_directory(&self, path: &str, owner: &str) -> Result<PathBuf, Error> {
        let wrong = |why: &str| {
            Error::invalid(
                "bad_sandbox",
                format!("{} {why}; nothing was changed", brief(path)),
                "give the absolute path of a project's directory below an allowed root (`roots` in \
                 the configuration)",
            )
        };
        let asked = Path::new(path);
        if !asked.is_absolute() {
            return Err(wrong("is not a whole path"));
        }
        let dir =
            { asked.canonicalize() }.map_err(|error| wrong(&format!("cannot be used: {error}")))?;
        if !dir.is_dir() {
            return Err(wrong("is not a directory"));
        }
        if { dir.to_string_lossy() }.contains(char::is_control) {
            return Err(wrong("has characters that cannot be shown"));
        }
        if is_too_wide(&dir, self.walls.home()) {
            return Err(wrong(
                "is, or holds, a part of the system or the home directory",
            ));
        }
        let ours = [&self.core.config.state_dir]
            .into_iter()
            .chain(&self.core.config.hidden);
        let ours = ours.filter_map(|path| path.canonicalize().ok());
        if { ours }.any(|ours| dir.starts_with(&ours) || ours.starts_with(&dir)) {
            return Err(wrong("is, or holds, what weighlock keeps for itself"));
        }
        if let Some(private) = private_dirs(&self.core.config)
            && dir.starts_with(&private)
            && !dir.starts_with(private.join(owner))
        {
            return Err(wrong("is somebody's private directory"));
        }
        if !self.roots().iter().any(|root| dir.starts_with(root)) {
            return Err(wrong("is not below an allowed root"));
        }
        Ok(dir)
    }

    /// Where sandboxes may be: what the settings say, or the base directory.
    pub(super) fn roots(&self) -> Vec<PathBuf> {
        let roots = self.core.config.roots.iter();
        let roots: Vec<PathBuf> = roots.filter_map(|root| root.canonicalize().ok()).collect();
        match self.core.config.roots.is_empty() {
            true => vec![self.core.config.base.clone()],
            false => roots,
        }
    }
}

/// Refuses variables that no environment can have.
fn check_variables<'a>(
    mut variables: impl Iterator<Item = (&'a String, &'a String)>,
) -> Result<(), Error> {
    let wrong = |(name, value): &(&String, &String)| {
        !is_variable_name(name)
            || *name == RUN_VARIABLE
            || value.contains('\0')
            || value.len() > MOST_VALUE
    };
    match variables.find(wrong) {
        Some((name, _)) => Err(not_a_variable(name)),
        None => Ok(()),
    }
}

/// Bytes of a variable's value; longer ones are files.
const MOST_VALUE: usize = 32 * 1024;

fn not_a_variable(name: &str) -> Error {
    bad(format!("`{}` cannot be set in an environment", brief(name)))
}

/// Refuses names that could not be typed or addressed.
fn check_label(label: &str) -> Result<(), Error> {
    match is_sandbox_name(label) {
        true => Ok(()),
        false => Err(bad(
            "a name has letters, digits, `-` and `_`, and at most 64 of them".into(),
        )),
    }
}

fn text(dir: &Path) -> Result<String, Error> {
    let text = dir.to_str().map(str::to_owned);
    text.ok_or_else(|| bad(format!("{} is not text", dir.display())))
}

fn body(body: &Body) -> serde_json::Value {
    serde_json::to_value(body).expect("a body is plain data")
}

/// A sandbox as the record has it.
fn shown(row: &SandboxRow) -> serde_json::Value {
    json!({ "label": row.label, "path": row.path, "owner": row.owner, "is_active": row.active,
            "guard": row.body["guard"] })
}

pub(super) fn bad(detail: String) -> Error {
    Error::invalid(
        "bad_sandbox",
        format!("{detail}; nothing was changed"),
        "see `weighlock sandbox add --help`",
    )
}

fn taken(label: &str) -> Error {
    Error::NameTaken {
        what: "sandbox",
        name: label.to_owned(),
    }
}
