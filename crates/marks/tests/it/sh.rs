//! A plain shell tells how its commands ended; where output begins is guessed.

use std::fs;

use weighlock_marks::Shell;

use crate::support::{Terminal, ran};

fn sh() -> Option<Terminal> {
    Terminal::start(Shell::Sh, &[])
}

#[test]
fn every_command_has_its_output_and_exit_status() {
    let Some(mut sh) = sh() else { return };
    for (command, output, exit) in [
        ("echo hello", "hello\r\n", 0),
        ("printf 'no newline'", "no newline", 0),
        ("true", "", 0),
        ("false", "", 1),
        ("(exit 3)", "", 3),
        ("seq 3 | tac | head -n 2", "3\r\n2\r\n", 0),
        ("echo grüße 漢字 😀", "grüße 漢字 😀\r\n", 0),
        ("(exit 4)", "", 4),
        ("echo $?", "4\r\n", 0),
    ] {
        assert_eq!(sh.run(command), ran(command, output, exit));
    }
}

#[test]
fn many_lines_are_one_command() {
    let Some(mut sh) = sh() else { return };
    for line in ["cat <<END\r", "a\r"] {
        let before = sh.shown.len();
        sh.keys(line);
        sh.see_after(before, "> \x1b]133;B;more;");
    }
    assert_eq!(sh.run("END"), ran("cat <<END\na\nEND", "a\r\n", 0));
}

#[test]
fn the_directory_is_followed() {
    let Some(mut sh) = sh() else { return };
    let odd = sh.home.path().join("a;b %41\u{7}\nü");
    fs::create_dir(&odd).unwrap();
    sh.run("cd a*");
    assert_eq!(sh.directory(), odd);
}

#[test]
fn nothing_ran_when_nothing_was_entered() {
    let Some(mut sh) = sh() else { return };
    sh.enter("");
    assert_eq!(sh.ended(), []);
    sh.keys("echo never");
    sh.see("echo never");
    // Ctrl-C may take the prompt with it; the empty line brings another.
    sh.next_prompt("\x03\r");
    assert_eq!(sh.ended(), []);
}

#[test]
fn strict_options_do_no_harm() {
    let Some(mut sh) = sh() else { return };
    sh.run("set -eu");
    assert_eq!(sh.run("! true"), ran("! true", "", 1));
    sh.run("set +eu; set -x");
    assert_eq!(sh.run("echo hi"), ran("echo hi", "+ echo hi\r\nhi\r\n", 0));
}

#[test]
fn programs_do_not_learn_the_nonce() {
    let Some(mut sh) = sh() else { return };
    sh.run("export PS1");
    let nonce = sh.nonce.secret().to_owned();
    for command in [
        "env",
        "tr '\\0' '\\n' </proc/$$/environ",
        "dash -ic 'set; env'",
    ] {
        let found = sh.run(command);
        assert!(found.output.contains("HOME="), "{found:?}");
        assert!(!found.output.contains(&nonce), "{found:?}");
    }
    assert_eq!(fs::read_dir(sh.dir.path()).unwrap().count(), 0);
}
