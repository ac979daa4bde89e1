//! Waiting for what runs do: one call, any or all of several things, no
//! polling by whoever waits.

use std::sync::Arc;
use std::time::Duration;

use regex::bytes::Regex;
use tokio::task::JoinSet;

use super::Runs;
use crate::error::{Error, brief};
use crate::principal::Principal;
use crate::view::Run;
pub use weighlock_api::{Met, WaitKind as Kind, Wanted};

/// More things are not waited for at once.
const MOST: usize = 100;

/// No pattern needs more memory.
const PATTERN_BYTES: usize = 1024 * 1024;

/// How long it is quiet when nothing else is said.
pub(super) const QUIET_MS: u64 = 500;

/// The longest silence that can be waited for. It counts from the request on, so
/// that what was just typed has time to be answered; one longer than a request
/// would never come.
const LONGEST_QUIET_MS: u64 = 300_000;

/// What waiting has come to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waited {
    /// What has happened, in the order that it did, and what never will.
    pub met: Vec<Met>,
    /// Time was up before it was enough.
    pub timed_out: bool,
    /// The current state of every run that the request names.
    pub runs: Vec<Run>,
}

/// Things that are waited for.
pub struct Waiting {
    all_runs: Arc<Runs>,
    runs: Vec<Run>,
    all: bool,
    left: usize,
    met: usize,
    tasks: JoinSet<Result<Met, Error>>,
}

impl Runs {
    /// Begins to wait for any, or all, of several things.
    pub fn wait_for(
        self: &Arc<Self>,
        wanted: &[Wanted],
        all: bool,
        who: &Principal,
    ) -> Result<Waiting, Error> {
        if wanted.is_empty() || wanted.len() > MOST {
            return Err(Error::invalid(
                "invalid_wait",
                format!("cannot wait for {} things", wanted.len()),
                format!("name 1 to {MOST}"),
            ));
        }
        if let Some(ms) = wanted.iter().filter_map(|wanted| wanted.ms).max()
            && ms > LONGEST_QUIET_MS
        {
            return Err(Error::invalid(
                "invalid_wait",
                format!("{ms} ms of silence is too long to wait for"),
                format!("use at most {LONGEST_QUIET_MS}; it counts from the request on"),
            ));
        }
        let mut runs = vec![];
        let mut checked = vec![];
        for wanted in wanted {
            let run = self.find(&wanted.id, who)?;
            checked.push((run.clone(), wanted.clone(), pattern(wanted)?));
            if !runs
                .iter()
                .any(|known: &Run| known.command_id == run.command_id)
            {
                runs.push(run);
            }
        }
        let mut tasks = JoinSet::new();
        for (index, (run, wanted, pattern)) in checked.into_iter().enumerate() {
            let all_runs = Arc::clone(self);
            tasks.spawn(async move {
                let met = all_runs.wait_for_one(&run, &wanted, pattern).await?;
                Ok(Met { index, ..met })
            });
        }
        Ok(Waiting {
            all_runs: Arc::clone(self),
            left: tasks.len(),
            runs,
            all,
            met: 0,
            tasks,
        })
    }
}

impl Waiting {
    /// Waits for the next thing that happens, or never will; nothing once it
    /// is enough.
    pub async fn next(&mut self) -> Result<Option<Met>, Error> {
        if self.is_enough() {
            return Ok(None);
        }
        let met = match self.tasks.join_next().await {
            Some(met) => met.expect("waiting does not panic")?,
            None => return Ok(None),
        };
        self.left -= 1;
        self.met += usize::from(met.met);
        Ok(Some(met))
    }

    /// Waits until it is enough, at most for a time.
    pub async fn finish(mut self, time: Option<Duration>) -> Result<Waited, Error> {
        let mut waited = Waited::default();
        let gather = async {
            while let Some(met) = self.next().await? {
                waited.met.push(met);
            }
            Ok::<_, Error>(())
        };
        match time {
            None => gather.await?,
            Some(time) => match tokio::time::timeout(time, gather).await {
                Ok(gathered) => gathered?,
                Err(_) => waited.timed_out = true,
            },
        }
        waited.runs = self.now()?;
        Ok(waited)
    }

    /// Returns the runs as they are now.
    pub fn now(&self) -> Result<Vec<Run>, Error> {
        let runs = self.runs.iter();
        runs.map(|run| self.all_runs.recall(&run.command_id))
            .collect()
    }

    /// One is enough, or none is left.
    fn is_enough(&self) -> bool {
        self.left == 0 || (!self.all && self.met > 0)
    }
}

fn pattern(wanted: &Wanted) -> Result<Option<Regex>, Error> {
    let text = match (&wanted.pattern, wanted.until) {
        (Some(text), Kind::Output) => text,
        (None, Kind::Output) => {
            return Err(Error::invalid(
                "invalid_wait",
                "the pattern of the output to wait for is missing".into(),
                "give a regular expression as `pattern`",
            ));
        }
        _ => return Ok(None),
    };
    let built = regex::bytes::RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES)
        .build();
    built.map(Some).map_err(|error| {
        Error::invalid(
            "invalid_pattern",
            format!("`{}` is not a regular expression: {error}", brief(text)),
            "put a backslash before special characters",
        )
    })
}
