//! Tables: facts about a part, or the text as a whole.

use super::*;

#[test]
fn tables_test_facts() {
    check(
        "reject = { effects = ['network'] }",
        &[
            ("curl https://a.b/c", "reject r"),
            ("git push", "reject r"),
            ("ls", "auto"),
        ],
    );
    check(
        "reject = { hosts = ['*.evil.example'] }",
        &[
            ("curl https://x.evil.example/c", "reject r"),
            ("curl https://a.b/", "ask default"),
            ("curl $x", "ask r"),
        ],
    );
    check(
        "reject = { kind = 'redirection', paths = ['**/.bashrc'] }",
        &[("ls > .bashrc", "reject r"), ("cat .bashrc", "auto")],
    );
    check(
        "reject = { paths = ['src/**'], access = ['write', 'delete'] }",
        &[
            ("rm src/a", "reject r"),
            ("cat src/a", "auto"),
            ("touch src", "reject r"),
            ("rm -r .", "ask r"),
        ],
    );
    check(
        "reject = { paths = ['~/keys/**'] }",
        &[("cat ~/keys/a", "reject r"), ("cat keys/a", "auto")],
    );
    check(
        "reject = { program = ['ls', 'ca*'] }",
        &[
            ("ls", "reject r"),
            ("cat x", "reject r"),
            ("head x", "auto"),
        ],
    );
    check(
        "reject = { program = 'git', options = ['--force'] }",
        &[("git push -f", "reject r"), ("git push", "ask default")],
    );
    check(
        "reject = { tags = 'power' }\nbecause = 'x'",
        &[("reboot", "reject no-power")],
    );
}

#[test]
fn texts_match_as_the_older_tools_did() {
    check(
        "reject = { text = 'Drop  Table' }",
        &[("echo drop table", "auto")],
    );
    check(
        "reject = { text = 'Drop Table' }",
        &[("echo DROP \t table", "reject r")],
    );
    check(
        "reject = { contains = 'a  b' }",
        &[
            ("echo a  b", "reject r"),
            ("echo a b", "auto"),
            ("echo A  b", "auto"),
        ],
    );
    check(
        "reject = { regex = 'fo+$' }",
        &[("echo foo", "reject r"), ("echo FOO", "auto")],
    );
    check(
        "reject = { regex = 'fo+$', ignore_case = true }",
        &[("echo FOO", "reject r")],
    );
    check(
        "reject = { first_word = ['echo'] }",
        &[(" echo x", "reject r"), ("ls && echo x", "auto")],
    );
    let rules = with(
        LayerKind::Server,
        "[[rule]]\nreject = { contains = ['x', 'y'] }\nsays = 'found {match}!'\ncode = 'c'",
    );
    let reason = decide(&rules, "echo y").reasons.remove(0);
    assert_eq!(
        (
            reason.code.as_str(),
            reason.text.as_str(),
            reason.rule.as_str()
        ),
        ("c", "found y!", "line 1")
    );
}

#[test]
fn relative_patterns_are_about_the_sandbox() {
    let rules = with(
        LayerKind::Server,
        "[[rule]]\nname = 'r'\nreject = { paths = ['src/**'] }",
    );
    let place = Place {
        root: "/a/b".into(),
        cwd: "/a/b/src".into(),
        home: "/h".into(),
    };
    for (text, expected) in [
        ("cat x", Verdict::Reject),
        ("cat /a/b/x", Verdict::Auto),
        ("cat /src/x", Verdict::Auto),
    ] {
        let subject = Subject {
            text,
            place: Some(&place),
            ..Subject::default()
        };
        assert_eq!(
            rules.decide(understand_in(text, &place), &subject).verdict,
            expected,
            "{text}"
        );
    }
}

#[test]
fn what_is_hidden_may_be_a_forbidden_path() {
    let mut rules = Rules::base(&[Preset::Bash], &Settings::default());
    rules.add(layer(
        LayerKind::Server,
        "[[rule]]\nname = 'r'\nreject = { paths = ['**/.env'] }",
    ));
    assert_eq!(judged(&rules, "cat $x"), "ask r");
    assert_eq!(judged(&rules, "cat x"), "auto");
}
