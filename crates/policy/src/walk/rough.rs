//! Commands in text that the parser does not understand.
//!
//! What is quoted is one word, however it looks, and a quote that is not closed
//! makes text of the rest. A person is asked about all of it anyway.

/// Calls with the words of each thing that looks like a command.
pub(super) fn commands(text: &str, found: impl FnMut(Vec<String>)) {
    let mut reader = RoughReader {
        found,
        words: vec![],
        word: String::new(),
        begun: false,
        quote: None,
        inside: 0,
    };
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match (reader.quote, next) {
            (Some('\''), '\'') | (Some('"'), '"') => reader.quote = None,
            (Some('"') | None, '\\') => reader.letters(chars.next()),
            // A substitution in quotes is a command of its own.
            (Some('"'), '$') if chars.peek() == Some(&'(') => {
                chars.next();
                reader.open();
            }
            (Some(_), _) => reader.letters(Some(next)),
            (None, '"' | '\'') => {
                reader.quote = Some(next);
                reader.begun = true;
            }
            (None, ')') => reader.close(),
            (None, '\n' | ';' | '|' | '&' | '(' | '{' | '}' | '`') => reader.end_command(),
            (None, blank) if blank.is_whitespace() => reader.end_word(),
            (None, _) => reader.letters(Some(next)),
        }
    }
    if reader.quote.is_some() {
        reader.word.clear();
        reader.begun = false;
    }
    reader.end_command();
}

struct RoughReader<F> {
    found: F,
    words: Vec<String>,
    word: String,
    /// There is a word, if only an empty one.
    begun: bool,
    quote: Option<char>,
    /// How many substitutions in double quotes are open.
    inside: usize,
}

impl<F: FnMut(Vec<String>)> RoughReader<F> {
    fn letters(&mut self, letter: Option<char>) {
        self.word.extend(letter);
        self.begun = true;
    }

    fn end_word(&mut self) {
        if std::mem::take(&mut self.begun) {
            self.words.push(std::mem::take(&mut self.word));
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            (self.found)(std::mem::take(&mut self.words));
        }
    }

    fn open(&mut self) {
        self.end_command();
        self.quote = None;
        self.inside += 1;
    }

    fn close(&mut self) {
        self.end_command();
        if self.inside > 0 {
            self.inside -= 1;
            self.quote = Some('"');
        }
    }
}
