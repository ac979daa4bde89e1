//! Applies changes to the live tree, wholly or not at all.
//!
//! Everything is prepared beside its place and written down; then a series of
//! renames puts it there. Whenever that is cut off, by an error, a conflict or
//! the end of the process, what is written down is enough to finish it or to
//! take it back. Before-images of all that is lost are kept, so that it can
//! be undone later too.

mod anchor;
mod applied;
mod apply;
mod attributes;
mod back;
mod check;
mod copy;
mod error;
mod fresh;
pub(crate) mod handle;
mod images;
mod journal;
mod make;
mod plan;
mod recover;
mod refuse;
mod source;
mod stage;
mod tree;
mod work;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use weighlock_policy::CommitPermit;

use crate::changes::Changes;

pub use applied::{Applied, forget_images, is_applied};
pub use error::CommitError;
pub(crate) use images::ImageIndex;
pub use recover::{Recovered, is_unfinished, recover};
pub(crate) use refuse::OWN;

use error::cannot;
use images::Images;
use journal::{CommitProgress, JournalLine, JournalWriter};
use plan::CommitPlan;
use source::Origin;
use stage::Stager;
use tree::OpenDirs;
use work::Work;

/// Where a commit keeps what it needs.
#[derive(Debug, Clone)]
pub struct Place {
    /// A directory for this commit alone, in weighlock's state; made if
    /// absent. It holds the journal, the before-images and the record.
    pub dir: PathBuf,
    /// Whether it must outlive a loss of power, and not only of the process.
    pub durable: bool,
    /// Nobody else can have a file of the layer open, and nobody will need the
    /// layer: then its files become those of the live tree. Otherwise they are
    /// copied, and each is looked at once more.
    pub alone: bool,
}

/// Applies exactly these changes, or nothing.
pub fn commit(
    changes: &Changes,
    permit: CommitPermit,
    place: &Place,
) -> Result<Applied, CommitError> {
    if permit.hash() != changes.hash() {
        return Err(CommitError::OtherHash);
    }
    let plan = CommitPlan::of(changes);
    let mut trees = work::open_roots(changes)?;
    allow(changes, &plan, &mut trees)?;
    let mut work = Work {
        place: place.dir.clone(),
        durable: place.durable,
        changes: changes.clone(),
        trees,
        anchors: Vec::new(),
        staged: None,
        steps: Vec::new(),
        dirs: Vec::new(),
        progress: begin(place).map_err(cannot("use", &place.dir))?,
    };
    if let Err(failed) = prepare(&mut work, changes, &plan, place.alone) {
        let cleared = work.clear();
        return Err(unless_stuck(failed, cleared));
    }
    finish(work, false)
}

fn allow(
    changes: &Changes,
    plan: &CommitPlan<'_>,
    trees: &mut [OpenDirs],
) -> Result<(), CommitError> {
    let refused = refuse::refused(refuse::CheckedChange {
        changes,
        plan,
        trees,
    });
    if !refused.is_empty() {
        return Err(CommitError::Refused(refused));
    }
    let conflicts = changes.conflicts()?;
    if !conflicts.is_empty() {
        return Err(CommitError::Conflicts(conflicts));
    }
    Ok(())
}

/// Makes the place, which no other commit may have used.
fn begin(place: &Place) -> io::Result<CommitProgress> {
    std::fs::create_dir_all(&place.dir)?;
    if journal::read(&place.dir)?.is_some() || Applied::load(&place.dir)?.is_some() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // An attempt that was taken back may have left its signs.
    journal::remove(&place.dir)?;
    images::remove(&place.dir)?;
    CommitProgress::read(&place.dir, place.durable)
}

fn prepare(
    work: &mut Work,
    changes: &Changes,
    plan: &CommitPlan<'_>,
    alone: bool,
) -> Result<(), CommitError> {
    let place = work.place.clone();
    let open = |work: &mut Work| {
        let mut journal = JournalWriter::create(&place)?;
        journal.write(&JournalLine::Begin {
            changes: Box::new(changes.clone()),
            durable: work.durable,
        })?;
        journal.flush(work.durable)?;
        let origins = changes.roots.iter().map(|root| Origin::open(&root.source));
        io::Result::Ok((
            journal,
            Images::create(&place)?,
            origins.collect::<io::Result<Vec<Origin>>>()?,
        ))
    };
    let (journal, images, origins) = open(work).map_err(cannot("use", &place))?;
    let stager = Stager {
        work,
        changes,
        plan,
        journal,
        images,
        origins,
        alone,
        dirs: HashMap::new(),
        late: Vec::new(),
        stages: Vec::new(),
        usable: HashMap::new(),
        copied: HashMap::new(),
        settled: HashSet::new(),
    };
    stager.run()
}

/// Does what is prepared, or takes it back.
fn finish(mut work: Work, resumed: bool) -> Result<Applied, CommitError> {
    let mut reached = 0;
    let done = work
        .go(resumed, &mut reached)
        .and_then(|()| record(&mut work));
    match done {
        Ok(applied) => {
            // It is applied, whatever is left lying about; as long as there
            // is, so is the journal, and `recover` tries again.
            _ = tidy(&mut work);
            Ok(applied)
        }
        Err(failed) => {
            if resumed {
                reached = work.steps.len();
            }
            let back = work.go_back(reached);
            Err(unless_stuck(failed, back))
        }
    }
}

fn record(work: &mut Work) -> Result<Applied, CommitError> {
    let mut save = || {
        work.forget_paths();
        let applied = Applied::of(work)?;
        work.sync()?;
        applied.save(&work.place, work.durable)?;
        Ok(applied)
    };
    let saved: io::Result<Applied> = save();
    saved.map_err(cannot("record it in", &work.place))
}

/// Removes what is only needed until the record is there.
fn tidy(work: &mut Work) -> io::Result<()> {
    work.clear_stages(work::DirSide::After)?;
    work.close()
}

fn unless_stuck(failed: CommitError, back: io::Result<()>) -> CommitError {
    match back {
        Ok(()) => failed,
        Err(source) => CommitError::Stuck {
            why: failed.to_string(),
            source,
        },
    }
}
