//! What the pages show: output with its colours, and what concerns whoever
//! looks at them.

use serde_json::{Value, json};

use crate::crew::{Crew, only, text};

fn output(crew: &Crew, run: &Value, query: &str) -> Value {
    let path = format!("/commands/{}/output?{query}", text(run, "command_id"));
    crew.call("owner").get(&path).expect(200)
}

#[test]
fn output_is_seen_with_its_colours() {
    let crew = Crew::new();
    let command = "printf '\\033[31mred\\033[0m ü\\n10%%\\r\\033[1;38;5;208m99%%\\n'; \
                   printf '\\033[4mstill\\n'";
    let run = crew.ask("coder", command, json!({})).expect(200);
    let seen = output(&crew, &run, "view=full");
    let lines: Vec<Value> = { seen["lines"].as_array().unwrap().iter() }
        .map(|line| only(line, &["line", "stream", "text", "spans"]))
        .collect();
    assert_eq!(
        lines,
        [
            json!({ "line": 1, "stream": "stdout", "text": "red ü",
                    "spans": [{ "start": 0, "end": 3, "fg": "1" }] }),
            json!({ "line": 2, "stream": "stdout", "text": "99%",
                    "spans": [{ "start": 0, "end": 3, "fg": "208", "bold": true }] }),
            json!({ "line": 3, "stream": "stdout", "text": "still",
                    "spans": [{ "start": 0, "end": 5, "fg": "208", "bold": true,
                                "underline": true }] }),
        ]
    );
    assert_eq!(seen["left_out"], Value::Null);
    // A colour goes on where reading begins further down.
    let last = output(&crew, &run, "view=full&from=3&lines=1");
    assert_eq!(last["lines"], json!([seen["lines"][2]]));
    // Without a view, lines are what was written.
    let raw = output(&crew, &run, "lines=1");
    assert_eq!(raw["lines"][0]["text"], "\u{1b}[31mred\u{1b}[0m ü");
}

#[test]
fn where_the_agents_copy_was_cut_is_known() {
    let crew = Crew::new();
    let run = crew.ask("coder", "seq 1 20000", json!({})).expect(200);
    let seen = output(&crew, &run, "view=full&from=15000&lines=1");
    assert_eq!(seen["lines"][0]["text"], "15000");
    assert_eq!(seen["total"], 20000);
    let left = &seen["left_out"][0];
    assert_eq!(left["stream"], "stdout");
    assert_eq!(left["chars"], run["left_out_chars"]);
    let (from, to) = (left["from"].as_u64().unwrap(), left["to"].as_u64().unwrap());
    let shown = output(&crew, &run, "view=agent&lines=10000");
    let shown: Vec<&str> = { shown["lines"].as_array().unwrap().iter() }
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    let gap = shown
        .iter()
        .position(|line| line.contains("characters truncated"));
    let gap = gap.unwrap();
    assert_eq!(shown[gap - 3], (from - 1).to_string());
    assert_eq!(shown[gap + 2], (to + 1).to_string());
    assert_eq!(shown.first(), Some(&"1"));
    assert_eq!(shown.last(), Some(&"20000"));
}

#[test]
fn everybody_is_told_what_they_may() {
    let crew = Crew::with("[approvals]\nfour_eyes = true\n");
    let features = |who: &str| crew.call(who).get("/me").expect(200)["features"].clone();
    let rights = ["run", "look", "decide", "operate", "administer", "always"];
    let may = |who: &str| only(&features(who), &rights);
    let said = |[run, look, decide, operate, administer, always]: [bool; 6]| {
        json!({ "run": run, "look": look, "decide": decide, "operate": operate,
                "administer": administer, "always": always })
    };
    assert_eq!(
        may("coder"),
        said([true, false, false, false, false, false])
    );
    assert_eq!(may("ana"), said([true, true, true, false, false, false]));
    assert_eq!(may("olga"), said([true, true, true, true, false, false]));
    assert_eq!(may("owner"), said([true; 6]));
    let limits = [
        "four_eyes",
        "expire_seconds",
        "timeout_default_seconds",
        "output_chars",
    ];
    assert_eq!(
        only(&features("ana"), &limits),
        json!({ "four_eyes": true, "expire_seconds": 300, "timeout_default_seconds": 120,
                "output_chars": 30000 })
    );
}

#[test]
fn settings_are_ones_own() {
    let mut crew = Crew::new();
    let put =
        |crew: &Crew, who: &str, body: Value| crew.call(who).ask("PUT", "/me/settings", &body);
    let views = json!({ "views": [{ "name": "My failures", "q": "status:failed" }] });
    assert_eq!(put(&crew, "ana", views.clone()).expect(200), views);
    crew.restart();
    let get = |who: &str| crew.call(who).get("/me/settings").expect(200);
    assert_eq!(get("ana"), views);
    assert_eq!(get("ben"), json!({}));
    let wrong = put(&crew, "ana", json!([])).expect(400);
    assert_eq!(wrong["code"], "invalid_settings");
    let long = json!({ "x": "y".repeat(70_000) });
    put(&crew, "ana", long).expect(400);
    put(&crew, "coder", json!({})).expect(403);
    assert_eq!(get("ana"), views);
}

#[test]
fn what_a_blacklist_meets_is_told_before_it_is_saved() {
    let crew = Crew::new();
    crew.ask("coder", "ls  -a", json!({})).expect(200);
    crew.ask("coder", "pwd", json!({})).expect(200);
    let compare = |body: Value| {
        crew.call("ana")
            .post("/blacklist/compare", &body)
            .expect(200)
    };
    let met = compare(json!({ "commandBlacklist": ["LS -A"] }));
    assert_eq!(
        only(&met, &["looked_at", "matched"]),
        json!({ "looked_at": 2, "matched": 1 })
    );
    assert_eq!(met["commands"][0]["command"], "ls  -a");
    assert_eq!(compare(json!({}))["matched"], 0);
    crew.call("coder")
        .post("/blacklist/compare", &json!({}))
        .expect(403);
}
