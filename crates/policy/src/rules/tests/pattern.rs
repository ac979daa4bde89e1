//! Patterns: a program, words and options.

use super::*;

#[test]
fn patterns_are_prefixes() {
    check(
        "ask = 'git log'\nbecause = 'x'",
        &[
            ("git log", "ask r"),
            ("git log -n 5 main", "ask r"),
            ("git -C dir log", "ask r"),
            ("git status", "auto"),
            ("git logs", "ask default"),
            ("/usr/bin/git log", "ask r"),
        ],
    );
    check(
        "ask = 'git status|log'",
        &[
            ("git status", "ask r"),
            ("git log", "ask r"),
            ("git diff", "auto"),
        ],
    );
    check(
        "ask = 'git s*'",
        &[
            ("git status", "ask r"),
            ("git show x", "ask r"),
            ("git diff", "auto"),
        ],
    );
    check("ask = 'ls *'", &[("ls", "ask r"), ("ls x", "ask r")]);
    check(
        "ask = 'ls $'",
        &[("ls", "ask r"), ("ls x", "auto"), ("ls -s", "auto")],
    );
    check(
        "ask = 'ls -a x $'",
        &[
            ("ls x --all", "ask r"),
            ("ls -a x y", "auto"),
            ("ls -a -r x", "auto"),
        ],
    );
    check(
        "ask = ['ls a', 'cat b']",
        &[("ls a", "ask r"), ("cat b", "ask r"), ("cat a", "auto")],
    );
    check(
        "ask = \"ls 'b*'\"",
        &[("ls bc", "auto"), ("ls 'b*'", "ask r")],
    );
}

#[test]
fn options_match_by_what_they_mean() {
    check(
        "reject = 'rm -r'",
        &[
            ("rm -r x", "reject r"),
            ("rm -rf x", "reject r"),
            ("rm -f -R x", "reject r"),
            ("rm x --recursive", "reject r"),
            ("rm -f x", "ask default"),
        ],
    );
    check(
        "reject = 'rm -rf'",
        &[
            ("rm -f -r x", "reject r"),
            ("rm -r x", "ask default"),
            ("rm --force --recursive x", "reject r"),
            ("rm --recurs --forc x", "reject r"),
            ("find . -exec rm -rf {} +", "reject r"),
            ("rm -- -rf", "ask default"),
        ],
    );
    check(
        "reject = 'git push --force'",
        &[
            ("git push -f", "reject r"),
            ("git push origin main --force", "reject r"),
            ("git -C sub push --force", "reject r"),
            ("env git push -f", "reject r"),
            ("sh -c 'git push -f'", "reject r"),
            ("git push", "ask default"),
            ("git fetch --force", "ask default"),
        ],
    );
    check(
        "reject = 'git commit -m wip'",
        &[
            ("git commit -m wip", "reject r"),
            ("git commit --message=wip", "reject r"),
            ("git commit -m done", "ask default"),
        ],
    );
    check(
        "reject = 'git diff --output=/etc/*'",
        &[
            ("git diff --output=/etc/x", "reject r"),
            ("git diff --output=x", "ask default"),
        ],
    );
    // Options of a program that nobody knows.
    check(
        "reject = 'mytool -x'",
        &[
            ("mytool -ax y", "ask r"),
            ("mytool y -x", "reject r"),
            ("mytool -a", "ask default"),
        ],
    );
}

#[test]
fn what_is_only_known_at_run_time_may_be_what_is_forbidden() {
    check(
        "reject = 'git push --force'",
        &[
            ("git push $x", "ask r"),
            ("git $x", "ask r"),
            ("git pu$x", "ask r"),
            ("git log $x", "ask default"),
            ("$x push --force", "ask default"),
            ("git push --force $x", "reject r"),
        ],
    );
    check(
        "reject = { program = 'git', subcommand = 'push' }",
        &[
            ("git $x", "ask r"),
            ("git push", "reject r"),
            ("git log", "auto"),
        ],
    );
    check(
        "reject = { program = 'cat', args = ['*.pem'] }",
        &[
            ("cat $x", "ask r"),
            ("cat a.pem", "reject r"),
            ("cat a", "auto"),
        ],
    );
    check(
        "reject = { paths = ['**/.notes'] }",
        &[
            ("cat .notes", "reject r"),
            ("echo x > sub/.notes", "reject r"),
            ("cat .n*", "ask r"),
            ("cat $x", "ask r"),
            ("cat *", "auto"),
            ("cat *.txt", "auto"),
            ("grep -r x .", "ask r"),
            ("cat a/.notes/b", "auto"),
        ],
    );
}

#[test]
fn an_unknown_program_can_be_allowed_by_name() {
    check(
        "auto = ['mytool build', 'mytool-*']",
        &[
            ("mytool build", "auto"),
            ("mytool build --fast x", "auto"),
            ("mytool --fast build", "ask default"),
            ("mytool deploy", "ask default"),
            ("./mytool build", "ask default"),
            ("mytool build; rm x", "ask default"),
            ("mytool-1", "auto"),
            ("mytool-1 a", "auto"),
        ],
    );
    check(
        "auto = './mytool'",
        &[("./mytool x", "auto"), ("mytool x", "ask default")],
    );
    // A known program with an unknown subcommand is something else.
    check(
        "auto = 'git *'",
        &[
            ("git frobnicate", "ask default"),
            ("git push", "ask default"),
        ],
    );
}

#[test]
fn a_family_of_subcommands_is_not_one_of_them() {
    for rule in [
        "reject = 'cargo build'",
        "reject = { program = 'cargo', subcommand = 'build' }",
    ] {
        check(
            rule,
            &[
                ("cargo build", "reject r"),
                ("cargo run", "ask r"),
                ("cargo fmt", "ask default"),
            ],
        );
    }
    check(
        "reject = 'npm test'",
        &[("npm test", "reject r"), ("npm t", "ask r")],
    );
    for rule in [
        "auto = 'cargo build'",
        "auto = { program = 'cargo', subcommand = 'build' }",
    ] {
        check(
            rule,
            &[("cargo build", "auto"), ("cargo run", "ask default")],
        );
    }
}
