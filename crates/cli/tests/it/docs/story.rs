//! Types what a page says, at a real server, and compares what it shows.

use std::process::Command;

use super::blocks::{Block, Typed};
use crate::support::{Home, Server, skip};

/// A project as a reader may have one, and a server for it.
pub(super) struct Story {
    home: Home,
    server: Server,
    token: String,
}

/// What the project is made of.
const PROJECT: &str = "\
git init -q . && git config user.name ana && git config user.email ana@example.com
printf '# My project\\n\\nThis is teh legacy readme.\\n' > README.md
mkdir src build && echo 'int main(void) { return 0; }' > src/main.c && echo x > build/main.o
printf 'build/\\n' > .gitignore
printf 'test:\\n\\t@echo 12 passed\\nformat:\\n\\t@echo >> src/main.c\\n' > Makefile
git add . && git commit -qm begin && echo more >> README.md
";

/// What a machine need not have.
const OPTIONAL: [&str; 2] = ["curl", "make"];

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

impl Story {
    pub(super) fn new() -> Self {
        let home = Home::untouched();
        let made = Command::new("sh")
            .args(["-ec", PROJECT])
            .current_dir(home.base())
            .env("HOME", home.around())
            .status();
        assert!(made.unwrap().success());
        let server = home.serve(&["--listen", "127.0.0.1:0"]);
        let token = home.token(&home.me());
        Self {
            home,
            server,
            token,
        }
    }

    /// Types the commands of a block, one after another.
    pub(super) fn tell(&self, block: &Block) {
        let typed = block.commands();
        let mut words = typed
            .iter()
            .flat_map(|typed| typed.command.split_whitespace());
        if let Some(missing) = words.find(|word| OPTIONAL.contains(word) && !is_there(word)) {
            return skip(&format!("there is no {missing}, for {}", block.place));
        }
        typed.iter().for_each(|typed| self.try_one(block, typed));
    }

    fn try_one(&self, block: &Block, typed: &Typed) {
        let ours = std::path::Path::new(env!("CARGO_BIN_EXE_weighlock"));
        let mut path = ours.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let address = self.server.said.split("http://").nth(1).unwrap();
        let address = address.split(['/', ' ', '\n']).next().unwrap();
        let text = typed.command.replace("127.0.0.1:7777", address);
        let mut shell = self
            .home
            .weighlock_through(&["sh", "-c", "exec 2>&1; eval \"$2\"", "sh"], &[&text]);
        let done = shell
            .env("PATH", path)
            .env("TOKEN", &self.token)
            .env("COLUMNS", "80")
            .output()
            .unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        // What waits for a person, is refused or fails on a wall is shown, too.
        let fine = done.status.success() || !typed.shown.is_empty();
        let fine = fine || done.status.code() == Some(75);
        assert!(fine, "{}: {text}\n{said}", block.place);
        if !typed.shown.is_empty() {
            let seen: Vec<String> = said.lines().map(plain).collect();
            let wanted: Vec<String> = typed.shown.iter().map(|line| plain(line)).collect();
            let same = matches(&wanted, &seen);
            assert!(same, "{}: {text}\nshows:\n{said}", block.place);
        }
    }
}

/// A line without what differs from run to run: ids, times, and how far things
/// are apart.
fn plain(line: &str) -> String {
    let mut words: Vec<String> = vec![];
    for word in line.split_whitespace() {
        let id = ["r_", "ap_", "s_"]
            .iter()
            .any(|kind| word.starts_with(kind));
        let unit = ["ms", "s", "µs", "s,"].contains(&word);
        let clock = words.last().is_some_and(|last| last == "in") && word.contains(':');
        match words.last_mut() {
            Some(last) if unit && last.parse::<f64>().is_ok() => "N".clone_into(last),
            _ => {}
        }
        words.push(match word {
            _ if id => "ID".to_owned(),
            _ if clock => "N:NN".to_owned(),
            "base" => "myproject".to_owned(),
            word => word.to_owned(),
        });
    }
    words.join(" ")
}

/// Whether the lines are those wanted, of which `…` is any number, and an empty
/// one at the end nothing.
fn matches(wanted: &[String], seen: &[String]) -> bool {
    match wanted {
        [] => seen.iter().all(String::is_empty),
        [any, rest @ ..] if any == "…" => {
            (0..=seen.len()).any(|skipped| matches(rest, &seen[skipped..]))
        }
        [empty] if empty.is_empty() => matches(&[], seen),
        [line, rest @ ..] => seen.first() == Some(line) && matches(rest, &seen[1..]),
    }
}
