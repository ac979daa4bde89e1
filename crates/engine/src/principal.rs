//! Who asks and who decides: people and agents, and what each may do.

use serde::{Deserialize, Serialize};
pub use weighlock_api::Role;
use weighlock_store::{PrincipalRow, Visible};
use weighlock_walls::DEFAULT_SANDBOX;

use crate::error::Error;

/// By what we know who somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// By the kernel's word, on the Unix socket.
    Socket {
        /// The user.
        uid: u32,
        /// The process.
        pid: Option<u32>,
    },
    /// By a token.
    Token {
        /// Its first characters.
        prefix: String,
        /// What it is for; may be empty.
        label: String,
    },
    /// Signed in with a browser.
    SignIn,
    /// By the program that has us inside.
    Library,
    /// By the record of their own request.
    Record,
}

/// Somebody, known and present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    name: String,
    role: Role,
    /// Where the role counts; everywhere if not given.
    sandboxes: Option<Vec<String>>,
    default_sandbox: Option<String>,
    via: Via,
}

/// What a row of the store has beside its columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Extra {
    pub(crate) sandboxes: Option<Vec<String>>,
    pub(crate) default_sandbox: Option<String>,
}

/// Something that not everybody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Ask for commands to be run.
    Run,
    /// Look at what concerns more than oneself.
    Look,
    /// Answer questions.
    Decide,
    /// Stop others' runs; pause and resume.
    Operate,
    /// Look at everything: the whole audit, the health of the machine.
    Review,
    /// Change rules, sandboxes, people and tokens.
    Administer,
}

impl Principal {
    /// The program that has us inside, which may do everything.
    pub fn library(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            role: Role::Administrator,
            sandboxes: None,
            default_sandbox: Some(DEFAULT_SANDBOX.into()),
            via: Via::Library,
        }
    }

    /// The system's own root, who could do everything anyway.
    pub(crate) fn root(via: Via) -> Self {
        Self {
            via,
            ..Self::library("root")
        }
    }

    /// Returns somebody the store knows, if they are still active.
    pub(crate) fn from_row(row: &PrincipalRow, via: Via) -> Option<Self> {
        let extra: Extra = serde_json::from_value(row.body.clone()).ok()?;
        Some(Self {
            name: row.name.clone(),
            role: Role::from_word(&row.role).filter(|_| row.active)?,
            sandboxes: extra.sandboxes,
            default_sandbox: extra.default_sandbox,
            via,
        })
    }

    /// Returns the name that the record has.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns where the role counts; everywhere if there is no such list.
    pub fn sandboxes(&self) -> Option<&[String]> {
        self.sandboxes.as_deref()
    }

    /// Returns the sandbox that counts when none is named.
    pub fn default_sandbox(&self) -> Option<&str> {
        self.default_sandbox.as_deref()
    }

    /// Returns by what we know who it is.
    pub fn via(&self) -> &Via {
        &self.via
    }

    /// Returns whether it is an agent.
    pub fn is_agent(&self) -> bool {
        self.role == Role::Agent
    }

    pub(crate) fn is_administrator(&self) -> bool {
        self.role == Role::Administrator
    }

    /// Refuses what the role does not allow.
    pub(crate) fn check(&self, right: Right) -> Result<(), Error> {
        let (allowed, needs) = match right {
            Right::Run => (self.role != Role::Viewer, "approver"),
            Right::Look => (!self.is_agent(), "viewer"),
            Right::Decide => (self.role >= Role::Approver, "approver"),
            Right::Operate => (self.role >= Role::Operator, "operator"),
            Right::Review => (!self.is_agent() && self.is_everywhere(), "viewer"),
            Right::Administer => (self.is_administrator(), "administrator"),
        };
        match allowed {
            true => Ok(()),
            false => Err(Error::Forbidden {
                name: self.name.clone(),
                role: self.role.word(),
                needs,
            }),
        }
    }

    /// Returns whether the role counts in all sandboxes.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.sandboxes.is_none() || self.is_administrator()
    }

    /// Returns whether the role counts in a sandbox.
    pub(crate) fn reaches(&self, sandbox: &str) -> bool {
        self.is_everywhere() || { self.sandboxes.iter().flatten() }
            .any(|reached| reached == sandbox)
    }

    /// Returns whether somebody's thing in a sandbox may be seen.
    pub(crate) fn sees(&self, owner: &str, sandbox: Option<&str>) -> bool {
        owner == self.name
            || !self.is_agent()
                && (self.is_everywhere() || sandbox.is_some_and(|sandbox| self.reaches(sandbox)))
    }

    /// The same for a list.
    pub(crate) fn visible(&self) -> Visible {
        let name = self.name.clone();
        match &self.sandboxes {
            _ if self.is_agent() => Visible::Own(name),
            Some(sandboxes) if !self.is_everywhere() => Visible::Within {
                name,
                sandboxes: sandboxes.clone(),
            },
            _ => Visible::All,
        }
    }

    /// Returns from where somebody acts, for the record.
    pub(crate) fn origin(&self) -> String {
        match &self.via {
            Via::Socket {
                uid,
                pid: Some(pid),
            } => format!("uid {uid}, process {pid}"),
            Via::Socket { uid, pid: None } => format!("uid {uid}"),
            Via::Token { prefix, .. } => format!("token {prefix}…"),
            Via::SignIn => "browser".into(),
            Via::Library => "library".into(),
            Via::Record => "record".into(),
        }
    }

    /// Returns the token they are known by: its label, or else its beginning.
    pub(crate) fn token(&self) -> Option<&str> {
        match &self.via {
            Via::Token { prefix, label } if label.is_empty() => Some(prefix),
            Via::Token { label, .. } => Some(label),
            _ => None,
        }
    }

    /// Returns in one word by what we know them.
    pub fn how(&self) -> &'static str {
        match &self.via {
            Via::Socket { .. } => "socket",
            Via::Token { .. } => "token",
            Via::SignIn => "signed_in",
            Via::Library => "library",
            Via::Record => "record",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn somebody(role: Role, sandboxes: Option<&[&str]>) -> Principal {
        Principal {
            role,
            sandboxes: sandboxes.map(|all| all.iter().map(|&name| name.into()).collect()),
            ..Principal::library("somebody")
        }
    }

    #[test]
    fn each_role_may_what_it_may() {
        use Right::{Administer, Decide, Look, Operate, Review, Run};
        let all = [Run, Look, Decide, Operate, Review, Administer];
        for (role, rights) in [
            (Role::Agent, vec![Run]),
            (Role::Viewer, vec![Look, Review]),
            (Role::Approver, vec![Run, Look, Decide, Review]),
            (Role::Operator, vec![Run, Look, Decide, Operate, Review]),
            (Role::Administrator, all.to_vec()),
        ] {
            for right in all {
                let may = somebody(role, None).check(right).is_ok();
                assert_eq!(may, rights.contains(&right), "{role:?} {right:?}");
            }
        }
    }

    #[test]
    fn a_role_for_named_sandboxes_ends_there() {
        let approver = somebody(Role::Approver, Some(&["notes"]));
        assert!(approver.sees("coder", Some("notes")));
        assert!(!approver.sees("coder", Some("webshop")));
        assert!(!approver.sees("coder", None));
        assert!(approver.sees("somebody", None));
        assert!(approver.check(Right::Review).is_err());
        // An agent sees its own things wherever they are, and no others.
        let agent = somebody(Role::Agent, None);
        assert!(!agent.sees("coder", Some("notes")));
        assert!(agent.sees("somebody", Some("notes")));
    }
}
