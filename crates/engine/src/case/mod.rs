//! A request with everything that is known about it: who asks, where it would
//! run, what the policy says, and what an answer to it is bound to.
//!
//! | subject | methods |
//! |---|---|
//! | judging a request | [`Cases::case`], [`Cases::edited`] |
//! | a request that waits | [`PendingRequest`], [`Cases::revive`] |
//! | the record of a command that does not run, or not yet | [`Cases::unrun`] |
//! | what an answer is bound to | [`Cases::fingerprint`] |

mod bind;
mod kept;
mod record;

use std::sync::Arc;

use weighlock_policy::{Reason, Verdict};
use weighlock_store::{Approval, Key};
use weighlock_walls::{Review, Walls, WorkDir};

pub(crate) use self::kept::PendingRequest;
use crate::copied::find_work_dir;
use crate::core::Core;
use crate::error::Error;
use crate::limits::RuntimeLimits;
use crate::principal::{Right, Via};
use crate::request::Request;
use crate::rules::{Judged, Rules, Where};
use crate::sandboxes::{Known, Sandboxes};
use crate::session::Sessions;
use crate::view::{Explanation, SandboxView};

/// A request with everything that is known about it.
pub(crate) struct Case {
    pub(crate) request: Request,
    pub(crate) known: Known,
    pub(crate) session: String,
    pub(crate) place: WorkDir,
    pub(crate) judged: Judged,
    /// The PATH of commands.
    pub(crate) path: String,
    /// Its sandbox as it is shown.
    pub(crate) view: SandboxView,
    /// A person wants to see what it does before answering.
    pub(crate) for_question: bool,
}

/// Finds out everything about requests.
pub(crate) struct Cases {
    core: Arc<Core>,
    walls: Arc<Walls>,
    limits: Arc<RuntimeLimits>,
    sandboxes: Arc<Sandboxes>,
    sessions: Arc<Sessions>,
    rules: Arc<Rules>,
}

/// What [`Cases`] stand on.
pub(crate) struct CasesNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) walls: Arc<Walls>,
    pub(crate) limits: Arc<RuntimeLimits>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) rules: Arc<Rules>,
}

impl Cases {
    pub(crate) fn new(needs: CasesNeeds) -> Self {
        let CasesNeeds {
            core,
            walls,
            limits,
            sandboxes,
            sessions,
            rules,
        } = needs;
        Self {
            core,
            walls,
            limits,
            sandboxes,
            sessions,
            rules,
        }
    }
}

impl Cases {
    /// Finds out everything about a request: who asks, where it would run, and
    /// what the policy says. Nothing is changed.
    pub(crate) async fn case(&self, request: Request) -> Result<Case, Error> {
        request.check()?;
        let who = &request.principal;
        who.check(Right::Run)?;
        request.check_profile()?;
        // Before anybody is asked: nonsense is nobody's question.
        request.limits(self.limits.times(), self.core.config.keep, 0)?;
        let known = self
            .sandboxes
            .find_workplace(request.sandbox.as_deref(), who)?;
        let sandbox = &known.sandbox;
        let named = request.session.as_deref();
        let session = self.sessions.find_or_open(named, who, sandbox).await?;
        let place = match self
            .sandboxes
            .open_work_dir(sandbox, request.cwd.as_deref())
        {
            Ok(place) => place,
            Err(error) => {
                let place = find_work_dir(
                    &self.core,
                    &self.walls,
                    sandbox,
                    request.cwd.as_deref(),
                    &session,
                )?;
                place.ok_or(error)?
            }
        };
        let at = Where {
            known: &known,
            place: &place,
            session: Some(&session),
        };
        let mut judged = self.rules.judge(&request, &at, None)?;
        if request.review == Some(Review::Before)
            && judged.judgement.verdict == Verdict::Auto
            && !judged.judgement.by_people()
            && self.walls.has_secret_files(sandbox, &place.path)?
        {
            judged.judgement.ask_first(reads_secret_files());
        }
        self.rules.record_changes().await?;
        let mut case = Case {
            view: self.sandboxes.describe(sandbox),
            path: self.path().await,
            request,
            known,
            session,
            place,
            judged,
            for_question: false,
        };
        if case.judged.judgement.verdict == Verdict::Ask {
            case.judged.fingerprint = self.fingerprint(&case);
        }
        Ok(case)
    }

    /// Returns the PATH of commands, once the login shell has told its own.
    pub(crate) async fn path(&self) -> String {
        self.walls.search_path().await
    }

    /// Judges the command as a person has edited it.
    pub(crate) async fn edited(
        self: &Arc<Self>,
        original: Case,
        text: &str,
    ) -> Result<Case, Error> {
        let mut request = original.request;
        request.command = text.to_owned();
        request.check()?;
        self.case(request).await
    }
}

impl Case {
    /// Returns the profile it is judged under.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.request.profile()
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.request.keyed()
    }

    /// Returns the verdict with everything that led to it.
    pub(crate) fn explain(&self) -> Explanation {
        self.judged.explain(&self.request, &self.known.sandbox)
    }

    /// The system's root, whom the store need not know.
    pub(crate) fn by_root(&self) -> bool {
        matches!(self.request.principal.via(), Via::Socket { uid: 0, .. })
            && self.request.principal.name() == "root"
    }

    /// It is our own check whether anything runs.
    pub(crate) fn is_doctor(&self) -> bool {
        self.request.principal.name() == "doctor"
    }

    /// Returns whether it is something else than a person was asked about.
    /// What needs no person any more, or is never run, is nothing to ask about.
    pub(crate) fn is_another(&self, asked: &Approval) -> bool {
        self.judged.judgement.verdict == Verdict::Ask
            && self.judged.fingerprint != asked.fingerprint
    }
}

/// Why a command is asked about that could run unasked, though without what is
/// secret.
fn reads_secret_files() -> Reason {
    Reason {
        code: "secret_files".into(),
        text: "Asks to read the secret files of its sandbox.".into(),
        rule: "secret-files".into(),
        layer: "built-in".into(),
        remedy: String::new(),
        span: None,
    }
}
