//! What the documentation shows is true: its code blocks are run, loaded or at
//! least understood, and what is made from something else is current.
//!
//! The first word after a fence says what a block is. `console` and `sh` with
//! the mark `run` are typed at a real server, page by page, and what they show
//! is compared. In all others, each call of ours must be one that our command
//! line understands, and anything else is listed here with a reason.

mod api;
mod blocks;
mod links;
mod story;

use std::io::Write;

use crate::generated::root;
use crate::support::Home;
use blocks::Block;
use story::Story;

/// Blocks that a test of their own looks at.
const ELSEWHERE: [(&str, &str, &str); 5] = [
    (
        "docs/mcp.md",
        "toml",
        "mcp_install::the_guide_shows_what_is_printed",
    ),
    (
        "docs/mcp.md",
        "yaml",
        "mcp_install::the_guide_shows_what_is_printed",
    ),
    (
        "docs/rules.md",
        "toml",
        "rules::tests::load::the_examples_in_the_guide_load",
    ),
    (
        "docs/notifications.md",
        "python",
        "notify::forms::the_guide_checks_signatures_as_they_are_made",
    ),
    (
        "docs/operating.md",
        "yaml",
        "upkeep::the_guide_names_numbers_that_there_are",
    ),
];

/// Commands that are not run, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "cargo run --release -- serve",
        "is the binary that every test here starts",
    ),
    ("./check", "is what runs this test"),
    (
        "cargo xtask soak",
        "is a step of check, for as long as one likes",
    ),
    (
        "cargo install --path crates/cli",
        "builds everything once more",
    ),
    ("package/build", "is tried by package/check"),
    ("dpkg --install", "is tried by package/check"),
    ("sudo apt install", "is tried by package/check"),
    ("sudo systemctl", "changes this machine"),
    ("sudo mv", "changes this machine"),
    (
        "sudo -u weighlock",
        "is of that unit; backup.rs does the same",
    ),
    ("dir=", "names a place of the reader's"),
    (
        "weighlock --socket /run/weighlock/weighlock.sock backup \"$dir",
        "is in that place; backup.rs makes others",
    ),
    ("systemctl", "changes this machine"),
    ("claude mcp add", "is a program of others"),
    ("examples/", "is run by behaviours.rs"),
    ("curl …", "has its address left out; rest.rs asks the same"),
    ("curl -s …", "the same"),
];

/// README.md and every page below docs/.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut directories = vec!["docs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(root().join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(path),
                false if path.ends_with(".md") => pages.push(path),
                false => {}
            }
        }
    }
    pages.sort();
    pages
}

#[test]
fn what_can_be_run_runs_and_shows_what_is_written() {
    let mut told = 0;
    for page in pages() {
        let blocks = blocks::of(&page);
        let mut runs = blocks
            .iter()
            .filter(|block| block.is_marked("run"))
            .peekable();
        if runs.peek().is_some() {
            let story = Story::new();
            runs.for_each(|block| {
                story.tell(block);
                told += 1;
            });
        }
    }
    assert!(told >= 5, "only {told} blocks are run");
}

#[test]
fn every_block_is_covered() {
    let home = Home::untouched();
    for page in pages() {
        for block in blocks::of(&page) {
            let listed = ELSEWHERE
                .iter()
                .any(|(where_, language, _)| *where_ == page && *language == block.language);
            match block.language.as_str() {
                _ if listed => {}
                "console" | "sh" if block.is_marked("run") => {}
                "console" | "sh" => understands(&home, &block),
                "json" => drop(json(&block)),
                "toml" => loads(&home, &block),
                "yaml" => tightens(&home, &block),
                // What is no code: output, trees of files, quotations.
                "text" => {}
                other => panic!("{}: nobody looks at `{other}`", block.place),
            }
        }
    }
}

fn json(block: &Block) -> serde_json::Value {
    let parsed = serde_json::from_str(&block.text);
    parsed.unwrap_or_else(|error| panic!("{}: {error}", block.place))
}

/// Settings are loaded as settings, and rules as rules.
fn loads(home: &Home, block: &Block) {
    let file = home.put("written.toml", &block.text);
    let file = file.to_str().unwrap();
    let done = match block.text.contains("[[rule]]") || block.text.contains("[[change]]") {
        true => home.call(&["policy", "test", file]),
        false => home.call(&["check", "--config", file, "true"]),
    };
    assert_eq!(done.code, Some(0), "{}: {done:?}", block.place);
}

/// The profile of an agent, as the guide has it, forbids what it says.
fn tightens(home: &Home, block: &Block) {
    home.put("agents/defaults.yaml", "");
    home.put("agents/experts/writer/config.yaml", &block.text);
    let agents = home.around().join("agents");
    let settings = home.config(&format!("[policy]\nagents = \"{}\"\n", agents.display()));
    for (command, code) in [("git log", 4), ("ls", 4), ("wc x", 0)] {
        let done = home.call(&["check", "--config", &settings, "--agent", "writer", command]);
        assert_eq!(done.code, Some(code), "{}: {done:?}", block.place);
    }
}

/// Asks for help in the place of doing it: what nobody knows is an error still.
fn understands(home: &Home, block: &Block) {
    for typed in block.commands() {
        let not_run = NOT_RUN
            .iter()
            .any(|(begin, _)| typed.command.starts_with(begin));
        if not_run {
            continue;
        }
        let command = typed.command.split(" < ").next().unwrap_or_default();
        let (ours, _) = command.split_once(" -- ").unwrap_or((command, ""));
        let ours = ours.strip_prefix("weighlock ");
        let ours = ours.unwrap_or_else(|| panic!("{}: nobody runs `{command}`", block.place));
        let words = format!("exec \"$0\" {ours} --help");
        let ours = env!("CARGO_BIN_EXE_weighlock");
        let mut shell = std::process::Command::new("sh");
        let done = shell
            .args(["-c", &words, ours])
            .current_dir(home.base())
            .output();
        let done = done.unwrap();
        if !done.status.success() {
            std::io::stderr().write_all(&done.stderr).unwrap();
            panic!("{}: `{command}` is not understood", block.place);
        }
    }
}
