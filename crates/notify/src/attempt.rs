//! How deliveries go: taken, tried again later, or wanted no more.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_store::{Course, Fate, Notice, WebhookRow};

use super::outbox::Parcel;
use super::{address, settings_of};
use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::health::{self, Check};
use crate::principal::Principal;
use crate::view::time;

/// The longest time between two attempts. Whoever mends a receiver should not
/// have to wait longer to see that it works.
const LONGEST: Duration = Duration::from_secs(600);

/// How many notices are listed.
const LISTED: usize = 50;

/// How long is remembered what was told.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// How a delivery went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// The receiver has taken it.
    Taken,
    /// The receiver wants no more, ever.
    Gone,
    /// It did not arrive, or was not taken.
    Failed {
        /// Why, in a few words.
        why: String,
        /// How long the receiver asks to be left alone.
        wait: Option<Duration>,
    },
}

/// One thing that was told, or is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeView {
    /// What has happened.
    pub kind: String,
    /// The approval it is about, if it is about one.
    pub approval_id: Option<String>,
    /// Whose it is.
    pub agent: String,
    /// `due`, `sent`, `dropped` or `failed`.
    pub state: String,
    /// When it happened.
    pub created_at: String,
    /// It is not told before.
    pub due_at: String,
    /// When it was tried last.
    pub tried_at: Option<String>,
    /// The `webhook-id` that it was told with.
    pub message_id: Option<String>,
}

impl Engine {
    /// Notes how a delivery went.
    pub async fn posted(&self, parcel: Parcel, how: &Posted) -> Result<(), Error> {
        self.measures.posted(how);
        let Some(row) = self.store.webhook(&parcel.webhook)? else {
            return Ok(());
        };
        let now = self.clock.micros();
        let (id, notices) = (row.id.clone(), parcel.notices.clone());
        match how {
            Posted::Taken => {
                self.store.settle_notices(notices, Fate::Sent).await?;
                let course = Course {
                    told_at: Some(now),
                    ..Course::default()
                };
                self.store.note_course(id, course).await?;
                let before = now.saturating_sub(KEPT.as_micros() as i64);
                self.store.forget_notices(before).await?;
            }
            Posted::Gone => self.wanted_no_more(row).await?,
            Posted::Failed { why, wait } => {
                let give_up = self.config.notify.give_up.as_micros() as i64;
                let old = |notice: &Notice| now.saturating_sub(notice.created_at) > give_up;
                let old: Vec<_> = notices.into_iter().filter(old).collect();
                self.store.settle_notices(old, Fate::Failed).await?;
                let course = self.after_failure(&row, why, *wait, now);
                self.store.note_course(id, course).await?;
            }
        }
        // Only now another may begin.
        self.read_webhooks()?;
        drop(parcel);
        Ok(())
    }

    fn after_failure(
        &self,
        row: &WebhookRow,
        why: &str,
        wait: Option<Duration>,
        now: i64,
    ) -> Course {
        let first = self.config.notify.retry;
        let doubled = first.saturating_mul(1 << row.course.failures.min(16));
        let wait = wait.unwrap_or_default().max(doubled).min(LONGEST);
        let wait = wait.mul_f64(jitter());
        Course {
            failures: row.course.failures.saturating_add(1),
            retry_at: now.saturating_add(wait.as_micros() as i64),
            told_at: None,
            trouble: Some(brief(why)),
        }
    }

    async fn wanted_no_more(&self, row: WebhookRow) -> Result<(), Error> {
        let entry = self.entry_of_webhook("webhook.off", &row, "weighlock");
        let why = "the receiver answered 410: it wants no more".to_owned();
        self.store
            .switch_off_webhook(row.id, why, vec![entry])
            .await?;
        Ok(())
    }

    /// Returns whether a webhook may be told something now.
    pub(super) fn is_ready(&self, row: &WebhookRow, now: i64) -> bool {
        let wait = row.course.retry_at.saturating_sub(now);
        // Longer than it can be: the clock was set back.
        row.active && (wait <= 0 || wait > 2 * LONGEST.as_micros() as i64)
    }

    /// Lists what a webhook was told lately, and what it is to be told.
    pub async fn notices_of(&self, id: &str, who: &Principal) -> Result<Vec<NoticeView>, Error> {
        let row = self.webhook(id, who).await?;
        let found = self.store.notices_of(&row.id, LISTED)?;
        Ok(found.into_iter().map(notice_view).collect())
    }

    pub(crate) fn check_webhooks(&self) -> Check {
        let rows = match self.store.webhooks() {
            Ok(rows) => rows,
            Err(error) => return health::failed("webhooks", error.into()),
        };
        let name = |row: &WebhookRow| {
            let label = settings_of(row).label;
            match label.is_empty() {
                true => address::place(&row.url),
                false => label,
            }
        };
        let failing = |row: &&WebhookRow| row.course.trouble.is_some();
        let failing: Vec<_> = { rows.iter().filter(failing) }
            .map(|row| {
                let why = row.course.trouble.as_deref().unwrap_or_default();
                format!("{}: {why}", name(row))
            })
            .collect();
        let on = rows.iter().filter(|row| row.active).count();
        match (failing.is_empty(), on) {
            (true, 0) => health::ok("webhooks", "none".into()),
            (true, on) => health::ok("webhooks", format!("{on} on, none failing")),
            (false, _) => health::problem(
                "webhooks",
                failing.join("; "),
                "`weighlock notify list` tells more, and `weighlock notify test` tries one",
            ),
        }
    }
}

/// A little more or less, so that many do not come back at the same time.
fn jitter() -> f64 {
    let mut random = [0; 2];
    getrandom::fill(&mut random).expect("the kernel has randomness");
    0.8 + 0.4 * f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX)
}

fn notice_view((notice, state): (Notice, String)) -> NoticeView {
    NoticeView {
        kind: notice.kind,
        approval_id: Some(notice.subject).filter(|id| !id.is_empty()),
        agent: notice.agent,
        state,
        created_at: time(notice.created_at),
        due_at: time(notice.due_at),
        tried_at: notice.tried_at.map(time),
        message_id: notice.message,
    }
}
