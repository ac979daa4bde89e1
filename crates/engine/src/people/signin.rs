//! Signing in with a browser: a link that is used once, or a token of a person;
//! then a cookie.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;
use weighlock_store::LoginRow;

use super::People;
use super::secret::{hash, secret};
use super::token::counts;
use crate::error::Error;
use crate::mutex::lock;
use crate::principal::{Principal, Via};

/// How long a sign-in link can be used, and only once.
const LINK_FOR: Duration = Duration::from_secs(600);

/// How many links there may be at once; the oldest goes.
const LINKS: usize = 100;

/// How long somebody stays signed in.
const SIGNED_IN_FOR: i64 = 12 * 3600 * 1_000_000;

/// Stands in a cookie before the token that it was given for. The hash that is
/// kept is of both, so that nobody can put another there.
const TOKEN: char = '.';

/// What is known of sign-ins under way.
#[derive(Default)]
pub(super) struct Doorbell {
    /// Links that were not used yet: hash of the secret, for whom, until when.
    links: Mutex<Vec<(String, String, Instant)>>,
    /// When the use of a token was last written down.
    pub(super) used: Mutex<HashMap<String, Instant>>,
}

impl People {
    /// Returns who has signed in with this cookie.
    pub fn find_signed_in(&self, cookie: &str) -> Result<Option<Principal>, Error> {
        let Some(row) = self.core.store.logins().by_hash(&hash(cookie))? else {
            return Ok(None);
        };
        let now = self.core.clock.micros();
        if row.expires_at <= now || !self.token_counts(cookie, now)? {
            return Ok(None);
        }
        let who = self.core.store.principals().named(&row.principal)?;
        Ok(who.and_then(|who| Principal::from_row(&who, Via::SignIn)))
    }

    /// Makes the secret of a link that signs somebody in: once, and soon.
    pub async fn sign_in_link(&self, who: &Principal) -> Result<String, Error> {
        if who.is_agent() {
            return Err(self.core.refuse_agent("sign in", None, who).await);
        }
        let secret = secret("wls_");
        let entry = self.core.entry(
            "link.made",
            who.name(),
            None,
            json!({ "origin": who.origin() }),
        );
        self.core.store.audit().record(vec![entry]).await?;
        let mut links = lock(&self.doorbell.links);
        let now = Instant::now();
        links.retain(|(_, _, until)| *until > now);
        if links.len() >= LINKS {
            links.remove(0);
        }
        links.push((hash(&secret), who.name().to_owned(), now + LINK_FOR));
        Ok(secret)
    }

    /// Makes the link that the owner is shown when the server starts.
    pub async fn owner_link(&self) -> Result<String, Error> {
        let owner = Principal::library(self.owner_name());
        self.sign_in_link(&owner).await
    }

    /// Uses a link up, and returns the cookie of whoever is signed in by it,
    /// with the seconds that it counts.
    pub async fn sign_in(&self, code: &str) -> Result<(String, u64), Error> {
        let code = hash(code);
        let name = {
            let mut links = lock(&self.doorbell.links);
            let at = links.iter().position(|(hash, ..)| *hash == code);
            let link = at.map(|at| links.remove(at));
            link.filter(|(_, _, until)| *until > Instant::now())
        };
        let Some((_, name, _)) = name else {
            return Err(Error::BadLink);
        };
        self.let_in(secret("wlc_"), name, json!({})).await
    }

    /// Returns the cookie of the person whom a token stands for, with the
    /// seconds that it counts at most: it ends with the token.
    pub async fn sign_in_with_token(&self, token: &str) -> Result<(String, u64), Error> {
        let Some((who, row)) = self.find_token(token).await? else {
            return Err(Error::BadToken);
        };
        if who.is_agent() {
            return Err(self.core.refuse_agent("sign in", None, &who).await);
        }
        let cookie = format!("{}{TOKEN}{}", secret("wlc_"), row.id);
        let detail = json!({ "token": row.id, "prefix": row.prefix });
        self.let_in(cookie, row.principal, detail).await
    }

    async fn let_in(
        &self,
        cookie: String,
        name: String,
        detail: serde_json::Value,
    ) -> Result<(String, u64), Error> {
        let now = self.core.clock.micros();
        let entry = self.core.entry("person.signed_in", &name, None, detail);
        let row = LoginRow {
            hash: hash(&cookie),
            principal: name,
            created_at: now,
            expires_at: now + SIGNED_IN_FOR,
        };
        self.core.store.logins().add(row, vec![entry]).await?;
        Ok((cookie, (SIGNED_IN_FOR / 1_000_000).cast_unsigned()))
    }

    /// Whether the token still counts that a cookie was given for, if it was.
    fn token_counts(&self, cookie: &str, now: i64) -> Result<bool, Error> {
        let Some((_, id)) = cookie.split_once(TOKEN) else {
            return Ok(true);
        };
        let token = self.core.store.tokens().get(id)?;
        Ok(token.is_some_and(|token| counts(&token, now)))
    }

    /// Ends what a cookie stands for.
    pub async fn sign_out(&self, cookie: &str, who: &Principal) -> Result<(), Error> {
        let entry = self
            .core
            .entry("person.signed_out", who.name(), None, json!({}));
        self.core
            .store
            .logins()
            .end(hash(cookie), vec![entry])
            .await?;
        Ok(())
    }
}
