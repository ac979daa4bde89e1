//! Output as it comes: over a WebSocket for terminals, and as events for every
//! run.

use std::io::BufReader;

use serde_json::{Value, json};
use weighlock_screen::{Screen, Size};

use super::Desk;
use super::many::resident;
use super::watcher::{Came, Watcher};
use crate::caller::{Caller, Line, read_head, read_piece};
use crate::crew::text;
use crate::support::eventually;

const MIB: u64 = 1024 * 1024;

/// Bytes on their way to a viewer who has not said that they came.
const WINDOW: u64 = 256 * 1024;

/// Lines above the screen, as a viewer is given them.
const SCROLLBACK: usize = 1000;

#[test]
fn every_byte_comes_in_order_across_servers() {
    let mut desk = Desk::lenient();
    let opened = desk.open("cat", "stty -echo; echo ready; cat");
    let id = text(&opened, "terminal_id");
    let mut all = vec![];
    let mut at = 0;
    for round in 0..3 {
        // Some of it is written while nobody watches, some while somebody does.
        desk.enter("cat", &format!("round {round} {}", "x".repeat(1000)));
        desk.sees("cat", &format!("round {round}"));
        let mut watcher = Watcher::from(&desk.coder(), "cat", at);
        assert_eq!(
            watcher.until("resize"),
            json!({ "type": "resize", "columns": 80, "rows": 24 })
        );
        desk.enter("cat", &format!("live {round}"));
        desk.sees("cat", &format!("live {round}"));
        watcher.until_at(desk.screen("cat")["offset"].as_u64().unwrap());
        all.append(&mut watcher.output);
        at = watcher.at;
        desk.restart();
    }
    let written = desk.home.output(&id);
    assert_eq!(
        String::from_utf8_lossy(&all),
        String::from_utf8_lossy(&written)
    );
    // From anywhere in between, too, and after its end.
    desk.close("cat");
    desk.ended(&opened);
    let mut watcher = Watcher::from(&desk.coder(), &id, 777);
    watcher.until("exit");
    assert_eq!(watcher.output, &desk.home.output(&id)[777..]);
    assert!(matches!(watcher.next(), Came::Over));
}

#[test]
fn who_begins_to_watch_sees_the_screen_as_it_is() {
    let desk = Desk::new();
    let opened = desk.open(
        "painted",
        "seq 1 50; printf '\\033[5;10H\\033[1;31mred 漢\\033[m\\033[20;3H'; cat",
    );
    desk.sees("painted", "red 漢");
    let check = |name: &str| {
        let mut watcher = Watcher::at(&desk.coder(), name);
        let mut seen = Seen::of(&watcher.until("snapshot"));
        let shown = desk.screen(name);
        assert_eq!(watcher.at, shown["offset"].as_u64().unwrap());
        assert_eq!(seen.rows(), shown["rows"]);
        assert_eq!(seen.skipped, 0);
        let above = seen.screen.history(100);
        assert_eq!(above[..3], ["1", "2", "3"]);
        watcher
    };
    let _ = check("painted");
    desk.close("painted");
    desk.ended(&opened);
    // Of one that has ended, what it showed last.
    let mut watcher = check(&text(&opened, "terminal_id"));
    assert_eq!(watcher.until("exit")["run"]["state"], "killed");
}

/// What somebody sees who was given a screen.
struct Seen {
    screen: Screen,
    skipped: u64,
}

impl Seen {
    fn of(snapshot: &Value) -> Self {
        let number = |name: &str| snapshot[name].as_u64().expect("a number");
        let size = Size::new(number("columns") as u16, number("rows") as u16);
        let mut screen = Screen::new(size.unwrap(), SCROLLBACK);
        let _ = screen.feed(text(snapshot, "data").as_bytes());
        Self {
            screen,
            skipped: number("skipped"),
        }
    }

    fn rows(&mut self) -> Value {
        json!(self.screen.view().rows)
    }
}

#[test]
fn who_never_acknowledges_is_sent_the_window_and_then_the_screen() {
    let desk = Desk::lenient();
    desk.open_shell("shell");
    let mut watcher = Watcher::at(&desk.coder(), "shell");
    watcher.until("snapshot");
    let from = watcher.at;
    let flood = |bytes: u64| {
        let line = format!("clear; yes nothing new | head -c {bytes}; echo; echo $(({bytes} + 1))");
        desk.enter("shell", &line);
        let end = format!("\n{}\n>", bytes + 1);
        desk.shows("shell", "the end", |rows| rows.trim_end().ends_with(&end));
    };
    flood(WINDOW + 1);
    watcher.until_at(from + WINDOW);
    flood(8 * WINDOW);
    // Not one byte more than the window comes.
    watcher.say(json!({ "type": "nonsense" }));
    watcher.until("error");
    assert_eq!(watcher.at, from + WINDOW);
    // Who types is told all the same.
    let mut ana = Watcher::at(&desk.other("ana", "operator"), "shell");
    ana.take(100, 40);
    assert_eq!(watcher.control(false)["taken_by"], "ana");
    ana.say(json!({ "type": "give" }));
    ana.control(false);
    watcher.ack();
    let mut seen = Seen::of(&watcher.until("snapshot"));
    assert!(seen.skipped > MIB, "{}", seen.skipped);
    let shown = desk.screen("shell");
    watcher.until_at(shown["offset"].as_u64().unwrap());
    let _ = seen.screen.feed(&watcher.output);
    assert_eq!(seen.rows(), shown["rows"]);
}

#[test]
fn who_never_acknowledges_holds_up_neither_a_flood_nor_the_server() {
    let desk = Desk::lenient();
    let server = desk.server_pid();
    let flood = desk.open("flood", "yes a line that says nothing new");
    // One reads and does not say so, one does not even read.
    let mut watcher = Watcher::at(&desk.coder(), "flood");
    let deaf = Watcher::at(&desk.coder(), "flood");
    watcher.until("snapshot");
    watcher.until_at(watcher.at + WINDOW);
    eventually("the flood goes on", || desk.written(&flood) > 8 * MIB);
    let (written, memory) = (desk.written(&flood), resident(server));
    eventually("for long", || desk.written(&flood) > written + 40 * MIB);
    let grown = resident(server).saturating_sub(memory);
    assert!(grown < 32 * MIB, "{grown} bytes");
    desk.close("flood");
    desk.ended(&flood);
    drop((watcher, deaf));
}

#[test]
fn a_reader_of_all_is_told_what_is_not_kept() {
    let desk = Desk::at(
        crate::support::Home::new(),
        "[output]\nper_run_mib = 1\n[environment]\nlogin_path = false\n",
        json!({}),
    );
    let opened = desk.open("long", "seq 1 600000; read line");
    let id = text(&opened, "terminal_id");
    desk.sees("long", "\n600000");
    let mut watcher = Watcher::from(&desk.coder(), "long", 0);
    let (mut gaps, mut came) = (0, 0);
    loop {
        match watcher.next() {
            Came::Said(said) if said["type"] == "gap" => {
                assert_eq!(said["from"], watcher.at);
                let to = said["to"].as_u64().unwrap();
                gaps += to - watcher.at;
                watcher.at = to;
            }
            Came::Output => {
                came += std::mem::take(&mut watcher.output).len() as u64;
                watcher.ack();
            }
            Came::Said(_) => {}
            Came::Over => panic!("it goes on"),
        }
        if watcher.at == desk.written(&opened) {
            break;
        }
    }
    assert!(gaps > MIB, "{gaps} bytes are missing");
    assert_eq!(gaps + came, watcher.at);
    assert_eq!(came, desk.home.output(&id).len() as u64);
}

#[test]
fn events_go_on_where_they_were_left() {
    let desk = Desk::lenient();
    let script = "import os, sys
def out(*pieces):
    for piece in pieces: os.write(1, piece); sys.stdin.readline()
os.write(2, b'aside \\xc3\\xbc\\n')
sys.stdin.readline()
out(b'plain\\n', b'f\\xc3', b'\\xbcr \\xe2', b'\\x82', b'\\xac \\xf0\\x9f', b'\\x98\\x80\\n')
out(b'\\xff no text \\n', b'cut \\xe2\\x82')
";
    std::fs::write(desk.home.base().join("speak.py"), script).unwrap();
    if !super::have(&["python3"]) {
        return;
    }
    let body = json!({ "command": "exec python3 speak.py", "background": true,
                       "stdin_open": true, "session_id": "all", "env": desk.env });
    let run = desk.coder().post("/commands", &body).expect(202);
    let id = text(&run, "command_id");
    let give = |lines: usize| {
        let address = format!("/agent/terminal/commands/{id}/stdin");
        let lines = "\n".repeat(lines);
        let sent = { desk.coder() }.send("POST", &address, lines.as_bytes());
        // It may have ended before it was asked to go on.
        assert!([204, 409].contains(&sent.status), "{sent:?}");
    };
    // One who stays, and one who comes back after each event.
    let mut stays = Events::of(&desk.coder(), &id);
    let (mut last, mut told) = (String::new(), vec![]);
    loop {
        let mut back = Events::of(&desk.coder().with("last-event-id", &last), &id);
        // More than is asked for: it never waits for us. Nothing at first, since
        // two streams that are written to at once have no order.
        if !told.is_empty() {
            give(3);
        }
        let event = back.next().expect("an event");
        if event.name == "end" {
            assert_eq!(event.data["state"], "succeeded", "{event:?}");
            break;
        }
        last = event.id.clone();
        told.push(event);
    }
    let text_of = |events: &[Event], stream: &str| -> String {
        let events = events.iter().filter(|event| event.data["stream"] == stream);
        events.map(|event| text(&event.data, "text")).collect()
    };
    let mut all = vec![];
    while let Some(event) = stays.next() {
        if event.name == "end" {
            break;
        }
        all.push(event);
    }
    assert!(stays.next().is_none(), "nothing comes after the end");
    let wanted = "plain\nfür € 😀\n\u{fffd} no text \ncut \u{fffd}";
    for events in [&told, &all] {
        assert_eq!(text_of(events, "stdout"), wanted, "{events:?}");
        assert_eq!(text_of(events, "stderr"), "aside ü\n");
        let mut at = 0;
        for event in events.iter() {
            assert_eq!(event.data["offset"], at, "{event:?}");
            at += event.data["bytes"].as_u64().unwrap();
        }
        assert_eq!(at, desk.home.output(&id).len() as u64);
    }
    // From an offset, as well.
    let mut rest = Events::at(&desk.coder(), &format!("/commands/{id}/stream?from=15"));
    assert_eq!(
        text(&rest.next().unwrap().data, "text").chars().next(),
        Some('f')
    );
}

/// A stream of events.
struct Events {
    line: BufReader<Box<dyn Line>>,
    text: String,
}

#[derive(Debug)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

impl Events {
    fn of(who: &Caller, run: &str) -> Self {
        Self::at(who, &format!("/commands/{run}/stream"))
    }

    fn at(who: &Caller, path: &str) -> Self {
        let address = format!("/agent/terminal{path}");
        let mut line = BufReader::new(who.open("GET", &address, b""));
        let (status, head) = read_head(&mut line);
        assert_eq!(status, 200, "{head}");
        Self {
            line,
            text: String::new(),
        }
    }

    /// Waits for the next; none when there are no more.
    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let mut lines = event.lines();
                    lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
                };
                // Others only say that it is there.
                if let Some(name) = field("event:") {
                    return Some(Event {
                        name,
                        id: field("id:").unwrap_or_default(),
                        data: serde_json::from_str(&field("data:")?).unwrap(),
                    });
                }
                continue;
            }
            let piece = read_piece(&mut self.line);
            if piece.is_empty() {
                return None;
            }
            self.text.push_str(&String::from_utf8(piece).unwrap());
        }
    }
}

#[test]
fn who_may_not_see_a_run_is_told_nothing_of_it() {
    let desk = Desk::new();
    let opened = desk.open("cat", "cat");
    let id = text(&opened, "terminal_id");
    let stranger = desk.other("passer-by", "agent");
    let said = stranger.get(&format!("/commands/{id}/stream"));
    assert_eq!(said.outcome().0, 404);
    for query in ["", "?from=0"] {
        let said = Watcher::try_at(&stranger, &id, query).err();
        assert_eq!(said.expect("refused").status, 404);
    }
    // What makes no sense is said instead of a stream.
    let said = Watcher::try_at(&desk.coder(), "cat", "?from=x").err();
    assert_eq!(said.expect("refused").status, 400);
}
