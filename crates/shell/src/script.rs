//! What a text says, as a tree.
//!
//! Lists are flat, so that a long text makes a long tree and not a deep one;
//! depth comes from nesting alone, and the parser bounds it.

/// Which language a text is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// What bash reads.
    #[default]
    Bash,
    /// What any `/bin/sh` reads. Words of bash are understood and noted as
    /// [`Script::bashisms`], because another shell takes them differently.
    Posix,
    /// Windows PowerShell, read conservatively.
    PowerShell,
    /// `cmd.exe`, read conservatively.
    Cmd,
}

/// Bytes of the original text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// A whole text, understood as far as it can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The language it was read as.
    pub dialect: Dialect,
    /// What it does, in order.
    pub body: List,
    /// Operators, keywords and comments, in order, for highlighting.
    pub marks: Vec<(Span, MarkKind)>,
    /// Places that only bash reads this way.
    pub bashisms: Vec<Span>,
    /// Everything that was not understood, wherever it is in the tree.
    pub unknowns: Vec<Unknown>,
}

/// What a piece of text that is no word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// `|`, `&&`, `;`, `>`…
    Operator,
    /// `if`, `done`, `{`…
    Keyword,
    /// `# …`
    Comment,
}

/// Something that was not understood. A policy must assume the worst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Where it is.
    pub span: Span,
    /// Why, as a noun phrase: "an unclosed quote".
    pub why: &'static str,
}

/// Pipelines, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The pipelines.
    pub items: Vec<Item>,
}

/// One pipeline of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// How it follows the one before.
    pub joint: Joint,
    /// What runs.
    pub pipeline: Pipeline,
    /// `&` follows the chain that this belongs to.
    pub background: bool,
}

/// How a pipeline follows another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// It is the first of its list, or follows `;`, `&` or a line's end.
    Sequence,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands whose output goes into the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// `!` is in front.
    pub negated: bool,
    /// `time` is in front.
    pub timed: bool,
    /// The commands, at least one.
    pub stages: Vec<Command>,
    /// Where it is.
    pub span: Span,
}

/// One command, simple or compound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it is.
    pub kind: CommandKind,
    /// Its redirections, in order. `|&` is said as `2>&1` here.
    pub redirections: Vec<Redirection>,
    /// Where it is, redirections included.
    pub span: Span,
}

/// The kinds of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandKind {
    /// `NAME=value program argument…`
    Simple(Simple),
    /// `{ …; }`
    Group(List),
    /// `( … )`
    Subshell(List),
    /// `if …; then …; elif …; else …; fi`
    If {
        /// Conditions and what they lead to.
        branches: Vec<(List, List)>,
        /// After `else`.
        otherwise: Option<List>,
    },
    /// `while …; do …; done`, and `until`.
    While {
        /// Before `do`.
        condition: List,
        /// After `do`.
        body: List,
    },
    /// `for NAME in …; do …; done`, and `select`.
    For {
        /// The variable.
        name: String,
        /// What it becomes; none means the positional parameters.
        words: Option<Vec<Word>>,
        /// After `do`.
        body: List,
    },
    /// `for ((…; …; …)); do …; done`
    Count {
        /// The three expressions.
        expressions: Vec<Word>,
        /// After `do`.
        body: List,
    },
    /// `case … in … esac`
    Case {
        /// What is compared.
        word: Word,
        /// The branches.
        arms: Vec<Arm>,
    },
    /// `name() …` and `function name …`
    Function {
        /// Its name.
        name: String,
        /// What a call does.
        body: Box<Command>,
    },
    /// `[[ … ]]`: operators are plain words.
    Test(Vec<Word>),
    /// `(( … ))`
    Arithmetic(Word),
    /// `coproc …`
    Coprocess {
        /// Its name, if it has one.
        name: Option<String>,
        /// What runs.
        body: Box<Command>,
    },
    /// Not understood; the span is all that is known, and [`Script::unknowns`]
    /// says why. No other command of the text is inside.
    Unknown,
}

/// One branch of a `case`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// What the word is compared with.
    pub patterns: Vec<Word>,
    /// What runs when it fits.
    pub body: List,
}

/// Assignments and words; either may be missing, not both, unless there are
/// redirections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// Before the first word.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments, after brace expansion.
    pub words: Vec<Word>,
}

/// `NAME=value`, `NAME+=value`, `NAME[index]=value`, `NAME=(…)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its element.
    pub index: Option<Word>,
    /// `+=`
    pub append: bool,
    /// What it becomes.
    pub value: Value,
    /// Where it is.
    pub span: Span,
}

/// What is assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// One text.
    Scalar(Word),
    /// `(…)`; `[index]=` in front of an element is part of its word.
    Array(Vec<Word>),
}

/// One word, before the shell expands it. Braces are expanded already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Its pieces, in order. None at all is an empty text only if something
    /// was quoted: then there is one empty quoted [`Piece::Text`].
    pub pieces: Vec<Piece>,
    /// Where it is. Words made by one brace expansion share theirs.
    pub span: Span,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text that stays as it is: quotes and escapes are resolved.
    Text {
        /// The text.
        text: String,
        /// It was quoted or escaped.
        quoted: bool,
    },
    /// Unquoted `*`, `?`, `[…]`, or an extended pattern, as written.
    Glob(String),
    /// `~` or `~user` where the shell expands it.
    Tilde(String),
    /// `$name`, `${…}`
    Parameter(Box<Parameter>),
    /// `$(…)`, backquotes, `${ …; }`
    Command(Substitution),
    /// `<(…)`, `>(…)`
    Process {
        /// Its output is read: `<(…)`.
        input: bool,
        /// What runs.
        body: List,
        /// Where it is.
        span: Span,
    },
    /// `$((…))`, `$[…]`
    Arithmetic {
        /// The expression: text and what is expanded in it.
        expression: Box<Word>,
        /// Inside double quotes.
        quoted: bool,
    },
    /// `(…)` after `NAME=` in an argument of `declare` and its kin.
    Array(Vec<Word>),
    /// Not understood; see [`Script::unknowns`].
    Unknown(Span),
}

/// `$name` or `${…}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The variable, a number, or one of `@ * # ? - $ ! _`.
    pub name: String,
    /// `[…]`
    pub index: Option<Word>,
    /// What is done with its value.
    pub operation: Operation,
    /// The words of the operation, with what is expanded in them.
    pub operands: Vec<Word>,
    /// Inside double quotes: no splitting, no globbing.
    pub quoted: bool,
    /// Where it is.
    pub span: Span,
}

/// What `${…}` does with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `$x`, `${x}`
    Plain,
    /// `${#x}`
    Length,
    /// `${x-…}`, `${x:-…}`
    Default,
    /// `${x=…}`, `${x:=…}`
    Assign,
    /// `${x?…}`, `${x:?…}`
    Error,
    /// `${x+…}`, `${x:+…}`
    Alternate,
    /// `${x#…}`, `${x##…}`, `${x%…}`, `${x%%…}`
    Trim,
    /// `${x/…/…}` and its kin: the operands are pattern and replacement.
    Replace,
    /// `${x:…:…}`: the operands are arithmetic.
    Slice,
    /// `${x^}`, `${x^^}`, `${x,}`, `${x,,}`
    Case,
    /// `${x@Q}` and its kin; `P` runs code in the value.
    Transform(char),
    /// `${!x}`, with any operation: the value names another variable.
    Indirect,
    /// `${!x*}`, `${!x@}`: names of variables.
    Names,
    /// `${!x[@]}`: indexes of an array.
    Keys,
}

/// A command whose output becomes text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// What runs.
    pub body: List,
    /// Inside double quotes: no splitting, no globbing.
    pub quoted: bool,
    /// Where it is. What is inside backquotes with escapes has this span too,
    /// since its own text is not in the original.
    pub span: Span,
}

/// `2>&1`, `< file`, `<<EOF`…
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The descriptor in front: a number or, as `{name}`, a variable.
    pub fd: Option<Fd>,
    /// What it does.
    pub op: Redirect,
    /// The file, the descriptor, or the text of a here-document or
    /// here-string. A here-document with a quoted delimiter is one quoted text.
    pub target: Word,
    /// Where it is, without a here-document's body.
    pub span: Span,
}

/// What is in front of a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fd {
    /// `2`
    Number(u32),
    /// `{name}`
    Variable(String),
}

/// The kinds of redirections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirect {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>|`
    Clobber,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `<&`
    DuplicateInput,
    /// `>&`; with a target that is no number or `-`, it writes a file.
    DuplicateOutput,
    /// `&>`
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

impl Word {
    /// Returns the text if nothing in it is expanded when it runs.
    pub fn literal(&self) -> Option<String> {
        let mut all = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text { text, .. } => all.push_str(text),
                _ => return None,
            }
        }
        Some(all)
    }
}
