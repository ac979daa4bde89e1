//! The exit codes of a pipeline, where bash can tell them.
//!
//! The command's text is not touched. Bash reads a file of ours first, which
//! leaves a trap for the shell's own exit; a command that sets its own exit
//! trap, or ends with `exec`, keeps its meaning and has no `pipestatus`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use crate::spec::{Shell, Spec};

/// The codes of a thousand parts.
const MAX_ANSWER: u64 = 4096;

/// Makes bash tell, where that makes sense.
pub(super) fn ask(spec: &mut Spec, command: &str) -> io::Result<()> {
    let wanted = spec.shell == Shell::Bash
        && command.contains('|')
        && !spec.env.iter().any(|(name, _)| name == "BASH_ENV");
    if !wanted {
        return Ok(());
    }
    let answer = quote(&spec.dir.join("pipestatus").to_string_lossy());
    let trap = quote(&format!(
        "printf '%s ' \"${{PIPESTATUS[@]}}\" 2>/dev/null > {answer}"
    ));
    let start = spec.dir.join("bash_env");
    fs::write(&start, format!("unset BASH_ENV\ntrap {trap} EXIT\n"))?;
    spec.env
        .push(("BASH_ENV".into(), start.to_string_lossy().into_owned()));
    Ok(())
}

/// Reads what bash told and takes the files away.
pub(super) fn answer(dir: &Path) -> Option<Vec<i32>> {
    fs::remove_file(dir.join("bash_env")).ok()?;
    let path = dir.join("pipestatus");
    let text = read_small(&path);
    let _ = fs::remove_file(path);
    let text = text?;
    let codes: Result<Vec<i32>, _> = text.split_ascii_whitespace().map(str::parse).collect();
    // One code is the exit code again.
    codes.ok().filter(|codes| codes.len() > 1)
}

/// The command knows this path, too: whatever it put there must not hold us.
fn read_small(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_ANSWER).read_to_string(&mut text).ok()?;
    Some(text)
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
