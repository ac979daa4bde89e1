//! The code blocks of a page.

use crate::generated::read;

/// One of them.
pub(super) struct Block {
    /// Its page and line, for who has to mend it.
    pub(super) place: String,
    /// The first word after the fence: `sh`, `toml`, …
    pub(super) language: String,
    /// The words after that.
    pub(super) marks: Vec<String>,
    pub(super) text: String,
}

impl Block {
    pub(super) fn is_marked(&self, mark: &str) -> bool {
        self.marks.iter().any(|one| one == mark)
    }

    /// The commands, each with the lines that are shown after it. A command
    /// goes on in the next line after a backslash; what follows ` # ` at some
    /// distance explains it.
    pub(super) fn commands(&self) -> Vec<Typed> {
        let mut typed: Vec<Typed> = vec![];
        let mut goes_on = false;
        for line in self.text.lines() {
            let command = match self.language.as_str() {
                "console" => line.strip_prefix("$ "),
                _ => Some(line).filter(|line| !line.is_empty() && !line.starts_with('#')),
            };
            match (command, typed.last_mut()) {
                (_, Some(last)) if goes_on => {
                    last.command.truncate(last.command.len() - 1);
                    last.command.push_str(line.trim_start());
                }
                (Some(command), _) => typed.push(Typed {
                    command: without_remark(command).to_owned(),
                    shown: vec![],
                }),
                (None, Some(last)) => last.shown.push(line.to_owned()),
                (None, None) => panic!("{}: shown before anything is typed", self.place),
            }
            goes_on = typed
                .last()
                .is_some_and(|last| last.command.ends_with('\\'));
        }
        typed
    }
}

/// A command, and what it shows.
pub(super) struct Typed {
    pub(super) command: String,
    pub(super) shown: Vec<String>,
}

fn without_remark(command: &str) -> &str {
    match command.split_once("  #") {
        Some((command, _)) => command.trim_end(),
        None => command,
    }
}

/// Reads the blocks of a page.
pub(super) fn of(page: &str) -> Vec<Block> {
    let text = read(page);
    let mut blocks: Vec<Block> = vec![];
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                blocks.push(Block {
                    place: format!("{page}:{}", at + 1),
                    language: words.next().unwrap_or_default(),
                    marks: words.collect(),
                    text: String::new(),
                });
                open = true;
            }
            None if open => {
                let block = blocks.last_mut().expect("one is open");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "{page}: a block without an end");
    blocks
}
