//! What files say before, with an entry of ours, and without it again.

use serde_json::json;

use super::SettingsFormat::{Json, Toml, Yaml};
use super::{Field, SettingsFormat, Trouble};

/// An entry as most clients want it.
fn entry() -> Vec<Field> {
    let field = |path, value| Field {
        path,
        value,
        at_first: false,
    };
    vec![
        field(&["command"], json!("/bin/w")),
        field(&["args"], json!(["mcp", "--agent", "a"])),
    ]
}

/// The same as goose wants it.
fn extension() -> Vec<Field> {
    let field = |path, value, at_first| Field {
        path,
        value,
        at_first,
    };
    vec![
        field(&["enabled"], json!(true), true),
        field(&["cmd"], json!("/bin/w"), false),
        field(&["args"], json!(["mcp", "--agent", "a b"]), false),
        field(&["envs", "T"], json!("wl_x"), false),
    ]
}

fn set(format: SettingsFormat, text: &str) -> Result<String, Trouble> {
    match format {
        Json => Json.set(text, &["servers", "w"], &entry()),
        Toml => Toml.set(text, &["servers", "w"], &entry()),
        Yaml => Yaml.set(text, &["extensions", "w"], &extension()),
    }
}

fn remove(format: SettingsFormat, text: &str) -> Result<String, Trouble> {
    match format {
        Yaml => Yaml.remove(text, &["extensions", "w"]),
        other => other.remove(text, &["servers", "w"]),
    }
}

/// Sets it, sets it again, and takes it out.
#[track_caller]
fn check(format: SettingsFormat, before: &str, after: &str, without: &str) {
    assert_eq!(set(format, before).as_deref(), Ok(after));
    assert_eq!(set(format, after).as_deref(), Ok(after), "once more");
    assert_eq!(remove(format, after).as_deref(), Ok(without), "taken out");
    assert_eq!(remove(format, without).as_deref(), Ok(without), "once more");
}

/// The same where nothing is left of it.
#[track_caller]
fn back(format: SettingsFormat, before: &str, after: &str) {
    check(format, before, after, before);
}

#[track_caller]
fn refused(format: SettingsFormat, text: &str, line: usize) {
    match set(format, text) {
        Err(Trouble::Broken { line: at, .. }) => assert_eq!(at, line),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn unfit(format: SettingsFormat, text: &str) {
    assert!(matches!(set(format, text), Err(Trouble::Unfit)));
}

const ALONE: &str = r#"{
  "servers": {
    "w": {
      "command": "/bin/w",
      "args": ["mcp", "--agent", "a"]
    }
  }
}
"#;

#[test]
fn json_that_says_nothing_gets_the_entry_alone() {
    check(Json, "", ALONE, "{}\n");
    check(Json, "{}\n", ALONE, "{}\n");
    check(Json, "{\n}\n", ALONE, "{}\n");
    check(Json, "{ \"servers\": {} }", ALONE.trim_end(), "{}");
    let said = format!("// mine\n{ALONE}");
    check(Json, "// mine\n", &said, "// mine\n{}\n");
    assert!(Json.is_empty("{}\n") && !Json.is_empty("// mine\n{}\n"));
}

#[test]
fn json_keeps_what_is_there_and_how_it_is_written() {
    back(
        Json,
        "{\n\t\"z\": 1.0e3,\n\t\"servers\": {\n\t\t\"o\": {}\n\t},\n\t\"a\": \"\\u00e9\"\n}",
        "{\n\t\"z\": 1.0e3,\n\t\"servers\": {\n\t\t\"o\": {},\n\t\t\"w\": {\n\t\t\t\"command\": \"/bin/w\",\n\t\t\t\"args\": [\"mcp\", \"--agent\", \"a\"]\n\t\t}\n\t},\n\t\"a\": \"\\u00e9\"\n}",
    );
    back(
        Json,
        "{\r\n    \"a\": 1\r\n}\r\n",
        "{\r\n    \"a\": 1,\r\n    \"servers\": {\r\n        \"w\": {\r\n            \"command\": \"/bin/w\",\r\n            \"args\": [\"mcp\", \"--agent\", \"a\"]\r\n        }\r\n    }\r\n}\r\n",
    );
    back(
        Json,
        "\u{feff}{\n  \"servers\": {\n    \"o\": {}\n  }\n}\n",
        "\u{feff}{\n  \"servers\": {\n    \"o\": {},\n    \"w\": {\n      \"command\": \"/bin/w\",\n      \"args\": [\"mcp\", \"--agent\", \"a\"]\n    }\n  }\n}\n",
    );
}

/// An entry has lines of its own, and so has what is beside it then.
#[test]
fn json_on_one_line_is_laid_out_where_the_entry_goes() {
    check(
        Json,
        r#"{"a": 1, "servers": {"o": {"command": "x"}}, "z": [ 1,2 ]}"#,
        r#"{
  "a": 1,
  "servers": {
    "o": {"command": "x"},
    "w": {
      "command": "/bin/w",
      "args": ["mcp", "--agent", "a"]
    }
  },
  "z": [ 1,2 ]
}"#,
        r#"{
  "a": 1,
  "servers": {
    "o": {"command": "x"}
  },
  "z": [ 1,2 ]
}"#,
    );
}

#[test]
fn json_keeps_comments_and_commas_at_the_end() {
    back(
        Json,
        r#"// first
{
  // the theme
  "theme": "dark", // at night
  "servers": {
    /* another */ "o": { "command": "x", }, // theirs
    // "p": {},
  },
  // last
}
"#,
        r#"// first
{
  // the theme
  "theme": "dark", // at night
  "servers": {
    /* another */ "o": { "command": "x", }, // theirs
    "w": {
      "command": "/bin/w",
      "args": ["mcp", "--agent", "a"],
    },
    // "p": {},
  },
  // last
}
"#,
    );
    back(
        Json,
        "{\n  \"a\": \"// no comment\" // one\n}\n",
        "{\n  \"a\": \"// no comment\", // one\n  \"servers\": {\n    \"w\": {\n      \"command\": \"/bin/w\",\n      \"args\": [\"mcp\", \"--agent\", \"a\"]\n    }\n  }\n}\n",
    );
    back(
        Json,
        "{\n  \"servers\": {\n    // none yet\n  }\n}\n",
        "{\n  \"servers\": {\n    // none yet\n    \"w\": {\n      \"command\": \"/bin/w\",\n      \"args\": [\"mcp\", \"--agent\", \"a\"]\n    }\n  }\n}\n",
    );
}

#[test]
fn json_of_ours_is_changed_where_it_differs_and_the_rest_is_the_persons() {
    check(
        Json,
        r#"{
  "servers": {
    "w": {
      "args": [
        "mcp"
      ], // short
      "timeout": 7,
      "command": "/old/w"
    }, // ours
    "o": {}
  }
}
"#,
        r#"{
  "servers": {
    "w": {
      "args": ["mcp", "--agent", "a"], // short
      "timeout": 7,
      "command": "/bin/w"
    }, // ours
    "o": {}
  }
}
"#,
        "{\n  \"servers\": {\n    \"o\": {}\n  }\n}\n",
    );
    // What is reached by an address is another thing.
    check(
        Json,
        r#"{"servers": {"w": {"url": "http://x"}, "o": {}}}"#,
        r#"{
  "servers": {
    "o": {},
    "w": {
      "command": "/bin/w",
      "args": ["mcp", "--agent", "a"]
    }
  }
}"#,
        "{\n  \"servers\": {\n    \"o\": {}\n  }\n}",
    );
}

#[test]
fn secrets_are_put_beside_what_the_environment_has() {
    let mut fields = entry();
    fields.push(Field {
        path: &["env", "T"],
        value: json!("wl_x"),
        at_first: false,
    });
    let place = ["servers", "w"];
    let table = [
        (
            Json,
            "{\n  \"servers\": {\n    \"w\": {\n      \"command\": \"/bin/w\",\n      \"env\": {\n        \"A\": \"b\"\n      }\n    }\n  }\n}\n",
            "{\n  \"servers\": {\n    \"w\": {\n      \"command\": \"/bin/w\",\n      \"env\": {\n        \"A\": \"b\",\n        \"T\": \"wl_x\"\n      },\n      \"args\": [\"mcp\", \"--agent\", \"a\"]\n    }\n  }\n}\n",
        ),
        (
            Toml,
            "[servers.w]\ncommand = '/bin/w'\nenv = { A = 'b' }\nargs = []\n",
            "[servers.w]\ncommand = '/bin/w'\nenv = { A = 'b', T = \"wl_x\" }\nargs = [\"mcp\", \"--agent\", \"a\"]\n",
        ),
        (
            Toml,
            "[servers.w]\ncommand = '/bin/w'\n\n[servers.w.env] # mine\nA = 'b'\n",
            "[servers.w]\ncommand = '/bin/w'\nargs = [\"mcp\", \"--agent\", \"a\"]\n\n[servers.w.env] # mine\nA = 'b'\nT = \"wl_x\"\n",
        ),
        (
            Toml,
            "",
            "[servers.w]\ncommand = \"/bin/w\"\nargs = [\"mcp\", \"--agent\", \"a\"]\nenv = { T = \"wl_x\" }\n",
        ),
    ];
    for (format, before, after) in table {
        assert_eq!(format.set(before, &place, &fields).as_deref(), Ok(after));
    }
}

#[test]
fn broken_json_is_refused_with_its_line() {
    for (text, line) in [
        ("{", 1),
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 2),
        ("{\n  \"a\": tru\n}", 2),
        ("{\n\n  a: 1\n}", 3),
        ("{\"a\": \"x\n}", 1),
        ("{\"a\": 1}\n}", 2),
        ("{\"a\": 1 /* x\n", 1),
        ("{\"a\": }", 1),
        ("{\"a\": [1 2]}", 1),
        ("{\n\"a\": 1,\n\"a\": 2}", 3),
        ("[]", 1),
        ("{\n\"servers\": []}", 2),
    ] {
        match set(Json, text) {
            Err(Trouble::Broken { line: at, .. }) => assert_eq!(at, line, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    refused(Json, &"[".repeat(100_000), 1);
}

const TABLE: &str = "[servers.w]\ncommand = \"/bin/w\"\nargs = [\"mcp\", \"--agent\", \"a\"]\n";

#[test]
fn toml_gets_a_table_at_its_end() {
    back(Toml, "", TABLE);
    back(
        Toml,
        "model = 'x' # the best\n# end\n",
        &format!("model = 'x' # the best\n# end\n\n{TABLE}"),
    );
    back(
        Toml,
        "[servers.o]\ncommand = 'x'\n\n[z]\na.b = 1\n",
        &format!("[servers.o]\ncommand = 'x'\n\n[z]\na.b = 1\n\n{TABLE}"),
    );
    check(Toml, "a = 1", &format!("a = 1\n\n{TABLE}"), "a = 1\n");
    let windows = TABLE.replace('\n', "\r\n");
    back(Toml, "a = 1\r\n", &format!("a = 1\r\n\r\n{windows}"));
    back(Toml, "[servers]\n", &format!("[servers]\n\n{TABLE}"));
}

#[test]
fn toml_of_ours_is_changed_where_it_differs() {
    check(
        Toml,
        "[servers.w] # ours\ncommand = '/old/w' # here\nargs = [\n  'mcp', # one\n]\nlimit = 3\n\n[servers.w.tools.run]\nmode = 'ask'\n\n# next\n[z]\n",
        "[servers.w] # ours\ncommand = \"/bin/w\" # here\nargs = [\"mcp\", \"--agent\", \"a\"]\nlimit = 3\n\n[servers.w.tools.run]\nmode = 'ask'\n\n# next\n[z]\n",
        "\n# next\n[z]\n",
    );
    check(
        Toml,
        "[servers]\no = { command = 'x' }\nw = { command = 'y' } # ours\n",
        "[servers]\no = { command = 'x' }\nw = { command = \"/bin/w\", args = [\"mcp\", \"--agent\", \"a\"] } # ours\n",
        "[servers]\no = { command = 'x' }\n",
    );
    check(
        Toml,
        "[servers.w]\nurl = 'http://x'\n\n[servers.o]\nurl = 'y'\n",
        &format!("\n[servers.o]\nurl = 'y'\n\n{TABLE}"),
        "\n[servers.o]\nurl = 'y'\n",
    );
}

#[test]
fn toml_of_every_shape_stays_what_it_is() {
    back(
        Toml,
        "servers = {}\n",
        "servers = { w = { command = \"/bin/w\", args = [\"mcp\", \"--agent\", \"a\"] } }\n",
    );
    back(
        Toml,
        "servers = { o = {} } # all\n",
        "servers = { o = {}, w = { command = \"/bin/w\", args = [\"mcp\", \"--agent\", \"a\"] } } # all\n",
    );
    check(
        Toml,
        "[servers]\nw.command = 'x' # old\nw.b = 1\n",
        "[servers]\nw.command = \"/bin/w\" # old\nw.b = 1\nw.args = [\"mcp\", \"--agent\", \"a\"]\n",
        "[servers]\n",
    );
    // Comments above may be about anything, and stay.
    check(
        Toml,
        "# one\n\n# two\n[servers.w]\ncommand = '/bin/w'\nargs = []\n\n# three\n[z]\n",
        "# one\n\n# two\n[servers.w]\ncommand = '/bin/w'\nargs = [\"mcp\", \"--agent\", \"a\"]\n\n# three\n[z]\n",
        "# one\n\n# two\n\n# three\n[z]\n",
    );
}

#[test]
fn toml_that_cannot_be_changed_or_read_is_refused() {
    unfit(Toml, "servers = 3\n");
    unfit(Toml, "[[servers]]\no = 1\n");
    // Two kinds of line breaks would be one kind afterwards.
    unfit(Toml, "[servers.w]\r\ncommand = 'x'\n");
    // So would dotted names be next to each other.
    unfit(
        Toml,
        "a.b = 1\nc = 2\na.d = 3\n[servers.w]\ncommand = 'x'\n",
    );
    refused(Toml, "a = 1\nb = \n", 2);
    refused(Toml, "a = 1\na = 2\n", 2);
}

const LINES: &str = "extensions:\n  w:\n    enabled: true\n    cmd: \"/bin/w\"\n    \
                     args: [\"mcp\",\"--agent\",\"a b\"]\n    envs:\n      T: \"wl_x\"\n";

#[test]
fn yaml_is_written_down_for_people_and_never_changed() {
    let place = ["extensions", "w"];
    let alone = Yaml.alone(&place, &extension());
    assert_eq!(alone.as_deref(), Ok(LINES));
    for text in ["", "A: b\n", "extensions: {}\n", "extensions:\n  w: {}\n"] {
        unfit(Yaml, text);
        let has = Yaml.has(text, &place);
        let taken_out = if has {
            Err(Trouble::Unfit)
        } else {
            Ok(text.to_owned())
        };
        assert_eq!(remove(Yaml, text), taken_out, "{text}");
    }
    let off = LINES.replace("enabled: true", "# off for now\n    enabled: false");
    for there in [LINES, &off] {
        let there = format!("A: b\n{there}Z: 1\n");
        assert_eq!(set(Yaml, &there).as_ref(), Ok(&there), "it says so already");
    }
    refused(Yaml, "A: b\nC: [\n", 2);
    refused(Yaml, "A: b\nA: c\n", 2);
    refused(Yaml, "A: b\n---\nC: d\n", 3);
}

/// Whatever a file is, it is changed as it should be or left alone.
#[test]
fn no_text_makes_it_stumble() {
    let signs = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "'",
        "//",
        "/*",
        "*/",
        "#",
        "\n",
        "\r\n",
        " ",
        "\t",
        "\\",
        "-",
        "=",
        ".",
        "|",
        "&",
        "*",
        "ü",
        "\u{feff}",
        "servers",
        "extensions",
        "w",
        "\"w\"",
        "\"servers\"",
        "null",
        "{}",
        "cmd: ",
        "  ",
        "[servers]",
        "[servers.w]",
        "w:",
        "1",
    ];
    let begun = ["", ALONE, TABLE, LINES];
    // Any numbers will do, if they are the same ones each time.
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut done = 0;
    for _ in 0..3000 {
        let mut text = begun[next(begun.len())].to_owned();
        for _ in 0..=next(4) {
            let at = next(text.len() + 1);
            let at = (0..=at).rev().find(|&at| text.is_char_boundary(at));
            text.insert_str(at.unwrap_or(0), signs[next(signs.len())]);
        }
        for format in [Json, Toml, Yaml] {
            if let Ok(with) = set(format, &text) {
                assert_eq!(set(format, &with).as_ref(), Ok(&with), "{text:?}");
                let without = remove(format, &with);
                // What was there before may be of a shape that is not cut.
                let was = |place: &str| format.has(&text, &[place, "w"]);
                let was = was("servers") || was("extensions");
                let may_stay = was && matches!(without, Err(Trouble::Unfit));
                assert!(without.is_ok() || may_stay, "{text:?} {with:?} {without:?}");
                done += 1;
            }
        }
    }
    assert!(done > 300, "{done}");
}
