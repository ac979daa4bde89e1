//! Recordings of terminals, and of other runs.

use serde_json::{Value, json};

use super::Desk;
use crate::crew::text;
use crate::support::eventually;

impl Desk {
    fn cast(&self, path: &str) -> Vec<Value> {
        let said = self.coder().get(path);
        assert_eq!(said.status, 200, "{path}");
        assert_eq!(said.header("content-type"), Some("application/x-asciicast"));
        let body = String::from_utf8(said.bytes).expect("a recording is text");
        { body.lines() }
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect()
    }
}

/// The data of all events of a kind.
fn of_kind(cast: &[Value], kind: &str) -> Vec<String> {
    let events = cast.iter().filter(|event| event[1] == kind);
    events
        .filter_map(|event| event[2].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn a_terminal_is_recorded_with_commands_sizes_and_its_end() {
    let desk = Desk::lenient();
    let opened = desk.open_shell("shell");
    desk.enter("shell", "echo hello");
    desk.sees("shell", "\nhello");
    desk.coder()
        .post(
            "/terminals/shell/size",
            &json!({ "columns": 90, "rows": 20 }),
        )
        .expect(204);
    desk.enter("shell", "exit 2");
    let id = text(&opened, "terminal_id");
    eventually("closed", || desk.status(&id) == "closed");
    let cast = desk.cast(&format!("/terminals/{id}/recording"));
    assert_eq!(
        (&cast[0]["width"], &cast[0]["height"]),
        (&json!(80), &json!(24))
    );
    assert!(of_kind(&cast, "o").concat().contains("hello"));
    assert_eq!(of_kind(&cast, "r"), ["90x20"]);
    assert_eq!(of_kind(&cast, "m"), ["$ echo hello", "$ exit 2", "exit 2"]);
    let times: Vec<f64> = cast[1..]
        .iter()
        .map(|event| event[0].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let index = desk
        .coder()
        .get(&format!("/terminals/{id}/recording/index"))
        .expect(200);
    let kinds: Vec<String> = { index["marks"].as_array().unwrap().iter() }
        .map(|mark| text(mark, "kind"))
        .collect();
    assert_eq!(kinds, ["command", "resized", "command", "exit"]);
    assert_eq!(index["open"], false);
}

#[test]
fn a_recording_can_begin_in_its_middle_with_the_screen_as_it_was() {
    let desk = Desk::lenient();
    // More than one key frame's worth.
    let opened = desk.open("long", "seq 1 200000; echo over; exec cat");
    desk.sees("long", "over");
    let id = text(&opened, "terminal_id");
    desk.coder()
        .ask("DELETE", &format!("/terminals/{id}"), &Value::Null);
    eventually("closed", || desk.status(&id) == "closed");
    let index = desk
        .coder()
        .get(&format!("/terminals/{id}/recording/index"))
        .expect(200);
    let frames = index["frames"].as_array().unwrap();
    assert!(frames.len() > 2, "{index}");
    let last = frames.last().unwrap().as_f64().unwrap();
    let whole = desk.cast(&format!("/terminals/{id}/recording"));
    let part = desk.cast(&format!("/terminals/{id}/recording?at={last}"));
    assert!(part.len() < whole.len());
    let shown = |cast: &[Value]| {
        let size = weighlock_screen::Size::new(80, 24).unwrap();
        let mut screen = weighlock_screen::Screen::new(size, 0);
        let _ = screen.feed(of_kind(cast, "o").concat().as_bytes());
        screen.view().rows
    };
    assert_eq!(shown(&part), shown(&whole));
    assert_eq!(
        shown(&whole),
        desk.screen(&id)["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    );
}

#[test]
fn any_run_can_be_replayed_and_secrets_are_masked() {
    let desk = Desk::lenient();
    let body = json!({ "command": "echo one; echo API_KEY=sk_live_4eC39HqLyjWDarjtT1zdp7dc" });
    let run = desk.coder().post("/commands", &body).json();
    let id = text(&run, "command_id");
    let cast = desk.cast(&format!("/commands/{id}/recording"));
    let shown = of_kind(&cast, "o").concat();
    assert!(shown.contains("one\r\n"), "{shown}");
    assert!(!shown.contains("4eC39HqLyjWDarjtT1zdp7dc"), "{shown}");
    let revealed = desk.cast(&format!("/commands/{id}/recording?reveal=true"));
    assert!(
        of_kind(&revealed, "o")
            .concat()
            .contains("4eC39HqLyjWDarjtT1zdp7dc")
    );
    let at = desk.coder().get(&format!("/commands/{id}/recording?at=-1"));
    assert_eq!(at.status, 400);
}

#[test]
fn the_command_line_replays_what_the_server_recorded() {
    let desk = Desk::lenient();
    desk.open_shell("shell");
    desk.enter("shell", "echo hello");
    desk.sees("shell", "\nhello");
    let told = desk.home.call(&["replay", "shell", "--text"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.contains("── $ echo hello"), "{}", told.out);
    assert!(told.out.contains("hello"), "{}", told.out);
}
