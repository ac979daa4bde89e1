//! A keyboard that somebody had when an earlier server ended.

use serde_json::json;
use weighlock_exec::{Diary, Happened, Size, What};

use super::Shells;
use crate::live::{Live, mark};
use crate::view::Run;
use crate::view::opened_size;

/// What a mark says after the name of whoever took the keyboard.
pub(crate) const TOOK: &str = " took over";

/// How a keyboard is given back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) note: Option<String>,
    pub(crate) drop_held: bool,
    /// Why, if nobody has said so.
    pub(crate) why: Option<&'static str>,
}

impl Said {
    pub(crate) fn text(&self, name: &str) -> String {
        match (&self.note, self.why) {
            (Some(note), _) => format!("{name} handed back: ‘{note}’"),
            (None, None) => format!("{name} handed back."),
            (None, Some(why)) => format!("The keyboard is back: {name} {why}."),
        }
    }
}

impl Shells {
    /// Gives back a keyboard that somebody had when an earlier server ended.
    pub(crate) async fn settle_keyboard(&self, live: &Live, run: &Run) {
        let Some(terminal) = &run.detail.terminal else {
            return;
        };
        // One that cannot be read costs a size, not the terminal.
        let diary = Diary::default().news(&self.core.run_dir(&run.command_id));
        let Some(left) = left_taken(&diary.unwrap_or_default(), opened_size(terminal)) else {
            return;
        };
        let why = "had it when the server ended; what others typed meanwhile is lost";
        let said = Said {
            why: Some(why),
            ..Said::default()
        };
        let told = json!({ "why": why });
        let entry = self.terminal_entry("terminal.given_back", run, &left.name, told);
        if let Err(error) = self.core.store.audit().record(vec![entry]).await {
            tracing::warn!(run = run.command_id, %error, "cannot tell of a keyboard");
        }
        let text = said.text(&left.name);
        mark(live, "given_back", text.clone()).await;
        let _ = live.job.resize(left.before).await;
        live.keyboard.say(text);
    }
}

/// A keyboard that nobody has given back.
#[derive(Debug, PartialEq, Eq)]
struct LeftTaken {
    name: String,
    /// The size to be restored.
    before: Size,
}

/// Returns who has the keyboard at the end of a diary.
fn left_taken(diary: &[Happened], mut size: Size) -> Option<LeftTaken> {
    let mut taken = None;
    for happened in diary {
        match &happened.what {
            What::Resized(to) => size = *to,
            What::Marked(mark) if mark.kind == "taken" => {
                let name = mark.text.strip_suffix(TOOK).unwrap_or(&mark.text);
                // Whoever takes it again had the terminal at their size before.
                taken.get_or_insert(LeftTaken {
                    name: name.to_owned(),
                    before: size,
                });
            }
            What::Marked(mark) if mark.kind == "given_back" => taken = None,
            What::Marked(_) => {}
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use weighlock_exec::Mark;

    use super::*;

    const OWN: Size = Size {
        columns: 80,
        rows: 24,
    };
    const THEIRS: Size = Size {
        columns: 100,
        rows: 40,
    };

    fn left(story: &[What]) -> Option<(String, Size)> {
        let diary: Vec<Happened> = { story.iter() }
            .map(|what| Happened {
                micros: 0,
                offset: 0,
                what: what.clone(),
            })
            .collect();
        left_taken(&diary, OWN).map(|left| (left.name, left.before))
    }

    fn marked(kind: &str, text: &str) -> What {
        What::Marked(Mark {
            kind: kind.into(),
            text: text.into(),
        })
    }

    #[test]
    fn a_diary_says_who_has_the_keyboard_and_what_size_to_restore() {
        let taken = || marked("taken", "ana took over");
        let given = || marked("given_back", "ana handed back.");
        let ana = |size| Some(("ana".to_owned(), size));
        assert_eq!(left(&[]), None);
        assert_eq!(left(&[taken(), What::Resized(THEIRS)]), ana(OWN));
        let again = [What::Resized(THEIRS), taken(), What::Resized(OWN), taken()];
        assert_eq!(left(&again), ana(THEIRS));
        assert_eq!(
            left(&[taken(), What::Resized(THEIRS), given(), What::Resized(OWN)]),
            None
        );
        let stopped = [taken(), given(), What::Resized(THEIRS), taken()];
        assert_eq!(left(&stopped), ana(THEIRS));
    }
}
