//! Start-up code that makes a shell tell where it is.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use crate::nonce::Nonce;

/// A shell that can be made to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// Bash 4.4 or later.
    Bash,
    /// Zsh 5.3 or later.
    Zsh,
    /// A plain POSIX shell, such as dash. It cannot tell where output begins.
    Sh,
}

/// What has to be done to start an interactive shell that makes marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration {
    /// Files to write below the directory, for the owner alone. The shell
    /// removes them; the caller should too, at the first mark.
    pub files: Vec<IntegrationFile>,
    /// What to start, the program first.
    pub argv: Vec<OsString>,
    /// What to add to the environment. None of it is secret.
    pub env: Vec<(String, OsString)>,
}

/// A file to write.
#[derive(Clone, PartialEq, Eq)]
pub struct IntegrationFile {
    /// Its name in the directory.
    pub name: &'static str,
    /// What is in it, the nonce too. Bytes, as the path in it may be no text.
    pub text: Vec<u8>,
}

impl Integration {
    /// Returns how to start `shell`, with files in `dir`, a directory for this
    /// terminal alone, named as the shell will see it.
    ///
    /// A user who has a `ZDOTDIR` keeps it when `WEIGHLOCK_ZDOTDIR` names it.
    pub fn for_shell(shell: Shell, nonce: &Nonce, dir: &Path) -> Self {
        let (name, text) = match shell {
            Shell::Bash => ("bashrc", include_str!("../shells/bash.sh")),
            Shell::Zsh => (".zshenv", include_str!("../shells/zsh.sh")),
            Shell::Sh => ("shrc", include_str!("../shells/sh.sh")),
        };
        let path = dir.join(name);
        let (argv, env) = match shell {
            Shell::Bash => (
                vec![
                    "bash".into(),
                    "--rcfile".into(),
                    path.clone().into(),
                    "-i".into(),
                ],
                vec![],
            ),
            Shell::Zsh => (
                vec!["zsh".into(), "-i".into()],
                vec![("ZDOTDIR".into(), dir.into())],
            ),
            Shell::Sh => (
                vec!["sh".into(), "-i".into()],
                vec![("ENV".into(), path.clone().into())],
            ),
        };
        Self {
            files: vec![IntegrationFile {
                name,
                text: fill(text, nonce, &path),
            }],
            argv,
            env,
        }
    }
}

/// Without the text, in which the nonce is.
impl fmt::Debug for IntegrationFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("File");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

fn fill(text: &str, nonce: &Nonce, path: &Path) -> Vec<u8> {
    let text = text.replace("@NONCE@", nonce.secret());
    let (before, after) = text.split_once("@FILE@").expect("every text names itself");
    [before.as_bytes(), &quote(path), after.as_bytes()].concat()
}

fn quote(path: &Path) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Sh];

    #[test]
    fn the_nonce_is_in_the_file_and_nowhere_else() {
        let nonce = Nonce::from_random([0x5a; 16]);
        for shell in SHELLS {
            let made = Integration::for_shell(shell, &nonce, Path::new("/run/x"));
            let text = str::from_utf8(&made.files[0].text).unwrap();
            assert!(text.contains(nonce.secret()));
            assert!(!text.contains("@NONCE@") && !text.contains("@FILE@"));
            assert!(!format!("{made:?}").contains(nonce.secret()));
        }
    }

    #[test]
    fn a_quote_in_the_path_stays_a_quote() {
        assert_eq!(quote(Path::new("/a'b")), br"'/a'\''b'");
    }
}
