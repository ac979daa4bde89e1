//! Health checks for administrators: backups, disk space, clock, limits, and
//! the server's account.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use weighlock_walls::{PasswdEntry, format_bytes as size};

use super::Doctor;
use super::{Check, failed, hint, ok, problem};
use crate::error::Error;
use crate::measures::free_bytes;

/// A record of this age should be in a backup, and one of these should be no
/// older: what a week has brought is bearable to lose, as a rule.
const BACKUP_WITHIN: Duration = Duration::from_secs(7 * 24 * 3600);

/// Below this, a few builds fill the disk; below the other, one does.
const LITTLE_ROOM: u64 = 2 << 30;
const NO_ROOM: u64 = 256 << 20;

/// A clock that is further off than this was set, and did not drift.
const CLOCK_OFF: Duration = Duration::from_secs(5);

/// Descriptors that a run takes of the server, and what it needs besides.
const DESCRIPTORS_OF_RUN: u64 = 4;
const DESCRIPTORS: u64 = 768;

/// Processes of a run that are ours: keeper, init, and the shell.
const PROCESSES_OF_RUN: u64 = 3;

impl Doctor {
    pub(crate) fn check_upkeep(&self) -> Vec<Check> {
        let mut checks: Vec<Check> = self.check_settings().into_iter().collect();
        checks.extend([
            self.check_backup(),
            self.check_disk(),
            self.check_clock(),
            self.check_limits(),
            self.check_account(),
            self.check_metrics(),
        ]);
        checks
    }

    /// Settings are read once: what was written since has no effect yet.
    fn check_settings(&self) -> Option<Check> {
        let file = self.core.config.settings_file.as_ref()?;
        let written = file.metadata().and_then(|meta| meta.modified()).ok()?;
        let found = file.display();
        let stale = written.elapsed().unwrap_or_default() < self.core.uptime();
        Some(match stale {
            false => ok("settings", found.to_string()),
            true => hint(
                "settings",
                format!("{found}, changed since the server started"),
                "`weighlock serve --replace`, or `--stop` and go on; runs continue",
            ),
        })
    }

    fn check_backup(&self) -> Check {
        const FIX: &str = "`weighlock backup DIR`, where DIR is on another disk; docs/operating.md \
                           has a recipe for every night";
        let found = || {
            Ok::<_, Error>((
                self.archiver.last_made()?,
                self.core.store.audit().oldest_time()?,
            ))
        };
        let (last, oldest) = match found() {
            Ok(found) => found,
            Err(error) => return failed("backup", error),
        };
        let now = self.core.clock.micros();
        let is_old = |at: i64| now.saturating_sub(at) > BACKUP_WITHIN.as_micros() as i64;
        match last {
            Some(at) if is_old(at) => hint(
                "backup",
                format!("the last was made {}", ago(now - at)),
                FIX,
            ),
            Some(at) => ok("backup", format!("the last was made {}", ago(now - at))),
            None if oldest.is_some_and(is_old) => hint("backup", "none was ever made".into(), FIX),
            None => ok("backup", "none was made yet".into()),
        }
    }

    fn check_disk(&self) -> Check {
        const FIX: &str = "make room, or keep less: `total_mib` under [output], `undo_mib` under \
                           [effects]";
        let dir = &self.core.config.state_dir;
        let Some(free) = free_bytes(dir) else {
            let found = format!("nobody knows what is free for {}", dir.display());
            return hint("disk", found, "see that the directory can be reached");
        };
        let found = format!("{} free for {}", size(free), dir.display());
        match free {
            0..NO_ROOM => problem("disk", found, FIX),
            NO_ROOM..LITTLE_ROOM => hint("disk", found, FIX),
            _ => ok("disk", found),
        }
    }

    /// The wall clock against the one that nobody can set.
    fn check_clock(&self) -> Check {
        let steady = self.core.unset_now();
        let off = self.core.clock.micros() - steady;
        let found = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC");
        if off.unsigned_abs() <= CLOCK_OFF.as_micros() as u64 {
            return ok("clock", found.to_string());
        }
        let seconds = off.unsigned_abs() / 1_000_000;
        let way = if off > 0 { "ahead" } else { "back" };
        hint(
            "clock",
            format!("{found}; it was set {seconds} s {way} while the server ran"),
            "limits are not affected; have the time kept by NTP (`timedatectl set-ntp true`), and \
             restart the server once it is right",
        )
    }

    fn check_limits(&self) -> Check {
        let runs = self.core.config.max_running as u64;
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let processes = getrlimit(Resource::Nproc).current.unwrap_or(u64::MAX);
        let told = |most: u64| match most {
            u64::MAX => "any number of".to_owned(),
            most => most.to_string(),
        };
        let found = format!(
            "{} descriptors, {} processes, for {runs} runs at once",
            told(files),
            told(processes)
        );
        let enough = files >= runs.saturating_mul(DESCRIPTORS_OF_RUN) + DESCRIPTORS
            && processes >= runs.saturating_mul(PROCESSES_OF_RUN);
        match enough {
            true => ok("limits", found),
            false => hint(
                "limits",
                found,
                "raise them (`LimitNOFILE=` and `LimitNPROC=` of the unit, or `ulimit`), or lower \
                 `running_max` under [limits]",
            ),
        }
    }

    /// A server of several people in somebody's own account is at the mercy of
    /// whatever that person starts outside.
    fn check_account(&self) -> Check {
        let uid = rustix::process::geteuid().as_raw();
        let user = PasswdEntry::find_user(|user| user.uid == uid);
        let name = { user.as_ref() }.map_or_else(|| format!("uid {uid}"), |user| user.name.clone());
        let people = match self.core.store.principals().all() {
            Ok(people) => people,
            Err(error) => return failed("account", error.into()),
        };
        let people = people.iter().filter(|row| row.active && !row.agent).count();
        let shared = people > 1 && user.is_some_and(|user| user.can_sign_in());
        match shared {
            false => ok("account", name),
            true => hint(
                "account",
                format!(
                    "{name} signs in on this machine, and {people} people share the server: \
                     programs that {name} starts can decide for all of them"
                ),
                "run it as a user of its own, as the package does: docs/operating.md",
            ),
        }
    }

    fn check_metrics(&self) -> Check {
        let metrics = match self.core.config.metrics {
            true => "counted, at /agent/terminal/metrics",
            false => "not counted",
        };
        let lost = self.tracer.lost_spans();
        match (self.core.config.traces.on, lost) {
            (false, _) => ok("metrics", format!("{metrics}, no traces")),
            (true, 0) => ok("metrics", format!("{metrics}, traces are sent")),
            (true, lost) => hint(
                "metrics",
                format!("{metrics}; {lost} spans of traces were lost"),
                "see that the collector at `endpoint` under [traces] answers",
            ),
        }
    }
}

fn ago(micros: i64) -> String {
    let minutes = micros.max(0) / 60_000_000;
    match minutes {
        0 => "just now".into(),
        1..120 => format!("{minutes} min ago"),
        120..2880 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_words() {
        let minute = 60_000_000;
        assert_eq!(ago(-5), "just now");
        assert_eq!(ago(90 * minute), "90 min ago");
        assert_eq!(ago(25 * 60 * minute), "25 h ago");
        assert_eq!(ago(8 * 24 * 60 * minute), "8 days ago");
    }
}
