//! People and agents: who there is, and what they show to be let in.

mod secret;
mod settings;
mod signin;
mod token;

use std::sync::Arc;

use serde_json::json;
pub use weighlock_api::{NewPerson, PersonPatch, PersonView};
use weighlock_store::PrincipalRow;
use weighlock_walls::{DEFAULT_SANDBOX, PasswdEntry};

use self::signin::Doorbell;
use self::token::token_info;
pub use self::token::{NewToken, TokenInfo};
use crate::core::Core;
use crate::error::{Error, brief};
use crate::pause::Pauses;
use crate::principal::{Extra, Principal, Right, Role, Via};
use crate::sandboxes::Sandboxes;
use crate::time;

/// Names that the record uses for others than people and agents.
const RESERVED: &[&str] = &["clock", "doctor", "everyone", "policy", "root", "weighlock"];

/// Who there is, and what they show to be let in; see
/// [`Engine::people`](crate::Engine::people).
pub struct People {
    core: Arc<Core>,
    sandboxes: Arc<Sandboxes>,
    pauses: Arc<Pauses>,
    doorbell: Doorbell,
    /// The name of the server's owner.
    owner: String,
}

impl People {
    /// Makes sure that the server's owner is known, as an administrator.
    pub(crate) async fn open(
        core: Arc<Core>,
        sandboxes: Arc<Sandboxes>,
        pauses: Arc<Pauses>,
    ) -> Result<Self, Error> {
        let owner = know_owner(&core).await?;
        Ok(Self {
            core,
            sandboxes,
            pauses,
            doorbell: Doorbell::default(),
            owner,
        })
    }

    /// Returns who a user of this machine is, by the kernel's word; nobody if
    /// they were not added. Root is somebody everywhere.
    pub fn find_user(&self, uid: u32, pid: Option<u32>) -> Result<Option<Principal>, Error> {
        let via = Via::Socket { uid, pid };
        match self.core.store.principal_of_uid(uid)? {
            Some(row) => Ok(Principal::from_row(&row, via)),
            None if uid == 0 => Ok(Some(Principal::root(via))),
            None => Ok(None),
        }
    }

    /// Returns somebody as whom a person wants to look at the policy.
    pub fn stand_in(&self, name: &str, who: &Principal) -> Result<Principal, Error> {
        if name == who.name() {
            return Ok(who.clone());
        }
        who.check(Right::Look)?;
        let row = self.core.find_person(name, who)?;
        let known = Principal::from_row(&row, who.via().clone());
        known.ok_or_else(|| Error::NoSuchPerson { name: brief(name) })
    }

    /// Returns the name of the server's owner.
    pub fn owner_name(&self) -> &str {
        &self.owner
    }

    /// Lists people and agents.
    pub fn list(&self, who: &Principal) -> Result<Vec<PersonView>, Error> {
        who.check(Right::Look)?;
        let rows = self.core.store.principals()?;
        let seen = rows.into_iter().filter(|row| {
            who.is_administrator() || who.sandboxes().is_none() || row.name == who.name()
        });
        seen.map(|row| self.person_view(row, who)).collect()
    }

    /// Returns one of them.
    pub fn find(&self, name: &str, who: &Principal) -> Result<PersonView, Error> {
        let row = self.core.find_person(name, who)?;
        self.person_view(row, who)
    }

    fn person_view(&self, row: PrincipalRow, who: &Principal) -> Result<PersonView, Error> {
        let extra: Extra = serde_json::from_value(row.body).unwrap_or_default();
        // Tokens are for those who make them, and for their owners.
        let tokens = match who.is_administrator() || who.name() == row.name {
            true => self.core.store.tokens_of(&row.name)?,
            false => vec![],
        };
        Ok(PersonView {
            role: Role::from_word(&row.role).unwrap_or(Role::Agent),
            uid: row.uid,
            is_active: row.active,
            sandboxes: extra.sandboxes,
            default_sandbox: extra.default_sandbox,
            paused_by: self.pauses.of(&row.name).map(|pause| pause.by),
            version: row.version,
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
            tokens: tokens.into_iter().map(token_info).collect(),
            principal_id: row.name,
        })
    }

    /// Adds somebody.
    pub async fn add(&self, new: NewPerson, who: &Principal) -> Result<PersonView, Error> {
        who.check(Right::Administer)?;
        let name = new.principal_id;
        check_name(&name)?;
        if new.uid.is_some() && new.role == Role::Agent {
            return Err(bad(
                "an agent is known by a token; a user of this machine is a person",
            ));
        }
        let sandboxes = self.sandboxes.resolve_ids(new.sandboxes, who)?;
        let named = self
            .sandboxes
            .resolve_ids(new.default_sandbox.map(|one| vec![one]), who)?;
        let only = sandboxes.clone().filter(|all| all.len() == 1);
        let inside = Extra {
            default_sandbox: named.or(only).and_then(|mut one| one.pop()),
            sandboxes,
        };
        let now = self.core.clock.micros();
        let row = PrincipalRow {
            name: name.clone(),
            agent: new.role == Role::Agent,
            role: new.role.word().into(),
            uid: new.uid,
            active: true,
            body: extra(&inside),
            version: 1,
            created_at: now,
            updated_at: now,
        };
        let detail = json!({ "name": name, "role": new.role, "uid": new.uid, "about": inside });
        let entry = self.core.entry("person.added", who.name(), None, detail);
        match self.core.store.add_principal(row, vec![entry]).await? {
            true => self.find(&name, who),
            false => Err(Error::NameTaken {
                what: "person or agent",
                name,
            }),
        }
    }

    /// Changes somebody's rights; only if they are still at `version`, where
    /// one is given. Tokens and sign-ins of those who are let in no more count
    /// no more.
    pub async fn change(
        &self,
        name: &str,
        patch: PersonPatch,
        version: Option<i64>,
        who: &Principal,
    ) -> Result<PersonView, Error> {
        let mut row = self.core.find_person(name, who)?;
        who.check(Right::Administer)?;
        if version.is_some_and(|version| version != row.version) {
            return Err(Error::Stale);
        }
        let mut inside: Extra = serde_json::from_value(row.body).unwrap_or_default();
        if patch.everywhere {
            inside.sandboxes = None;
        } else if let Some(named) = patch.sandboxes {
            inside.sandboxes = self.sandboxes.resolve_ids(Some(named), who)?;
        }
        if let Some(default) = patch.default_sandbox {
            let named = Some(default).filter(|name| !name.is_empty());
            let ids = self
                .sandboxes
                .resolve_ids(named.map(|one| vec![one]), who)?;
            inside.default_sandbox = ids.and_then(|mut one| one.pop());
        }
        let role = patch.role.map_or(row.role, |role| role.word().into());
        if (role == Role::Agent.word()) != row.agent {
            return Err(bad(
                "an agent stays an agent and a person a person; add another instead",
            ));
        }
        row.role = role;
        row.active = patch.is_active.unwrap_or(row.active);
        row.body = extra(&inside);
        row.updated_at = self.core.clock.micros();
        let administrator = row.role == Role::Administrator.word() && row.active;
        if !administrator && row.name == self.owner_name() {
            return Err(bad(
                "the server's owner stays an administrator: the machine is theirs",
            ));
        }
        let detail = json!({ "name": row.name, "role": row.role, "is_active": row.active,
                             "about": inside });
        let mut entries = vec![self.core.entry("person.changed", who.name(), None, detail)];
        let (name, active) = (row.name.clone(), row.active);
        if !self
            .core
            .store
            .change_principal(row, std::mem::take(&mut entries))
            .await?
        {
            return Err(Error::Stale);
        }
        if !active {
            self.core.store.end_logins_of(name.clone(), vec![]).await?;
        }
        self.find(&name, who)
    }
}

/// Returns the name of the server's owner, who is added at the first start.
async fn know_owner(core: &Core) -> Result<String, Error> {
    let uid = rustix::process::geteuid().as_raw();
    if let Some(row) = core.store.principal_of_uid(uid)? {
        return Ok(row.name);
    }
    let user = PasswdEntry::find_user(|user| user.uid == uid);
    let named = user
        .map(|user| user.name)
        .filter(|name| check_name(name).is_ok());
    let is_free = |name: &String| {
        core.store
            .principal(name)
            .is_ok_and(|found| found.is_none())
    };
    let name = named.filter(is_free);
    let name = name.unwrap_or_else(|| format!("uid-{uid}"));
    let detail = json!({ "name": name, "uid": uid });
    let entry = core.entry("person.added", "weighlock", None, detail);
    let row = owner_row(name.clone(), uid, core.clock.micros());
    core.store.add_principal(row, vec![entry]).await?;
    Ok(name)
}

fn owner_row(name: String, uid: u32, now: i64) -> PrincipalRow {
    PrincipalRow {
        name,
        agent: false,
        role: Role::Administrator.word().into(),
        uid: Some(uid),
        active: true,
        body: extra(&Extra {
            sandboxes: None,
            default_sandbox: Some(DEFAULT_SANDBOX.into()),
        }),
        version: 1,
        created_at: now,
        updated_at: now,
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = (1..=64).contains(&name.len()) && name.starts_with(first) && name.chars().all(plain);
    match fits && !RESERVED.contains(&name)
        || name == "root" && rustix::process::geteuid().is_root()
    {
        true => Ok(()),
        false => Err(bad(
            "a name has small letters, digits, `.`, `-` and `_`, begins with a letter or digit, \
             has at most 64 characters, and is no word of the record's own",
        )),
    }
}

fn bad(why: &str) -> Error {
    Error::invalid(
        "bad_person",
        format!("{why}; nothing was changed"),
        "see `weighlock people add --help`",
    )
}

fn extra(extra: &Extra) -> serde_json::Value {
    serde_json::to_value(extra).expect("plain data")
}
