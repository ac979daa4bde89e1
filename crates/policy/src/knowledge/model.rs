//! What is known about programs, as the build script packs it and the judge
//! reads it. Texts are pieces of the packed text, which saves some 50,000
//! allocations at every start.

use serde::{Deserialize, Serialize};

/// A program or a subcommand.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Program<S = &'static str> {
    #[serde(rename = "n")]
    pub(crate) names: Vec<S>,
    #[serde(rename = "d")]
    pub(crate) does: S,
    #[serde(rename = "e")]
    pub(crate) effects: u16,
    #[serde(rename = "t", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<S>,
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) options: Vec<OptionSpec<S>>,
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) operands: Vec<Operand>,
    #[serde(rename = "s")]
    pub(crate) style: OptionSyntax,
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) modes: Vec<OptionMode<S>>,
    #[serde(rename = "u", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) subs: Vec<Program<S>>,
    /// The options are also read after the subcommand.
    #[serde(rename = "g", default)]
    pub(crate) global: bool,
    /// What happens without a subcommand, where there are some.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(crate) bare: Option<u16>,
    /// What happens when it is given nothing but `--help` or `--version`.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub(crate) help: Option<u16>,
    /// The settings of a project that it obeys.
    #[serde(rename = "y", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) obeys: Vec<Obeys>,
    /// Whatever its words are, it reads and nothing else.
    #[serde(rename = "h", default)]
    pub(crate) harmless: bool,
    /// The words before a command that it runs, where not all of its options
    /// are known; see `knowledge/README.md`. Subcommands have none.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) runs: Vec<S>,
    /// What makes a query of a command line; see `knowledge/README.md`.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asks: Vec<S>,
    /// Words that make it run code, wherever they stand; see
    /// `knowledge/README.md`.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) code: Vec<S>,
}

/// Settings of a project that can name programs, which other programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Obeys {
    /// The configuration of a git repository and of its submodules.
    Git,
    /// The configuration of a Mercurial repository.
    Hg,
    /// `rust-toolchain.toml`, which can say where the compiler is.
    Rustup,
}

/// An option.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OptionSpec<S = &'static str> {
    #[serde(rename = "n")]
    pub(crate) names: Vec<S>,
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<OperandRole>,
    /// The value is only taken when it is attached.
    #[serde(rename = "a", default, skip_serializing_if = "is_false")]
    pub(crate) attached: bool,
    #[serde(rename = "e", default, skip_serializing_if = "is_zero")]
    pub(crate) effects: u16,
    #[serde(rename = "t", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<S>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<S>,
    #[serde(rename = "g")]
    pub(crate) gloss: S,
}

/// A word that is no option.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Operand {
    #[serde(rename = "r")]
    pub(crate) role: OperandRole,
    #[serde(rename = "c")]
    pub(crate) count: Arity,
    #[serde(rename = "e", default, skip_serializing_if = "is_zero")]
    pub(crate) effects: u16,
}

/// What an option changes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OptionMode<S = &'static str> {
    #[serde(rename = "n")]
    pub(crate) name: S,
    #[serde(rename = "d")]
    pub(crate) does: Option<S>,
    #[serde(rename = "e")]
    pub(crate) effects: Option<u16>,
    #[serde(rename = "p")]
    pub(crate) operands: Option<Vec<Operand>>,
    #[serde(rename = "t")]
    pub(crate) tags: Vec<S>,
}

/// How often a word may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Arity {
    #[serde(rename = "1")]
    One,
    #[serde(rename = "?")]
    Maybe,
    #[serde(rename = "*")]
    Any,
}

/// How words are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OptionSyntax {
    Gnu,
    Posix,
    Exact,
    Find,
    Keyed,
    None,
}

/// What a word means; see `knowledge/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OperandRole {
    #[serde(rename = "TEXT")]
    Text,
    #[serde(rename = "FORMAT")]
    Format,
    #[serde(rename = "N")]
    Number,
    #[serde(rename = "REV")]
    Revision,
    #[serde(rename = "FILE")]
    File,
    #[serde(rename = "LIST")]
    List,
    #[serde(rename = "DIR")]
    Directory,
    #[serde(rename = "OUT")]
    Out,
    #[serde(rename = "EDIT")]
    Edit,
    #[serde(rename = "DEL")]
    Delete,
    #[serde(rename = "MOVE")]
    Move,
    #[serde(rename = "RUN")]
    Run,
    #[serde(rename = "PROG")]
    Program,
    #[serde(rename = "CMD")]
    Shell,
    #[serde(rename = "LINE")]
    Line,
    #[serde(rename = "ARGV")]
    Argv,
    #[serde(rename = "ARGV;")]
    ArgvUntil,
    #[serde(rename = "CODE")]
    Code,
    #[serde(rename = "ENV")]
    Env,
    #[serde(rename = "VAR")]
    Variable,
    #[serde(rename = "CONFIG")]
    Config,
    #[serde(rename = "URL")]
    Url,
    #[serde(rename = "HOST")]
    Host,
    #[serde(rename = "GLOB")]
    Glob,
    #[serde(rename = "REMOTE")]
    Remote,
    #[serde(rename = "REMOTEOUT")]
    RemoteOut,
    #[serde(rename = "SED")]
    Sed,
    #[serde(rename = "AWK")]
    Awk,
    #[serde(rename = "JQ")]
    Jq,
    #[serde(rename = "ANY")]
    Any,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u16) -> bool {
    *value == 0
}
