//! Waiting for one thing.

use std::sync::Arc;
use std::time::Duration;

use regex::bytes::Regex;
use tokio::sync::Semaphore;
use weighlock_exec::Item;
use weighlock_screen::plain;
use weighlock_store::State;

use super::Runs;
use super::until::{Kind, Met, QUIET_MS, Wanted};
use crate::error::Error;
use crate::live::Live;
use crate::output::Until;
use crate::view::Run;

/// The kernel tells nobody when a program listens or reads: it is asked this
/// often, as long as somebody waits.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The part of a line that patterns are looked for in: of a longer one, the
/// newest. What shows how far it is never ends its line.
const LINE_BYTES: usize = 64 * 1024;

impl Runs {
    pub(super) async fn wait_for_one(
        self: &Arc<Self>,
        run: &Run,
        wanted: &Wanted,
        pattern: Option<Regex>,
    ) -> Result<Met, Error> {
        let mut met = Met {
            command_id: run.command_id.clone(),
            until: wanted.until,
            ..Met::default()
        };
        if wanted.until == Kind::Exit {
            self.wait_for_exit(run).await?;
            met.met = true;
            return Ok(met);
        }
        if let (Kind::Output, Some(pattern)) = (wanted.until, pattern) {
            let live = self.begun(run).await?;
            return { self.wait_for_output(run, live, &pattern, wanted.from, met) }.await;
        }
        let Some(live) = self.begun(run).await? else {
            // What is over is quiet, and does nothing else any more.
            met.met = matches!(wanted.until, Kind::Idle | Kind::Stable | Kind::Keyboard);
            return Ok(met);
        };
        let quiet = Duration::from_millis(wanted.ms.unwrap_or(QUIET_MS));
        tokio::select! {
            () = until(&live, wanted, quiet, &mut met) => met.met = true,
            () = live.is_over() => {
                met.met = matches!(wanted.until, Kind::Idle | Kind::Stable | Kind::Keyboard);
            }
        }
        Ok(met)
    }

    /// Waits for a command's end, or until it is certain that it never begins.
    async fn wait_for_exit(&self, run: &Run) -> Result<(), Error> {
        let mut now = self.wait(run, None).await?;
        // One whose changes are asked about has ended before.
        while now.ended_at.is_none()
            && matches!(now.state, State::Waiting | State::Held | State::Running)
        {
            now = self.wait(&now, None).await?;
        }
        Ok(())
    }

    /// Waits until a run has begun; nothing if it is over, or never will.
    async fn begun(&self, run: &Run) -> Result<Option<Arc<Live>>, Error> {
        loop {
            if let Some(live) = self.lives.get(&run.command_id) {
                return Ok(Some(live));
            }
            // Before looking, so that nothing is told in between.
            let mut told = self.waiters.wait_for(&run.command_id);
            let now = self.recall(&run.command_id)?;
            if self.lives.get(&run.command_id).is_some() {
                continue;
            }
            match now.state {
                State::Waiting | State::Held => told.told().await,
                State::Running if now.executor != "external" => told.told().await,
                _ => return Ok(None),
            }
        }
    }

    async fn wait_for_output(
        self: &Arc<Self>,
        run: &Run,
        live: Option<Arc<Live>>,
        pattern: &Regex,
        from: u64,
        mut met: Met,
    ) -> Result<Met, Error> {
        let mut follow = self.outputs.follow(run.clone(), from, Until::Closed);
        let mut lines = Lines::new(from, run.detail.terminal.is_some());
        while let Some(items) = follow.next().await? {
            // A pattern may be slow; nobody else waits for it.
            let pattern = pattern.clone();
            let looked = looked(move || {
                let found = lines.find(&items, &pattern);
                (lines, found)
            });
            let found;
            (lines, found) = looked.await;
            if let Some((line, offset)) = found {
                // Whoever looks next wants to see it.
                if let Some(live) = &live {
                    tokio::select! {
                        () = shows(live, lines.at) => {}
                        () = live.is_over() => {}
                    }
                }
                met.met = true;
                met.line = Some(line);
                met.offset = Some(offset);
                return Ok(met);
            }
        }
        Ok(met)
    }
}

/// Waits for what a run under way does.
async fn until(live: &Live, wanted: &Wanted, quiet: Duration, met: &mut Met) {
    match wanted.until {
        Kind::Port => met.port = Some(listening(live, wanted.port).await),
        Kind::Idle => silent(live, quiet).await,
        Kind::Stable => stable(live, quiet).await,
        Kind::Input => {
            reading(live).await;
            let shown = live.shown.as_ref();
            met.prompt = shown.map(|shown| shown.with(|picture| picture.prompt()));
        }
        Kind::Keyboard => {
            live.keyboard.free().await;
            met.text = live.keyboard.view().text;
        }
        Kind::Exit | Kind::Output => {}
    }
}

async fn listening(live: &Live, wanted: Option<u16>) -> u16 {
    let keeper = live.job.status().keeper.pid;
    loop {
        let ports = looked(move || weighlock_confine::ports_below(keeper)).await;
        let found = match wanted {
            Some(port) => ports.contains(&port).then_some(port),
            None => ports.first().copied(),
        };
        match found {
            Some(port) => return port,
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// Waits until what is in front reads, and all that it wrote before is shown.
async fn reading(live: &Live) {
    let keeper = live.job.status().keeper.pid;
    loop {
        if looked(move || weighlock_confine::waits_for_input(keeper)).await {
            // The prompt was written before, but its keeper may not have read
            // it yet; asked, it does.
            let told = live.job.terminal().await;
            let said = told.map_or(0, |told| told.output);
            shows(live, said).await;
            if live.job.status().output.bytes() <= said {
                return;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until a terminal shows what it wrote up to a byte: the emulator may be
/// behind.
async fn shows(live: &Live, to: u64) {
    if let Some(shown) = &live.shown {
        let mut fed = shown.fed.subscribe();
        let _ = fed.wait_for(|fed| fed.offset >= to).await;
    }
}

async fn silent(live: &Live, quiet: Duration) {
    loop {
        let seen = live.job.status().output.bytes();
        let more = live.job.output_past(seen, true);
        if tokio::time::timeout(quiet, more).await.is_err() {
            return;
        }
    }
}

async fn stable(live: &Live, quiet: Duration) {
    let Some(shown) = &live.shown else {
        return silent(live, quiet).await;
    };
    let mut fed = shown.fed.subscribe();
    let mut seen = shown.with(|picture| picture.screen.view());
    let mut until = tokio::time::Instant::now() + quiet;
    loop {
        fed.borrow_and_update();
        let now = shown.with(|picture| picture.screen.view());
        if now != seen {
            seen = now;
            until = tokio::time::Instant::now() + quiet;
        }
        match tokio::time::timeout_at(until, fed.changed()).await {
            Err(_) => return,
            // Nobody shows anything any more; the end is waited for elsewhere.
            Ok(Err(_)) => std::future::pending().await,
            Ok(Ok(())) => {}
        }
    }
}

/// Asks the kernel, which may take a while for a run of many processes.
pub(crate) async fn looked<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> T {
    // However many wait, a few look at a time.
    static LOOKING: Semaphore = Semaphore::const_new(2);
    let _one = LOOKING.acquire().await;
    let looked = tokio::task::spawn_blocking(look).await;
    looked.expect("looking does not panic")
}

/// Finds a pattern in output that comes in pieces, line by line. A line that
/// is not whole yet counts: prompts never are.
struct Lines {
    line: Vec<u8>,
    /// Where the line begins.
    from: u64,
    at: u64,
    /// It has the control sequences of terminals in it.
    terminal: bool,
}

impl Lines {
    fn new(from: u64, terminal: bool) -> Self {
        Self {
            line: vec![],
            from,
            at: from,
            terminal,
        }
    }

    fn find(&mut self, items: &[Item], pattern: &Regex) -> Option<(String, u64)> {
        let mut grown = false;
        for item in items {
            match item {
                Item::Gap { to, .. } => {
                    self.line.clear();
                    (self.from, self.at) = (*to, *to);
                }
                Item::Piece(piece) => {
                    self.at = piece.offset;
                    for part in piece.bytes.split_inclusive(|&byte| byte == b'\n') {
                        grown |= self.add(part);
                        if !part.ends_with(b"\n") {
                            continue;
                        }
                        if let Some(line) = self.matches(pattern) {
                            return Some((line, self.from));
                        }
                        self.line.clear();
                        (self.from, grown) = (self.at, false);
                    }
                }
            }
        }
        // Once for all that came: a line may come byte by byte.
        let line = grown.then(|| self.matches(pattern)).flatten()?;
        Some((line, self.from))
    }

    /// Returns the line as it is now, if it matches.
    fn matches(&self, pattern: &Regex) -> Option<String> {
        if !self.terminal {
            let found = pattern.is_match(&self.line);
            return found.then(|| String::from_utf8_lossy(&self.line).into_owned());
        }
        let seen = plain(&self.line);
        let seen = seen.trim_end_matches('\n');
        let found = pattern.is_match(seen.as_bytes());
        found.then(|| seen.to_owned())
    }

    /// Adds a part of a line, without its end; returns whether there was any.
    fn add(&mut self, part: &[u8]) -> bool {
        self.at += part.len() as u64;
        let text = part.strip_suffix(b"\n").unwrap_or(part);
        self.line.extend_from_slice(text);
        if self.line.len() > LINE_BYTES {
            self.cut();
        }
        !text.is_empty()
    }

    /// Forgets the beginning of a line that is too long: half of what there may
    /// be, so that it is not done for every byte. At a terminal the cursor
    /// comes back to the beginning, and what was before is overwritten.
    fn cut(&mut self) {
        let most = self.line.len() - LINE_BYTES / 2;
        let again = { self.line[most..].iter() }.position(|&byte| byte == b'\r');
        let cut = most + again.filter(|_| self.terminal).unwrap_or(0);
        self.line.drain(..cut);
    }
}

#[cfg(test)]
mod tests {
    use weighlock_exec::{Piece, Stream};

    use super::*;

    fn piece(offset: u64, text: &str) -> Item {
        Item::Piece(Piece {
            offset,
            sequence: 0,
            micros: 0,
            line: 0,
            stream: Stream::Stdout,
            bytes: text.as_bytes().to_vec(),
        })
    }

    #[test]
    fn a_pattern_is_found_wherever_the_output_is_cut() {
        let text = "one\ntwo ready\nthree";
        let pattern = Regex::new("^two ready$").unwrap();
        for cut in 0..text.len() {
            let (before, after) = text.split_at(cut);
            let mut lines = Lines::new(0, false);
            let found = { lines.find(&[piece(0, before)], &pattern) }
                .or_else(|| lines.find(&[piece(cut as u64, after)], &pattern));
            assert_eq!(found, Some(("two ready".to_owned(), 4)), "cut at {cut}");
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_looked_at_up_to_its_end() {
        let pattern = Regex::new("^done$").unwrap();
        for terminal in [true, false] {
            let (mut lines, mut at) = (Lines::new(0, terminal), 0);
            let mut look = |text: &str| {
                let found = lines.find(&[piece(at, text)], &pattern);
                at += text.len() as u64;
                assert!(lines.line.len() <= LINE_BYTES);
                found.is_some()
            };
            for percent in 0..400 {
                assert!(!look(&format!("\r{percent:500} %")), "{percent}");
            }
            assert!(!look(&"x".repeat(3 * LINE_BYTES)));
            assert_eq!(look("\r\x1b[Kdone"), terminal);
        }
    }

    #[test]
    fn a_prompt_that_no_line_end_follows_is_found_and_a_gap_joins_nothing() {
        let pattern = Regex::new("word: $").unwrap();
        let mut lines = Lines::new(0, false);
        let gap = Item::Gap { from: 4, to: 90 };
        assert_eq!(
            lines.find(&[piece(0, "pass"), gap, piece(90, "x")], &pattern),
            None
        );
        let found = lines.find(&[piece(91, "\nPassword: ")], &pattern);
        assert_eq!(found, Some(("Password: ".to_owned(), 92)));
    }
}
