//! What runs change, seen and decided on the command line: at a terminal, and
//! without one.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Home, eventually, have, skip};
use crate::tty::Tty;

/// A command that edits one file, renames another, and says something.
const EDIT: &str = "sed -i s/old/new/ README.md && mv a b; echo said";

/// The letters below changes that can be applied.
const LETTERS: &str = "
  [o] apply these changes   [w] always…   [e] edit   [r] reject…
  [d] diff   [x] explain   [q] decide later   [^C] withdraw
> ";

/// A home with two files, where the kernel can show it as a copy.
fn home() -> Option<Home> {
    let home = Home::untouched();
    put(&home, "README.md", "first\nold\nlast\n");
    put(&home, "a", "moved\n");
    can_copy(&home).then_some(home)
}

fn can_copy(home: &Home) -> bool {
    let found = json(&home.call(&["doctor", "--json"]).out);
    let checks = found["checks"].as_array().expect("a list");
    let copies = checks.iter().find(|check| check["name"] == "copies");
    let copies = copies.expect("a check of copies");
    if copies["level"] != "ok" {
        skip(&format!("no copies here: {copies}"));
    }
    copies["level"] == "ok"
}

fn put(home: &Home, name: &str, text: &str) {
    fs::write(home.base().join(name), text).unwrap();
}

fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(home.base().join(name)).unwrap_or_default()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn assert_untouched(home: &Home) {
    assert_eq!(read(home, "README.md"), "first\nold\nlast\n");
    assert!(home.base().join("a").exists());
}

#[track_caller]
fn assert_applied(home: &Home) {
    assert_eq!(read(home, "README.md"), "first\nnew\nlast\n");
    assert_eq!(read(home, "b"), "moved\n");
    assert!(!home.base().join("a").exists());
}

fn at_terminal(home: &Home, args: &[&str]) -> Tty {
    Tty::start_in(120, home.weighlock(args))
}

/// Runs something whose changes are held, and returns the run.
#[track_caller]
fn hold(home: &Home, command: &str) -> Value {
    let done = home.call(&["run", "--no-wait", "--json", "--", command]);
    assert_eq!(done.code, Some(75), "{done:?}");
    let run = json(&done.out);
    assert_eq!(run["state"], "waiting", "{run}");
    assert_eq!(run["changes"]["state"], "held", "{run}");
    run
}

fn short(run: &Value) -> &str {
    run["short_id"].as_str().expect("an id")
}

fn question(home: &Home, run: &Value) -> Value {
    let id = run["approval_id"].as_str().expect("a question");
    let (status, asked) = home.api("GET", &format!("/approvals/{id}"), &Value::Null);
    assert_eq!(status, 200, "{asked}");
    asked
}

#[test]
fn whoever_may_decide_is_asked_about_changes_at_the_terminal() {
    let Some(home) = home() else { return };
    let mut tty = at_terminal(&home, &["run", "--", EDIT]);
    let shown = tty.expect("\n> ");
    let (before, rest) = shown.split_once("said\n").expect("its output");
    assert!(before.starts_with("● sed -i s/old/new/"), "{shown}");
    let lines: Vec<&str> = rest.lines().collect();
    assert!(
        lines[0].starts_with("✓ tried in a copy: exit 0 in ")
            && lines[0]
                .contains(" — 1 file changes, 1 is renamed, nothing else was touched, no network"),
        "{shown}"
    );
    assert_eq!(
        lines[1..3],
        ["  M README.md  +1 −1", "  R a → b"],
        "{shown}"
    );
    assert!(rest.ends_with(LETTERS), "{shown}");
    tty.press("o");
    tty.expect("\n  apply these changes? Enter = yes, any other key = no ");
    assert_untouched(&home);
    tty.press("\r");
    let said = tty.expect("✓ applied · exit 0 · ");
    // Whoever has decided is not told so.
    assert!(!said.contains("Approved by"), "{said}");
    assert_eq!(tty.end(), Some(0));
    let run = home.show("@last");
    assert!(tty.screen().trim_end().ends_with(short(&run)));
    assert_applied(&home);
    let changes = &run["changes"];
    assert_eq!(
        (&changes["state"], &changes["applied_by"]),
        (&json!("applied"), &json!(home.me()))
    );
    home.assert_audit_verifies();
}

#[test]
fn what_is_said_of_a_try_is_broken_between_words() {
    let Some(home) = home() else { return };
    let mut tty = Tty::start(home.weighlock(&["run", "--", EDIT]));
    let shown = tty.expect("\n> ");
    let (_, rest) = shown.split_once("said\n").expect("its output");
    let (head, _) = rest.split_once("\n  M README.md").expect("its files");
    let lines: Vec<&str> = head.lines().collect();
    assert!(lines.len() > 1, "{shown}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    let whole = "1 file changes, 1 is renamed, nothing else was touched, no network";
    assert!(lines.join(" ").ends_with(whole), "{shown}");
    tty.send("\x03");
    assert_eq!(tty.end(), Some(75));
}

#[test]
fn keys_that_were_meant_for_the_command_apply_nothing() {
    let Some(home) = home() else { return };
    let mut tty = at_terminal(&home, &["run", "--", EDIT]);
    // Typed ahead, pasted, too soon, Enter alone, letters that are not offered.
    tty.send("o\r");
    tty.expect("\n> ");
    tty.send("o\r");
    tty.press("o\r");
    tty.press("\r");
    tty.press("z");
    tty.press("t");
    tty.press("o");
    tty.expect("any other key = no");
    tty.send("\r");
    tty.press("n");
    tty.expect("no\n");
    tty.expect("\n> ");
    assert_untouched(&home);
    tty.send("\x03");
    tty.expect("^C\n◌ Withdrawn — nothing was applied\n");
    assert_eq!(tty.end(), Some(75));
    assert_untouched(&home);
    assert_eq!(home.show("@last")["changes"]["state"], "discarded");
}

#[test]
fn q_leaves_the_question_waiting_and_keeps_the_changes() {
    let Some(home) = home() else { return };
    let before = ["run", "--review", "before", "--", EDIT];
    for args in [&["run", "--", EDIT][..], &["preview", EDIT], &before] {
        let mut tty = at_terminal(&home, args);
        tty.expect("\n> ");
        if args == before {
            // Also after it was tried, when its changes are the question.
            tty.press("t");
            tty.expect("Trying it in a copy…\n");
            tty.expect("\n> ");
        }
        tty.press("q");
        let run = home.show("@last");
        let ap = question(&home, &run)["short_id"].clone();
        let ap = ap.as_str().unwrap();
        tty.expect(&format!("q\n◔ Still waiting — weighlock approve {ap}  "));
        assert_eq!(tty.end(), Some(75));
        let last = tty.screen().trim_end().lines().last().unwrap().to_owned();
        assert!(last.ends_with(short(&run)), "{last}");
        let run = home.show(short(&run));
        assert_eq!(run["state"], "waiting", "{run}");
        assert_eq!(run["changes"]["state"], "held", "{run}");
        assert_untouched(&home);
        assert_eq!(home.call(&["discard", short(&run)]).code, Some(0));
    }
}

#[test]
fn rejected_changes_are_gone_and_say_so() {
    let Some(home) = home() else { return };
    let mut tty = at_terminal(&home, &["run", "--", EDIT]);
    tty.expect("\n> ");
    tty.press("r");
    tty.expect("why? (Enter rejects, Esc goes back)");
    tty.press("Not so\r");
    tty.expect("⊘ Rejected — nothing was applied\n");
    tty.expect("‘Not so’ Its changes were discarded; nothing was applied.");
    assert_eq!(tty.end(), Some(126));
    assert_untouched(&home);
}

#[test]
fn a_diff_has_colours_only_where_they_are_seen_and_no_secrets() {
    let Some(mut home) = home() else { return };
    let token = format!("ghp_{}", "Ab3".repeat(12));
    put(
        &home,
        "script",
        &format!("printf 'k={token}\\n\\033[2J\\n' >> README.md\n"),
    );
    let mut tty = at_terminal(&home, &["run", "--", "sh script"]);
    tty.expect("\n> ");
    tty.press("d");
    let shown = tty.expect("\n> ");
    assert!(
        shown.contains("\x1b[36m@@ -1,3 +1,5 @@\x1b[0m\n first\n"),
        "{shown}"
    );
    assert!(shown.contains("\x1b[32m+⟦U+001B⟧[2J\x1b[0m\n"), "{shown}");
    assert!(!shown.contains(&token), "{shown}");
    tty.send("\x03");
    assert_eq!(tty.end(), Some(75));

    let run = hold(&home, "sh script");
    let done = home.call(&["diff", short(&run)]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("\n+⟦U+001B⟧[2J\n"), "{done:?}");
    assert!(
        !done.out.contains('\x1b') && !done.out.contains(&token),
        "{done:?}"
    );
    let done = home.call(&["diff", short(&run), "--reveal"]);
    assert!(done.out.contains(&token), "{done:?}");
    home.set("NO_COLOR", "1");
    let mut tty = at_terminal(&home, &["diff", short(&run)]);
    assert_eq!(tty.end(), Some(0));
    eventually("the diff is shown", || {
        tty.screen().contains("+⟦U+001B⟧[2J\n")
    });
    assert!(!tty.screen().contains('\x1b'), "{}", tty.screen());
}

#[test]
fn without_a_terminal_changes_wait_and_nobody_is_asked() {
    let Some(home) = home() else { return };
    let done = home.call(&["run", "--no-wait", "--", EDIT]);
    let run = home.show("@last");
    let asked = question(&home, &run);
    let id = short(&run);
    assert_eq!((done.code, done.out), (Some(75), format!("said\n{id}\n")));
    let lines: Vec<&str> = done.err.lines().collect();
    let head = "◔ Needs approval — 1 file changes, 1 is renamed ";
    let right = format!(" {}, expires in ", asked["short_id"].as_str().unwrap());
    assert!(
        lines[1].starts_with(head) && lines[1].contains(&right),
        "{lines:?}"
    );
    assert!(
        lines[2].starts_with("  ✓ tried in a copy: exit 0 in "),
        "{lines:?}"
    );
    assert_eq!(lines[3..5], ["  M README.md  +1 −1", "  R a → b"]);
    assert_eq!(
        lines[lines.len() - 1],
        format!("  weighlock diff {id}    weighlock approve {id}    weighlock show {id}")
    );
    assert!(
        !done.err.contains('\x1b') && !done.err.contains("[o]"),
        "{lines:?}"
    );
    assert_untouched(&home);

    let inbox = home.call(&["inbox"]);
    assert!(
        inbox.out.contains("Edits README.md, renames a → b"),
        "{inbox:?}"
    );
    assert!(
        inbox.out.contains("✓ tried in a copy: exit 0 in "),
        "{inbox:?}"
    );
    // The scripting way.
    let ap = asked["short_id"].as_str().unwrap();
    let done = home.call(&["approve", ap]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let fingerprint = asked["fingerprint"].as_str().unwrap();
    let done = home.call(&["approve", ap, "--fingerprint", fingerprint]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.starts_with("✓ applied · exit 0 · "), "{done:?}");
    assert!(done.err.trim_end().ends_with(id), "{done:?}");
    assert_applied(&home);
}

/// Starts a run that waits without a terminal, and returns what it said once
/// its question was answered.
fn answered(
    home: &Home,
    command: &str,
    answer: impl FnOnce(&str),
) -> (Option<i32>, String, String) {
    let mut asking = home.weighlock(&["run", "--", command]);
    let asking = asking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut id = String::new();
    eventually("a person is asked", || {
        let list = json(&home.call(&["inbox", "--json"]).out);
        id = list["approvals"][0]["short_id"]
            .as_str()
            .unwrap_or_default()
            .into();
        !id.is_empty()
    });
    answer(&id);
    let done = asking.unwrap().wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn whoever_waits_is_told_what_became_of_the_changes() {
    let Some(home) = home() else { return };
    let (code, out, err) = answered(&home, &format!("{EDIT}; exit 3"), |id| {
        let asked = json(&home.call(&["inbox", "--json"]).out)["approvals"][0].clone();
        let fingerprint = asked["fingerprint"].as_str().unwrap();
        assert_eq!(
            home.call(&["approve", id, "--fingerprint", fingerprint])
                .code,
            Some(0)
        );
    });
    assert_eq!((code, out.as_str()), (Some(3), "said\n"), "{err}");
    let told = format!(
        "\nApproved by {}. The previewed changes were applied (2 files).\n✗ exit 3 in ",
        home.me()
    );
    assert!(err.contains(&told), "{err}");
    assert!(!err.contains("warning") && !err.contains('\x1b'), "{err}");
    assert_applied(&home);

    put(&home, "README.md", "old\n");
    let (code, _, err) = answered(&home, "sed -i s/old/new/ README.md", |id| {
        assert_eq!(home.call(&["reject", id, "-m", "No."]).code, Some(0));
    });
    assert_eq!(code, Some(126), "{err}");
    assert!(err.contains("⊘ Rejected — nothing was applied\n"), "{err}");
    assert!(err.contains("‘No.’"), "{err}");
    assert_eq!(read(&home, "README.md"), "old\n");
}

#[test]
fn what_is_applied_unasked_is_one_quiet_line() {
    let Some(home) = home() else { return };
    let done = home.call(&["run", "--review", "none", "--", EDIT]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "said\n"),
        "{done:?}"
    );
    let last = done.err.lines().last().unwrap();
    assert!(
        last.starts_with("✓ exit 0 in ") && last.contains(" · 2 files changed "),
        "{done:?}"
    );
    assert_eq!(done.err.lines().count(), 2, "{done:?}");
    assert_applied(&home);
    let shown = home.call(&["show", "@last"]).out;
    let id = home.show("@last")["short_id"].as_str().unwrap().to_owned();
    let expected = format!(
        "changes      1 file changes, 1 is renamed; applied unasked, can be undone: weighlock undo {id}\n"
    );
    assert!(shown.contains(&expected), "{shown}");
    // What changes nothing is not talked about.
    put(&home, "script", "echo said\n");
    let done = home.call(&["run", "--", "sh script"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "said\n"),
        "{done:?}"
    );
    assert_eq!(done.err.lines().count(), 2, "{done:?}");
    assert!(!done.err.contains("chang"), "{done:?}");
}

#[test]
fn a_run_that_failed_for_want_of_what_a_copy_has_not_says_so() {
    let Some(home) = home() else { return };
    put(
        &home,
        "script",
        "echo 'Invalid cross-device link' >&2; exit 3\n",
    );
    put(&home, "other", "echo 1 > made; exit 4\n");
    let offline = "the sandbox has network, this copy had none: weighlock run --review before\n";
    let done = home.call(&["run", "--no-wait", "--", "sh other"]);
    assert!(!done.err.contains("hint: "), "{done:?}");
    let done = home.call(&["run", "--", "sh script"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    let crossed = "\nhint: directories that were there cannot be renamed on a copy: weighlock run \
                   --review before\n";
    assert!(done.err.contains(crossed), "{done:?}");
    home.put(
        "settings/weighlock/config.toml",
        "[sandbox.default]\nnetwork = \"on\"\n",
    );
    assert_eq!(home.call(&["serve", "--stop"]).code, Some(0));
    let done = home.call(&["run", "--no-wait", "--", "sh other"]);
    assert!(
        done.err.contains(&format!("\nhint: {offline}◔ Needs")),
        "{done:?}"
    );
    // Not where it has worked.
    put(&home, "other", "echo 1 > made\n");
    let done = home.call(&["run", "--no-wait", "--", "sh other"]);
    assert!(!done.err.contains("hint: "), "{done:?}");
}

#[test]
fn a_question_says_what_happens_to_the_files() {
    let Some(home) = home() else { return };
    fs::create_dir(home.base().join("lib")).unwrap();
    put(&home, "lib/x", "1\n");
    for (command, told) in [
        ("rm a", "1 file is deleted"),
        ("echo 1 > made", "1 file is created"),
        ("mv a moved", "1 file is renamed"),
        ("mkdir empty", "1 directory is created"),
        (
            "sed -i s/old/new/ README.md; rm a",
            "1 file changes, 1 is deleted",
        ),
        // A directory, and the file in it.
        ("rm -r lib", "2 deleted"),
    ] {
        let done = home.call(&["run", "--no-wait", "--", command]);
        let head = format!("◔ Needs approval — {told} ");
        let tried = format!(" — {told}, nothing else was touched, no network\n");
        assert!(
            done.err.contains(&head) && done.err.contains(&tried),
            "{done:?}"
        );
        let done = home.call(&["discard", "@last"]);
        assert!(done.err.contains(" would have changed"), "{done:?}");
    }
    assert_untouched(&home);
}

#[test]
fn whoever_waits_without_a_terminal_says_once_how_it_is_answered() {
    let Some(home) = home() else { return };
    let config = home.config("[approvals]\nexpire = \"1s\"\n");
    let _server = home.serve(&["--replace", "--config", &config]);
    let done = home.call(&["run", "--", "rm a"]);
    assert_eq!(done.code, Some(75), "{done:?}");
    let run = home.newest();
    let asked = question(&home, &run);
    let (id, approval) = (short(&run), asked["short_id"].as_str().unwrap());
    let until = "  a person answers in a terminal, until ";
    let lines: Vec<&str> = done.err.lines().collect();
    let at = lines.iter().position(|line| line.starts_with(until));
    let at = at.unwrap_or_else(|| panic!("{done:?}"));
    let time = lines[at][until.len()..].trim_end_matches(':');
    assert_eq!(time.matches(':').count(), 2, "{done:?}");
    assert_eq!(
        lines[at + 1],
        format!(
            "  weighlock diff {id}    weighlock approve {approval}    weighlock reject {approval}"
        )
    );
    assert_eq!(done.err.matches("weighlock approve").count(), 1, "{done:?}");

    // Where it has not run, there is nothing to look at beside the question.
    let done = home.call(&["run", "--review", "before", "--", "rm a"]);
    let answer = "\n  weighlock approve ap_";
    assert!(
        done.err.contains(until) && done.err.contains(answer),
        "{done:?}"
    );
    // What is left says that as it leaves; programs read one object.
    let done = home.call(&["run", "--no-wait", "--", "rm a"]);
    assert!(!done.err.contains(until), "{done:?}");
    let done = home.call(&["run", "--json", "--", "rm a"]);
    assert_eq!(done.err, "", "{done:?}");
}

#[test]
fn a_preview_asks_about_every_change_wherever_it_runs() {
    let Some(home) = home() else { return };
    // Nobody else would be asked, and it would write directly.
    home.put(
        "settings/weighlock/config.toml",
        "[effects]\nreview = \"before\"\n",
    );
    assert_eq!(home.call(&["serve", "--stop"]).code, Some(0));
    let granted = home.call(&["policy", "grant", "touch *"]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let preview = ["preview", "--no-wait", "touch one"];
    let run = ["run", "--preview", "--no-wait", "--", "touch", "two"];
    for args in [&preview[..], &run] {
        let done = home.call(args);
        assert_eq!(done.code, Some(75), "{done:?}");
        assert!(
            done.err.contains("◔ Needs approval — 1 file is created"),
            "{done:?}"
        );
    }
    assert!(!home.base().join("one").exists() && !home.base().join("two").exists());
    assert_eq!(home.call(&["draft", "discard", "--yes"]).code, Some(0));
    let mut tty = at_terminal(&home, &["preview", "echo 1 > made"]);
    tty.expect("\n> ");
    tty.press("o");
    tty.expect("any other key = no");
    tty.press("\r");
    tty.expect("✓ applied · exit 0 · ");
    assert_eq!(tty.end(), Some(0));
    assert_eq!(read(&home, "made"), "1\n");
    assert_eq!(home.call(&["run", "--", "touch other"]).code, Some(0));
}

#[test]
fn approve_shows_the_effect_and_who_comes_first() {
    let Some(home) = home() else { return };
    let first = hold(&home, EDIT);
    let second = hold(&home, "echo more >> README.md");
    let mut tty = at_terminal(&home, &["approve"]);
    let card = tty.expect("\n> ");
    let effect = "\nEffect ✓ tried in a copy, exit 0\n       M README.md  +1 −1\n       R a → b\n";
    assert!(card.contains(&format!("\n  $ {EDIT}\n\nWhy    ")), "{card}");
    assert!(card.contains(effect), "{card}");
    assert!(
        card.contains("[x] explain   [n] next   [q] quit\n"),
        "{card}"
    );
    tty.press("r");
    let also = format!(
        "  rejecting also discards {}, which was built on it\n",
        short(&second)
    );
    tty.expect(&also);
    tty.press("\x1b");
    tty.expect("\n> ");
    tty.press("n");
    let card = tty.expect("\n> ");
    let after = format!(
        "\n       built on {}, which comes first\n\n  [e] edit   [r] reject…\n",
        short(&first)
    );
    assert!(card.contains(&after), "{card}");
    // No key applies it.
    tty.press("o");
    tty.press("q");
    tty.expect("q\n");
    assert_eq!(tty.end(), Some(0));
    assert_untouched(&home);
    // What waits can be applied in order at once.
    let done = home.call(&["draft", "commit", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(read(&home, "README.md"), "first\nnew\nlast\nmore\n");
}

#[test]
fn what_others_were_built_on_is_asked_about_first() {
    let Some(home) = home() else { return };
    let first = hold(&home, "sed -i s/old/new/ README.md");
    // Of high risk, and so the first of the inbox.
    let second = hold(&home, "echo x > .envrc");
    let third = hold(&home, "echo more >> README.md");
    let inbox = json(&home.call(&["inbox", "--json"]).out);
    assert_eq!(
        inbox["approvals"][0]["approval_id"], second["approval_id"],
        "{inbox}"
    );
    let mut tty = at_terminal(&home, &["approve"]);
    for (at, run) in [&first, &second, &third].into_iter().enumerate() {
        let card = tty.expect("\n> ");
        let ap = question(&home, run)["short_id"].clone();
        let head = card.lines().find(|line| line.contains(" of 3 · ")).unwrap();
        assert!(head.starts_with(&format!("{} of 3 · ", at + 1)), "{card}");
        assert!(head.ends_with(ap.as_str().unwrap()), "{card}");
        assert!(!card.contains("built on"), "{card}");
        tty.press("o");
        tty.expect("any other key = no");
        // What is of high risk has to be read first.
        std::thread::sleep(std::time::Duration::from_secs(1));
        tty.press("\r");
        tty.expect("✓ applied · exit 0 · ");
    }
    tty.expect("Nothing else waits for you.");
    assert_eq!(tty.end(), Some(0));
    assert_eq!(read(&home, "README.md"), "first\nnew\nlast\nmore\n");
}

#[test]
fn what_was_built_on_others_can_be_applied_once_they_are() {
    let Some(home) = home() else { return };
    let first = hold(&home, EDIT);
    let mut tty = at_terminal(&home, &["run", "--", "echo more >> README.md"]);
    let shown = tty.expect("\n> ");
    let says = format!(
        "\n  built on {0}, which comes first\n  weighlock approve {0} asks about that\n  \
         weighlock draft commit {1} applies all of it\n",
        short(&first),
        first["session_id"].as_str().unwrap()
    );
    assert!(shown.contains(&says), "{shown}");
    assert!(shown.contains("\n\n  [e] edit   [r] reject…\n"), "{shown}");
    // Somebody decides that elsewhere.
    assert_eq!(home.call(&["commit", short(&first)]).code, Some(0));
    tty.expect("\nWhat it was built on is applied; this is the question now.\n");
    let shown = tty.expect("\n> ");
    assert!(shown.ends_with(LETTERS), "{shown}");
    tty.press("o");
    tty.expect("any other key = no");
    tty.press("\r");
    tty.expect("✓ applied · exit 0 · ");
    assert_eq!(tty.end(), Some(0));
    assert_eq!(read(&home, "README.md"), "first\nnew\nlast\nmore\n");
}

#[test]
fn what_was_overtaken_is_tried_again() {
    let Some(home) = home() else { return };
    let run = hold(&home, "sed -i s/old/new/ README.md");
    put(&home, "README.md", "other\nold\n");
    let ap = question(&home, &run)["short_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut tty = at_terminal(&home, &["approve", &ap]);
    let card = tty.expect("\n> ");
    assert!(
        card.contains("\nEffect 1 of these files changed since the try\n"),
        "{card}"
    );
    assert!(card.contains("\n       ✗ README.md: "), "{card}");
    let letters =
        "\n  [e] edit   [r] reject…\n  [d] diff   [t] try again   [x] explain   [q] quit\n> ";
    assert!(card.ends_with(letters), "{card}");
    tty.press("o");
    tty.press("t");
    tty.expect("Trying it in a copy…\n");
    let card = tty.expect("\n> ");
    assert!(
        card.contains("\nEffect ✓ tried in a copy, exit 0\n"),
        "{card}"
    );
    assert_eq!(read(&home, "README.md"), "other\nold\n");
    tty.press("o");
    tty.expect("any other key = no");
    tty.press("\r");
    tty.expect("✓ applied · exit 0 · ");
    assert_eq!(tty.end(), Some(0));
    assert_eq!(read(&home, "README.md"), "other\nnew\n");
}

#[test]
fn what_is_asked_before_it_runs_can_be_tried_first() {
    let Some(home) = home() else { return };
    let mut tty = at_terminal(&home, &["run", "--review", "before", "--", EDIT]);
    let card = tty.expect("\n> ");
    assert!(
        card.contains("[t] try in a copy   [x] explain   [q] decide later   [^C] withdraw\n"),
        "{card}"
    );
    tty.press("t");
    tty.expect("Trying it in a copy…\n");
    let card = tty.expect("\n> ");
    assert!(
        card.contains("\n  M README.md  +1 −1\n  R a → b\n"),
        "{card}"
    );
    assert!(card.ends_with(LETTERS), "{card}");
    assert_untouched(&home);
    tty.press("o");
    tty.expect("any other key = no");
    tty.press("\r");
    // Now its output comes, too: it was not run again.
    tty.expect("said\n");
    tty.expect("✓ applied · exit 0 · ");
    assert_eq!(tty.end(), Some(0));
    assert_applied(&home);
}

#[test]
fn what_its_requester_runs_itself_is_not_tried() {
    let Some(home) = home() else { return };
    let (status, run) = home.ask("touch made", json!({ "executor": "external" }));
    assert_eq!((status, &run["state"]), (202, &json!("waiting")), "{run}");
    let path = format!(
        "/approvals/{}/preview",
        run["approval_id"].as_str().unwrap()
    );
    let (status, problem) = home.api("POST", &path, &json!({}));
    assert_eq!(
        (status, &problem["code"]),
        (400, &json!("no_copy")),
        "{problem}"
    );
    assert_eq!(problem["hint"], "approve or reject it by its text");
    // It has not been allowed by that, either.
    assert_eq!(
        home.get(run["command_id"].as_str().unwrap())["state"],
        "waiting"
    );
    let (status, problem) = home.ask("ls", json!({ "executor": "external", "preview": true }));
    assert_eq!(
        (status, &problem["code"]),
        (400, &json!("no_copy")),
        "{problem}"
    );
}

#[test]
fn a_grant_that_is_made_with_changes_holds_from_now_on() {
    let Some(home) = home() else { return };
    let mut tty = at_terminal(&home, &["run", "--", "touch made"]);
    tty.expect("\n> ");
    tty.press("w");
    tty.expect("allow which commands? touch made $");
    tty.press("\r");
    tty.expect("for how long? (or revoked) 8h");
    tty.press("\r");
    tty.expect("save this rule and apply these changes? Enter = yes, any other key = no");
    tty.press("\r");
    tty.expect("✓ applied · exit 0 · ");
    assert_eq!(tty.end(), Some(0));
    fs::remove_file(home.base().join("made")).unwrap();
    let done = home.call(&["run", "--", "touch made"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains(" · 1 file changed "), "{done:?}");
    assert!(home.base().join("made").exists());
}

#[test]
fn a_patch_is_what_git_applies() {
    let Some(home) = home() else { return };
    let run = hold(&home, EDIT);
    let other = tempfile::tempdir().unwrap();
    let apply = |patch: &[u8]| {
        if !have(&["git"]) {
            return;
        }
        fs::write(other.path().join("README.md"), "first\nold\nlast\n").unwrap();
        fs::write(other.path().join("a"), "moved\n").unwrap();
        fs::write(other.path().join("p"), patch).unwrap();
        let mut git = Command::new("git");
        let done = git.args(["apply", "p"]).current_dir(other.path()).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{done:?}");
        let text = fs::read_to_string(other.path().join("README.md")).unwrap();
        assert_eq!(text, "first\nnew\nlast\n");
        fs::remove_file(other.path().join("b")).unwrap();
    };
    let held = home
        .weighlock(&["diff", short(&run), "--patch"])
        .output()
        .unwrap();
    apply(&held.stdout);
    let exported = home.weighlock(&["draft", "export"]).output().unwrap();
    apply(&exported.stdout);
    assert_eq!(home.call(&["commit", short(&run)]).code, Some(0));
    // The same once it was applied.
    let applied = home
        .weighlock(&["diff", short(&run), "--patch"])
        .output()
        .unwrap();
    assert_eq!(applied.stdout, held.stdout);
    let stat = home.call(&["diff", "@last", "--stat"]);
    assert_eq!(
        stat.out,
        "M README.md  +1 −1\nR a → b\n1 file changes, 1 is renamed\n"
    );
    let diff = json(&home.call(&["diff", "@last", "--json"]).out);
    assert_eq!(diff["state"], "applied");
    assert_eq!(diff["diffs"][0]["path"], "README.md");
    let done = home.call(&["diff", "r_none"]);
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{done:?}");
}

#[test]
fn what_has_no_content_is_told_as_the_server_tells_it() {
    let Some(home) = home() else { return };
    put(&home, "gone", "");
    put(&home, "mode", "x\n");
    let run = hold(
        &home,
        "mkdir d && touch d/empty && chmod 755 mode && rm gone && mv a b && ln -s b l && \
         printf '\\0' > bin && echo 1 >> README.md",
    );
    let whole = json(&home.call(&["diff", short(&run), "--json"]).out);
    let diffs = whole["diffs"].as_array().expect("a list");
    assert_eq!(diffs.len(), whole["changes"].as_array().unwrap().len());
    let kinds: Vec<&str> = diffs
        .iter()
        .filter_map(|diff| diff["kind"].as_str())
        .collect();
    for kind in ["created", "modified", "deleted", "renamed", "mode"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    for diff in diffs {
        let (run, index) = (run["command_id"].as_str().unwrap(), &diff["index"]);
        let path = format!("/commands/{run}/changes/{index}/diff");
        let (status, told) = home.api("GET", &path, &Value::Null);
        assert_eq!((status, &told), (200, diff));
    }
}

#[test]
fn commit_applies_exactly_what_was_seen() {
    let Some(home) = home() else { return };
    let run = hold(&home, EDIT);
    let done = home.call(&["commit", short(&run), "--hash", "other"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_untouched(&home);
    let hash = run["changes"]["hash"].as_str().unwrap();
    // Any beginning that is unique will do.
    let done = home.call(&["commit", &short(&run)[..5], "--hash", hash, "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(json(&done.out)["changes"]["state"], "applied");
    assert_applied(&home);
    let done = home.call(&["commit", "@last"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    // What stands in the way is named.
    let run = hold(&home, "sed -i s/new/newer/ README.md");
    put(&home, "README.md", "mine\n");
    let done = home.call(&["commit", short(&run)]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("README.md"), "{done:?}");
    assert_eq!(read(&home, "README.md"), "mine\n");
}

#[test]
fn discard_says_what_else_goes() {
    let Some(home) = home() else { return };
    let first = hold(&home, EDIT);
    let second = hold(&home, "echo more >> README.md");
    let done = home.call(&["discard", short(&first)]);
    let goes = format!("{} was built on it and would go with it", short(&second));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err.contains(&goes) && done.err.contains("--yes"),
        "{done:?}"
    );
    let mut tty = at_terminal(&home, &["discard", short(&first)]);
    tty.expect("  M README.md  +1 −1\n  R a → b\n");
    tty.expect(&format!(
        "discarding it also discards {}, which was built on it",
        short(&second)
    ));
    tty.expect("discard these changes? Enter = yes, any other key = no");
    tty.press("n");
    tty.expect("Nothing was discarded.");
    assert_eq!(tty.end(), Some(1));
    assert_eq!(home.show(short(&second))["state"], "waiting");
    let done = home.call(&["discard", short(&first), "--yes", "-m", "No."]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains(short(&second)), "{done:?}");
    for run in [&first, &second] {
        let run = home.show(short(run));
        assert_eq!(run["changes"]["state"], "discarded", "{run}");
    }
    assert_untouched(&home);
    // Where nothing else goes, nobody has to be asked.
    let third = hold(&home, EDIT);
    let done = home.call(&["discard", short(&third), "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(json(&done.out)["changes"]["state"], "discarded");
}

#[test]
fn undo_takes_back_the_latest_first() {
    let Some(home) = home() else { return };
    let apply = |command: &str| {
        let done = home.call(&["run", "--review", "none", "--json", "--", command]);
        assert_eq!(done.code, Some(0), "{done:?}");
        json(&done.out)
    };
    let first = apply(EDIT);
    let second = apply("echo more >> README.md");
    // However they are named.
    let done = home.call(&["undo", short(&first), short(&second), short(&first)]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines: Vec<&str> = done.err.lines().collect();
    let said = |run: &Value, files: &str| format!("✓ undone · {}, {files} ", short(run));
    assert!(
        lines[0].starts_with(&said(&second, "1 file restored")),
        "{lines:?}"
    );
    assert_eq!(lines[1], "  M README.md");
    let both = said(&first, "1 file restored, 1 renamed back");
    assert!(lines[2].starts_with(&both), "{lines:?}");
    assert_eq!(lines[3..], ["  M README.md", "  R b → a"]);
    assert_untouched(&home);
    let shown = home.call(&["show", short(&first)]).out;
    assert!(shown.contains("; undone by r_"), "{shown}");
    // An undo can be undone.
    let done = home.call(&["undo", "@last", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(json(&done.out)["commands"][0]["state"], "succeeded");
    assert_applied(&home);

    // What was new is gone, and what was gone is back.
    let third = apply("touch x y && rm b");
    let done = home.call(&["undo", short(&third)]);
    let all = said(&third, "1 file restored, 2 removed");
    assert!(done.err.starts_with(&all), "{done:?}");
    assert_applied(&home);

    let third = apply("sed -i s/first/1/ README.md");
    put(&home, "README.md", "mine\n");
    let done = home.call(&["undo", short(&third)]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let said = format!(
        "error: {} was not undone: files changed meanwhile: README.md",
        short(&third)
    );
    assert!(done.err.contains(&said), "{done:?}");
    assert_eq!(read(&home, "README.md"), "mine\n");
    let done = home.call(&["undo", short(&first)]);
    assert!(
        done.err
            .contains("has no applied changes; nothing was undone"),
        "{done:?}"
    );
    home.assert_audit_verifies();
}

#[test]
fn the_last_run_of_another_place_has_to_be_named() {
    let Some(home) = home() else { return };
    let done = home.call(&["run", "--review", "none", "--", EDIT]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let run = home.show("@last");
    let other = home.dir().join("other");
    fs::create_dir_all(&other).unwrap();
    let call = |dir: &std::path::Path, args: &[&str]| {
        let done = home.weighlock(args).current_dir(dir).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), said)
    };
    let id = short(&run);
    for args in [
        &["undo", "@last"][..],
        &["commit", "@last"],
        &["discard", "@last", "--yes"],
    ] {
        let (code, said) = call(&other, args);
        assert_eq!(code, Some(1), "{said}");
        let refused = format!(
            "error: the last run, {id} (`{EDIT}`), was in {}; nothing was done\n\
             hint: if that is the one, name it: {id}\n",
            home.base().display()
        );
        assert_eq!(said, refused, "{args:?}");
    }
    assert_applied(&home);
    // Looking changes nothing, and a name is a name.
    assert_eq!(call(&other, &["diff", "@last"]).0, Some(0));
    assert_eq!(call(&other, &["undo", id]).0, Some(0));
    assert_untouched(&home);
    // An undo is where its files are.
    assert_eq!(call(&other, &["undo", "@last"]).0, Some(1));
    let inner = home.base().join("inner");
    fs::create_dir(&inner).unwrap();
    assert_eq!(call(&inner, &["undo", "@last"]).0, Some(0));
    assert_applied(&home);
}

#[test]
fn a_draft_is_all_that_is_undecided() {
    let Some(home) = home() else { return };
    let done = home.call(&["draft"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "Nothing is undecided.\n")
    );
    assert_eq!(home.call(&["draft", "show"]).code, Some(1));
    let first = hold(&home, EDIT);
    let second = hold(&home, "echo more >> README.md");
    let session = first["session_id"].as_str().unwrap();
    let listed = home.call(&["draft", "list"]).out;
    let head = format!("{session}  {} in default\n", home.me());
    assert!(listed.starts_with(&head), "{listed}");
    for run in [&first, &second] {
        assert!(listed.contains(&format!("\n  {} ", short(run))), "{listed}");
    }
    let json_of = |args: &[&str]| json(&home.call(args).out);
    assert_eq!(
        json_of(&["draft", "--json"])["drafts"][0]["session_id"],
        session
    );
    let shown = home.call(&["draft", "show", "-s", "default"]).out;
    assert!(shown.contains("M README.md  +2 −1\n"), "{shown}");
    let tail = &session[session.len() - 6..];
    for named in [session, &session[..15], tail] {
        let diff = home.call(&["draft", "diff", named]).out;
        assert!(
            diff.contains("\n-old\n+new\n last\n+more\n"),
            "{named}: {diff}"
        );
    }
    assert_eq!(home.call(&["draft", "diff", "s_other"]).code, Some(1));
    let hash = json_of(&["draft", "show", "--json"])["hash"].clone();
    let done = home.call(&["draft", "commit", "--hash", "other"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_untouched(&home);
    let mut tty = at_terminal(&home, &["draft", "commit"]);
    let asked = "  apply the changes of 2 runs? Enter = yes, any other key = no ";
    let shown = tty.expect(asked);
    assert!(shown.contains("\n  M README.md  +2 −1\n"), "{shown}");
    for run in [&first, &second] {
        assert!(shown.contains(&format!("  {} ", short(run))), "{shown}");
    }
    tty.press("n");
    tty.expect("Nothing was applied.");
    assert_eq!(tty.end(), Some(1));
    assert_untouched(&home);
    // Nobody can be asked without a terminal, and so has to say what is meant.
    let done = home.call(&["draft", "commit"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(
        done.err,
        "error: the changes of 2 runs would be applied, and nobody has seen them; nothing was\n\
         hint: to apply what `weighlock draft show --json` tells, add --hash H; whatever it is, \
         --yes\n"
    );
    assert_untouched(&home);
    // Whoever names it exactly, or says so, has not to be asked.
    let done = home.call(&["draft", "commit", "--hash", hash.as_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        done.err.matches("✓ applied · exit 0").count(),
        2,
        "{done:?}"
    );
    assert_eq!(read(&home, "README.md"), "first\nnew\nlast\nmore\n");

    hold(&home, "echo again >> README.md");
    let done = home.call(&["draft", "discard"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("--yes"), "{done:?}");
    let mut tty = at_terminal(&home, &["draft", "discard"]);
    tty.expect("discard the changes of 1 run? Enter = yes, any other key = no");
    tty.press("\r");
    tty.expect("⊘ discarded  r_");
    assert_eq!(tty.end(), Some(0));
    assert_eq!(read(&home, "README.md"), "first\nnew\nlast\nmore\n");
    assert_eq!(home.call(&["draft"]).out, "Nothing is undecided.\n");

    for (args, key) in [
        (&["draft", "commit"][..], "\r"),
        (&["draft", "commit", "--yes"], ""),
    ] {
        hold(&home, "echo again >> README.md");
        let mut tty = at_terminal(&home, args);
        if !key.is_empty() {
            tty.expect("  apply the changes of 1 run? Enter = yes, any other key = no ");
            tty.press(key);
        }
        tty.expect("✓ applied · exit 0 · ");
        assert_eq!(tty.end(), Some(0));
    }
    let all = "first\nnew\nlast\nmore\nagain\nagain\n";
    assert_eq!(read(&home, "README.md"), all);
}

#[test]
fn changes_that_nobody_decided_about_in_time_say_so_and_are_kept() {
    let Some(home) = home() else { return };
    let config = home.config("[approvals]\nexpire = \"1s\"\n");
    let _server = home.serve(&["--replace", "--config", &config]);
    put(&home, "notes", "mine\n");
    let done = home.call(&["run", "--", "rm notes"]);
    assert_eq!(done.code, Some(75), "{}", done.err);
    assert!(done.err.contains("expires in 0:01"), "{}", done.err);
    let why = "Nobody answered within 1 second. This is not a refusal. Nothing was applied; the \
               changes are kept for 7 days, and a person can still apply them.";
    assert!(done.err.contains(why), "{}", done.err);
    let run = home.newest();
    let id = short(&run);
    let shown = home.call(&["show", id]).out;
    assert!(
        shown.contains("◌ expired, nobody answered; nothing was applied"),
        "{shown}"
    );
    assert!(!shown.contains("has been asked"), "{shown}");
    assert_eq!(home.call(&["commit", id]).code, Some(0));
    assert_eq!(read(&home, "notes"), "");
}

#[test]
fn a_run_decides_nothing_about_changes() {
    let Some(mut home) = home() else { return };
    let run = hold(&home, EDIT);
    home.set("WEIGHLOCK_RUN", "r_1");
    for args in [
        &["commit", short(&run)][..],
        &["discard", short(&run), "--yes"],
        &["undo", short(&run)],
        &["draft", "commit"],
        &["draft", "discard", "--yes"],
        &["run", "--review", "none", "--", "touch made"],
    ] {
        let done = home.call(args);
        let own = if args[0] == "run" { 125 } else { 1 };
        assert_eq!(done.code, Some(own), "{done:?}");
        assert!(done.err.contains("inside a run"), "{done:?}");
    }
    // Looking is no deciding.
    assert_eq!(home.call(&["diff", short(&run)]).code, Some(0));
    assert_eq!(home.call(&["draft"]).code, Some(0));
    assert_untouched(&home);
}

#[test]
fn what_runs_by_itself_is_marked_and_repeated() {
    let Some(home) = home() else { return };
    let mut tty = at_terminal(&home, &["run", "--", "echo x > .envrc"]);
    let mark = "  A .envrc  +1\n      ! is run by other programs, outside the walls\n";
    let shown = tty.expect("\n> ");
    assert!(shown.contains(mark), "{shown}");
    assert!(shown.contains("\n  [o] apply anyway…   "), "{shown}");
    tty.press("o");
    let shown = tty.expect("apply these changes? Enter = yes, any other key = no");
    assert!(
        shown.contains("  High risk, in default:\n  $ echo x > .envrc\n"),
        "{shown}"
    );
    assert!(shown.contains(mark), "{shown}");
    tty.press("n");
    tty.expect("\n> ");
    tty.press("q");
    assert_eq!(tty.end(), Some(75));
    assert!(!home.base().join(".envrc").exists());
}

#[test]
fn where_a_link_would_lead_is_said_with_the_question() {
    let Some(home) = home() else { return };
    let mut tty = at_terminal(&home, &["run", "--", "ln -s ../../etc/passwd l; ln -s a m"]);
    let shown = tty.expect("\n> ");
    assert!(shown.contains(" l → ../../etc/passwd (link)\n"), "{shown}");
    assert!(shown.contains(" m → a (link)\n"), "{shown}");
    tty.press("q");
    assert_eq!(tty.end(), Some(75));
    let mut tty = at_terminal(&home, &["draft", "commit"]);
    let shown = tty.expect("any other key = no ");
    assert!(shown.contains(" l → ../../etc/passwd (link)\n"), "{shown}");
    tty.press("n");
    assert_eq!(tty.end(), Some(1));
}

#[test]
fn doctor_tells_what_is_kept_of_changes() {
    let Some(home) = home() else { return };
    hold(&home, EDIT);
    let found = home.call(&["doctor"]).out;
    let line = found.lines().find(|line| line.starts_with("✓ copies "));
    let expected = "✓ copies       sandboxes can be shown as copies, 0 B of 4 GiB kept for undo, 1 \
                    undecided (`weighlock draft`)";
    assert_eq!(line, Some(expected), "{found}");
}

#[test]
fn verbs_about_changes_are_completed() {
    let home = Home::untouched();
    let completions = home.call(&["completions", "bash"]).out;
    for word in [
        "preview", "diff", "commit", "discard", "undo", "draft", "--review", "--reveal",
    ] {
        assert!(completions.contains(word), "{word}");
    }
}
