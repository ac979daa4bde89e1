//! What a person types to find runs again, and what the server is asked.

use weighlock_api::{PeopleList, SandboxInfo, State};

use crate::client::{Client, Failure, escape};
use crate::when;

/// Words for a coarse status that are not states, too.
const STATUSES: &[&str] = &["approved", "executed", "pending"];

/// Filters that are passed on as they are.
const PLAIN: &[&str] = &["agent", "by", "session", "state", "status"];

/// Filters with their values, and words to look for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RunFilter {
    said: Vec<(String, String)>,
    words: Vec<String>,
}

impl RunFilter {
    /// Reads what was typed. The server says who and what a name is.
    pub(super) async fn read(query: &[String], client: &mut Client) -> Result<Self, Failure> {
        let mut filter = Self::sort(query).map_err(|wrong| Failure::new(wrong, ""))?;
        filter.find_people(client).await;
        for (name, value) in &mut filter.said {
            if name == "sandbox" {
                let path = format!("/sandboxes/{}", escape(value));
                *value = client.get::<SandboxInfo>(&path).await?.sandbox_id;
            }
        }
        Ok(filter)
    }

    /// Tells filters from words.
    fn sort(query: &[String]) -> Result<Self, String> {
        let mut filter = Self::default();
        for word in query {
            let is_state = serde_json::from_value::<State>(word.as_str().into()).is_ok();
            match word.split_once(':') {
                None if is_state && !filter.has("state") => filter.add("state", word),
                None if STATUSES.contains(&word.as_str()) => filter.add("status", word),
                Some((name, value)) if PLAIN.contains(&name) => filter.add(name, value),
                Some(("sandbox", value)) => filter.add("sandbox", value),
                Some((name @ ("since" | "until"), value)) => {
                    filter.add(name, &when::parse(value)?);
                }
                _ => filter.words.push(word.clone()),
            }
        }
        Ok(filter)
    }

    fn add(&mut self, name: &str, value: &str) {
        self.said.push((name.to_owned(), value.to_owned()));
    }

    fn has(&self, name: &str) -> bool {
        self.said.iter().any(|(said, _)| said == name)
    }

    /// Turns a word that is a principal's name into an `agent:` filter. A
    /// person who may not list principals sees only their own runs anyway.
    async fn find_people(&mut self, client: &mut Client) {
        if self.words.is_empty() || self.has("agent") {
            return;
        }
        let Ok(known) = client.get::<PeopleList>("/people").await else {
            return;
        };
        let is_name = |word: &String| known.people.iter().any(|one| one.principal_id == *word);
        if let Some(at) = self.words.iter().position(is_name) {
            let name = self.words.remove(at);
            self.add("agent", &name);
        }
    }

    /// Returns what stands in the address.
    pub(super) fn query(&self) -> String {
        let said = self
            .said
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()));
        let words: Vec<String> = self.words.iter().map(|word| kept_together(word)).collect();
        let words = Some(words.join(" ")).filter(|words| !words.is_empty());
        let all = said.chain(words.map(|words| ("q", words)));
        all.map(|(name, value)| format!("&{name}={}", escape(&value)))
            .collect()
    }
}

/// What was quoted for the shell is looked for as it is.
fn kept_together(word: &str) -> String {
    match word.contains(char::is_whitespace) && !word.contains('"') {
        true => format!("\"{word}\""),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(typed: &str) -> Result<String, String> {
        let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
        RunFilter::sort(&words).map(|filter| filter.query())
    }

    #[test]
    fn filters_are_told_from_words() {
        let check = |typed: &str, asked: &str| {
            assert_eq!(query(typed).as_deref(), Ok(asked), "{typed}");
        };
        check("failed cargo test", "&state=failed&q=cargo%20test");
        check("pending by:ana", "&status=pending&by=ana");
        check("failed failed", "&state=failed&q=failed");
        check("agent:coder status:failed", "&agent=coder&status=failed");
        check(
            "until:2026-01-15T10:00:00Z",
            "&until=2026-01-15T10%3A00%3A00Z",
        );
        check("http://x.test", "&q=http%3A%2F%2Fx.test");
        check("verdict:ask exit:1", "&q=verdict%3Aask%20exit%3A1");
        assert_eq!(kept_together("rm -rf"), "\"rm -rf\"");
        assert!(query("since:yesterday").is_err());
    }
}
