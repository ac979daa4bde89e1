//! What a person does with the player: keys in, lines out.

use std::time::Duration;

use super::clock;
use super::draw::{ReplayWindow, Scroll, picture, status};
use super::find::{Hit, RecordingSearch};
use super::hits::Hits;
use super::keys::{ReplayKey, first};
use super::player::Player;
use crate::client::Failure;
use crate::line::{LineEditor, LineState};
use crate::text::{fit, one_line};

/// What the arrow keys skip.
const SKIP: Duration = Duration::from_secs(5);

/// While it plays, it is looked at so often.
const PLAYING: Duration = Duration::from_millis(33);

/// What cannot wait; keys are still looked for.
const BUSY: Duration = Duration::from_millis(1);

/// Nothing changes before a key is pressed.
const WAITING: Duration = Duration::from_secs(3600);

const KEYS: &str = "q leave · space pause · ← → 5 s · [ ] marks · < > speed · / find · \
    g go to · n N hits · hjkl ↑ ↓ scroll, c follows";

/// The player, and what a person is doing with it.
pub(crate) struct ReplayDesk {
    player: Player,
    mode: DeskMode,
    scroll: Scroll,
    window: ReplayWindow,
    hits: Option<Hits>,
    /// A message shown instead of the status line until the next key is
    /// pressed.
    note: Option<String>,
    /// The screen shows what it should.
    is_there: bool,
}

enum DeskMode {
    Watching,
    Asking(DeskPrompt, LineEditor),
    Searching(Box<RecordingSearch>),
    /// One of the hits.
    Choosing,
}

#[derive(Clone, Copy)]
enum DeskPrompt {
    Text,
    Time,
}

impl ReplayDesk {
    pub(crate) fn new(player: Player) -> Self {
        Self {
            player,
            mode: DeskMode::Watching,
            scroll: Scroll::default(),
            window: ReplayWindow {
                rows: 1,
                columns: 1,
            },
            hits: None,
            note: None,
            is_there: false,
        }
    }

    /// Takes rows and columns of the terminal.
    pub(super) fn fit(&mut self, (rows, columns): (usize, usize)) {
        let rows = rows.saturating_sub(1).max(1);
        self.window = ReplayWindow { rows, columns };
    }

    /// Lets time go by, unless somebody looks at something else.
    pub(super) fn advance(&mut self, elapsed: Duration) {
        if matches!(self.mode, DeskMode::Watching) && self.is_there {
            self.player.advance(elapsed);
        }
    }

    /// Does the next piece of pending work: catching up or searching.
    pub(super) fn work(&mut self) -> Result<(), Failure> {
        self.is_there = self.player.catch_up()?;
        if let DeskMode::Searching(search) = &mut self.mode
            && let Some(list) = search.step(self.player.recording())?
        {
            let query = std::mem::take(&mut search.query);
            self.mode = DeskMode::Watching;
            self.found(query, list)?;
        }
        Ok(())
    }

    /// How long nothing has to be done.
    pub(super) fn patience(&self) -> Duration {
        let stands = self.player.is_paused() || self.player.is_over();
        match &self.mode {
            DeskMode::Searching(_) => BUSY,
            _ if !self.is_there => BUSY,
            DeskMode::Watching if !stands => PLAYING,
            _ => WAITING,
        }
    }

    /// Takes what was typed. Returns whether to leave.
    pub(super) fn typed(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        let mut bytes = bytes;
        loop {
            if let DeskMode::Asking(..) = self.mode {
                return self.written(bytes);
            }
            let Some((key, rest)) = first(bytes) else {
                return Ok(false);
            };
            if self.pressed(key)? {
                return Ok(true);
            }
            bytes = rest;
        }
    }

    fn pressed(&mut self, key: ReplayKey) -> Result<bool, Failure> {
        self.note = None;
        match self.mode {
            DeskMode::Choosing => self.choose(key),
            DeskMode::Searching(_) => Ok(self.give_up(key)),
            DeskMode::Watching | DeskMode::Asking(..) => self.watch(key),
        }
    }

    /// Takes what was typed as an answer; giving it up does not leave.
    fn written(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        if let DeskMode::Asking(question, line) = &mut self.mode {
            let (question, typed, text) = (*question, line.take(bytes), line.text());
            match typed {
                LineState::More => {}
                LineState::GivenUp => self.mode = DeskMode::Watching,
                LineState::Enter => self.answered(question, &text)?,
            }
        }
        Ok(false)
    }

    /// Returns as many lines as the terminal has rows.
    pub(super) fn lines(&self) -> Vec<String> {
        let window = self.window;
        let mut lines = match (&self.mode, &self.hits) {
            (DeskMode::Choosing, Some(hits)) => hits.lines(window.rows, window.columns),
            _ => picture(&self.player.view(), window, self.scroll),
        };
        lines.push(self.last_line());
        lines
    }

    fn last_line(&self) -> String {
        let columns = self.window.columns;
        let line = match (&self.mode, &self.hits) {
            (DeskMode::Asking(question, line), _) => {
                let asked = match question {
                    DeskPrompt::Text => "find: ",
                    DeskPrompt::Time => "go to (8:31, 1:02:03 or 83): ",
                };
                let room = columns.saturating_sub(asked.chars().count()).max(1);
                return format!("{asked}{}", line.drawn(room));
            }
            (DeskMode::Searching(search), _) => {
                let (time, total) = (clock::shown(search.time), clock::shown(self.player.total()));
                format!("searching {time} / {total} · Esc gives up")
            }
            (DeskMode::Choosing, Some(hits)) => {
                format!(
                    "{} found · ↑ ↓ choose · Enter goes there · Esc goes back",
                    hits.count()
                )
            }
            _ => match &self.note {
                Some(note) => note.clone(),
                None => return status(&self.player, self.window, self.is_there),
            },
        };
        fit(&line, columns)
    }

    fn watch(&mut self, key: ReplayKey) -> Result<bool, Failure> {
        let time = self.player.time();
        match key {
            ReplayKey::Quit | ReplayKey::Char('q') => return Ok(true),
            ReplayKey::Char(' ') => self.player.toggle()?,
            ReplayKey::Left => self.player.seek(time.saturating_sub(SKIP))?,
            ReplayKey::Right => self.player.seek(time.saturating_add(SKIP))?,
            ReplayKey::Home => self.player.seek(Duration::ZERO)?,
            ReplayKey::End => self.player.seek(Duration::MAX)?,
            ReplayKey::Char('[') => self.go_to_mark(false)?,
            ReplayKey::Char(']') => self.go_to_mark(true)?,
            ReplayKey::Char('<') => self.player.slower(),
            ReplayKey::Char('>') => self.player.faster(),
            ReplayKey::Char('n') => self.turn(1)?,
            ReplayKey::Char('N') => self.turn(-1)?,
            ReplayKey::Char('/') => {
                self.mode = DeskMode::Asking(DeskPrompt::Text, LineEditor::new(""))
            }
            ReplayKey::Char('g') => {
                self.mode = DeskMode::Asking(DeskPrompt::Time, LineEditor::new(""))
            }
            ReplayKey::Char('?') => self.note = Some(KEYS.into()),
            ReplayKey::Char('c') => self.scroll = Scroll::default(),
            key => self.scrolled(key),
        }
        Ok(false)
    }

    fn scrolled(&mut self, key: ReplayKey) {
        let page = self.window.rows.cast_signed();
        let by = match key {
            ReplayKey::Up | ReplayKey::Char('k') => (-1, 0),
            ReplayKey::Down | ReplayKey::Char('j') => (1, 0),
            ReplayKey::PageUp => (-page, 0),
            ReplayKey::PageDown => (page, 0),
            ReplayKey::Char('h') => (0, -8),
            ReplayKey::Char('l') => (0, 8),
            _ => return,
        };
        self.scroll.step(&self.player.view(), self.window, by);
    }

    fn choose(&mut self, key: ReplayKey) -> Result<bool, Failure> {
        let page = self.window.rows.cast_signed();
        let by = match key {
            ReplayKey::Quit => return Ok(true),
            ReplayKey::Enter => {
                self.mode = DeskMode::Watching;
                self.go_to_hit()?;
                return Ok(false);
            }
            ReplayKey::Escape | ReplayKey::Char('q') => {
                self.mode = DeskMode::Watching;
                return Ok(false);
            }
            ReplayKey::Up | ReplayKey::Char('k') => -1,
            ReplayKey::Down | ReplayKey::Char('j') => 1,
            ReplayKey::PageUp => -page,
            ReplayKey::PageDown => page,
            _ => 0,
        };
        if let Some(hits) = &mut self.hits {
            hits.step(by);
        }
        Ok(false)
    }

    fn give_up(&mut self, key: ReplayKey) -> bool {
        if matches!(key, ReplayKey::Escape | ReplayKey::Char('q')) {
            self.mode = DeskMode::Watching;
        }
        key == ReplayKey::Quit
    }

    fn answered(&mut self, question: DeskPrompt, text: &str) -> Result<(), Failure> {
        self.mode = DeskMode::Watching;
        match question {
            DeskPrompt::Time => match clock::parse(text) {
                Ok(time) => self.player.seek(time)?,
                Err(why) => self.note = Some(one_line(&why, 200)),
            },
            // As before.
            DeskPrompt::Text if text.is_empty() => {
                if self.hits.is_some() {
                    self.mode = DeskMode::Choosing;
                }
            }
            DeskPrompt::Text => {
                let search = RecordingSearch::new(self.player.recording(), text)?;
                self.mode = DeskMode::Searching(Box::new(search));
            }
        }
        Ok(())
    }

    fn found(&mut self, query: String, list: Vec<Hit>) -> Result<(), Failure> {
        if list.is_empty() {
            self.note = Some(format!("“{}” is not in it", one_line(&query, 60)));
        }
        self.hits = Hits::new(query, list, self.player.time());
        match &self.hits {
            Some(hits) if hits.is_single() => self.go_to_hit()?,
            Some(_) => self.mode = DeskMode::Choosing,
            None => {}
        }
        Ok(())
    }

    fn go_to_mark(&mut self, next: bool) -> Result<(), Failure> {
        let (mark, none) = match next {
            true => (self.player.next_mark(), "there is no mark after this"),
            false => (self.player.previous_mark(), "there is no mark before this"),
        };
        let Some(mark) = mark.cloned() else {
            self.note = Some(none.into());
            return Ok(());
        };
        let (time, label) = (clock::shown(mark.time), one_line(&mark.label, 200));
        self.note = Some(format!("{time} {label}"));
        self.player.seek(mark.time)
    }

    /// Goes to the hit after the last one, or before it.
    fn turn(&mut self, by: isize) -> Result<(), Failure> {
        match &mut self.hits {
            Some(hits) => hits.turn(by),
            None => {
                self.note = Some("nothing was searched for yet: / does".into());
                return Ok(());
            }
        }
        self.go_to_hit()
    }

    /// Goes there and stays, so that it can be read.
    fn go_to_hit(&mut self) -> Result<(), Failure> {
        if let Some(hits) = &self.hits {
            self.note = Some(format!(
                "{} {}",
                clock::shown(hits.chosen().time),
                hits.place()
            ));
            self.player.pause();
            self.player.seek(hits.chosen().time)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::player::tests::{player, seconds};
    use super::*;

    fn desk() -> ReplayDesk {
        let mut desk = ReplayDesk::new(player(&[
            r#"1, "o", "alpha\r\n""#,
            r#"2, "m", "$ beta""#,
            r#"3, "o", "Beta\r\n""#,
            r#"90, "o", "alphabet\r\n""#,
        ]));
        desk.fit((6, 70));
        desk
    }

    /// Types, does what is to be done, and returns the lines without blanks.
    fn after(desk: &mut ReplayDesk, typed: &str) -> Vec<String> {
        assert!(!desk.typed(typed.as_bytes()).expect("readable"));
        loop {
            desk.work().expect("readable");
            if desk.patience() != BUSY {
                break;
            }
        }
        let mut lines = desk.lines();
        assert_eq!(lines.len(), 6);
        lines.retain(|line| !line.is_empty());
        lines
            .iter()
            .map(|line| line.replace("\x1b[7m \x1b[27m", "█"))
            .collect()
    }

    #[test]
    fn keys_do_what_they_say() {
        let mut desk = desk();
        let status = "playing 0:00 / 1:30 · 1× · next 0:02 $ beta · ? keys";
        assert_eq!(after(&mut desk, "x"), ["█", status]);
        assert_eq!(
            after(&mut desk, " ")[1],
            status.replace("playing", "paused")
        );
        assert_eq!(
            after(&mut desk, ">>")[1][7..],
            status.replace("1×", "4×")[8..]
        );
        assert_eq!(after(&mut desk, "]"), ["alpha", "█", "0:02 $ beta"]);
        assert_eq!(after(&mut desk, "]")[2], "there is no mark after this");
        let there = after(&mut desk, "\x1b[C");
        assert_eq!(there[2..], ["█", "paused 0:07 / 1:30 · 4× · ? keys"]);
        let end = after(&mut desk, "\x1b[F");
        assert!(end[3].starts_with("end 1:30 / 1:30"), "{end:?}");
        assert!(desk.typed(b"q").expect("readable"));
        assert!(desk.typed(b"\x03").expect("readable"));
    }

    #[test]
    fn a_time_is_gone_to() {
        let mut desk = desk();
        assert_eq!(
            after(&mut desk, "g1:2")[1],
            "go to (8:31, 1:02:03 or 83): 1:2█"
        );
        let lines = after(&mut desk, "0\r");
        assert!(lines[3].starts_with("playing 1:20"), "{lines:?}");
        after(&mut desk, "g");
        assert!(after(&mut desk, "soon\r")[3].starts_with("`soon` is not a time"));
        after(&mut desk, "g");
        assert!(after(&mut desk, "\x1b")[3].starts_with("playing 1:20"));
    }

    #[test]
    fn text_is_found_and_listed_with_its_times() {
        let mut desk = desk();
        after(&mut desk, "/");
        let list = after(&mut desk, "BET\r");
        assert_eq!(list[0], "›     0:02  $ beta");
        assert_eq!(list[1], "      0:03  Beta");
        assert_eq!(list[2], "      1:30  alphabet");
        assert!(list[3].starts_with("3 found"), "{list:?}");
        after(&mut desk, "\x1b[B");
        assert_eq!(
            after(&mut desk, "\r"),
            ["alpha", "Beta", "█", "0:03 2 of 3 for “BET”: Beta"]
        );
        assert!(desk.player.is_paused());
        assert!(after(&mut desk, "n")[3].starts_with("1:30 3 of 3"));
        assert!(after(&mut desk, "n")[2].starts_with("0:02 1 of 3"));
        after(&mut desk, "/");
        assert_eq!(after(&mut desk, "gamma\r")[2], "“gamma” is not in it");
    }

    #[test]
    fn time_stands_still_while_somebody_types() {
        let mut desk = desk();
        after(&mut desk, "/");
        desk.advance(seconds(5.0));
        assert_eq!(desk.player.time(), Duration::ZERO);
    }

    #[test]
    fn what_is_larger_is_scrolled() {
        let mut desk = desk();
        desk.player.pause();
        after(&mut desk, "\x1b[F");
        desk.fit((3, 12));
        let lines = |desk: &mut ReplayDesk, typed: &str| {
            desk.typed(typed.as_bytes()).expect("readable");
            desk.lines()
        };
        assert_eq!(lines(&mut desk, "x")[0], "alphabet");
        assert_eq!(lines(&mut desk, "k")[..2], ["Beta", "alphabet"]);
        assert_eq!(lines(&mut desk, "j")[0], "alphabet");
        assert_eq!(lines(&mut desk, "kl")[..2], ["", ""]);
        assert_eq!(lines(&mut desk, "c")[0], "alphabet");
        desk.fit((3, 100));
        let status = &lines(&mut desk, "x")[2];
        assert!(
            status.contains("20×3 is larger than this window"),
            "{status}"
        );
    }
}
