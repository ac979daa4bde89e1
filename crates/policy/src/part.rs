//! What a command consists of: the facts that rules are about.

use serde::{Deserialize, Serialize};
use weighlock_shell::Span;

use crate::effect::Effects;
use crate::knowledge::Obeys;

/// Everything that is known about one text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What it does, in the order of the text. Commands inside substitutions
    /// come before the command that uses them.
    pub parts: Vec<Part>,
    /// Another `sh` than bash reads it differently.
    pub needs_bash: bool,
}

/// One thing that a command does: a program it runs, a file it redirects to,
/// a variable it sets, or something that is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Where it is in the text. What comes out of a nested text (`sh -c '…'`)
    /// has the span of the word it came from.
    pub span: Span,
    /// Its own text, where what is at its span is more than that: a command
    /// in a nested text, or one that another was given the words of.
    pub text: Option<String>,
    /// How it follows the part before it.
    pub link: Link,
    /// How many constructs it is inside of.
    pub depth: usize,
    /// Only one of several readings: found by trying what a variable or a
    /// pattern could stand for. It can make a verdict stricter, never milder.
    pub possible: bool,
    /// The program by its own name, without the path it was given by; empty
    /// when it is only known at run time, or for other kinds.
    pub program: String,
    /// Its subcommands, outermost first.
    pub subcommand: Vec<String>,
    /// Program and arguments as they will be; an argument that is only known
    /// at run time is `None`.
    pub argv: Vec<Option<String>>,
    /// The options given, by their listed name.
    pub options: Vec<Given>,
    /// What happens. Empty for an unknown program, see `unknown`.
    pub effects: Effects,
    /// Groups it belongs to: `install`, `power`, `disk`, `pipe-to-shell`,
    /// `fork-bomb`…
    pub tags: Vec<&'static str>,
    /// The paths it touches.
    pub paths: Vec<Path>,
    /// Hosts and addresses it names.
    pub hosts: Vec<String>,
    /// One plain sentence.
    pub does: String,
    /// Settings of a project that its program obeys. They can name other
    /// programs, so somebody who can read files has to look at them before
    /// this part is taken to have only the effects above.
    pub obeys: Vec<Obeyed>,
    /// Why more could happen than the effects say; such a part is never
    /// `auto` by itself.
    pub unknown: Option<String>,
}

/// Settings that a program obeys, and where it looks for them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Obeyed {
    /// The kind of settings.
    pub settings: Obeys,
    /// The directory that the program works in, absolute and clean. Programs
    /// look there and in all directories above it.
    pub dir: String,
    /// The command takes variables away (`env -i`), perhaps those that keep
    /// the program from running what some settings name.
    pub stripped: bool,
}

/// The kinds of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Hash)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A program, builtin or function is run.
    Command,
    /// A file is opened by the shell itself.
    Redirection,
    /// A variable is set.
    Assignment,
    /// Text that is not understood.
    Unknown,
}

/// How a part follows the one before.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// `;` or a new line, or it is the first.
    #[default]
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`
    Pipe,
    /// It is inside the next part that is less deep: a substitution.
    Inside,
    /// It belongs to the command before it: a redirection.
    With,
}

/// An option that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The listed name that it was given by.
    pub name: &'static str,
    /// All its listed names.
    pub names: &'static [&'static str],
    /// Its value, if it has one and that is known.
    pub value: Option<String>,
    /// What it means, in few words; may be empty.
    pub gloss: &'static str,
}

/// A path and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// As absolute and clean as it can be made: `~` and the working directory
    /// are resolved, `..` is taken away. A pattern stays a pattern.
    pub path: String,
    /// As it was written.
    pub written: String,
    /// What happens to it.
    pub access: Access,
    /// Everything below it is meant too.
    pub deep: bool,
    /// What kind of place it is.
    pub place: PlaceKind,
}

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Hash)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It is read or listed.
    Read,
    /// It is created or changed.
    Write,
    /// It is deleted or moved away.
    Delete,
    /// Its content is run.
    Run,
}

/// What kind of place a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Hash)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// Anything else.
    Ordinary,
    /// Inside the sandbox.
    Sandbox,
    /// `/dev/null` and its like: writing changes nothing.
    Sink,
    /// Keys, passwords, other people's data.
    Secret,
    /// A disk, the kernel's memory and the like.
    Device,
    /// The root, a home, a directory of the system: what must never go away.
    Protected,
}

/// Where a command would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The sandbox's directory.
    pub root: String,
    /// The working directory.
    pub cwd: String,
    /// What `~` and `$HOME` are.
    pub home: String,
}
