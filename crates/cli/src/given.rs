//! What was given on the command line: a command, and where it would run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weighlock_api::ShellName;

use crate::client::Failure;
use crate::text;

/// One word is shell text; several are a program and its arguments.
pub(crate) fn command(words: &[OsString]) -> Result<String, Failure> {
    let words = words.iter().map(|word| {
        word.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::new(
                "the command is not valid UTF-8; nothing was run",
                "put such bytes into a script: $'\\xff' in bash, or printf '\\377'",
            )
        })
    });
    let words: Vec<String> = words.collect::<Result<_, _>>()?;
    Ok(match words.as_slice() {
        [text] => text.clone(),
        words => text::quote(words),
    })
}

/// The directory that was named, or else the current one.
pub(crate) fn cwd(named: Option<&Path>) -> Result<String, Failure> {
    let here = std::env::current_dir();
    let cwd: PathBuf = match (named, here) {
        (Some(cwd), Ok(here)) => here.join(cwd),
        (Some(cwd), Err(_)) => cwd.to_owned(),
        (None, Ok(here)) => here,
        (None, Err(error)) => {
            return Err(Failure::new(
                format!("the current directory cannot be used: {error}; nothing was run"),
                "go to a directory that exists, or give one with --cwd",
            ));
        }
    };
    let cwd = cwd.to_str().ok_or_else(|| {
        Failure::new(
            "the directory's name is not valid UTF-8; nothing was run",
            "go to it in the command: cd $'\\xff' in bash",
        )
    })?;
    Ok(cwd.to_owned())
}

/// A shell by its name, which was checked before.
pub(crate) fn shell(name: &str) -> ShellName {
    match name {
        "bash" => ShellName::Bash,
        _ => ShellName::Sh,
    }
}

/// A variable and its value.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}
