//! What the documentation shows is true: its code blocks are run, loaded or at
//! least understood, and what is made from something else is current.
//!
//! The first word after a fence says what a block is. `console` and `sh` with
//! the mark `run` are typed at a real server, page by page, and what they show
//! is compared; those with the mark `package` are typed by package/try. Every
//! command in another block is listed here with the reason why it is not run,
//! and if it is ours, our command line must understand it.

mod api;
mod blocks;
mod links;
mod story;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use crate::generated::{read, root};
use crate::mcp::Client;
use crate::support::Home;
use blocks::Block;
use story::Story;

/// Blocks that a test of their own looks at.
const ELSEWHERE: [(&str, &str, &str); 6] = [
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
        "json",
        "notify::forms::the_guide_shows_a_message_as_it_is",
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

/// Commands that are not run, by how they begin, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "cargo run --release -- serve",
        "is the binary that every test here starts",
    ),
    ("export PATH=", "is about the shell of whoever reads it"),
    ("./check", "is what runs this test"),
    (
        "cargo xtask soak",
        "is a step of check, for as long as one likes",
    ),
    (
        "cargo install --path crates/cli",
        "is tried by package/check",
    ),
    ("cargo uninstall", "is tried by package/check"),
    ("package/build", "is tried by package/check"),
    ("dpkg --install", "is tried by package/check"),
    ("sudo apt install", "is tried by package/check"),
    ("sudo systemctl", "changes this machine"),
    ("sudo mv", "changes this machine"),
    (
        "sudo -u weighlock",
        "is of that unit; backup.rs does the same",
    ),
    ("systemctl", "changes this machine"),
    ("claude mcp add", "is a program of others"),
    ("examples/", "is run by behaviours.rs"),
    (
        "weighlock approve",
        "asks a person at a terminal; ask.rs types the answers",
    ),
    ("weighlock watch", "goes on until a person leaves"),
    (
        "cargo run --release -p weighlock-bench",
        "measures for minutes",
    ),
    ("fuzz/run", "is a step of check"),
    ("cargo +nightly fuzz", "needs another toolchain"),
    ("DIFFERENTIAL_CASES=", "takes as long as one likes"),
];

/// Pages elsewhere that have code blocks.
const BESIDE: [&str; 3] = [
    "bench/README.md",
    "crates/policy/knowledge/README.md",
    "fuzz/README.md",
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

/// What can be run runs, and shows what is written: one test for each page.
macro_rules! told {
    ($($name:ident: $page:literal,)*) => {
        const TOLD: &[&str] = &[$($page),*];
        mod told {
            $(#[test] fn $name() { super::tell($page) })*
        }
    };
}

told! {
    readme: "README.md",
    effects: "docs/effects.md",
    first_sandbox: "docs/first-sandbox.md",
    install: "docs/install.md",
    mcp: "docs/mcp.md",
    notifications: "docs/notifications.md",
    operating: "docs/operating.md",
    people: "docs/people.md",
    rest: "docs/rest.md",
    rules: "docs/rules.md",
    running: "docs/running.md",
    tasks: "docs/tasks.md",
    terminals: "docs/terminals.md",
    toolsets: "docs/toolsets.md",
}

fn tell(page: &str) {
    let mut story = Story::new();
    let blocks = blocks::of(page);
    let runs = blocks.iter().filter(|block| block.is_marked("run"));
    runs.for_each(|block| story.tell(block));
}

#[test]
fn every_page_with_something_to_run_is_told() {
    let runs = |page: &String| blocks::of(page).iter().any(|block| block.is_marked("run"));
    let pages: Vec<String> = pages().into_iter().filter(runs).collect();
    assert_eq!(pages, TOLD);
}

#[test]
fn every_block_is_covered() {
    let home = Home::untouched();
    let mut listed = BTreeSet::new();
    for page in pages().into_iter().chain(BESIDE.map(str::to_owned)) {
        for block in blocks::of(&page) {
            let elsewhere = ELSEWHERE
                .iter()
                .any(|(where_, language, _)| *where_ == page && *language == block.language);
            match block.language.as_str() {
                "console" | "sh" if block.is_marked("run") => {}
                // package/try types them, on a copy of the machine.
                "sh" if block.is_marked("package") => {}
                "console" | "sh" | "" => understands(&home, &block, &mut listed),
                "json" => drop(json(&block)),
                "yaml" => drop(yaml(&block)),
                "toml" => drop(toml(&block)),
                // What is no code: output, trees of files, quotations.
                "text" => {}
                "python" if elsewhere => {}
                other => panic!("{}: nobody looks at `{other}`", block.place),
            }
            match block.language.as_str() {
                _ if elsewhere || page.ends_with("knowledge/README.md") => {}
                "toml" => loads(&home, &block),
                "yaml" => tightens(&home, &block),
                _ => {}
            }
        }
    }
    let all: BTreeSet<&str> = NOT_RUN.iter().map(|(begin, _)| *begin).collect();
    assert_eq!(all, listed, "what is listed and what there is");
}

#[test]
fn tests_that_look_at_blocks_are_there() {
    for (_, _, test) in ELSEWHERE {
        let (_, name) = test.rsplit_once("::").unwrap();
        let there = sources().iter().any(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            text.contains(&format!("#[test]\nfn {name}()"))
                || text.contains(&format!("#[test]\n    fn {name}()"))
        });
        assert!(there, "{test}");
    }
}

/// The sources of all crates.
fn sources() -> Vec<PathBuf> {
    let mut directories = vec![root().join("crates")];
    let mut files = vec![];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false if path.extension().is_some_and(|kind| kind == "rs") => files.push(path),
                false => {}
            }
        }
    }
    files
}

fn json(block: &Block) -> serde_json::Value {
    let parsed = serde_json::from_str(&block.text);
    parsed.unwrap_or_else(|error| panic!("{}: {error}", block.place))
}

fn yaml(block: &Block) -> serde_json::Value {
    let parsed = serde_saphyr::from_str(&block.text);
    parsed.unwrap_or_else(|error| panic!("{}: {error}", block.place))
}

fn toml(block: &Block) -> toml::Table {
    let parsed = block.text.parse();
    parsed.unwrap_or_else(|error| panic!("{}: {error}", block.place))
}

#[test]
fn the_settings_for_http_let_a_client_in() {
    let blocks = blocks::of("docs/mcp.md");
    let block = blocks
        .iter()
        .find(|block| block.text.contains("\"http\""))
        .unwrap();
    let entry = json(block)["mcpServers"]["weighlock"].clone();
    let url = entry["url"].as_str().unwrap();
    let query = url.strip_prefix("http://127.0.0.1:7777/mcp?").unwrap();
    assert_eq!(entry["headers"]["Authorization"], "Bearer wl_…");
    let home = Home::untouched();
    let directory = home.base().join("webshop");
    std::fs::create_dir(&directory).unwrap();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());
    let client = Client::http(&server, &token, query);
    let said = client.call("run", serde_json::json!({ "command": "pwd" }));
    assert!(said.text.contains(directory.to_str().unwrap()), "{said:?}");
}

#[test]
fn the_table_has_what_doctor_looks_at_for_upkeep() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let said = home.call(&["doctor"]).out;
    let (_, upkeep) = said.split_once("✓ webhooks").unwrap();
    let guide = read("docs/operating.md");
    let mut lines = 0;
    for line in upkeep.lines().skip(1).filter(|line| !line.starts_with(' ')) {
        let (mark, name) = line.split_once(' ').unwrap();
        if ["✓", "!", "✗"].contains(&mark) {
            let name = name.split_whitespace().next().unwrap();
            assert!(guide.contains(&format!("\n| `{name}` |")), "{line}");
            lines += 1;
        }
    }
    assert!(lines > 5 && upkeep.contains("settings "), "{said}");
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

/// Looks why a command is not run. Ours are asked for help in the place of doing
/// it: what nobody knows is an error still.
fn understands(home: &Home, block: &Block, listed: &mut BTreeSet<&'static str>) {
    for typed in block.commands() {
        let command = &typed.command;
        let reason = NOT_RUN.iter().find(|(begin, _)| command.starts_with(begin));
        let (begin, _) =
            reason.unwrap_or_else(|| panic!("{}: nobody runs `{command}`", block.place));
        listed.insert(begin);
        let (ours, _) = command.split_once(" -- ").unwrap_or((command, ""));
        let Some(ours) = ours.strip_prefix("weighlock ") else {
            continue;
        };
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
