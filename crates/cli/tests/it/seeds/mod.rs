//! The documents that weighlock grew from, as pages: every sentence, and the
//! test that proves it.
//!
//! The pages are made from the walks, which are tests themselves. That a walk
//! leaves nothing out is known from the hash of what it quotes, since the
//! documents are not in the repository.

mod page;
mod scan;

use sha2::{Digest, Sha256};

use crate::generated::{assert_current, read, root};
use scan::{Item, Proof};

/// One of them.
struct Seed {
    number: &'static str,
    /// What the document calls itself.
    title: &'static str,
    /// What came of it here.
    here: &'static str,
    /// Where its walk is, below the tests.
    walk: &'static str,
    /// Whether it is a program, and not Markdown.
    program: bool,
    /// Of its text without separators and white space.
    sha256: &'static str,
}

const SEEDS: [Seed; 5] = [
    Seed {
        number: "000",
        title: "Terminal command execution and terminal config",
        here: "toolset `execute-command`, preset `blacklist`, the page *Terminal config*",
        walk: "mcp/seed_000.rs",
        program: false,
        sha256: "109ba64b488ce3cec722b488f66477da640c4a191df4a6bc0e64484441794e8f",
    },
    Seed {
        number: "001",
        title: "The source of a tool `terminal`",
        here: "toolset `terminal`, preset `multi-user`",
        walk: "mcp/seed_001.rs",
        program: true,
        sha256: "9979d7707f28015cf48eba41963528557af7af6c70c7e0b5537b4b736ae12807",
    },
    Seed {
        number: "002",
        title: "Universal Shell Command Access",
        here: "toolset `shell`, preset `agents`",
        walk: "mcp/seed_002.rs",
        program: false,
        sha256: "0faad93e635c38d9dc8019b4672da204f3a2497bd357f43ce57a8a9e6d50696c",
    },
    Seed {
        number: "003",
        title: "Terminal Tool Plan",
        here: "REST under `/agent/terminal`, preset `approval`",
        walk: "seed_003.rs",
        program: false,
        sha256: "76db5d6b690ccdbf8f9d9f262a045295855289f0f7bfd4d208b02338adac1942",
    },
    Seed {
        number: "004",
        title: "Proposal: Enhanced Bash Tool",
        here: "toolset `bash`, preset `bash`, tasks",
        walk: "mcp/seed_004.rs",
        program: false,
        sha256: "f6d463d369911722708c6f886d911cd5195f88d4d1978c167ad19d1bb9dc4375",
    },
];

const TESTS: &str = "crates/cli/tests/it";

impl Seed {
    fn file(&self) -> String {
        format!("{TESTS}/{}", self.walk)
    }

    fn items(&self) -> Vec<Item> {
        scan::items(&read(&self.file()))
    }

    /// The name of a test of the walk, as it is run.
    fn test(&self, name: &str) -> String {
        let module = self.walk.trim_end_matches(".rs").replace('/', "::");
        format!("{module}::{name}")
    }
}

#[test]
fn nothing_of_them_is_left_out() {
    for seed in &SEEDS {
        let quoted: Vec<String> = seed.items().into_iter().map(|item| item.quoted).collect();
        let quoted = quoted.join("\n");
        let words: String = { quoted.lines() }
            .filter(|line| !line.chars().all(|one| "-| ".contains(one)))
            .flat_map(str::split_whitespace)
            .collect();
        let hash = Sha256::digest(words.as_bytes());
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, seed.sha256, "{}", seed.walk);
    }
}

#[test]
fn the_pages_about_them_are_current() {
    assert_current("docs/seeds.md", &page::overview(&SEEDS));
    for seed in &SEEDS {
        let path = format!("docs/seeds/{}.md", seed.number);
        assert_current(&path, &page::seed(seed));
    }
}

#[test]
fn what_the_walks_refer_to_is_there() {
    for seed in &SEEDS {
        for item in seed.items() {
            // What is tried on the spot may be remarked upon freely.
            if item.proof == Proof::Named {
                let named = item.notes.iter().map(|note| refers(seed, note));
                let named: usize = named.sum();
                assert!(named > 0, "{}: no test for {:?}", seed.walk, item);
            }
        }
    }
}

/// Looks for the files and tests that a note names, and counts the tests.
fn refers(seed: &Seed, note: &str) -> usize {
    let mut around = read(&seed.file());
    let mut tests = 0;
    let words = note.split([' ', ',', ';', '(', ')', ':']);
    for word in words.map(|word| word.trim_end_matches('.')) {
        if word.ends_with(".rs") || word.starts_with("crates/") || word.starts_with("docs/") {
            let places = ["", "crates", TESTS, &format!("{TESTS}/mcp")];
            let found = places.map(|place| root().join(place).join(word));
            let found = found.iter().find(|file| file.exists());
            let found = found.unwrap_or_else(|| panic!("{word}, named in: {note}"));
            around.push_str(&std::fs::read_to_string(found).unwrap_or_default());
        }
        if let Some(test) = word
            .strip_prefix('`')
            .and_then(|word| word.strip_suffix('`'))
        {
            let test = format!("#[test]\nfn {test}()");
            assert!(around.contains(&test), "no {test}, named in: {note}");
            tests += 1;
        }
    }
    tests
}
