//! Limits and times that administrators change while the server runs. What
//! they have not set is as the configuration file says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weighlock_policy::{Cut, Times};

use crate::config::Config;
use crate::core::Core;
use crate::error::Error;
use crate::mutex::lock;
use crate::principal::{Principal, Right};

/// Whose settings these are in the store; no principal can be called so.
const NAME: &str = ":server";

const MIB: u64 = 1024 * 1024;
const DAY: u64 = 24 * 3600;

/// Limits and times as they are set while the server runs; what is absent is as
/// the configuration file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerLimits {
    /// How long a question waits for a person.
    pub expire_seconds: Option<u64>,
    /// People may allow commands beforehand.
    pub always: Option<bool>,
    /// The time limit of a run when none is asked for.
    pub timeout_default_seconds: Option<u64>,
    /// The longest that can be asked for.
    pub timeout_max_seconds: Option<u64>,
    /// How long output, and with it recordings, is kept.
    pub output_days: Option<u64>,
    /// How much output of all runs together is kept.
    pub output_mib: Option<u64>,
    /// How long what was applied can be undone.
    pub undo_days: Option<u64>,
    /// How much is kept for that.
    pub undo_mib: Option<u64>,
    /// How long changes are kept that nobody decided about.
    pub draft_days: Option<u64>,
}

/// The limits in force, and where each comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitsInForce {
    /// What counts.
    pub now: ServerLimits,
    /// What administrators have set.
    pub set: ServerLimits,
    /// What the configuration file says.
    pub file: ServerLimits,
}

/// What somebody may do, and what there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Features {
    /// Ask for commands to be run.
    pub run: bool,
    /// Look at what concerns more than oneself.
    pub look: bool,
    /// Answer questions.
    pub decide: bool,
    /// Stop others' runs; pause and resume.
    pub operate: bool,
    /// Look at everything: the whole audit, the health of the machine.
    pub review: bool,
    /// Change rules, sandboxes, people and tokens.
    pub administer: bool,
    /// Allow commands beforehand.
    pub always: bool,
    /// Who asks for a command may not approve it.
    pub four_eyes: bool,
    /// A command of high risk needs two people.
    pub two_for_high_risk: bool,
    /// How long a question waits.
    pub expire_seconds: u64,
    /// The time limit of a run when none is asked for.
    pub timeout_default_seconds: u64,
    /// The longest that can be asked for.
    pub timeout_max_seconds: u64,
    /// Characters of output that whoever asks for a run is shown.
    pub output_chars: usize,
}

/// The limits that administrators set while the server runs; see
/// [`Engine::limits`](crate::Engine::limits).
pub struct RuntimeLimits {
    core: Arc<Core>,
    set: Mutex<Arc<ServerLimits>>,
}

impl RuntimeLimits {
    /// Reads what administrators have set before.
    pub(crate) fn open(core: Arc<Core>) -> Result<Self, Error> {
        let text = core.store.settings(NAME)?;
        let kept = text.and_then(|text| serde_json::from_str(&text).ok());
        let set = Mutex::new(Arc::new(kept.unwrap_or_default()));
        Ok(Self { core, set })
    }

    fn set_now(&self) -> Arc<ServerLimits> {
        Arc::clone(&lock(&self.set))
    }

    /// Returns the limits in force.
    pub fn in_force(&self, who: &Principal) -> Result<LimitsInForce, Error> {
        who.check(Right::Look)?;
        let set = self.set_now();
        let file = ServerLimits::of(&self.core.config);
        Ok(LimitsInForce {
            now: set.over(&file),
            set: ServerLimits::clone(&set),
            file,
        })
    }

    /// Puts other limits in force, at once.
    pub async fn change(
        &self,
        limits: ServerLimits,
        who: &Principal,
    ) -> Result<LimitsInForce, Error> {
        if who.is_agent() {
            return Err(self.core.refuse_agent("change limits", None, who).await);
        }
        who.check(Right::Administer)?;
        limits.over(&ServerLimits::of(&self.core.config)).check()?;
        let text = serde_json::to_string(&limits).expect("limits are plain data");
        let detail = json!({ "limits": limits, "origin": who.origin() });
        let entry = self
            .core
            .entry("settings.changed", who.name(), None, detail);
        // What cannot be recorded is not in force.
        self.core.store.record(vec![entry]).await?;
        let now = self.core.clock.micros();
        self.core
            .store
            .save_settings(NAME.into(), text, now)
            .await?;
        *lock(&self.set) = Arc::new(limits);
        self.in_force(who)
    }

    /// Returns what somebody may do, and what there is.
    pub fn features(&self, who: &Principal) -> Features {
        let may = |right| who.check(right).is_ok();
        let (approvals, times) = (&self.core.config.approvals, self.times());
        let strict = approvals.four_eyes || approvals.two_for_high_risk;
        Features {
            run: may(Right::Run),
            look: may(Right::Look),
            decide: may(Right::Decide),
            operate: may(Right::Operate),
            review: may(Right::Review),
            administer: may(Right::Administer),
            always: self.allows_always()
                && may(Right::Decide)
                && (!strict || may(Right::Administer)),
            four_eyes: approvals.four_eyes,
            two_for_high_risk: approvals.two_for_high_risk,
            expire_seconds: self.answer_time().as_secs(),
            timeout_default_seconds: times.default.as_secs(),
            timeout_max_seconds: times.max.as_secs(),
            output_chars: match self.core.config.manners().cut() {
                Cut::Head(most) | Cut::Tail(most) | Cut::Ends(most) => most,
            },
        }
    }

    pub(crate) fn answer_time(&self) -> Duration {
        let set = self.set_now().expire_seconds;
        set.map_or(self.core.config.approvals.expire, Duration::from_secs)
    }

    /// Returns whether people may allow commands beforehand.
    pub(crate) fn allows_always(&self) -> bool {
        self.set_now().always.unwrap_or(true)
    }

    pub(crate) fn times(&self) -> Times {
        let (set, file) = (self.set_now(), self.core.config.times());
        let max = { set.timeout_max_seconds }.map_or(file.max, Duration::from_secs);
        let default = { set.timeout_default_seconds }.map_or(file.default, Duration::from_secs);
        Times {
            default: default.min(max),
            max,
        }
    }

    pub(crate) fn output_age(&self) -> Duration {
        days(self.set_now().output_days, self.core.config.output_age)
    }

    pub(crate) fn output_total(&self) -> u64 {
        bytes(self.set_now().output_mib, self.core.config.output_total)
    }

    pub(crate) fn undo_age(&self) -> Duration {
        let file = self.core.config.effects.undo_age;
        days(self.set_now().undo_days, file)
    }

    pub(crate) fn undo_bytes(&self) -> u64 {
        let file = self.core.config.effects.undo_bytes;
        bytes(self.set_now().undo_mib, file)
    }

    pub(crate) fn draft_age(&self) -> Duration {
        let file = self.core.config.effects.draft_age;
        days(self.set_now().draft_days, file)
    }
}

pub(crate) fn days(set: Option<u64>, file: Duration) -> Duration {
    set.map_or(file, |days| Duration::from_secs(days.saturating_mul(DAY)))
}

pub(crate) fn bytes(set: Option<u64>, file: u64) -> u64 {
    set.map_or(file, |mib| mib.saturating_mul(MIB))
}

impl ServerLimits {
    fn of(config: &Config) -> Self {
        let (times, effects) = (config.times(), &config.effects);
        Self {
            expire_seconds: Some(config.approvals.expire.as_secs()),
            always: Some(true),
            timeout_default_seconds: Some(times.default.as_secs()),
            timeout_max_seconds: Some(times.max.as_secs()),
            output_days: Some(config.output_age.as_secs() / DAY),
            output_mib: Some(config.output_total / MIB),
            undo_days: Some(effects.undo_age.as_secs() / DAY),
            undo_mib: Some(effects.undo_bytes / MIB),
            draft_days: Some(effects.draft_age.as_secs() / DAY),
        }
    }

    /// Puts what is set over what the file says.
    fn over(&self, file: &Self) -> Self {
        Self {
            expire_seconds: self.expire_seconds.or(file.expire_seconds),
            always: self.always.or(file.always),
            timeout_default_seconds: self
                .timeout_default_seconds
                .or(file.timeout_default_seconds),
            timeout_max_seconds: self.timeout_max_seconds.or(file.timeout_max_seconds),
            output_days: self.output_days.or(file.output_days),
            output_mib: self.output_mib.or(file.output_mib),
            undo_days: self.undo_days.or(file.undo_days),
            undo_mib: self.undo_mib.or(file.undo_mib),
            draft_days: self.draft_days.or(file.draft_days),
        }
    }

    /// Refuses what nobody means: a limit of nothing, or times that contradict
    /// each other.
    fn check(&self) -> Result<(), Error> {
        let wrong = |why: &str| {
            Err(Error::invalid(
                "bad_limits",
                format!("{why}; nothing was changed"),
                "leave a limit out to use the configuration file's",
            ))
        };
        let week = 7 * DAY;
        if !self
            .expire_seconds
            .is_none_or(|time| (10..=week).contains(&time))
        {
            return wrong("a question waits for 10 seconds to 7 days");
        }
        let times = [self.timeout_default_seconds, self.timeout_max_seconds];
        if !times.iter().flatten().all(|time| (1..=week).contains(time)) {
            return wrong("a run may take 1 second to 7 days");
        }
        if self.timeout_default_seconds > self.timeout_max_seconds {
            return wrong("the usual time limit is above the longest");
        }
        let ages = [self.output_days, self.undo_days, self.draft_days];
        if !ages.iter().flatten().all(|days| (1..=3650).contains(days)) {
            return wrong("things are kept for 1 day to 10 years");
        }
        let sizes = [self.output_mib, self.undo_mib];
        match sizes
            .iter()
            .flatten()
            .all(|mib| (16..1 << 30).contains(mib))
        {
            true => Ok(()),
            false => wrong("at least 16 MiB are kept"),
        }
    }
}
