//! Zsh tells what it ran.

use std::fs;

use weighlock_marks::Shell;

use crate::support::{Terminal, ran};

fn zsh(zshrc: &str) -> Option<Terminal> {
    Terminal::start(Shell::Zsh, &[(".zshrc", zshrc), (".zshenv", "FROM_ENV=1")])
}

#[test]
fn every_command_has_its_output_and_exit_status() {
    let Some(mut zsh) = zsh("") else { return };
    for (command, output, exit) in [
        ("echo hello", "hello\r\n", 0),
        ("printf 'no newline'", "no newline", 0),
        ("true", "", 0),
        ("false", "", 1),
        ("(exit 3)", "", 3),
        ("seq 3 | tac | head -n 2", "3\r\n2\r\n", 0),
        ("echo grüße 漢字 😀", "grüße 漢字 😀\r\n", 0),
        ("echo 'a;b%41%'", "a;b%41%\r\n", 0),
        ("echo $FROM_ENV${ZDOTDIR-none}", "1none\r\n", 0),
    ] {
        assert_eq!(zsh.run(command), ran(command, output, exit));
    }
}

#[test]
fn many_lines_are_one_command() {
    let Some(mut zsh) = zsh("") else { return };
    zsh.keys("for each in 1 2; do\recho $each\r");
    let found = zsh.run("done");
    assert_eq!(
        found,
        ran("for each in 1 2; do\necho $each\ndone", "1\r\n2\r\n", 0)
    );
}

#[test]
fn the_directory_is_followed() {
    let Some(mut zsh) = zsh("") else { return };
    let odd = zsh.home.path().join("a;b %41\u{7}\nü");
    fs::create_dir(&odd).unwrap();
    zsh.run("cd a*");
    assert_eq!(zsh.directory(), odd);
}

#[test]
fn nothing_ran_when_nothing_was_entered() {
    let Some(mut zsh) = zsh("") else { return };
    zsh.enter("");
    assert_eq!(zsh.ended(), []);
    zsh.keys("echo never");
    zsh.see("never");
    zsh.interrupt();
    assert_eq!(zsh.ended(), []);
    assert_eq!(zsh.run("echo hi"), ran("echo hi", "hi\r\n", 0));
}

#[test]
fn the_users_functions_and_prompt_stay() {
    let rc = r#"
        precmd() { print -n "[$?]" }
        preexec() { print -n "(go)" }
        setopt prompt_subst; PS1='<$?> '
    "#;
    let Some(mut zsh) = zsh(rc) else { return };
    assert_eq!(zsh.run("echo hi"), ran("echo hi", "hi\r\n", 0));
    assert_eq!(zsh.run("(exit 4)"), ran("(exit 4)", "", 4));
    assert!(zsh.text().contains("[4]"));
    assert!(zsh.text().contains("<4> "));
    assert!(zsh.text().contains("(go)\x1b]133;C;"));
    assert_eq!(zsh.run("echo $?"), ran("echo $?", "4\r\n", 0));
}

#[test]
fn strict_options_do_no_harm() {
    let Some(mut zsh) = zsh("") else { return };
    zsh.run("set -eu; setopt ksh_arrays sh_word_split");
    assert_eq!(zsh.run("! true"), ran("! true", "", 1));
    assert_eq!(zsh.run("echo hi"), ran("echo hi", "hi\r\n", 0));
    zsh.run("set +eu; set -x; PS4='+ '");
    assert_eq!(zsh.run("echo hi"), ran("echo hi", "+ echo hi\r\nhi\r\n", 0));
    zsh.run("set +x; unsetopt prompt_sp");
    assert_eq!(zsh.run("printf hi"), ran("printf hi", "hi", 0));
}

#[test]
fn programs_do_not_learn_the_nonce() {
    let Some(mut zsh) = zsh("setopt all_export; export PS1='$ '") else {
        return;
    };
    let nonce = zsh.nonce.secret().to_owned();
    for command in [
        "env",
        "tr '\\0' '\\n' </proc/$$/environ",
        "zsh -ic 'set; env'",
    ] {
        let found = zsh.run(command);
        assert!(found.output.contains("HOME="), "{found:?}");
        assert!(!found.output.contains(&nonce), "{found:?}");
    }
    assert_eq!(fs::read_dir(zsh.dir.path()).unwrap().count(), 0);
}
