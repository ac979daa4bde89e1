//! What can be read without a tool: output, screens and recordings.

use weighlock_api::{CommandList, ScreenView};
use weighlock_screen::safe_text;

use crate::api::{self, Failure, brief, escape};
use crate::desk::ClientDesk;

/// So many of the newest runs are listed.
const LATEST: usize = 50;

/// Bytes of one of them, at the most.
const MOST: usize = 1024 * 1024;

/// Something to read.
pub(crate) struct Resource {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) mime: &'static str,
}

/// The shapes that their addresses have: address, name, title, kind.
pub(crate) const TEMPLATES: [(&str, &str, &str, &str); 3] = [
    (
        "weighlock://runs/{id}/output",
        "output",
        "What a run has written",
        TEXT,
    ),
    (
        "weighlock://runs/{id}/recording",
        "recording",
        "A run or terminal as it was seen, as asciicast",
        CAST,
    ),
    (
        "weighlock://terminals/{name}/screen",
        "screen",
        "What a terminal shows",
        TEXT,
    ),
];

const TEXT: &str = "text/plain";
const CAST: &str = "application/x-asciicast";

/// Lists what there is in the session.
pub(crate) async fn list(desk: &ClientDesk) -> Result<Vec<Resource>, Failure> {
    let mut found = vec![];
    let Some(session) = desk.session_id().await? else {
        return Ok(found);
    };
    for terminal in desk.terminals().await? {
        found.push(Resource {
            uri: format!("weighlock://terminals/{}/screen", escape(&terminal.name)),
            title: format!("The screen of {}", terminal.name),
            name: terminal.name,
            mime: TEXT,
        });
    }
    let path = format!("/commands?limit={LATEST}&session={}", escape(&session));
    let runs: CommandList = api::get(desk.api(), path).await?;
    for run in runs.commands {
        let line = run.command.lines().next().unwrap_or_default();
        let start: String = line.chars().take(80).collect();
        let (what, mime) = match run.detail.terminal {
            Some(_) => ("recording", CAST),
            None => ("output", TEXT),
        };
        found.push(Resource {
            uri: format!("weighlock://runs/{}/{what}", run.short_id),
            title: format!("The {what} of {}", safe_text(&start)),
            name: run.short_id,
            mime,
        });
    }
    Ok(found)
}

/// Reads one: its kind, and its text.
pub(crate) async fn read(desk: &ClientDesk, uri: &str) -> Result<(&'static str, String), Failure> {
    let parts = uri.strip_prefix("weighlock://").unwrap_or_default();
    let parts: Vec<&str> = parts.split('/').collect();
    match parts.as_slice() {
        ["runs", id, "output"] => {
            let path = format!("/commands/{}/output/raw?limit={MOST}", escape(id));
            let bytes = api::bytes(desk.api(), path).await?;
            Ok((TEXT, String::from_utf8_lossy(&bytes).into_owned()))
        }
        ["runs", id, "recording"] => {
            let path = format!("/commands/{}/recording", escape(id));
            let bytes = api::bytes(desk.api(), path).await?;
            match bytes.len() <= MOST {
                true => Ok((CAST, String::from_utf8_lossy(&bytes).into_owned())),
                false => Err(Failure::new(
                    "too_large",
                    format!("the recording has {} bytes", bytes.len()),
                    "A person can save it: weighlock replay ID --export FILE.",
                )),
            }
        }
        ["terminals", name, "screen"] => {
            let name = unescape(name);
            let id = desk.resolve(&name).await?;
            let path = format!("/terminals/{}/screen", escape(&id));
            let screen: ScreenView = api::get(desk.api(), path).await?;
            Ok((TEXT, screen.rows.join("\n")))
        }
        _ => Err(Failure::new(
            "no_such_resource",
            format!("there is nothing at {}", brief(uri)),
            "See resources/templates/list.",
        )),
    }
}

/// What may come after the beginning of an id or a name.
pub(crate) async fn complete(
    desk: &ClientDesk,
    argument: &str,
    begun: &str,
) -> Result<Vec<String>, Failure> {
    let all: Vec<String> = match argument {
        "name" => { desk.terminals().await?.into_iter() }
            .map(|terminal| terminal.name)
            .collect(),
        "id" => match desk.session_id().await? {
            None => vec![],
            Some(session) => {
                let path = format!("/commands?limit={LATEST}&session={}", escape(&session));
                let runs: CommandList = api::get(desk.api(), path).await?;
                runs.commands.into_iter().map(|run| run.short_id).collect()
            }
        },
        _ => vec![],
    };
    let fits = all.into_iter().filter(|one| one.starts_with(begun));
    Ok(fits.collect())
}

/// Reads what [`escape`] has written.
fn unescape(text: &str) -> String {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = match (first, after) {
            (b'%', [high, low, ..]) => {
                let pair = [*high, *low];
                let pair = std::str::from_utf8(&pair).ok();
                pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
            }
            _ => None,
        };
        match hex {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were() {
        for name in ["dev", "a b", "ü%/", "%", "%4", "%zz"] {
            assert_eq!(unescape(&escape(name)), name);
        }
        assert_eq!(unescape("%zz%4"), "%zz%4");
    }
}
