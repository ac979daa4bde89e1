//! Shells that tell where they are.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use weighlock_exec::Startup;
use weighlock_marks::{Integration, Nonce, Shell};

use super::Shells;
use crate::request::Request;
use crate::view::Run;

/// Where a shell finds what it reads first: in a directory of its run's own.
const INSIDE: &str = "/run/weighlock";

/// The secret's name in a run's directory. It is needed to understand what the
/// shell tells, after a restart of the server too.
const FILE: &str = "marks";

fn fresh_nonce() -> Nonce {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the kernel has randomness");
    Nonce::from_random(random)
}

/// Keeps a secret for as long as its run goes on.
pub(crate) fn keep_nonce(dir: &Path, nonce: &Nonce) -> io::Result<()> {
    let mut how = OpenOptions::new();
    let how = how.write(true).create_new(true).mode(0o600);
    how.open(dir.join(FILE))?
        .write_all(nonce.secret().as_bytes())
}

/// Returns how the shell is started that somebody wants to type at, and the
/// secret by which it tells where it is; nothing if it is another program, or
/// a shell that is told more.
pub(crate) fn startup(request: &Request) -> Option<(Startup, Nonce)> {
    request.terminal()?;
    let shell = plain_shell(&request.command)?;
    let nonce = fresh_nonce();
    let made = Integration::for_shell(shell, &nonce, Path::new(INSIDE));
    let text = |text: std::ffi::OsString| text.into_string().ok();
    let file = made.files.into_iter().next()?;
    let startup = Startup {
        argv: made.argv.into_iter().map(text).collect::<Option<_>>()?,
        env: { made.env.into_iter() }
            .map(|(name, value)| Some((name, text(value)?)))
            .collect::<Option<_>>()?,
        path: Path::new(INSIDE).join(file.name),
        text: String::from_utf8(file.text).ok()?,
    };
    Some((startup, nonce))
}

/// Returns the shell that a command is, if it is nothing more.
pub(crate) fn plain_shell(command: &str) -> Option<Shell> {
    let mut words = command.split_ascii_whitespace();
    let program = words.next()?;
    let name = ["/bin/", "/usr/bin/"]
        .iter()
        .find_map(|dir| program.strip_prefix(dir))
        .unwrap_or(program);
    let shell = match name {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "sh" => Shell::Sh,
        _ => return None,
    };
    words.all(|word| word == "-i").then_some(shell)
}

impl Shells {
    /// Returns the secret of a run's shell, as long as it goes on.
    pub(crate) fn kept_nonce(&self, run: &Run) -> Option<Nonce> {
        run.detail.terminal.as_ref()?;
        let text = fs::read_to_string(self.core.run_dir(&run.command_id).join(FILE)).ok()?;
        Nonce::from_secret(&text)
    }

    /// Forgets it.
    pub(crate) fn forget_nonce(&self, id: &str) {
        let _ = fs::remove_file(self.core.run_dir(id).join(FILE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shell_without_more_words_is_a_plain_one() {
        let plain = |command: &str| plain_shell(command);
        assert_eq!(plain("bash"), Some(Shell::Bash));
        assert_eq!(plain(" /bin/bash -i "), Some(Shell::Bash));
        assert_eq!(plain("/usr/bin/zsh"), Some(Shell::Zsh));
        assert_eq!(plain("sh"), Some(Shell::Sh));
        for other in ["", "bash -c ls", "sh x", "bash;ls", "/tmp/bash", "dash"] {
            assert_eq!(plain(other), None, "{other}");
        }
    }
}
