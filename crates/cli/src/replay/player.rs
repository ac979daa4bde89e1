//! Plays a recording: what is shown when. Knows no clock and no terminal.

use std::time::Duration;

use weighlock_screen::View;

use super::recording::{Marker, ScannedRecording};
use super::reel::Reel;
use crate::client::Failure;

/// How slow and how fast a recording can be played.
pub(crate) const SLOWEST: f64 = 0.5;
pub(crate) const FASTEST: f64 = 16.0;

/// Bytes that are shown before somebody looks for keys again; some ten
/// milliseconds.
const STEP_BYTES: usize = 256 * 1024;

/// While it plays, the mark before is not the one that was just gone to.
const JUST: Duration = Duration::from_secs(1);

/// A recording at some time.
pub(crate) struct Player {
    recording: ScannedRecording,
    reel: Reel,
    /// What is to be shown; the reel may have to catch up.
    time: Duration,
    /// Where somebody went last. A pause counts from there.
    sought: Duration,
    speed: f64,
    is_paused: bool,
    /// The longest pause that is played.
    idle: Option<Duration>,
}

impl Player {
    pub(crate) fn new(
        recording: ScannedRecording,
        speed: f64,
        idle: Option<Duration>,
    ) -> Result<Self, Failure> {
        let reel = Reel::new(recording.reader()?, recording.size);
        Ok(Self {
            reel: reel.map_err(|error| recording.failure(error))?,
            recording,
            time: Duration::ZERO,
            sought: Duration::ZERO,
            speed: speed.clamp(SLOWEST, FASTEST),
            is_paused: false,
            idle,
        })
    }

    pub(super) fn recording(&self) -> &ScannedRecording {
        &self.recording
    }

    pub(super) fn time(&self) -> Duration {
        self.time
    }

    pub(super) fn total(&self) -> Duration {
        self.recording.total
    }

    pub(super) fn speed(&self) -> f64 {
        self.speed
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(super) fn is_over(&self) -> bool {
        self.time >= self.total()
    }

    pub(super) fn view(&self) -> View {
        self.reel.view()
    }

    /// Lets time go by.
    pub(super) fn advance(&mut self, elapsed: Duration) {
        if self.is_paused || self.is_over() {
            return;
        }
        self.time = self.time.saturating_add(elapsed.mul_f64(self.speed));
        if let Some(next) = self.after_pause() {
            self.time = next;
        }
        self.time = self.time.min(self.total());
    }

    /// Shows what is due, or a part of it. Returns whether that was all.
    pub(super) fn catch_up(&mut self) -> Result<bool, Failure> {
        let shown = self.reel.show(self.time, STEP_BYTES);
        shown.map_err(|error| self.recording.failure(error))
    }

    pub(crate) fn seek(&mut self, time: Duration) -> Result<(), Failure> {
        self.time = time.min(self.total());
        self.sought = self.time;
        let wound = self.reel.wind(self.time);
        wound.map_err(|error| self.recording.failure(error))
    }

    pub(super) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Pauses or goes on; at the end, from the beginning.
    pub(super) fn toggle(&mut self) -> Result<(), Failure> {
        if self.is_over() {
            self.is_paused = false;
            return self.seek(Duration::ZERO);
        }
        self.is_paused = !self.is_paused;
        Ok(())
    }

    pub(super) fn faster(&mut self) {
        self.speed = (self.speed * 2.0).min(FASTEST);
    }

    pub(super) fn slower(&mut self) {
        self.speed = (self.speed / 2.0).max(SLOWEST);
    }

    pub(super) fn next_mark(&self) -> Option<&Marker> {
        let marks = &self.recording.marks;
        marks.get(marks.partition_point(|mark| mark.time <= self.time))
    }

    pub(super) fn previous_mark(&self) -> Option<&Marker> {
        let just = if self.is_paused { Duration::ZERO } else { JUST };
        let before = self.time.saturating_sub(just);
        let marks = &self.recording.marks;
        let after = marks.partition_point(|mark| mark.time < before);
        after.checked_sub(1).map(|last| &marks[last])
    }

    /// Returns when something happens again, if nothing has for long enough.
    fn after_pause(&self) -> Option<Duration> {
        let begun = self.reel.time().max(self.sought);
        let next = self.reel.next_time()?;
        let waited = self.time >= begun.saturating_add(self.idle?);
        (waited && next > self.time).then_some(next)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::source::RecordingFile;
    use super::*;

    /// Makes a player of lines without their brackets.
    pub(crate) fn player(events: &[&str]) -> Player {
        let mut text = r#"{"version":2,"width":20,"height":3}"#.to_owned();
        for event in events {
            text += &format!("\n[{event}]");
        }
        text.push('\n');
        let source = RecordingFile::kept("made".into(), &mut text.as_bytes()).expect("a place");
        let recording = ScannedRecording::open(source).expect("a recording");
        Player::new(recording, 1.0, Some(seconds(2.0))).expect("a player")
    }

    pub(crate) fn seconds(number: f64) -> Duration {
        Duration::from_secs_f64(number)
    }

    fn rows(player: &mut Player) -> Vec<String> {
        while !player.catch_up().expect("readable") {}
        player.view().rows
    }

    const STORY: [&str; 8] = [
        r#"1, "o", "one\r\n""#,
        r#"2, "m", "$ two""#,
        r#"2, "o", "two\r\n""#,
        r#"60, "o", "three""#,
        r#"61, "r", "30x4""#,
        r#"62, "i", "unseen""#,
        r#"62, "m", "$ four""#,
        r#"63, "o", "\r\u001b[Kfour""#,
    ];

    #[test]
    fn time_shows_what_is_due() {
        let mut player = player(&STORY);
        assert_eq!(player.total(), seconds(63.0));
        assert_eq!(rows(&mut player), ["", "", ""]);
        player.advance(seconds(1.5));
        assert_eq!(rows(&mut player), ["one", "", ""]);
        player.pause();
        player.advance(seconds(99.0));
        assert_eq!(player.time(), seconds(1.5));
        player.toggle().expect("readable");
        player.faster();
        player.advance(seconds(0.5));
        assert_eq!(rows(&mut player), ["one", "two", ""]);
        assert_eq!(player.time(), seconds(2.5));
    }

    #[test]
    fn pauses_are_shortened_and_the_end_is_waited_at() {
        let mut player = player(&STORY);
        player.seek(seconds(2.0)).expect("readable");
        rows(&mut player);
        player.advance(seconds(1.9));
        assert_eq!(player.time(), seconds(3.9));
        player.advance(seconds(0.2));
        assert_eq!(player.time(), seconds(60.0));
        assert_eq!(rows(&mut player), ["one", "two", "three"]);
        player.idle = None;
        player.seek(seconds(10.0)).expect("readable");
        player.advance(seconds(40.0));
        assert_eq!(player.time(), seconds(50.0));
        player.advance(seconds(40.0));
        assert!(player.is_over());
        assert_eq!(rows(&mut player), ["one", "two", "four", ""]);
        player.toggle().expect("readable");
        assert_eq!(rows(&mut player), ["", "", ""]);
        assert!(!player.is_paused());
    }

    #[test]
    fn one_who_goes_into_a_pause_sees_it() {
        let mut player = player(&STORY);
        player.seek(seconds(30.0)).expect("readable");
        rows(&mut player);
        player.advance(seconds(1.0));
        assert_eq!(player.time(), seconds(31.0));
        player.advance(seconds(1.0));
        assert_eq!(player.time(), seconds(60.0));
    }

    #[test]
    fn marks_are_found_from_anywhere() {
        let mut player = player(&STORY);
        let label = |mark: Option<&Marker>| mark.map(|mark| mark.label.clone());
        assert_eq!(label(player.next_mark()), Some("$ two".into()));
        assert_eq!(label(player.previous_mark()), None);
        player.seek(seconds(2.0)).expect("readable");
        assert_eq!(label(player.next_mark()), Some("size 30×4".into()));
        player.seek(seconds(62.5)).expect("readable");
        assert_eq!(label(player.next_mark()), None);
        // While it plays, one that was just passed is not meant.
        assert_eq!(label(player.previous_mark()), Some("size 30×4".into()));
        player.pause();
        assert_eq!(label(player.previous_mark()), Some("$ four".into()));
    }

    #[test]
    fn speed_stays_within_its_bounds() {
        let mut player = player(&STORY);
        (0..9).for_each(|_| player.faster());
        assert_eq!(player.speed(), FASTEST);
        (0..9).for_each(|_| player.slower());
        assert_eq!(player.speed(), SLOWEST);
    }

    #[test]
    fn a_long_recording_is_wound_back_to_the_same_screens() {
        let line = "x".repeat(1000);
        let events: Vec<String> = (0..4000)
            .map(|at| match at % 3 {
                // Sequences that are cut between two events.
                0 => format!(r#"{at}, "o", "\r\n{at} {line}\u001b[3""#),
                1 => format!(r#"{at}, "o", "1m{at}\u001b]0;ti""#),
                _ => format!(r#"{at}, "o", "tle\u0007{at}""#),
            })
            .collect();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let mut forward = player(&events);
        let mut expected = vec![];
        for at in (0..4000).step_by(500) {
            forward.seek(seconds(f64::from(at))).expect("readable");
            expected.push((at, rows(&mut forward)));
        }
        for (at, expected) in expected.iter().rev() {
            forward.seek(seconds(f64::from(*at))).expect("readable");
            assert_eq!(rows(&mut forward), *expected, "{at}");
        }
    }

    #[test]
    fn time_does_not_go_back_whatever_a_file_says() {
        let mut player = player(&[r#"5, "o", "a""#, r#"1, "o", "b""#, r#"6, "o", "c""#]);
        player.seek(seconds(4.0)).expect("readable");
        assert_eq!(rows(&mut player)[0], "");
        player.seek(seconds(5.0)).expect("readable");
        assert_eq!(rows(&mut player)[0], "ab");
    }
}
