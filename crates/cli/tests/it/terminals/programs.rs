//! Programs that take the whole screen or ask something, driven by what they
//! show.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Desk, have};
use crate::crew::text;

#[test]
fn an_editor_is_driven_by_what_it_shows() {
    if !have(&["vim"]) {
        return;
    }
    let desk = Desk::new();
    let opened = desk.open("editor", "vim -u NONE -N notes.txt");
    desk.sees("editor", "\"notes.txt\" [New]");
    assert_eq!(desk.screen("editor")["alternate"], true);
    desk.send("editor", json!({ "text": "ifirst line\nsecond" }));
    desk.sees("editor", "second");
    desk.send(
        "editor",
        json!({ "keys": ["Esc", "Up", "Home"], "text": null }),
    );
    desk.enter("editor", ":wq");
    desk.ended(&opened);
    let written = fs::read_to_string(desk.home.base().join("notes.txt"));
    assert_eq!(written.expect("applied"), "first line\nsecond\n");
}

#[test]
fn a_pager_goes_on_finds_and_leaves() {
    if !have(&["less"]) {
        return;
    }
    let desk = Desk::new();
    let lines: String = (1..=500).map(|n| format!("line {n} of many\n")).collect();
    fs::write(desk.home.base().join("long.txt"), lines).unwrap();
    desk.open_shell("pager");
    desk.enter("pager", "less long.txt");
    desk.shows("pager", "the first page", |rows| {
        rows.starts_with("line 1 of many\n") && rows.contains("\nline 23 of many\n")
    });
    assert_eq!(desk.screen("pager")["alternate"], true);
    desk.send("pager", json!({ "text": " " }));
    desk.shows("pager", "the second page", |rows| {
        rows.starts_with("line 24 of many\n")
    });
    desk.enter("pager", "/line 321");
    desk.shows("pager", "what was searched for", |rows| {
        rows.starts_with("line 321 of many\n")
    });
    desk.send("pager", json!({ "text": "G" }));
    desk.sees("pager", "line 500 of many\n(END)");
    desk.send("pager", json!({ "text": "q" }));
    desk.shows("pager", "the shell", |rows| {
        rows.starts_with("> less long.txt\n>") && !rows.contains("of many")
    });
    assert_eq!(desk.screen("pager")["alternate"], false);
}

#[test]
fn a_monitor_shows_what_runs_and_leaves() {
    if !have(&["top"]) {
        return;
    }
    let desk = Desk::new();
    desk.open_shell("monitor");
    desk.enter("monitor", "sleep 777 & top");
    desk.shows("monitor", "a table with sleep in it", |rows| {
        rows.starts_with("top - ") && rows.contains(" COMMAND") && rows.contains("sleep")
    });
    desk.send("monitor", json!({ "text": "q" }));
    // What is typed before it has left is lost.
    desk.shows("monitor", "the shell", |rows| {
        rows.trim_end().ends_with("\n>")
    });
    desk.enter("monitor", "echo $((6 * 7)) left");
    desk.sees("monitor", "\n42 left\n>");
}

#[test]
fn a_window_is_split_and_both_halves_are_seen() {
    if !have(&["tmux"]) {
        return;
    }
    let desk = Desk::elsewhere();
    let settings = "set -g default-command 'exec sh -i'\n";
    fs::write(desk.home.base().join("tmux.conf"), settings).unwrap();
    let opened = desk.open("panes", "PS1='> ' exec tmux -f tmux.conf");
    desk.shows("panes", "a prompt and a bar", |rows| {
        rows.starts_with('>') && rows.contains("[0] 0:sh*")
    });
    desk.enter("panes", "echo upper $((1 + 1))");
    desk.sees("panes", "\nupper 2\n>");
    desk.send("panes", json!({ "keys": ["C-b"] }));
    desk.send("panes", json!({ "text": "\"" }));
    desk.sees("panes", "────\n>");
    desk.enter("panes", "echo lower $((2 + 2))");
    desk.shows("panes", "both halves", |rows| {
        let upper = rows.find("\nupper 2\n>");
        let line = rows.find("────");
        let lower = rows.find("\nlower 4\n>");
        upper.is_some() && upper < line && line < lower
    });
    desk.enter("panes", "exit");
    desk.shows("panes", "one half", |rows| !rows.contains("────"));
    desk.enter("panes", "exit");
    desk.ended(&opened);
}

#[test]
fn an_interpreter_evaluates_what_is_typed() {
    if !have(&["python3"]) {
        return;
    }
    let desk = Desk::new();
    let opened = desk.open("python", "python3 -i");
    desk.sees("python", ">>>");
    for (line, answer) in [
        ("sum(range(101))", "5050\n>>>"),
        ("def double(n):", "..."),
        ("    return 2 * n", "..."),
        ("", "...\n>>>"),
        ("double('ab' * 2)", "'abababab'\n>>>"),
    ] {
        desk.enter("python", line);
        desk.sees("python", &format!("{line}\n{answer}"));
    }
    desk.enter("python", "1 / 0");
    desk.sees("python", "ZeroDivisionError: division by zero\n>>>");
    desk.send("python", json!({ "eof": true }));
    desk.ended(&opened);
}

#[test]
fn a_database_is_made_and_asked() {
    if !have(&["sqlite3"]) {
        return;
    }
    let desk = Desk::new();
    let opened = desk.open("database", "sqlite3 fruit.db");
    desk.sees("database", "sqlite>");
    for (line, answer) in [
        ("create table fruit (name text, weight int);", ""),
        ("insert into fruit values ('apple', 150), ('plum', 30);", ""),
        (
            "select name, weight * 2 from fruit order by weight;",
            "plum|60\napple|300\n",
        ),
    ] {
        desk.enter("database", line);
        desk.sees("database", &format!("{line}\n{answer}sqlite>"));
    }
    desk.enter("database", ".quit");
    desk.ended(&opened);
    let made = fs::read(desk.home.base().join("fruit.db")).expect("applied");
    assert!(made.starts_with(b"SQLite format 3\0"));
}

#[test]
fn a_history_is_put_into_another_order_in_an_editor() {
    if !have(&["git", "vim"]) {
        return;
    }
    let desk = Desk::new();
    let script = "git init -q . && for n in one two three; do\n\
                  echo $n > $n; git add $n; git commit -qm $n; done\n";
    fs::write(desk.home.base().join("make.sh"), script).unwrap();
    desk.open_shell("history");
    for line in [
        "export EMAIL=ana@example.org GIT_EDITOR='vim -u NONE -N'",
        "sh make.sh",
    ] {
        desk.enter("history", line);
        desk.sees("history", &format!("{line}\n>"));
    }
    desk.enter("history", "clear; git rebase -i --root");
    desk.shows("history", "three picks", |rows| {
        let picked = |n: usize, what: &str| {
            let row = rows.lines().nth(n).unwrap_or_default();
            row.starts_with("pick ") && row.ends_with(what)
        };
        picked(0, "one") && picked(1, "two") && picked(2, "three")
    });
    // The first goes below the second, and the third into what is above it.
    desk.send("history", json!({ "text": "ddp" }));
    desk.send("history", json!({ "text": "jcwfixup", "keys": ["Esc"] }));
    desk.shows("history", "another order", |rows| {
        let rows: Vec<&str> = rows.lines().take(3).collect();
        rows[0].ends_with("two") && rows[1].ends_with("one") && rows[2].starts_with("fixup ")
    });
    desk.enter("history", ":wq");
    desk.sees("history", "Successfully rebased");
    desk.enter(
        "history",
        "clear; git log --reverse --format=%s --name-only --no-color | cat",
    );
    desk.sees("history", "two\n\ntwo\none\n\none\nthree\n>");
}

#[test]
fn a_question_is_answered_with_yes_or_no() {
    let desk = Desk::new();
    let script = "printf 'After this operation, 7 kB will be used.\\n'\n\
                  printf 'Do you want to continue? [Y/n] '; read answer\n\
                  case $answer in ''|[Yy]*) echo Unpacking;; *) echo Abort.; exit 1;; esac\n";
    fs::write(desk.home.base().join("install.sh"), script).unwrap();
    for (answer, said, code) in [
        ("", "Unpacking", 0),
        ("y", "Unpacking", 0),
        ("n", "Abort.", 1),
    ] {
        let opened = desk.open("install", "sh install.sh");
        desk.sees("install", "Do you want to continue? [Y/n]");
        desk.enter("install", answer);
        desk.ended(&opened);
        let id = text(&opened, "terminal_id");
        let asked = format!("Do you want to continue? [Y/n] {answer}");
        let shown = format!("{}\n{said}\n", asked.trim_end());
        assert!(desk.rows(&id).contains(&shown), "{}", desk.rows(&id));
        let closed = desk.coder().get(&format!("/terminals/{id}")).json();
        assert_eq!(closed["exit_code"], code, "{closed}");
    }
}

#[test]
fn a_bar_that_is_drawn_over_is_seen_as_it_was_last() {
    let desk = Desk::new();
    let script = "n=0; while [ $n -lt 100 ]; do n=$((n+1)); printf '\\rfetched %3d%%' $n; done; \
                  printf '\\n'; echo complete; read done";
    let opened = desk.open("progress", script);
    desk.sees("progress", "complete");
    assert!(
        desk.rows("progress")
            .starts_with("fetched 100%\ncomplete\n\n")
    );
    // All of it was written, and is kept as it came.
    let path = format!("/commands/{}/output/raw", text(&opened, "terminal_id"));
    let raw = desk.coder().get(&path).bytes;
    let raw = String::from_utf8(raw).expect("text");
    assert_eq!(raw.matches("\rfetched ").count(), 100, "{raw}");
    let told = desk.coder().get("/terminals/progress").json();
    assert_eq!(told["output_tail"], json!(["fetched 100%", "complete"]));
}

#[test]
fn a_password_is_typed_and_appears_nowhere() {
    let desk = Desk::new();
    let script = "stty -echo; printf 'Password: '; read secret; stty echo; echo; \
                  echo got ${#secret} letters; read more; echo $more";
    let opened = desk.open("login", script);
    desk.sees("login", "Password:");
    desk.enter("login", "hunter2-very-secret");
    desk.sees("login", "got 19 letters");
    desk.enter("login", "plain-text");
    desk.ended(&opened);
    let audit = crate::caller::audit(&desk.home, "");
    let audit = serde_json::to_string(&audit).expect("JSON");
    assert!(audit.contains("plain-text"), "{audit}");
    assert!(!audit.contains("hunter2"), "{audit}");
    let id = text(&opened, "terminal_id");
    let told: Value = desk.coder().get(&format!("/commands/{id}")).json();
    assert!(!told.to_string().contains("hunter2"), "{told}");
    // Nor in any file, of which some hold what else was typed.
    assert!(holds(&desk.home.state(), b"plain-text"));
    assert!(!holds(&desk.home.dir(), b"hunter2"));
}

/// Whether a file below a directory has something in it.
fn holds(dir: &Path, wanted: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().flatten().any(|entry| {
        let kind = entry.file_type().unwrap();
        match kind.is_dir() {
            true => holds(&entry.path(), wanted),
            false => {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                bytes.windows(wanted.len()).any(|some| some == wanted)
            }
        }
    })
}
