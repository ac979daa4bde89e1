//! What a person granted.

use super::*;

#[test]
fn a_grant_answers_questions_but_lifts_no_ban() {
    let pattern = |text: &str| grant(Allows::Pattern(text.into()));
    for (given, command, expected) in [
        (pattern("rm *"), "rm x", "auto"),
        (pattern("rm *"), "rm x && rm y", "auto"),
        (pattern("rm *"), "rm x && touch y", "ask ask-touch"),
        (pattern("rm *"), "rm -rf /", "reject no-root-delete"),
        (pattern("git push"), "git push --force", "reject no-force"),
        (pattern("git push"), "git push $x", "ask no-force"),
        (pattern("touch *"), "touch x", "auto"),
        (
            pattern("{ program = 'rm', paths = ['tmp/**'] }"),
            "rm tmp/x",
            "auto",
        ),
        (
            pattern("{ program = 'rm', paths = ['tmp/**'] }"),
            "rm src/x",
            "ask default",
        ),
        (pattern("xyz"), "xyz --all", "auto"),
    ] {
        let rules = granted(
            given,
            "[[rule]]\nname = 'no-force'\nreject = 'git push --force'\n[[rule]]\nname = 'ask-touch'\nask = 'touch'",
        );
        assert_eq!(judged(&rules, command), expected, "{command}");
    }
    let exact = |words: &[&str]| {
        grant(Allows::Argv(
            words.iter().map(|&word| word.to_owned()).collect(),
        ))
    };
    for (given, command, expected) in [
        (exact(&["rm", "x"]), "rm x", "auto"),
        (exact(&["rm", "x"]), "rm x y", "ask default"),
        (exact(&["rm", "x"]), "rm -f x", "ask default"),
        (exact(&["rm", "x"]), "rm $x", "ask default"),
        (exact(&["rm", "x"]), "rm x > y", "ask default"),
        (exact(&["./xyz", "a"]), "./xyz a", "auto"),
        (exact(&["sudo", "x"]), "sudo x", "reject no-privileges"),
    ] {
        assert_eq!(judged(&granted(given, ""), command), expected, "{command}");
    }
}

#[test]
fn a_grant_is_for_some_and_ends() {
    let scope = Scope {
        agent: Some("coder".into()),
        sandbox: Some("webshop".into()),
        session: None,
    };
    let rules = granted(
        Grant {
            scope,
            until: Some(2_000),
            ..grant(Allows::Pattern("rm *".into()))
        },
        "",
    );
    for (agent, sandbox, now, expected) in [
        (Some("coder"), Some("webshop"), 1_999, "auto"),
        (Some("coder"), Some("webshop"), 2_000, "ask default"),
        (Some("coder"), Some("notes"), 1_500, "ask default"),
        (Some("writer"), Some("webshop"), 1_500, "ask default"),
        (None, None, 1_500, "ask default"),
    ] {
        let subject = Subject {
            text: "rm x",
            who: Who {
                agent,
                sandbox,
                session: Some("s"),
                ..Who::default()
            },
            now,
            ..Subject::default()
        };
        assert_eq!(said(&rules.decide(understand("rm x"), &subject)), expected);
    }
}

#[test]
fn a_grant_can_be_kept_as_json_and_a_wrong_one_is_refused() {
    let kept = grant(Allows::Pattern("git push".into()));
    let json = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<Grant>(&json).unwrap(), kept);
    let short = r#"{"id":"a","allows":{"argv":["ls"]},"by":"ana","created":1}"#;
    assert!(serde_json::from_str::<Grant>(short).is_ok());
    for wrong in [
        "",
        "*",
        "a && b",
        "{ program = 1 }",
        "{ text = 'x' }",
        "{",
        "{ paths = ['x'] }",
    ] {
        assert!(
            grant(Allows::Pattern(wrong.into()))
                .check(&understand)
                .is_err(),
            "{wrong:?}"
        );
    }
    assert!(grant(Allows::Argv(vec![])).check(&understand).is_err());
}
