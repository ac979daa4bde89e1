//! The copy that a run works on: which layers it is made of.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use weighlock_confine::{Access, Inodes, Network, is_root};
use weighlock_effects::{Layer, Time};
use weighlock_policy::Permit;
use weighlock_walls::{CopyLayers, LowerCopy, Review, Sandbox};

use super::Copies;
use super::keep::Comes;
use crate::case::Case;
use crate::case::PendingRequest;
use crate::copied::{Copied, copy_dir};
use crate::error::Error;
use crate::principal::Right;
use crate::questions::card_of;

/// How many held changes of a session are seen by its next run. The kernel
/// takes 500 layers, and each costs a few tens of microseconds.
const MAX_BELOW: usize = 200;

/// How a run sees its directories.
enum Manner {
    /// As they are.
    Direct,
    /// Through layers, and nothing can be written. Without held changes it is
    /// the same as `Direct`.
    ReadOnly,
    /// Through layers.
    Copy,
}

impl Copies {
    /// Returns when a person is asked about what a request does, and why that
    /// is before it where it would be about its effects. What somebody has
    /// set is a demand: then nothing runs where no copy can be shown.
    pub(crate) fn review(&self, case: &Case) -> Result<(Review, Option<String>), Error> {
        let sandbox = &case.known.sandbox;
        let said = self.said(case);
        if said == Some(Review::Before) {
            return Ok((Review::Before, None));
        }
        match (self.why_no_copy(sandbox, &case.place.path), said) {
            (None, said) => Ok((said.unwrap_or(Review::Effects), None)),
            (Some(why), None) => {
                let instead = "a person is asked before commands instead of about their changes; \
                               `weighlock doctor` says more";
                Ok((Review::Before, Some(format!("{why}, so {instead}"))))
            }
            (Some(why), Some(_)) => Err(no_copy(&why)),
        }
    }

    /// Returns what somebody has set about that. Who may answer may want it
    /// otherwise than the sandbox; to be asked before is no reason to run what
    /// is allowed on no copy.
    fn said(&self, case: &Case) -> Option<Review> {
        let who = &case.request.principal;
        let decides = !who.is_agent()
            && who.check(Right::Decide).is_ok()
            && !self.core.config.approvals.four_eyes;
        let wished = case.request.review.filter(|_| decides);
        { wished.filter(|&wished| wished != Review::Before) }
            .or(case.known.sandbox.review)
            .or(self.core.config.effects.review)
    }

    /// Returns whether a command that would be asked about is tried instead.
    pub(crate) fn is_tried(&self, case: &mut Case) -> Result<bool, Error> {
        let sandbox = &case.known.sandbox;
        let judgement = &case.judged.judgement;
        if case.request.external || case.request.review == Some(Review::Before) {
            return Ok(false);
        }
        // Whatever the sandbox says, for a person.
        if !case.request.principal.is_agent() && self.is_previewed(case)? {
            return Ok(true);
        }
        let elsewhere = sandbox.network == Network::On && judgement.uses_network();
        if sandbox.files == Access::Read || elsewhere || !judgement.can_be_tried() {
            return Ok(false);
        }
        let (review, why) = self.review(case)?;
        if let Some(why) = why {
            case.judged.warnings.push(why);
        }
        Ok(review != Review::Before)
    }

    /// Returns whether the requester wants a preview; refuses requests that
    /// cannot have one.
    pub(crate) fn is_previewed(&self, case: &Case) -> Result<bool, Error> {
        let sandbox = &case.known.sandbox;
        if !case.request.preview || sandbox.files == Access::Read {
            return Ok(false);
        }
        match self.why_no_copy(sandbox, &case.place.path) {
            None => Ok(true),
            Some(why) => Err(no_copy(&why)),
        }
    }

    /// Returns how a permitted run sees its directories.
    fn manner(&self, case: &Case, permit: &Permit) -> Result<Manner, Error> {
        Ok(if permit.on_copy() {
            Manner::Copy
        } else if permit.read_only() || case.known.sandbox.files == Access::Read {
            Manner::ReadOnly
        } else if permit.person().is_some() {
            Manner::Direct
        } else if self.is_previewed(case)? {
            Manner::Copy
        } else {
            match self.review(case)?.0 {
                Review::Before => Manner::Direct,
                Review::Effects | Review::None => Manner::Copy,
            }
        })
    }

    /// Puts together the layers of a run, and announces that it comes: that
    /// keeps the layers which it sees until it has begun.
    pub(crate) fn layers(
        &self,
        case: &Case,
        permit: &Permit,
        run: &str,
    ) -> Result<(CopyLayers, Option<Comes>), Error> {
        let manner = self.manner(case, permit)?;
        // What nobody has allowed must not leave settings for what somebody
        // will allow.
        let keeps_home = !permit.is_unasked() || permit.on_copy() && self.is_reviewed_never(case);
        let mut layers = CopyLayers::direct(keeps_home);
        if let Manner::Direct = manner {
            return Ok((layers, None));
        }
        let mut below = vec![];
        let comes = self.coming.announce(run, || {
            below = self.copies_below(&case.session, run)?;
            Ok::<_, Error>(below.iter().map(|copy| copy.run.clone()).collect())
        })?;
        if below.len() > MAX_BELOW {
            return Err(Error::TooManyDrafts { held: below.len() });
        }
        layers.show_below(below);
        if let Manner::Copy = manner {
            let dir = copy_dir(&self.core, run);
            if let Some(inodes) = Inodes::of(&self.core.config.state_dir)
                && inodes.are_short()
            {
                return Err(Error::FewInodes { inodes });
            }
            fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
            layers.write_to(dir);
        }
        Ok((layers, Some(comes)))
    }

    /// Returns the undecided changes of a session that a run sees, the newest
    /// first. A run that is tried again sees those that it saw before.
    fn copies_below(&self, session: &str, run: &str) -> Result<Vec<LowerCopy>, Error> {
        let held = self.core.store.changes().held(Some(session))?;
        let older = held.into_iter().filter(|row| *row.run < *run);
        let copies = older.filter_map(|row| {
            let copied = Copied::load(&copy_dir(&self.core, &row.run))
                .ok()
                .flatten()?;
            Some(copied.lower_copy(row.run))
        });
        Ok(copies.collect())
    }

    /// Writes down what is known about a copy before anything runs on it.
    pub(crate) fn keep_copy(
        &self,
        case: &Case,
        permit: &Permit,
        run: &str,
        layers: CopyLayers,
    ) -> Result<(), Error> {
        if !layers.is_writable() {
            return Ok(());
        }
        let dir = copy_dir(&self.core, run);
        let (below, closed) = (layers.runs_below(), layers.closed);
        let (roots, home) = layers.into_roots();
        let judgement = &case.judged.judgement;
        let sandbox = &case.known.sandbox;
        let online = !permit.on_copy() && sandbox.network == Network::On;
        let copied = Copied {
            roots,
            home,
            below,
            since: now(),
            request: PendingRequest::from(case).to_json(),
            allowed: !permit.on_copy() || self.is_reviewed_never(case),
            closed,
            ask_all: case.request.preview,
            for_question: case.for_question,
            network: online.then(|| hosts(judgement)),
            card: card_of(case),
        };
        let saved = copied.save(&dir);
        saved.map_err(Error::file(&dir))
    }

    fn is_reviewed_never(&self, case: &Case) -> bool {
        self.said(case) == Some(Review::None)
    }

    /// Returns why a directory cannot be shown as a copy, if it cannot.
    pub(crate) fn why_no_copy(&self, sandbox: &Sandbox, cwd: &Path) -> Option<String> {
        let try_copy = |dir: &Path, lent| self.try_copy(dir, lent);
        self.walls.why_no_copy(sandbox, cwd, try_copy)
    }

    /// Returns the same for a sandbox as such. One that is as many projects as
    /// there are directories has none at hand, and an empty one stands for them.
    pub(crate) fn why_no_copies(&self, sandbox: &Sandbox) -> Option<String> {
        let base = &self.core.config.base;
        if self.walls.usable_directory(sandbox, base).is_some() {
            return self.why_no_copy(sandbox, base);
        }
        // A server that is root owns the empty directory.
        let lent = is_root() && sandbox.user.is_none();
        let why = self.try_layer(lent, |place| {
            let empty = place.join("live");
            fs::create_dir_all(&empty).map(|()| empty)
        });
        why.map(|why| format!("projects cannot be shown as copies ({why})"))
    }

    fn try_copy(&self, dir: &Path, lent: bool) -> Option<String> {
        let why = self.try_layer(lent, |_| Ok(dir.to_owned()))?;
        Some(format!(
            "{} cannot be shown as a copy ({why})",
            dir.display()
        ))
    }

    /// Returns why a layer cannot be made over a directory, if it cannot. The
    /// directory is found, or made, when it is known where the layer will be.
    fn try_layer(
        &self,
        lent: bool,
        dir: impl FnOnce(&Path) -> io::Result<PathBuf>,
    ) -> Option<String> {
        // One of its own: others may try the same directory now.
        let name = self.core.ids.next_as("try", self.core.clock.micros());
        let comes = self.coming.announce(&name, || Ok::<_, Infallible>(vec![]));
        let place = copy_dir(&self.core, &name);
        let made = dir(&place).and_then(|dir| Layer::make(&place, &dir).map(|_| dir));
        let tried = made
            .map_err(|error| error.to_string())
            .and_then(|dir| self.nursery.try_layer(&dir, &place, lent));
        let _ = Layer::remove(&place);
        drop(comes);
        tried.err()
    }
}

/// Nothing runs where it should not write directly and no copy can be shown.
pub(crate) fn no_copy(why: &str) -> Error {
    Error::invalid(
        "no_copy",
        format!("{why}; nothing was run"),
        "set `review = \"before\"` for this sandbox, or see `weighlock doctor`",
    )
}

/// The hosts that a command names.
fn hosts(judgement: &weighlock_policy::Judgement) -> Vec<String> {
    let mut hosts: Vec<String> = vec![];
    for host in judgement.facts.parts.iter().flat_map(|part| &part.hosts) {
        if !hosts.contains(host) {
            hosts.push(host.clone());
        }
    }
    hosts
}

fn now() -> Time {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Time {
        seconds: since.as_secs() as i64,
        nanos: since.subsec_nanos(),
    }
}
