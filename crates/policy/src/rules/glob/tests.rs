use super::*;

const BASES: Bases<'static> = Bases {
    root: Some("/srv/app"),
    home: Some("/home/ana"),
    text: "",
};

fn path(path: &str, deep: bool) -> Path {
    Path {
        path: path.to_owned(),
        written: path.to_owned(),
        access: crate::Access::Read,
        deep,
        place: crate::PlaceKind::Ordinary,
    }
}

#[track_caller]
fn check(pattern: &str, path: &str, expected: Match) {
    let (path, deep) = match path.strip_suffix("/...") {
        Some(path) => (path, true),
        None => (path, false),
    };
    let glob = Glob::new(pattern).expect("valid");
    assert_eq!(
        glob.meets(&self::path(path, deep), false, BASES),
        expected,
        "{pattern} and {path}"
    );
}

#[test]
fn words() {
    for (pattern, text, expected) in [
        ("git", "git", true),
        ("git", "gitk", false),
        ("mkfs.*", "mkfs.ext4", true),
        ("mkfs.*", "mkfs", false),
        ("*", "", true),
        ("a*b*c", "aXbYc", true),
        ("a*b*c", "aXc", false),
        ("ab*ba", "aba", false),
        ("*x*", "axb", true),
    ] {
        assert_eq!(
            WordPattern::new(pattern).matches(text),
            expected,
            "{pattern} {text}"
        );
    }
}

#[test]
fn paths() {
    use Match::{No, Yes};
    check("**/.env", "/srv/app/.env", Yes);
    check("**/.env", "/.env", Yes);
    check("**/.env", "/srv/app/.env.local", No);
    check("src/**", "/srv/app/src", Yes);
    check("src/**", "/srv/app/src/a/b.rs", Yes);
    check("src/**", "/srv/app/tests/src/a", No);
    check("src/**", "/srv/apple/src/a", No);
    check("src/*.rs", "/srv/app/src/a.rs", Yes);
    check("src/*.rs", "/srv/app/src/a/b.rs", No);
    check("/etc/**", "/etc/passwd", Yes);
    check("/etc/**", "/srv/app/etc/passwd", No);
    check("~/.ssh/**", "/home/ana/.ssh/id", Yes);
    check("~", "/home/ana", Yes);
    check("a/**/b/**/c", "/srv/app/a/x/b/y/b/c", Yes);
    check("*.{js,ts}", "/srv/app/a.ts", Yes);
    check("*.{js,ts}", "/srv/app/a.rs", No);
    check("[a-c]?[!x]", "/srv/app/b1y", Yes);
    check("[a-c]?[!x]", "/srv/app/b1x", No);
    check("**", "/anything/at/all", Yes);
    check(".", "/srv/app", Yes);
}

#[test]
fn what_is_a_pattern_or_deep_perhaps_meets() {
    use Match::{No, Perhaps, Yes};
    check("**/.env", "/srv/app/.e*", Perhaps);
    check("**/.env", "/srv/app/*", No);
    check("**/.env", "/srv/app/.*", Perhaps);
    check("**/id_rsa", "/srv/app/*_rsa", Perhaps);
    check("**/id_rsa", "/srv/app/*.txt", No);
    check("**/.env", "/srv/app/build/...", Perhaps);
    check("src/**", "/srv/app/...", Perhaps);
    check("src/**", "/srv/app/docs/...", No);
    check("src/**", "/srv/app/src/...", Yes);
    check("/etc/**", "/...", Perhaps);
}

#[test]
fn a_variable_can_stand_for_any_path() {
    let glob = Glob::new("tmp/**").expect("valid");
    let meets = |text: &str, varies| glob.meets(&path(text, false), varies, BASES);
    assert_eq!(meets("/srv/app/tmp/*", false), Match::Yes);
    assert_eq!(meets("/srv/app/tmp/*", true), Match::Perhaps);
    assert_eq!(meets("/srv/app/src/*", true), Match::Perhaps);
    assert_eq!(meets("/srv/app/tmp/x", true), Match::Yes);
    assert_eq!(meets("/srv/app/tmp/.*", false), Match::Perhaps);
}

#[test]
fn wrong_patterns_are_refused() {
    for pattern in [
        "",
        " ",
        "a[b",
        "{a",
        "a}",
        "../x",
        "a/../b",
        "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
    ] {
        assert!(Glob::new(pattern).is_err(), "{pattern:?}");
    }
}

#[test]
fn hard_patterns_take_no_time() {
    let glob = Glob::new(&"a*".repeat(50)).expect("valid");
    assert!(!glob.matches(&SplitPath::new(&("a".repeat(5_000) + "b/c"))));
    let glob = Glob::new(&"**/a/".repeat(50)).expect("valid");
    assert!(!glob.matches(&SplitPath::new(&("a/".repeat(5_000) + "b"))));
}
