//! A whole screen, of which only what changed is written.

use std::io::Write;
use std::sync::Once;

/// The other screen, without a cursor, and with lines that end at its edge: one
/// too long at the bottom would move all others. And back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal's other screen, as long as this lives.
pub(crate) struct FullScreen {
    shown: Vec<String>,
}

impl FullScreen {
    pub(crate) fn enter() -> Self {
        static HOOK: Once = Once::new();
        // What went wrong must be read on the screen that stays.
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                write(LEAVE);
                before(info);
            }));
        });
        write(ENTER);
        Self { shown: vec![] }
    }

    /// Returns rows and columns.
    pub(crate) fn size(&self) -> (usize, usize) {
        crate::term::size_of(std::io::stdout())
    }

    /// Writes the lines that are not there already.
    pub(crate) fn draw(&mut self, lines: &[String]) {
        write(&changes(&self.shown, lines));
        self.shown = lines.to_vec();
    }

    /// The terminal is another: everything has to be written.
    pub(crate) fn forget(&mut self) {
        write("\x1b[2J");
        self.shown.clear();
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        write(LEAVE);
    }
}

fn changes(shown: &[String], lines: &[String]) -> String {
    let changed = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| shown.get(*at) != Some(line));
    changed
        // Erased before: behind a line as wide as the terminal, the cursor still
        // is on its last character.
        .map(|(at, line)| format!("\x1b[{};1H\x1b[K{line}", at + 1))
        .collect()
}

fn write(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

#[cfg(test)]
mod tests {
    use super::changes;

    #[test]
    fn only_what_changed_is_written() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(changes(&lines("a\nb"), &lines("a\nc")), "\x1b[2;1H\x1b[Kc");
        assert_eq!(changes(&lines("a"), &lines("a")), "");
        assert_eq!(changes(&[], &lines("a")), "\x1b[1;1H\x1b[Ka");
    }
}
