//! Types what a page says, at a real server, and compares what it shows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use super::blocks::{Block, Typed};
use crate::notify::receiver::{Answer, Receiver};
use crate::support::{Home, Server, skip};

/// A project as a reader may have one, and a server for it.
pub(super) struct Story {
    home: Home,
    _server: Server,
    _receiver: Receiver,
    token: String,
    /// What stands here for the places that pages name.
    places: Vec<(&'static str, String)>,
    /// Ids, tokens and hashes as the page shows them, and what they are here.
    names: BTreeMap<String, String>,
    /// Where the reader has gone with `cd`.
    at: PathBuf,
    /// A block was left out, on which those after it may be built.
    cut_short: bool,
}

/// What the project is made of.
const PROJECT: &str = "\
git init -q . && git config user.name ana && git config user.email ana@example.com
printf '# My project\\n\\nThis is teh legacy readme.\\n' > README.md
mkdir src build && echo 'int main(void) { return 0; }' > src/main.c && echo x > build/main.o
printf 'build/\\n' > .gitignore
mkdir -p webshop/old webshop/reports && echo 1 > webshop/old/prices.csv && echo shop > webshop/README.md
printf '[[rule]]\\nname = \"no-force-push\"\\nreject = \"git push --force\"\\n' | tee rules.toml > draft.toml
echo '{\"id\": 1, \"command\": \"ls\"}' > commands.jsonl
printf 'test:\\n\\t@echo 12 passed\\nformat:\\n\\t@echo >> src/main.c\\n' > Makefile
git add . && git commit -qm begin && echo more >> README.md
";

/// What a machine need not have.
const OPTIONAL: [&str; 3] = ["curl", "make", "python3"];

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
        for below in ["home", "backups", "backups/nightly"] {
            std::fs::create_dir_all(home.around().join(below)).unwrap();
        }
        let server = home.serve(&["--listen", "127.0.0.1:0"]);
        let receiver = Receiver::new(Answer::OK);
        let told = format!("http://127.0.0.1:{}", receiver.port);
        let below = |path: &str| home.around().join(path).display().to_string();
        let places = vec![
            ("127.0.0.1:7777", server.address()),
            (
                "/run/weighlock/weighlock.sock",
                below("state/weighlock.sock"),
            ),
            ("/srv/webshop", below("base/webshop")),
            ("/mnt/backup", below("backups")),
            ("/var/backups/weighlock", below("backups/nightly")),
            ("/tmp/drill", below("drill")),
            ("https://hooks.example.com", told.clone()),
            ("https://ntfy.sh", told.clone()),
            ("https://chat.example.com", told),
        ];
        let token = home.token(&home.me());
        Self {
            at: home.base(),
            cut_short: false,
            home,
            _server: server,
            _receiver: receiver,
            token,
            places,
            names: BTreeMap::new(),
        }
    }

    /// Types the commands of a block, one after another.
    pub(super) fn tell(&mut self, block: &Block) {
        let typed = block.commands();
        let mut words = typed
            .iter()
            .flat_map(|typed| typed.command.split_whitespace());
        if let Some(missing) = words.find(|word| OPTIONAL.contains(word) && !is_there(word)) {
            self.cut_short = true;
            skip(&format!("there is no {missing}, for {}", block.place));
        }
        if self.cut_short {
            return;
        }
        typed.iter().for_each(|typed| self.try_one(block, typed));
    }

    fn try_one(&mut self, block: &Block, typed: &Typed) {
        let text = self.here(&typed.command);
        if let Some(directory) = text.strip_prefix("cd ") {
            self.at = self.at.join(directory);
            return;
        }
        let ours = std::path::Path::new(env!("CARGO_BIN_EXE_weighlock"));
        let mut path = ours.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut shell = self
            .home
            .weighlock_through(&["sh", "-c", "exec 2>&1; eval \"$2\"", "sh"], &[&text]);
        let done = shell
            .env("PATH", path)
            .env("TOKEN", &self.token)
            .env("COLUMNS", "80")
            .current_dir(&self.at)
            .output()
            .unwrap();
        let said = self.there(&String::from_utf8(done.stdout).unwrap());
        // What is refused or fails on a wall may be shown, and then it is meant.
        let is_shown = typed
            .shown
            .iter()
            .any(|line| !["", "…"].contains(&line.trim()));
        let waits = done.status.code() == Some(75) && text.contains("--no-wait");
        let fine = done.status.success() || is_shown || waits;
        assert!(fine, "{}: {text}\n{said}", block.place);
        if is_shown {
            let seen: Vec<&str> = said.lines().collect();
            let wanted: Vec<&str> = typed.shown.iter().map(String::as_str).collect();
            let pairs = pair(&wanted, &seen);
            let pairs = pairs.unwrap_or_else(|| panic!("{}: {text}\nshows:\n{said}", block.place));
            pairs.into_iter().for_each(|pair| self.learn(pair));
        }
    }

    /// Keeps what the ids of a line are here, each the next of its kind.
    fn learn(&mut self, (wanted, seen): (&str, &str)) {
        let mut seen = ids(seen);
        for (kind, id) in ids(wanted) {
            if let Some((_, here)) = seen.find(|(other, _)| *other == kind) {
                self.names.insert(id.to_owned(), here.to_owned());
            }
        }
    }

    /// What a page says, with what stands here for places and names.
    fn here(&self, text: &str) -> String {
        let names = self
            .names
            .iter()
            .rev()
            .map(|(name, here)| (name.as_str(), here));
        let all = names.chain(self.places.iter().map(|(place, here)| (*place, here)));
        all.fold(text.to_owned(), |text, (there, here)| {
            text.replace(there, here)
        })
    }

    /// What is said here, with the places as pages name them.
    fn there(&self, said: &str) -> String {
        let places = self.places.iter();
        places.fold(said.to_owned(), |said, (there, here)| {
            said.replace(here, there)
        })
    }
}

/// The ids, tokens and hashes of a line, with their kinds.
fn ids(line: &str) -> impl Iterator<Item = (&'static str, &str)> {
    let apart = |one: char| one.is_whitespace() || "\"'(),;:{}[]".contains(one);
    let words = line.split(apart).map(|word| word.trim_end_matches('.'));
    words.filter_map(|word| Some((kind(word)?, word)))
}

fn kind(word: &str) -> Option<&'static str> {
    let kinds = ["r_", "ap_", "s_", "g_", "tk_", "wl_", "wh_", "whsec_"];
    let hex = word.trim_end_matches('…');
    let enough = if hex == word { 24 } else { 4 };
    let hash = hex.len() >= enough && hex.chars().all(|one| one.is_ascii_hexdigit());
    let named = kinds.into_iter().find(|kind| word.starts_with(kind));
    named.or(hash.then_some("hash"))
}

/// A line without what differs from run to run: ids, times, and how far things
/// are apart.
fn plain(line: &str) -> String {
    let ids = ids(line);
    let line = ids.fold(line.to_owned(), |line, (_, id)| line.replace(id, "ID"));
    let mut words: Vec<String> = vec![];
    for word in line.split_whitespace() {
        let unit = ["ms", "s", "µs", "s,"].contains(&word);
        let clock = word.split_once(':').is_some_and(|(minutes, seconds)| {
            [minutes, seconds]
                .iter()
                .all(|part| part.parse::<u8>().is_ok())
        });
        match words.last_mut() {
            Some(last) if unit && last.parse::<f64>().is_ok() => "N".clone_into(last),
            _ => {}
        }
        words.push(match word {
            _ if clock => "N:NN".to_owned(),
            "base" => "myproject".to_owned(),
            word => word.to_owned(),
        });
    }
    words.join(" ")
}

/// Which line is which, if the lines are those wanted, of which `…` is any
/// number, and an empty one at the end nothing.
fn pair<'a>(wanted: &[&'a str], seen: &[&'a str]) -> Option<Vec<(&'a str, &'a str)>> {
    match wanted {
        [] | [""] => seen.iter().all(|line| line.is_empty()).then(Vec::new),
        [any, rest @ ..] if any.trim() == "…" => {
            (0..=seen.len()).find_map(|skipped| pair(rest, &seen[skipped..]))
        }
        [line, rest @ ..] => {
            let (first, after) = seen.split_first()?;
            let mut pairs = is_like(line, first).then(|| pair(rest, after))??;
            pairs.push((line, first));
            Some(pairs)
        }
    }
}

/// Whether a line is one that is wanted, in which `…` is any text.
fn is_like(wanted: &str, seen: &str) -> bool {
    let (wanted, seen) = (plain(wanted), plain(seen));
    let mut parts = wanted.split('…');
    let first = parts.next().expect("a split has a first part");
    let Some(mut rest) = seen.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
