//! Terminals outlive the server.

use std::fs;

use serde_json::{Value, json};

use super::Desk;
use crate::crew::{only, text};
use crate::support::{eventually, is_alive};

/// How many of each kind there are.
const MANY: usize = 10;

/// Counts and says so, a line at a time and without end, and says what it is
/// told meanwhile. Nothing ever comes from the pipe: it is a clock that starts
/// no process.
const COUNT: &str = r#"
clock=$(mktemp -u)
mkfifo "$clock"
exec 3<> "$clock"
(
    n=0
    while :; do
        n=$((n + 1))
        echo $n
        read -r -t 0.03 -u 3
    done
) &
while read -r line; do
    echo "got $line"
    [ "$line" = end ] && break
done
kill $!
"#;

#[test]
fn a_terminal_counts_on_after_the_server_was_killed() {
    let mut desk = Desk::new();
    desk.open(
        "counter",
        "n=0; while read line; do n=$((n+1)); echo $n: $line; done",
    );
    desk.enter("counter", "before");
    desk.sees("counter", "1: before");
    desk.restart();
    desk.sees("counter", "1: before");
    desk.enter("counter", "after");
    desk.sees("counter", "2: after");
}

#[test]
fn a_size_that_was_given_outlives_the_server() {
    let mut desk = Desk::new();
    desk.open(
        "wide",
        "read line; printf 'top\\033[30;90Hcorner'; read line",
    );
    let size = json!({ "columns": 100, "rows": 30 });
    desk.coder().post("/terminals/wide/size", &size).expect(204);
    assert_eq!(told_size(&desk, "wide"), size);
    desk.enter("wide", "");
    desk.sees("wide", "corner");
    desk.open("none", "stty columns 0 rows 0; echo set; read line");
    desk.sees("none", "set");
    let usual = told_size(&desk, "none");
    let shown = desk.screen("wide");
    assert_eq!(shown["rows"].as_array().map(Vec::len), Some(30));
    assert_eq!(shown["rows"][29], format!("{:89}corner", ""));
    desk.restart();
    desk.sees("wide", "corner");
    assert_eq!(desk.screen("wide"), shown);
    assert_eq!(told_size(&desk, "wide"), size);
    assert_eq!(
        told_size(&desk, "none"),
        usual,
        "none that a screen can have"
    );
}

#[test]
fn terminals_and_tasks_outlive_servers_that_are_killed() {
    let mut desk = Desk::lenient();
    let crowd = Crowd::start(&desk);
    let shown = crowd.shown(&desk);
    let list = listed(&desk);
    for round in ["first", "second"] {
        let before = crowd.said(&desk);
        crowd.kill_server(&mut desk);
        assert_eq!(listed(&desk), list);
        crowd.check_shown(&desk, &shown);
        crowd.check_goes_on(&desk, &before);
        crowd.tell(&desk, round);
    }
    let keepers = crowd.keepers(&desk);
    crowd.end(&desk);
    eventually("no keeper is left", || {
        !keepers.iter().any(|&keeper| is_alive(keeper))
    });
    assert_eq!(desk.home.processes(), Vec::<u32>::new());
    assert_eq!(listed(&desk), Vec::<Value>::new());
    desk.home.assert_audit_verifies();
}

fn told_size(desk: &Desk, name: &str) -> Value {
    let told = desk.coder().get(&format!("/terminals/{name}")).json();
    only(&told, &["columns", "rows"])
}

/// What the list of terminals says that does not change.
fn listed(desk: &Desk) -> Vec<Value> {
    let list = desk.coder().get("/terminals").expect(200);
    let all = list["terminals"].as_array().expect("a list").iter();
    all.map(|one| only(one, &["terminal_id", "name", "pid", "state", "title"]))
        .collect()
}

/// Terminals that count, terminals that show something and wait, and tasks that
/// count in the background; by id.
struct Crowd {
    counting: Vec<String>,
    silent: Vec<String>,
    tasks: Vec<String>,
}

impl Crowd {
    fn start(desk: &Desk) -> Self {
        fs::write(desk.home.base().join("count.sh"), COUNT).unwrap();
        let open = |name: &str, n: usize, command: &str| {
            text(&desk.open(&format!("{name}-{n}"), command), "terminal_id")
        };
        let crowd = Self {
            counting: (0..MANY)
                .map(|n| open("counting", n, "exec bash count.sh"))
                .collect(),
            silent: (0..MANY).map(|n| open("silent", n, &painting(n))).collect(),
            tasks: (0..2 * MANY).map(|_| start_task(desk)).collect(),
        };
        for (n, id) in crowd.silent.iter().enumerate() {
            desk.sees(id, &format!("painted {n}"));
            eventually("idle", || desk.status(id) == "idle");
        }
        for id in crowd.all_counting() {
            eventually("it counts", || desk.home.output(id).len() > 20);
        }
        crowd
    }

    /// Terminals and tasks that count.
    fn all_counting(&self) -> impl Iterator<Item = &String> {
        self.counting.iter().chain(&self.tasks)
    }

    fn keepers(&self, desk: &Desk) -> Vec<u32> {
        let all = self.all_counting().chain(&self.silent);
        all.map(|id| desk.home.keeper(id)).collect()
    }

    /// The whole screens of those that wait.
    fn shown(&self, desk: &Desk) -> Vec<Value> {
        let screen = |id: &String| {
            let path = format!("/terminals/{id}/screen?lines=200");
            desk.coder().get(&path).expect(200)
        };
        self.silent.iter().map(screen).collect()
    }

    /// What was said by those that count.
    fn said(&self, desk: &Desk) -> Vec<Vec<u8>> {
        self.all_counting().map(|id| desk.home.output(id)).collect()
    }

    /// Kills the server, and starts another once they have counted without.
    fn kill_server(&self, desk: &mut Desk) {
        desk.kill();
        for id in self.all_counting() {
            let before = kept(desk, id);
            eventually("it counts without a server", || kept(desk, id) > before);
        }
        desk.serve();
    }

    fn check_shown(&self, desk: &Desk, before: &[Value]) {
        eventually("all screens are as before", || {
            let offsets = |screens: &[Value]| -> Vec<Value> {
                screens
                    .iter()
                    .map(|screen| screen["offset"].clone())
                    .collect()
            };
            offsets(&self.shown(desk)) == offsets(before)
        });
        assert_eq!(self.shown(desk), before);
    }

    /// All that was said comes before all that is said since, without a gap.
    fn check_goes_on(&self, desk: &Desk, before: &[Vec<u8>]) {
        for (id, before) in self.all_counting().zip(before) {
            eventually("it counts on", || desk.home.output(id).len() > before.len());
            let whole = desk.home.output(id);
            assert!(whole.starts_with(before), "{id} begins otherwise");
            let path = format!("/commands/{id}/output/raw?from={}", before.len());
            let rest = desk.coder().get(&path).bytes;
            assert!(
                rest.starts_with(&whole[before.len()..]),
                "{id} goes on otherwise"
            );
            check_counted(id, &whole);
        }
    }

    /// Those that count say what they are told.
    fn tell(&self, desk: &Desk, what: &str) {
        for id in &self.counting {
            desk.enter(id, what);
        }
        for id in &self.tasks {
            give(desk, id, what);
        }
        for id in self.all_counting() {
            let wanted = format!("got {what}");
            eventually(&format!("{id} says `{wanted}`"), || {
                let said = desk.home.output(id);
                lines(&said).any(|line| line == wanted)
            });
        }
    }

    /// Ends all of them, each as it can be ended.
    fn end(&self, desk: &Desk) {
        self.tell(desk, "end");
        for id in &self.silent {
            desk.close(id);
        }
        for id in self.all_counting().chain(&self.silent) {
            let run = desk.home.closed(id);
            let ended = if self.silent.contains(id) {
                "killed"
            } else {
                "succeeded"
            };
            assert_eq!(run["state"], ended, "{run}");
        }
        for id in self.all_counting() {
            let said = desk.home.output(id);
            check_counted(id, &said);
            let told: Vec<&str> = lines(&said)
                .filter(|line| line.starts_with("got "))
                .collect();
            assert_eq!(told, ["got first", "got second", "got end"], "{id}");
        }
    }
}

/// Shows something of every kind, its number last, and waits.
fn painting(n: usize) -> String {
    let show = match n % 3 {
        0 => format!("\\033[?1049h\\033[2J\\033[5;10H\\033[1;31mpainted {n}"),
        1 => format!("\\033]0;title {n}\\007\\r12345\\rpainted {n}"),
        _ => format!("{}✓ 漢字\\n$ painted {n}", "scrolled\\n".repeat(60)),
    };
    format!("printf '{show}'; read line")
}

fn start_task(desk: &Desk) -> String {
    let body = json!({ "command": "exec bash count.sh", "session_id": "all", "background": true,
                       "stdin_open": true, "env": desk.env });
    let run = desk.coder().post("/commands", &body).expect(202);
    assert_eq!(run["state"], "running", "{run}");
    text(&run, "command_id")
}

fn give(desk: &Desk, task: &str, line: &str) {
    let address = format!("/agent/terminal/commands/{task}/stdin");
    let line = format!("{line}\n");
    desk.coder()
        .send("POST", &address, line.as_bytes())
        .expect(204);
}

/// How many bytes there are of a run on disk.
fn kept(desk: &Desk, id: &str) -> u64 {
    let status = desk.home.status_file(id).expect("it is under way");
    let dir = status.parent().expect("in a directory");
    let files = fs::read_dir(dir).unwrap().flatten();
    files
        .map(|file| file.metadata().map_or(0, |meta| meta.len()))
        .sum()
}

fn lines(said: &[u8]) -> impl Iterator<Item = &str> {
    let said = std::str::from_utf8(said).expect("text");
    said.lines().map(|line| line.trim_end_matches('\r'))
}

/// Every number was said once and in order; the last may be on its way.
fn check_counted(id: &str, said: &[u8]) {
    let end = said.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
    let numbers = lines(&said[..end]).filter_map(|line| line.parse::<usize>().ok());
    let mut count = 0;
    for (number, wanted) in numbers.zip(1..) {
        assert_eq!(number, wanted, "{id}");
        count = wanted;
    }
    assert!(count > 5, "{id} counted to {count} only");
}
