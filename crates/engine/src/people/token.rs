//! Tokens: what agents, and people without an account here, are known by.

use std::time::{Duration, Instant};

use serde_json::json;
pub use weighlock_api::{NewToken, TokenInfo};
use weighlock_store::TokenRow;

use super::People;
use super::secret::{hash, secret};
use crate::error::{Error, brief};
use crate::mutex::lock;
use crate::principal::{Principal, Right, Via};
use crate::time;

/// How exactly the last use of a token is known: not every request writes.
const USED_EVERY: Duration = Duration::from_secs(60);

/// Characters of a token that are kept to recognise it by.
const PREFIX: usize = 9;

impl People {
    /// Returns whom a token stands for.
    pub async fn find_bearer(&self, token: &str) -> Result<Option<Principal>, Error> {
        let found = self.find_token(token).await?;
        Ok(found.map(|(who, _)| who))
    }

    /// Returns whom a token stands for, and the token.
    pub(super) async fn find_token(
        &self,
        token: &str,
    ) -> Result<Option<(Principal, TokenRow)>, Error> {
        let now = self.core.clock.micros();
        let row = self.core.store.token_by_hash(&hash(token))?;
        let Some(row) = row.filter(|row| counts(row, now)) else {
            return Ok(None);
        };
        self.note_use(&row, now).await;
        let who = self.core.store.principal(&row.principal)?;
        let via = Via::Token {
            prefix: row.prefix.clone(),
            label: row.label.clone(),
        };
        let who = who.and_then(|who| Principal::from_row(&who, via));
        Ok(who.map(|who| (who, row)))
    }

    async fn note_use(&self, row: &TokenRow, now: i64) {
        let due = {
            let mut used = lock(&self.doorbell.used);
            let due = { used.get(&row.id) }.is_none_or(|last| last.elapsed() >= USED_EVERY);
            if due {
                used.insert(row.id.clone(), Instant::now());
            }
            due
        };
        if due && let Err(error) = self.core.store.used_token(row.id.clone(), now).await {
            // It is only for people to look at.
            tracing::warn!(%error, "the use of a token was not written down");
        }
    }

    /// Makes a token for somebody and returns it; only its hash is kept. It
    /// counts for so many seconds, or until it is revoked.
    pub async fn add_token(
        &self,
        name: &str,
        label: &str,
        seconds: Option<u64>,
        who: &Principal,
    ) -> Result<NewToken, Error> {
        let owner = self.core.find_person(name, who)?;
        who.check(Right::Administer)?;
        let token = secret("wl_");
        let now = self.core.clock.micros();
        let row = TokenRow {
            id: self.core.ids.next_as("tk", now),
            hash: hash(&token),
            prefix: token[..PREFIX].to_owned(),
            label: brief(label),
            principal: owner.name,
            created_by: who.name().to_owned(),
            created_at: now,
            expires_at: seconds.map(|seconds| after(now, seconds)),
            last_used_at: None,
            revoked_at: None,
        };
        let detail = json!({ "token": row.id, "prefix": row.prefix, "for": row.principal,
                             "label": row.label, "seconds": seconds });
        let entry = self.core.entry("token.created", who.name(), None, detail);
        let info = token_info(row.clone());
        self.core.store.add_token(row, vec![entry]).await?;
        Ok(NewToken { token, info })
    }

    /// Makes another token in the place of one, which counts for so many
    /// seconds more.
    pub async fn rotate_token(
        &self,
        name: &str,
        id: &str,
        overlap_seconds: u64,
        who: &Principal,
    ) -> Result<NewToken, Error> {
        let old = self.token_of(name, id, who)?;
        who.check(Right::Administer)?;
        if old.revoked_at.is_some() {
            return Err(Error::NoSuchToken { id: brief(id) });
        }
        let now = self.core.clock.micros();
        let left = old.expires_at.map(|end| (end - old.created_at) / 1_000_000);
        let seconds = left.map(i64::unsigned_abs);
        let new = self.add_token(name, &old.label, seconds, who).await?;
        let detail =
            json!({ "token": old.id, "by": new.info.token_id, "overlap_seconds": overlap_seconds });
        let entry = self.core.entry("token.rotated", who.name(), None, detail);
        let until = after(now, overlap_seconds);
        self.core
            .store
            .expire_token(old.id, until, vec![entry])
            .await?;
        Ok(new)
    }

    /// Takes a token away, at once.
    pub async fn revoke_token(&self, name: &str, id: &str, who: &Principal) -> Result<(), Error> {
        let token = self.token_of(name, id, who)?;
        who.check(Right::Administer)?;
        let detail = json!({ "token": token.id, "prefix": token.prefix, "for": token.principal });
        let entry = self.core.entry("token.revoked", who.name(), None, detail);
        let now = self.core.clock.micros();
        self.core
            .store
            .revoke_token(token.id, now, vec![entry])
            .await?;
        Ok(())
    }

    fn token_of(&self, name: &str, id: &str, who: &Principal) -> Result<TokenRow, Error> {
        let owner = self.core.find_person(name, who)?;
        let seen = who.is_administrator() || owner.name == who.name();
        let tokens = match seen {
            true => self.core.store.tokens_of(&owner.name)?,
            false => vec![],
        };
        { tokens.into_iter() }
            .find(|token| token.id == id || token.prefix == id)
            .ok_or_else(|| Error::NoSuchToken { id: brief(id) })
    }
}

/// Describes a token.
pub(super) fn token_info(row: TokenRow) -> TokenInfo {
    TokenInfo {
        token_id: row.id,
        prefix: row.prefix,
        label: row.label,
        created_by: row.created_by,
        created_at: time(row.created_at),
        expires_at: row.expires_at.map(time),
        last_used_at: row.last_used_at.map(time),
        revoked_at: row.revoked_at.map(time),
    }
}

/// Whether somebody is let in by a token.
pub(super) fn counts(row: &TokenRow, now: i64) -> bool {
    row.revoked_at.is_none() && row.expires_at.is_none_or(|end| end > now)
}

fn after(now: i64, seconds: u64) -> i64 {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    now.saturating_add(seconds.saturating_mul(1_000_000))
}
