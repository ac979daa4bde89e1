//! Bash tells what it ran.

use std::fs;

use weighlock_marks::Shell;

use crate::support::{Terminal, ran};

fn bash(bashrc: &str) -> Option<Terminal> {
    Terminal::start(Shell::Bash, &[(".bashrc", bashrc)])
}

#[test]
fn every_command_has_its_output_and_exit_status() {
    let Some(mut bash) = bash("") else { return };
    for (command, output, exit) in [
        ("echo hello", "hello\r\n", 0),
        ("printf 'no newline'", "no newline", 0),
        ("true", "", 0),
        ("false", "", 1),
        ("(exit 3)", "", 3),
        ("seq 3 | tac | head -n 2", "3\r\n2\r\n", 0),
        ("echo grüße 漢字 😀", "grüße 漢字 😀\r\n", 0),
        ("echo 'a;b%41%'", "a;b%41%\r\n", 0),
        ("echo one; echo two >&2; (exit 7)", "one\r\ntwo\r\n", 7),
        ("bash -c 'kill -9 $$'", "Killed\r\n", 137),
    ] {
        let found = bash.run(command);
        assert_eq!(found.command.as_deref(), Some(command));
        assert!(found.output.ends_with(output), "{found:?}");
        // Only what the shell says of a killed process differs by version.
        assert!(exit == 137 || found.output == output, "{found:?}");
        assert_eq!(found.exit, Some(exit), "{found:?}");
    }
}

#[test]
fn many_lines_are_one_command() {
    let Some(mut bash) = bash("") else { return };
    bash.keys("for each in 1 2; do\recho $each\r");
    assert_eq!(
        bash.run("done"),
        ran("for each in 1 2; do echo $each; done", "1\r\n2\r\n", 0)
    );
    bash.keys("cat <<END\ra $HOME\r");
    let output = format!("a {}\r\n", bash.home.path().display());
    assert_eq!(bash.run("END"), ran("cat <<END\na $HOME\nEND", &output, 0));
}

#[test]
fn the_directory_is_followed() {
    let Some(mut bash) = bash("") else { return };
    let odd = bash.home.path().join("a;b %41\u{7}\nü");
    fs::create_dir(&odd).unwrap();
    assert_eq!(bash.directory(), bash.home.path());
    bash.run("cd a*");
    assert_eq!(bash.directory(), odd);
    bash.run("cd /");
    assert_eq!(bash.directory().to_str(), Some("/"));
}

#[test]
fn nothing_ran_when_nothing_was_entered() {
    let Some(mut bash) = bash("") else { return };
    bash.enter("");
    assert_eq!(bash.ended(), []);
    bash.keys("echo never");
    bash.see("echo never");
    bash.interrupt();
    assert_eq!(bash.ended(), []);
    assert_eq!(bash.run("echo $?"), ran("echo $?", "130\r\n", 0));
}

#[test]
fn an_interrupted_command_ends() {
    let Some(mut bash) = bash("") else { return };
    // A signal between two commands of a list would be lost, in any bash.
    bash.keys("sh -c 'echo begun; exec sleep 1000'\r");
    bash.see("begun\r\n");
    bash.interrupt();
    assert_eq!(bash.ended()[0].exit, Some(130));
    assert_eq!(bash.ended()[0].cut(&bash.shown, 0), b"begun\r\n\r\n");
}

#[test]
fn the_users_prompt_commands_stay() {
    let rc = r#"
        PROMPT_COMMAND='printf "[%s|%s]" "$?" "${PIPESTATUS[*]}"; PS1="<\$?> "'
        PS0='(go)'
    "#;
    let Some(mut bash) = bash(rc) else { return };
    assert_eq!(bash.run("echo hi"), ran("echo hi", "hi\r\n", 0));
    assert_eq!(bash.run("true | (exit 4)"), ran("true | (exit 4)", "", 4));
    assert!(bash.text().contains("[4|0 4]"));
    assert!(bash.text().contains("<4> "));
    assert!(bash.text().contains("(go)\x1b]133;C;"));
    assert_eq!(bash.run("echo $?"), ran("echo $?", "4\r\n", 0));
}

#[test]
fn prompt_commands_may_be_replaced() {
    let Some(mut bash) = bash("") else { return };
    bash.run("PROMPT_COMMAND='printf mine'");
    assert_eq!(bash.run("(exit 5)"), ran("(exit 5)", "", 5));
    bash.run("PROMPT_COMMAND=\"$PROMPT_COMMAND; printf more\"");
    assert_eq!(bash.run("(exit 6)"), ran("(exit 6)", "", 6));
    assert!(bash.text().contains("more"));
    bash.run("PS1='new> ' PS0=");
    assert_eq!(bash.run("echo hi"), ran("echo hi", "hi\r\n", 0));
    assert!(!bash.text().contains("syntax error"), "{}", bash.text());
}

#[test]
fn strict_options_do_no_harm() {
    let Some(mut bash) = bash("") else { return };
    bash.run("set -eu");
    assert_eq!(bash.run("! true"), ran("! true", "", 1));
    assert_eq!(bash.run("echo hi"), ran("echo hi", "hi\r\n", 0));
    bash.run("set +eu; set -x");
    assert_eq!(
        bash.run("echo hi"),
        ran("echo hi", "+ echo hi\r\nhi\r\n", 0)
    );
    bash.run("set +x +B; shopt -s nocasematch; IFS=0123456789");
    assert_eq!(bash.run("(exit 12)"), ran("(exit 12)", "", 12));
    bash.run("set -o posix; shopt -s extglob");
    assert_eq!(bash.run("echo hi"), ran("echo hi", "hi\r\n", 0));
}

#[test]
fn forged_marks_are_part_of_the_output() {
    let Some(mut bash) = bash("") else { return };
    let forged = r"\e]133;D;0;wl=00000000000000000000000000000000\a\e]133;D;0\a";
    let found = bash.run(&format!("printf '{forged}'; false"));
    assert_eq!(
        found.output,
        forged.replace(r"\e", "\x1b").replace(r"\a", "\x07")
    );
    assert_eq!(found.exit, Some(1));
}

#[test]
fn programs_do_not_learn_the_nonce() {
    let rc = "set -a; export PS1='$ ' PS0='' PROMPT_COMMAND=:";
    let Some(mut bash) = bash(rc) else { return };
    let nonce = bash.nonce.secret().to_owned();
    for command in [
        "env",
        "tr '\\0' '\\n' </proc/$$/environ",
        "bash -ic 'set; env'",
    ] {
        let found = bash.run(command);
        assert!(found.output.contains("HOME="), "{found:?}");
        assert!(!found.output.contains(&nonce), "{found:?}");
        assert!(!found.output.contains("not found"), "{found:?}");
    }
    assert_eq!(fs::read_dir(bash.dir.path()).unwrap().count(), 0);
}

#[test]
fn the_history_is_the_users() {
    let Some(mut bash) = bash("HISTCONTROL=ignorespace") else {
        return;
    };
    bash.run("echo one");
    let hidden = bash.run(" echo secret");
    assert_eq!(
        (hidden.command, hidden.output.as_str()),
        (None, "secret\r\n")
    );
    let found = bash.run("history");
    assert_eq!(found.output, "    1  echo one\r\n    2  history\r\n");
    // Who switches it on has it until the next prompt.
    for line in ["echo !1", "set -H", "echo !1"] {
        let found = bash.run(line);
        assert!(!found.output.contains("echo one"), "{line}: {found:?}");
    }
}

#[test]
fn a_long_command_is_told_in_part() {
    let Some(mut bash) = bash("") else { return };
    let words = "ü;".repeat(3000);
    bash.enter(&format!("echo '{words}' | wc -c"));
    let span = &bash.ended()[0];
    let command = span.command.as_ref().unwrap();
    assert!(!command.whole && command.text.starts_with("echo 'ü;ü"));
    assert_eq!(span.cut(&bash.shown, 0), b"9001\r\n");
}

#[test]
fn notices_of_jobs_are_no_output() {
    let Some(mut bash) = bash("") else { return };
    let started = bash.run("sleep 1000 & kill $!; wait");
    assert!(started.output.starts_with("[1] "), "{started:?}");
    bash.enter("");
    assert_eq!(bash.run("echo hi"), ran("echo hi", "hi\r\n", 0));
}

#[test]
fn the_last_command_has_no_status_but_the_shells() {
    let Some(bash) = bash("") else { return };
    let (last, status) = bash.leave("echo bye; exit 9");
    let last = last.unwrap();
    assert_eq!(last.command.as_deref(), Some("echo bye; exit 9"));
    assert_eq!(last.output, "bye\r\nexit\r\n");
    assert_eq!((last.exit, status), (None, Some(9)));
}

#[test]
fn a_shell_within_the_shell_is_output() {
    let Some(mut bash) = bash("") else { return };
    bash.keys("PS1='inner> ' exec bash --norc\r");
    bash.see("hinner> ");
    bash.keys("echo $((6 * 7))\r");
    bash.see("42\r\n");
    let (last, status) = bash.leave("exit 2");
    assert!(last.unwrap().output.contains("42\r\n"));
    assert_eq!(status, Some(2));
}
