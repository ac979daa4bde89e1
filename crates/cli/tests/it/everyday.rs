//! Everyday tools work inside the walls, with the network off, and leave
//! nothing outside of them. Nothing is mocked: what is not installed is
//! skipped.

mod builds;
mod git;
mod homes;
mod python;
mod sandboxes;
mod shells;

use crate::support::{Home, PATIENCE, SYSTEM, have};

/// A person with a home directory and the system's tools.
fn desk() -> Home {
    let mut home = Home::new();
    home.set("PATH", SYSTEM);
    home.put(
        "home/.gitconfig",
        "[user]\n\tname = Ana\n\temail = ana@example.org\n[init]\n\tdefaultBranch = main\n",
    );
    home
}

/// Runs commands one after another. Each is to say exactly this, at its ends
/// not counting space, and to exit with 0.
fn check(home: &Home, cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(command, said)| mistake(home, &["--shell", "bash"], command, said))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same for commands that need a program, which is named first.
fn check_with(home: &Home, cases: &[(&str, &str, &str)]) {
    for (program, command, said) in cases {
        if have(&[program]) {
            check(home, &[(command, said)]);
        }
    }
}

/// Runs commands that must fail at once, and say this among other things.
fn check_fails(home: &Home, cases: &[(&str, &str)]) {
    for (command, said) in cases {
        let done = home.run(&["-q"], command);
        assert_ne!(done.code, Some(0), "{command}: {done:?}");
        assert!(done.err.contains(said), "{command}: {done:?}");
        assert!(done.took < PATIENCE, "{command}: {done:?}");
    }
}

fn mistake(home: &Home, options: &[&str], command: &str, said: &str) -> Option<String> {
    let done = home.run(&[&["-q"], options].concat(), command);
    let right = done.code == Some(0) && done.out.trim() == said;
    (!right).then(|| format!("{command}\n  wanted {said:?}\n  {done:?}"))
}
