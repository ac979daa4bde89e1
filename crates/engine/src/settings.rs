//! What somebody has set for themselves on the pages, and what the pages may
//! offer them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weighlock_policy::Cut;

use crate::engine::Engine;
use crate::error::Error;
use crate::principal::{Principal, Right};

/// Bytes of somebody's settings: a few saved views, and no place for files.
const MOST_BYTES: usize = 64 * 1024;

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

impl Engine {
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

    /// Returns what somebody has set for themselves; nothing at first.
    pub fn settings(&self, who: &Principal) -> Result<Value, Error> {
        let text = self.core.store.settings(who.name())?;
        let kept = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(kept.unwrap_or_else(|| serde_json::json!({})))
    }

    /// Keeps what somebody sets for themselves.
    pub async fn save_settings(&self, settings: Value, who: &Principal) -> Result<Value, Error> {
        who.check(Right::Look)?;
        let text = settings.to_string();
        if !settings.is_object() || text.len() > MOST_BYTES {
            return Err(Error::invalid(
                "invalid_settings",
                format!(
                    "settings are one JSON object of at most {MOST_BYTES} bytes; nothing was \
                         changed"
                ),
                "leave something out",
            ));
        }
        let now = self.core.clock.micros();
        self.core
            .store
            .save_settings(who.name().to_owned(), text, now)
            .await?;
        Ok(settings)
    }
}
