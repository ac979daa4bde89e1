//! The name a program gives its window.

/// Longer ones are an attempt at something.
const MOST_CHARS: usize = 256;

/// As deep as xterm's.
const MOST_KEPT: usize = 10;

#[derive(Debug, Default)]
pub(crate) struct Title {
    text: String,
    kept: Vec<String>,
}

impl Title {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn set(&mut self, text: Option<String>) {
        let text: String = text
            .unwrap_or_default()
            .chars()
            .filter(|letter| !letter.is_control())
            .take(MOST_CHARS)
            .collect();
        self.text = text.trim().to_owned();
    }

    /// Remembers the title for [`Title::pop`].
    pub(crate) fn push(&mut self) {
        if self.kept.len() == MOST_KEPT {
            self.kept.remove(0);
        }
        self.kept.push(self.text.clone());
    }

    pub(crate) fn pop(&mut self) {
        if let Some(text) = self.kept.pop() {
            self.text = text;
        }
    }

    /// Titles from the oldest remembered to the shown one.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().chain([&self.text]).map(String::as_str)
    }
}
