//! How things are just now, beside what was counted.

use std::time::Duration;

use weighlock_store::Unanswered;

use super::Doctor;
use crate::error::Error;
use crate::measures::{Gauges, Measures, free_bytes};
use crate::principal::{Principal, Right};

impl Doctor {
    /// Returns what is counted, where the settings say so.
    pub fn measures(&self, who: &Principal) -> Result<Option<(&Measures, Gauges)>, Error> {
        who.check(Right::Review)?;
        if !self.core.config.metrics {
            return Ok(None);
        }
        Ok(Some((&self.measures, self.gauges()?)))
    }

    fn gauges(&self) -> Result<Gauges, Error> {
        let Unanswered {
            questions,
            oldest,
            held,
            undecided,
        } = self.core.store.approvals().unanswered()?;
        let since = oldest.map_or(0, |oldest| self.core.clock.micros().saturating_sub(oldest));
        Ok(Gauges {
            running: self.lives.count(),
            terminals: self.lives.terminals(|_| true).len(),
            questions,
            oldest_question: Duration::from_micros(since.max(0) as u64),
            held,
            undecided,
            output_bytes: self.retention.output_bytes(),
            free_bytes: free_bytes(&self.core.config.state_dir).unwrap_or(0),
            entries: self.core.store.audit().newest_seq()?,
            backup: self.measures.last_backup(),
        })
    }
}
