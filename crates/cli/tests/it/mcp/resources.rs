//! What can be read without a tool.

use serde_json::{Value, json};

use super::{Client, each_way};
use crate::support::Home;

/// Reads one: its text and its kind.
fn read(agent: &Client, uri: &str) -> (String, String) {
    let read = agent.request("resources/read", json!({ "uri": uri }));
    let [one] = &read["contents"].as_array().unwrap()[..] else {
        panic!("one: {read}");
    };
    assert_eq!(one["uri"], uri);
    let text = |field: &str| one[field].as_str().unwrap().to_owned();
    (text("text"), text("mimeType"))
}

#[test]
fn output_screens_and_recordings_are_resources() {
    each_way(Home::new, "", |_, agent| {
        let none = agent.request("resources/list", json!({}));
        assert_eq!(none["resources"], json!([]));
        let said = agent.call("run", json!({ "command": "echo hi; echo oh >&2" }));
        let id = said.data["id"].as_str().unwrap();
        let typed = json!({ "command": "echo typed", "terminal": "my term" });
        agent.call("run", typed);

        let found = agent.request("resources/list", json!({}));
        let found = found["resources"].as_array().unwrap();
        let uri = |one: &Value| one["uri"].as_str().unwrap().to_owned();
        assert_eq!(uri(&found[0]), "weighlock://terminals/my%20term/screen");
        assert_eq!(found[0]["name"], "my term");
        let output = format!("weighlock://runs/{id}/output");
        let last = found.last().unwrap();
        assert_eq!(uri(last), output);
        assert_eq!(last["title"], "The output of echo hi; echo oh >&2");
        // Whatever is listed can be read.
        for one in found {
            let (text, kind) = read(agent, &uri(one));
            assert_eq!(one["mimeType"], kind.as_str());
            assert!(!text.is_empty(), "{one}");
        }
        assert_eq!(
            read(agent, &output),
            ("hi\noh\n".into(), "text/plain".into())
        );
        let (screen, _) = read(agent, &uri(&found[0]));
        assert!(screen.lines().any(|line| line == "typed"), "{screen}");
        let recording = { found.iter().map(uri) }.find(|uri| uri.ends_with("/recording"));
        let (cast, kind) = read(agent, &recording.expect("the terminal's"));
        assert_eq!(kind, "application/x-asciicast");
        let head: Value = serde_json::from_str(cast.lines().next().unwrap()).unwrap();
        assert!(head["version"].is_u64(), "{head}");
        assert!(cast.contains("typed"));
    });
}

#[test]
fn addresses_are_known_and_completed() {
    each_way(Home::new, "", |_, agent| {
        let templates = agent.request("resources/templates/list", json!({}));
        let templates = templates["resourceTemplates"].as_array().unwrap();
        let uris: Vec<&str> = { templates.iter() }
            .map(|one| one["uriTemplate"].as_str().unwrap())
            .collect();
        let [output, recording, screen] = uris[..] else {
            panic!("three: {uris:?}");
        };
        assert_eq!(output, "weighlock://runs/{id}/output");
        assert_eq!(recording, "weighlock://runs/{id}/recording");
        assert_eq!(screen, "weighlock://terminals/{name}/screen");

        let complete = |uri: &str, argument: &str, begun: &str| {
            let params = json!({ "ref": { "type": "ref/resource", "uri": uri },
                                 "argument": { "name": argument, "value": begun } });
            agent.request("completion/complete", params)["completion"]["values"].clone()
        };
        assert_eq!(complete(output, "id", ""), json!([]));
        let id = agent.call("run", json!({ "command": "true" })).data["id"].clone();
        agent.call("run", json!({ "command": "true", "terminal": "dev" }));
        let text = id.as_str().unwrap();
        assert_eq!(complete(output, "id", &text[..5]), json!([id]));
        assert_eq!(complete(output, "id", "r_zzzzzz"), json!([]));
        assert_eq!(complete(screen, "name", "d"), json!(["dev"]));
        assert_eq!(complete(screen, "nothing", "d"), json!([]));
    });
}

#[test]
fn what_is_not_there_is_an_error_of_the_protocol() {
    each_way(Home::new, "", |_, agent| {
        for uri in [
            "weighlock://runs/r_none/output",
            "weighlock://runs/r_none/recording",
            "weighlock://terminals/none/screen",
            "weighlock://runs/../../me/output",
            "weighlock://runs",
            "weighlock://",
            "file:///etc/passwd",
            "",
        ] {
            let answer = agent.answer(agent.ask("resources/read", json!({ "uri": uri })));
            let error = &answer["error"];
            assert_eq!(error["code"], -32002, "{uri}: {answer}");
            assert!(error["data"]["code"].is_string(), "{answer}");
            assert!(error["data"]["hint"].is_string(), "{answer}");
        }
        let huge = format!("weighlock://runs/{}/output", "x".repeat(100_000));
        let answer = agent.answer(agent.ask("resources/read", json!({ "uri": huge })));
        assert!(answer["error"]["code"].is_i64(), "{answer}");
    });
}

#[test]
fn no_more_is_read_than_a_client_can_take() {
    each_way(Home::new, "", |_, agent| {
        let said = agent.call(
            "run",
            json!({ "command": "head -c 3000000 /dev/zero | tr '\\0' x" }),
        );
        let id = said.data["id"].as_str().unwrap();
        let (text, _) = read(agent, &format!("weighlock://runs/{id}/output"));
        assert_eq!(text.len(), 1024 * 1024);
    });
}
