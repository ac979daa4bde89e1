//! The rules with the real understanding of commands.

use std::sync::Arc;

use weighlock_policy::{
    Facts, Layer, LayerKind, Preset, Reader, Rules, Settings, Subject, example_place, understand,
};

fn facts(text: &str) -> Facts {
    understand(text, Reader::Either, &[], &example_place())
}

/// Checks one rule of the server's, beside the strict preset.
#[track_caller]
fn check(rule: &str, cases: &[(&str, &str)]) {
    let mut rules = Rules::base(&[Preset::Strict], &Settings::default());
    let text = format!("[[rule]]\nname = 'r'\n{rule}");
    let layer = Layer::load(LayerKind::Server, "rules.toml", &text, &facts);
    rules.add(Arc::new(layer.expect("valid")));
    let place = example_place();
    for (text, expected) in cases {
        let subject = Subject {
            text,
            place: Some(&place),
            ..Subject::default()
        };
        let judgement = rules.decide(facts(text), &subject);
        let verdict = format!("{:?}", judgement.verdict).to_lowercase();
        let said = match judgement.reasons.first() {
            Some(reason) => format!("{verdict} {}", reason.rule),
            None => verdict,
        };
        assert_eq!(said, *expected, "{rule} on {text}");
    }
}

#[test]
fn the_examples_in_presets_hold() {
    for preset in Preset::ALL {
        assert_eq!(preset.check(&facts), Ok(()), "{preset:?}");
    }
}

#[test]
fn the_examples_in_the_guide_hold() {
    let guide = include_str!("../../../docs/rules.md");
    let examples = guide
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    for example in examples {
        let kind = match example.contains("otherwise") {
            true => LayerKind::Agent,
            false => LayerKind::Server,
        };
        let loaded = Layer::load(kind, "rules.md", example, &facts);
        assert!(loaded.is_ok(), "{example}\n{:#?}", loaded.err());
    }
}

#[test]
fn what_is_forbidden_is_found_wherever_it_hides() {
    check(
        "reject = 'git push --force'",
        &[
            ("git push -f", "reject r"),
            ("git -C sub push origin main --force", "reject r"),
            ("env git push -f", "reject r"),
            ("sh -c 'git push -f'", "reject r"),
            ("git push $x", "ask r"),
            ("git pu$x", "ask r"),
            ("git push", "ask default"),
        ],
    );
    check(
        "reject = 'rm -r'",
        &[
            ("rm -rf x", "reject r"),
            ("rm --recurs x", "reject r"),
            ("find . -exec rm -r {} +", "reject r"),
            ("rm -- -r", "ask default"),
        ],
    );
    check(
        "reject = { paths = ['**/.env'] }",
        &[
            ("cat .env", "reject r"),
            ("echo x > sub/.env", "reject r"),
            ("cat .e*", "ask r"),
            ("cat $x", "ask r"),
            ("cat *.txt", "auto"),
        ],
    );
    check(
        "reject = { hosts = ['*.example.com'] }",
        &[
            ("curl https://www.example.com/x", "reject r"),
            ("curl $x", "ask r"),
        ],
    );
    check(
        "reject = 'npm test'",
        &[("npm test", "reject r"), ("npm t", "ask r")],
    );
}

#[test]
fn what_is_allowed_is_that_and_no_more() {
    check(
        "auto = 'git diff'",
        &[
            ("git diff a b", "auto"),
            ("git diff --output=x", "ask default"),
            ("git diff > x", "ask default"),
        ],
    );
    check(
        "auto = 'cargo build'",
        &[("cargo build", "auto"), ("cargo run", "ask default")],
    );
    check(
        "auto = { program = 'rm', paths = ['tmp', 'tmp/**'] }",
        &[
            ("rm -rf ./tmp", "auto"),
            ("rm tmp/a tmp/b", "auto"),
            ("rm tmp/../src/a", "ask default"),
            ("rm tmp/$x", "ask default"),
            ("rm -r tmp src", "ask default"),
        ],
    );
    check(
        "auto = 'mytool build'",
        &[
            ("mytool build --fast", "auto"),
            ("./mytool build", "ask default"),
            ("mytool -x build", "ask default"),
            ("mytool build; rm x", "ask default"),
        ],
    );
}
