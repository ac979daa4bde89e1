//! Runs that end when the client that waits for them disappears.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use weighlock_store::{Entry, State};

use super::Life;
use crate::error::Error;
use crate::mutex::lock;
use crate::principal::{Principal, Right, Via};
use crate::view::{OURSELVES, Run};

/// How long somebody may be away.
const AWAY: Duration = Duration::from_secs(10);

/// How long a client may be away that hung up on the Unix socket in the middle of
/// its wait: a killed process, since no network can fail there. A server that
/// hands over to the next one is gone before.
const HUNG_UP: Duration = Duration::from_secs(1);

/// How long a run has to end in order.
const GRACE: Duration = Duration::from_secs(2);

/// The runs that do not go on alone.
#[derive(Default)]
pub(crate) struct Left {
    runs: Mutex<HashMap<String, Watch>>,
    numbers: AtomicU64,
}

/// Who waits for a run.
#[derive(Default)]
struct Watch {
    /// Those who do, each with a number of its own: one who is lost may be
    /// noticed only after another has come.
    here: Vec<u64>,
    /// The number of the time that the last of them has left.
    left: Option<u64>,
}

impl Life {
    /// Waits for the end of a run, at most for a time. If it still runs then,
    /// or whoever waits is gone before, they have to come back soon: the run is
    /// ended otherwise.
    pub async fn attend(
        self: &Arc<Self>,
        run: &Run,
        time: Option<Duration>,
        who: &Principal,
    ) -> Result<Run, Error> {
        may_attend(run, who)?;
        let mut attendance = Attendance {
            life: self,
            run,
            who,
            number: self.left.come(&run.command_id),
            answered: false,
            over: false,
        };
        let now = self.runs.wait(run, time).await;
        attendance.answered = true;
        attendance.over = { now.as_ref() }.is_ok_and(|now| now.state != State::Running);
        now
    }

    /// Lets a run go on without anybody who waits for it.
    pub fn release(&self, run: &Run, who: &Principal) -> Result<(), Error> {
        may_attend(run, who)?;
        lock(&self.left.runs).remove(&run.command_id);
        Ok(())
    }

    async fn end_if_left(self: Arc<Self>, run: Run, time: u64, who: Principal, away: Duration) {
        tokio::time::sleep(away).await;
        if !self.left.is_still(&run.command_id, time) {
            return;
        }
        let now = self.runs.recall(&run.command_id);
        if now.is_ok_and(|now| now.state != State::Running) {
            return;
        }
        let entry = Entry {
            owner: Some(run.requested_by.clone()),
            sandbox: run.sandbox_id.clone(),
            ..self
                .core
                .entry("run.left", who.name(), Some(&run.command_id), json!({}))
        };
        let _ = self.core.store.audit().record(vec![entry]).await;
        if let Some(live) = self.lives.get(&run.command_id) {
            lock(&live.stopped_by).get_or_insert_with(|| OURSELVES.to_owned());
        }
        let _ = self.stop(&run, &who, false, GRACE).await;
    }
}

/// Whether a run goes on is for those who could stop it.
fn may_attend(run: &Run, who: &Principal) -> Result<(), Error> {
    match run.requested_by == who.name() {
        true => Ok(()),
        false => who.check(Right::Operate),
    }
}

impl Left {
    fn next(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that somebody waits; returns their number.
    fn come(&self, run: &str) -> u64 {
        let number = self.next();
        let mut runs = lock(&self.runs);
        let watch = runs.entry(run.to_owned()).or_default();
        watch.here.push(number);
        watch.left = None;
        number
    }

    /// Notes that they do not any more. If nobody else does, and the run is not
    /// over, returns the number of this time.
    fn go(&self, run: &str, number: u64, over: bool) -> Option<u64> {
        let mut runs = lock(&self.runs);
        // Not there any more: it was let go on.
        let watch = runs.get_mut(run)?;
        let at = watch.here.iter().position(|&one| one == number)?;
        watch.here.swap_remove(at);
        if !watch.here.is_empty() {
            return None;
        }
        if over {
            runs.remove(run);
            return None;
        }
        watch.left = Some(self.next());
        watch.left
    }

    /// Whether nobody has come back since; it is forgotten then.
    fn is_still(&self, run: &str, time: u64) -> bool {
        let mut runs = lock(&self.runs);
        let still = { runs.get(run) }.is_some_and(|watch| watch.left == Some(time));
        if still {
            runs.remove(run);
        }
        still
    }
}

/// Somebody who waits for a run.
struct Attendance<'a> {
    life: &'a Arc<Life>,
    run: &'a Run,
    who: &'a Principal,
    number: u64,
    /// Whether the client was there until the answer.
    answered: bool,
    over: bool,
}

impl Attendance<'_> {
    /// Returns how long the client may be away.
    fn away(&self) -> Duration {
        match self.who.via() {
            Via::Socket { .. } if !self.answered => HUNG_UP,
            _ => AWAY,
        }
    }
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        let left = &self.life.left;
        if let Some(time) = left.go(&self.run.command_id, self.number, self.over) {
            let life = Arc::clone(self.life);
            let (run, who) = (self.run.clone(), self.who.clone());
            tokio::spawn(life.end_if_left(run, time, who, self.away()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_left_when_the_last_one_goes() {
        let left = Left::default();
        let (one, other) = (left.come("r"), left.come("r"));
        assert_eq!(left.go("r", one, false), None);
        let time = left.go("r", other, false).expect("nobody is there");
        assert!(left.is_still("r", time));
        assert!(!left.is_still("r", time), "it is ended once");
    }

    #[test]
    fn one_who_is_lost_late_does_not_count_while_another_waits() {
        let left = Left::default();
        let lost = left.come("r");
        let again = left.come("r");
        assert_eq!(left.go("r", lost, false), None);
        assert_eq!(left.go("r", again, true), None);
        assert!(lock(&left.runs).is_empty());
    }

    #[test]
    fn who_comes_back_in_time_keeps_it() {
        let left = Left::default();
        let time = left
            .go("r", left.come("r"), false)
            .expect("nobody is there");
        let back = left.come("r");
        assert!(!left.is_still("r", time));
        // And who leaves again has all the time again.
        let later = left.go("r", back, false).expect("nobody is there");
        assert!(!left.is_still("r", time));
        assert!(left.is_still("r", later));
    }

    #[test]
    fn what_was_let_go_on_goes_on() {
        let left = Left::default();
        let late = left.come("r");
        lock(&left.runs).remove("r");
        assert_eq!(left.go("r", late, false), None);
        // Even if somebody else waits for it since.
        let other = left.come("r");
        assert_eq!(left.go("r", late, false), None);
        assert!(left.go("r", other, false).is_some());
    }
}
