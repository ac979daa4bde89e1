//! The ten behaviours of `docs/behaviours.md`: each example, run as a newcomer
//! would, shows what it is about.

use std::process::Command;

use crate::generated::{read, root};
use crate::support::have;

/// Runs an example and checks that it shows these, in this order.
#[track_caller]
fn shows(example: &str, wanted: &[&str]) -> String {
    let ours = std::path::Path::new(env!("CARGO_BIN_EXE_weighlock"));
    let mut path = ours.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut command = Command::new(root().join("examples").join(example));
    command.env_clear().env("PATH", path);
    for kept in ["HOME", "RUSTUP_HOME", "TMPDIR"] {
        command.envs(std::env::var_os(kept).map(|value| (kept, value)));
    }
    let done = command.output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}{errors}");
    let mut rest = said.as_str();
    for text in wanted {
        let at = rest.find(text);
        let at = at.unwrap_or_else(|| panic!("no `{text}` where it should be in:\n{said}{errors}"));
        rest = &rest[at + text.len()..];
    }
    said
}

#[test]
fn it_always_comes_back() {
    shows(
        "01-comes-back",
        &[
            "Stopped after 1 s (limit). 3 processes were ended",
            "| wc -l\n0\n",
            "\ndone\n",
            "left running, was ended: sleep 4712",
            "\nrc=0\n",
        ],
    );
}

#[test]
fn effects_are_seen_and_undone() {
    shows(
        "02-see-and-undo",
        &[
            "tried in a copy: exit 0",
            "D notes.txt",
            "\na legacy name\nonly here, in no repository\n",
            "\n-a legacy name\n+a new name\n",
            "✓ applied",
            "\na new name\nREADME.md\n",
            "✓ undone",
            "\na legacy name\nonly here, in no repository\n",
        ],
    );
}

#[test]
fn questions_are_few() {
    let said = shows(
        "03-few-questions",
        &[
            "$ weighlock inbox\n",
            "High risk",
            "Creates .git/hooks/pre-commit",
            "Deletes src/ (1 file)",
            "2 approvals wait",
        ],
    );
    // Twenty commands, and the one that lists the questions.
    assert_eq!(
        said.lines().filter(|line| line.starts_with("$ ")).count(),
        21
    );
}

#[test]
fn walls_are_there_or_nothing_runs() {
    shows(
        "04-starts-everywhere",
        &[
            "✓ walls        full",
            "error: only the walls `landlock` can be had here",
            "nothing was run",
            "\nhello\n",
            "walls landlock",
            "✗ proc",
        ],
    );
}

#[test]
fn tools_work() {
    let said = shows(
        "05-tools-work",
        &["git ", "\nwarm\n", "No such file or directory"],
    );
    assert!(!said.contains("FAILS"), "{said}");
    if have(&["git"]) {
        assert!(said.contains("git      works: 2\n"), "{said}");
    }
}

#[test]
fn nothing_is_reached_unless_a_person_opens_it() {
    let said = shows(
        "06-offline",
        &[
            "✗ exit ",
            "    lo\n✓ exit 0",
            "grep -c -e --network\n0\n",
            "Needs approval",
            "`curl` uses the network",
            "Connects to https://example.org",
        ],
    );
    if have(&["curl"]) {
        assert!(
            said.contains("network is off: cannot reach example.org"),
            "{said}"
        );
    }
}

#[test]
fn output_is_kept_and_bounded() {
    let said = shows(
        "07-output-kept",
        &[
            "\n100000\n",
            "Output cut: 558895 characters left out.",
            "\n50000\n50001\n50002\n",
            "\n99998:99998\n99999:99999\n",
            "bytes in the middle not kept\n",
            "\npartial\n⏱ Stopped after 1 s",
            "pipeline     exit codes 3 | 0\n",
        ],
    );
    // All that is kept of a flood, with everything else that there is.
    let size = said.split("cut -f 1\n").nth(1).unwrap().lines().next();
    assert!(size.unwrap().parse::<u32>().unwrap() < 10, "{said}");
}

#[test]
fn questions_outlive_the_server() {
    shows(
        "08-decide-anywhere",
        &[
            "Needs approval",
            "1 approval waits",
            "error: the fingerprint does not match what would run; nothing was run",
            "✓ applied",
            "\ntext\nmore\n",
            "Expired — nothing was applied",
            "\ntext\nmore\n",
        ],
    );
}

#[test]
fn secrets_are_used_and_not_seen() {
    let said = shows(
        "09-secrets",
        &[
            "$ ls -A ~\n.ssh\n",
            "\nnothing else\n",
            "\nmine: .\n",
            "No such file or directory",
            "\nsign: .\n",
            "✓ approved",
            "`cat` shows keys, passwords or the like",
        ],
    );
    if have(&["curl"]) {
        // The hash of the secret: whoever was allowed had it.
        let signed = "bf496b76b91b82820ee599d4f83ba3d87b0c9365666694241916c40843d2a524";
        assert!(said.contains("\"secrets\":[\"SHOP_SIGN\"]\n"), "{said}");
        assert!(said.contains(&format!("\n{signed}  -\n")), "{said}");
        assert!(said.contains("\nsign: ************.\n"), "{said}");
        assert!(!said.contains("czNjcmV0"), "{said}");
    }
    assert!(
        !said.contains("PRIVATE KEY") && !said.contains("s3cret"),
        "{said}"
    );
}

#[test]
fn all_of_it_can_be_proved() {
    shows(
        "10-proof",
        &[
            "`sudo` raises privileges",
            "rule no-privileges (built-in)",
            "text",
            "exit 0",
            "⛔ Blocked — nothing was run",
            "run.blocked",
            "changes.applied",
            "chain ok",
            "✗ entry 5 is wrong: its content was changed",
        ],
    );
}

#[test]
fn each_example_has_its_paragraph() {
    let page = read("docs/behaviours.md");
    let files = std::fs::read_dir(root().join("examples")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| name != "place").collect();
    assert_eq!(names.len(), 10, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("(../examples/{name})")), "{name}");
    }
}
