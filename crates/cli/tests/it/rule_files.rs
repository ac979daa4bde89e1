//! The rule file: read, tried, saved, gone back to.

use std::fs;

use serde_json::{Value, json};

use crate::caller::audit;
use crate::crew::{Crew, only, text};
use crate::support::Home;

const RULES: &str = "[[rule]]\nname = \"no-make\"\nreject = \"make deploy\"\n\n\
                     [[rule]]\nask = \"cat secret.txt\"\nbecause = \"it is one\"\n";

/// A crew with a rule file of its own.
fn crew() -> (Crew, std::path::PathBuf) {
    let home = Home::strict();
    let file = home.dir().join("rules.toml");
    fs::write(&file, RULES).unwrap();
    let settings = format!("[policy]\nrules = {file:?}\n");
    (Crew::at(home, &settings), file)
}

fn put(crew: &Crew, who: &str, etag: &Value, body: Value) -> crate::caller::Said {
    let caller = crew.call(who).with("if-match", &format!("\"{etag}\""));
    caller.ask("PUT", "/policies/server", &body)
}

#[test]
fn a_file_is_read_with_its_rules_and_what_they_met() {
    let (crew, file) = crew();
    crew.ask("coder", "make deploy", json!({})).expect(200);
    crew.ask("coder", "make deploy", json!({})).expect(200);
    crew.ask("coder", "ls", json!({})).expect(200);
    let policy = crew.call("ana").get("/policies/server").expect(200);
    assert_eq!(
        only(
            &policy,
            &["id", "file", "text", "version", "errors", "looked_at"]
        ),
        json!({ "id": "server", "file": file, "text": RULES, "version": null, "errors": [],
                "looked_at": 3 })
    );
    let rules: Vec<Value> = { policy["rules"].as_array().unwrap().iter() }
        .map(|rule| {
            only(
                rule,
                &["name", "line", "verdict", "about", "because", "hits"],
            )
        })
        .collect();
    assert_eq!(
        rules,
        [
            json!({ "name": "no-make", "line": 1, "verdict": "reject", "about": "make deploy",
                    "because": "", "hits": 2 }),
            json!({ "name": "line 5", "line": 5, "verdict": "ask", "about": "cat secret.txt",
                    "because": "it is one", "hits": 0 }),
        ]
    );
    assert!(policy["rules"][0]["last_hit"].is_string());
    // Agents have no business with it.
    crew.call("coder").get("/policies/server").expect(403);
    let missing = crew.call("owner").get("/policies/sandbox.none").expect(404);
    assert_eq!(missing["code"], "no_such_policy");
}

/// Past commands are judged again for these counts: as many as a second is
/// enough for, however long they are.
#[test]
fn a_past_of_long_commands_is_counted_in_part() {
    let (crew, _) = crew();
    let long = format!("echo {}", "x".repeat(120_000));
    for _ in 0..12 {
        crew.ask("coder", &long, json!({})).expect(200);
    }
    crew.ask("coder", "make deploy", json!({})).expect(200);
    let file = crew.call("ana").get("/policies/server").expect(200);
    let all = crew.call("ana").get("/policies?hits=true").expect(200);
    let compared = crew.call("ana").ask(
        "POST",
        "/policies/server/compare",
        &json!({ "text": RULES }),
    );
    for said in [&file, &all, &compared.expect(200)] {
        assert_eq!(said["looked_at"], 9, "{said}");
    }
    assert_eq!(file["rules"][0]["hits"], 1);
    assert_eq!(file["rules"][1]["unused"], false);
}

#[test]
fn every_rule_in_force_says_what_it_is_about_and_what_it_met() {
    let (crew, _) = crew();
    crew.ask("coder", "sudo ls", json!({})).expect(200);
    crew.ask("coder", "mkfs.ext4 /dev/sda", json!({}))
        .expect(200);
    crew.ask("coder", "make deploy", json!({})).expect(200);
    crew.ask("coder", "sudo ls", json!({})).expect(200);
    // Counting takes its time, so nobody has it unasked.
    let uncounted = crew.call("ana").get("/policies").expect(200);
    assert_eq!(uncounted["rules"][0].get("hits"), None);
    let policy = crew.call("ana").get("/policies?hits=true").expect(200);
    assert_eq!(policy["looked_at"], 4);
    let rule = |name: &str| {
        let rules = policy["rules"].as_array().unwrap();
        let rule = { rules.iter() }.find(|rule| rule["name"] == name);
        only(rule.unwrap(), &["layer", "about", "hits"])
    };
    assert_eq!(
        rule("no-privileges"),
        json!({ "layer": "built-in", "about": "raises privileges", "hits": 2 })
    );
    assert_eq!(
        rule("no-disk-tools"),
        json!({ "layer": "built-in", "about": "works on whole disks", "hits": 1 })
    );
    assert_eq!(
        rule("no-power"),
        json!({ "layer": "built-in", "about": "stops or restarts the machine or its services",
                "hits": 0 })
    );
    assert_eq!(
        rule("no-make"),
        json!({ "layer": "server", "about": "make deploy", "hits": 1 })
    );
    assert!(policy["rules"][0]["last_hit"].is_string(), "{policy}");
}

#[test]
fn a_save_is_in_force_at_once_and_can_be_gone_back_from() {
    let (crew, file) = crew();
    let before = crew.call("owner").get("/policies/server").expect(200);
    let new = format!("{RULES}\n[[rule]]\nauto = \"touch *\"\n");
    let body = json!({ "text": new, "note": "touching is fine" });
    // Not an approver, nor an agent.
    put(&crew, "ana", &before["etag"], body.clone()).expect(403);
    put(&crew, "coder", &before["etag"], body.clone()).expect(403);
    crew.waiting("coder", "touch a", json!({}));
    let saved = put(&crew, "owner", &before["etag"], body.clone()).expect(200);
    assert_eq!(
        only(&saved, &["text", "version"]),
        json!({ "text": new, "version": 2 })
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), new);
    crew.ask("coder", "touch b", json!({})).expect(200);
    // Whoever has read the text from before would overwrite it.
    let late = put(&crew, "owner", &before["etag"], json!({ "text": "" })).expect(412);
    assert_eq!(late["code"], "changed_meanwhile");
    let versions = crew
        .call("ana")
        .get("/policies/server/versions")
        .expect(200);
    let versions: Vec<Value> = { versions.as_array().unwrap().iter() }
        .map(|one| only(one, &["version", "author", "note", "text", "current"]))
        .collect();
    assert_eq!(
        versions,
        [
            json!({ "version": 2, "author": crew.home.me(), "note": "touching is fine",
                    "text": new, "current": true }),
            json!({ "version": 1, "author": null, "note": "Found in the file", "text": RULES,
                    "current": false }),
        ]
    );
    let owner = crew.call("owner");
    let back = owner
        .post("/policies/server/back", &json!({ "version": 1 }))
        .expect(200);
    assert_eq!(
        only(&back, &["text", "version"]),
        json!({ "text": RULES, "version": 3 })
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), RULES);
    crew.waiting("coder", "touch c", json!({}));
    let none = owner
        .post("/policies/server/back", &json!({ "version": 9 }))
        .expect(400);
    assert_eq!(none["code"], "no_such_version");
    let saves: Vec<Value> = { audit(&crew.home, "kind=rules.saved").into_iter() }
        .map(|entry| {
            json!([
                entry["actor"],
                entry["detail"]["version"],
                entry["detail"]["note"]
            ])
        })
        .collect();
    let me = crew.home.me();
    assert_eq!(
        saves,
        [
            json!([me, 2, "touching is fine"]),
            json!([me, 3, "Back to version 1"])
        ]
    );
    crew.assert_agrees();
}

#[test]
fn what_cannot_be_read_or_allows_everything_is_not_saved() {
    let (crew, file) = crew();
    let before = crew.call("owner").get("/policies/server").expect(200);
    let wrong = json!({ "text": "[[rule]]\nallow = \"x\"\n" });
    let refused = put(&crew, "owner", &before["etag"], wrong.clone()).expect(400);
    assert_eq!(refused["code"], "bad_rules");
    let checked = crew
        .call("ana")
        .post("/policies/server/check", &wrong)
        .expect(200);
    assert_eq!(checked["ok"], false);
    assert_eq!(checked["errors"][0]["line"], 2);
    let all = "[[rule]]\nauto = { effects_only = [\"read\", \"write\", \"delete\", \"execute\", \
               \"network\", \"process\"] }\n[[rule]]\nauto = [\"./unheard-of\", \"python3\"]\n";
    let everything = json!({ "text": all });
    let refused = put(&crew, "owner", &before["etag"], everything).expect(400);
    assert_eq!(refused["code"], "allows_everything", "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), RULES);
    let typed = json!({ "text": all, "phrase": "allow everything" });
    put(&crew, "owner", &before["etag"], typed).expect(200);
    let versions = crew
        .call("ana")
        .get("/policies/server/versions")
        .expect(200);
    assert_eq!(versions.as_array().unwrap().len(), 2);
}

#[test]
fn a_draft_is_compared_with_what_was_asked_before() {
    let (crew, _) = crew();
    let run = crew.waiting("coder", "touch a", json!({}));
    crew.decide("ana", &crew.card(&run), json!({ "kind": "reject" }))
        .expect(200);
    crew.waiting("coder", "touch b", json!({}));
    crew.ask("coder", "ls", json!({})).expect(200);
    crew.ask("coder", "ls", json!({})).expect(200);
    crew.ask("coder", "pwd", json!({})).expect(200);
    crew.ask("coder", "make deploy", json!({})).expect(200);
    let draft =
        "[[rule]]\nauto = \"touch *\"\n[[rule]]\nask = \"ls\"\n[[rule]]\nreject = \"pwd\"\n";
    let body = json!({ "text": draft });
    let compared = crew
        .call("ana")
        .post("/policies/server/compare", &body)
        .expect(200);
    assert_eq!(
        only(
            &compared,
            &["looked_at", "newly_allowed", "newly_asked", "newly_blocked"]
        ),
        json!({ "looked_at": 6, "newly_allowed": 2, "newly_asked": 3, "newly_blocked": 1 })
    );
    let named = |list: &str| -> Vec<Value> {
        { compared[list].as_array().unwrap().iter() }
            .map(|one| {
                json!([
                    one["command"],
                    one["times"],
                    one["now"],
                    one["draft"],
                    one["refused"]
                ])
            })
            .collect()
    };
    // What a person has rejected stands first, though it is older.
    assert_eq!(
        named("allowed"),
        [
            json!(["touch a", 1, "ask", "auto", true]),
            json!(["touch b", 1, "ask", "auto", false])
        ]
    );
    assert_eq!(
        named("asked"),
        [
            json!(["make deploy", 1, "reject", "ask", true]),
            json!(["ls", 2, "auto", "ask", false]),
        ]
    );
    assert_eq!(
        named("blocked"),
        [json!(["pwd", 1, "auto", "reject", false])]
    );
    let explain = json!({ "command": "pwd", "draft": draft, "policy": "server" });
    let judged = crew
        .call("ana")
        .post("/policies/explain", &explain)
        .expect(200);
    assert_eq!(text(&judged, "verdict"), "reject");
}

#[test]
fn the_command_line_edits_lists_and_goes_back() {
    let (crew, file) = crew();
    let draft = crew
        .home
        .put("draft.toml", "[[rule]]\nreject = \"make *\"\n");
    let draft = draft.to_str().unwrap();
    let call = |args: &[&str]| crew.home.call(args);
    let done = call(&["policy", "edit", "--file", draft, "-m", "nothing made"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "Saved as version 2.\n"),
        "{done:?}"
    );
    assert!(done.err.contains("0 newly allowed"), "{done:?}");
    let log = call(&["policy", "log"]);
    let lines: Vec<&str> = log.out.lines().collect();
    assert!(
        lines[0].starts_with("   2  ") && lines[0].ends_with("nothing made  (now)"),
        "{log:?}"
    );
    assert!(lines[1].ends_with("Found in the file"), "{log:?}");
    assert_eq!(call(&["policy", "log", "1"]).out, RULES);
    let back = call(&["policy", "back", "1"]);
    assert_eq!(back.out, "Saved as version 3.\n", "{back:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), RULES);
    fs::write(draft, "x = 1\n").unwrap();
    let wrong = call(&["policy", "edit", "--file", draft]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(
        wrong.err.contains("1:1: ") && wrong.err.contains("Nothing was changed."),
        "{wrong:?}"
    );
}
