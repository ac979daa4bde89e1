//! What is offered for everyday commands.

use super::*;
use crate::rules::tests::understand;
use crate::{Place, Preset, Rules, Settings, example_place};

fn judged(text: &str, place: &Place) -> Judgement {
    let rules = Rules::base(&[Preset::Strict], &Settings::default());
    rules.decide(understand(text), &subject(text, place))
}

fn subject<'a>(text: &'a str, place: &'a Place) -> Subject<'a> {
    Subject {
        text,
        place: Some(place),
        ..Subject::default()
    }
}

/// Compares what is offered for each part that is asked about, as
/// `pattern — label`.
#[track_caller]
fn check(text: &str, expected: &[&[&str]]) {
    let place = example_place();
    let judgement = judged(text, &place);
    let offered: Vec<Vec<String>> = { judgement.asked().into_iter() }
        .map(|part| {
            let offered = propose(part, &subject(text, &place), &understand);
            let said = |one: Proposal| format!("{} — {}", one.pattern, one.label);
            offered.into_iter().map(said).collect()
        })
        .collect();
    assert_eq!(offered, expected, "{text}");
}

#[test]
fn the_narrowest_comes_first() {
    check(
        "sed -i 's/legacy.toml/app.toml/' README.md && mv config/legacy.toml config/app.toml",
        &[
            &[
                "sed -i s/legacy.toml/app.toml/ README.md $ — Exactly this command",
                "sed -i * README.md $ — sed -i on README.md, whatever else it is told",
                "sed -i * — sed -i with any arguments",
            ],
            &[
                "mv config/legacy.toml config/app.toml $ — Exactly this command",
                "mv config/* config/* $ — mv inside config/",
            ],
        ],
    );
}

#[test]
fn deleting_everything_is_not_offered() {
    check(
        "rm -rf build/cache",
        &[&[
            "rm -rf build/cache $ — Exactly this command",
            "rm -rf build/* $ — rm -rf inside build/",
        ]],
    );
    check(
        "rm -rf build",
        &[&["rm -rf build $ — Exactly this command"]],
    );
    check(
        "bash deploy.sh",
        &[&["bash deploy.sh $ — Exactly this command"]],
    );
}

#[test]
fn a_subcommand_says_what_it_is_about() {
    check(
        "git commit -m 'a b'",
        &[&[
            "git commit -m 'a b' $ — Exactly this command",
            "git commit * — git commit with any arguments",
        ]],
    );
    check(
        "npm test",
        &[&[
            "npm test $ — Exactly this command",
            "npm test * — npm test with any arguments",
        ]],
    );
}

#[test]
fn an_unknown_program_is_compared_word_by_word() {
    check(
        "./tool build --fast",
        &[&[
            "./tool build --fast $ — Exactly this command",
            "./tool build * — tool build with any arguments",
        ]],
    );
}

#[test]
fn a_machine_can_be_allowed() {
    check(
        "curl https://example.com/a",
        &[&[
            "curl https://example.com/a $ — Exactly this command",
            "{ program = \"curl\", hosts = [\"example.com\"] } — curl to example.com",
        ]],
    );
}

#[test]
fn a_redirection_is_a_part_of_its_own() {
    check(
        "ls > logs/a.txt",
        &[&[
            "{ kind = \"redirection\", effects_only = [\"write\"], paths = [\"logs/a.txt\"] } — \
             Redirections to logs/a.txt",
            "{ kind = \"redirection\", effects_only = [\"write\"], paths = [\"logs/**\"] } — \
             Redirections to files in logs/",
        ]],
    );
}

#[test]
fn what_is_only_known_at_run_time_is_not_offered() {
    let place = example_place();
    let why = |text: &str| judged(text, &place).unforeseen(text);
    for text in [
        "cat > x <<E\n1\nE",
        "tee x <<< y",
        "eval \"$x\"",
        "$x a",
        "rm \"$x\"",
    ] {
        assert!(why(text).is_some(), "{text}");
    }
    for text in ["touch x", "ls && rm x", "./tool y"] {
        assert_eq!(why(text), None, "{text}");
    }
}

#[test]
fn every_offer_answers_its_question() {
    // All of them were tried with the part; here the whole command is judged.
    let place = example_place();
    for text in [
        "touch a/b && rm c/d",
        "cp -r src/a 'src/b c'",
        "git push origin main",
        "cargo build --release",
        "chmod +x bin/run",
        "tar xzf a.tgz -C out/x",
        "echo it\\'s > notes",
    ] {
        let mut rules = Rules::base(&[Preset::Strict], &Settings::default());
        let judgement = judged(text, &place);
        for (n, part) in judgement.asked().into_iter().enumerate() {
            let offered = propose(part, &subject(text, &place), &understand);
            let narrowest = offered.first().unwrap_or_else(|| panic!("{text}: {n}"));
            let grant = Grant {
                id: n.to_string(),
                allows: Allows::Pattern(narrowest.pattern.clone()),
                scope: Scope::default(),
                until: None,
                by: "ana".into(),
                created: 0,
            };
            rules.grant(std::sync::Arc::new(grant.check(&understand).unwrap()));
        }
        let again = rules.decide(understand(text), &subject(text, &place));
        assert_eq!(again.verdict, Verdict::Auto, "{text}");
    }
}

#[test]
fn nothing_is_offered_for_more_words_than_anybody_reads() {
    let files = |count: usize| -> String { (0..count).map(|n| format!(" d{n}/f")).collect() };
    let place = example_place();
    let offered = |text: &str| {
        let judgement = judged(text, &place);
        let asked = judgement.asked();
        propose(asked[0], &subject(text, &place), &understand).len()
    };
    assert!(offered(&format!("rm{}", files(20))) > 0);
    for many in [300, 10_000] {
        assert_eq!(offered(&format!("rm{}", files(many))), 0, "{many}");
    }
}

#[test]
fn each_part_is_asked_about_once() {
    let place = example_place();
    let text = "rm a; rm b; rm a; echo x >c; echo x >d; echo y >c";
    assert_eq!(judged(text, &place).asked().len(), 4);
}
