//! Terminals and their screens.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::State;

/// Who types at a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlView {
    /// Who has taken the keyboard; absent while its owner types.
    pub taken_by: Option<String>,
    /// Since when.
    pub since: Option<String>,
    /// Bytes that others have typed meanwhile, and that wait.
    pub held_bytes: usize,
    /// What somebody who types should know: who has the keyboard, or the note
    /// left when it was given back.
    pub text: Option<String>,
    /// Seconds until the keyboard is given back by itself, when that is near.
    pub seconds_left: Option<u64>,
}

/// One terminal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalView {
    /// The run that it is.
    pub terminal_id: String,
    /// What people type.
    pub short_id: String,
    /// Its name in its session.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The program started in it.
    pub command: String,
    /// The session.
    pub session_id: Option<String>,
    /// The sandbox, by id.
    pub sandbox_id: Option<String>,
    /// Whose it is.
    pub requested_by: String,
    /// `busy` while something runs, `idle` while it waits for input, `waiting`
    /// for a person's answer, or `closed`.
    pub status: String,
    /// The exact state of its run.
    pub state: State,
    /// How its command ended.
    pub exit_code: Option<i32>,
    /// The process that was started in it, as the host sees it.
    pub pid: Option<u32>,
    /// Where it was started.
    pub cwd: String,
    /// Seconds since it was opened.
    pub uptime_seconds: u64,
    /// When it wrote something last.
    pub last_active: String,
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
    /// The title that the program sets.
    pub title: String,
    /// The last lines of its output, as they are seen.
    pub output_tail: Vec<String>,
    /// While it waits for input: the line it waits in, up to the cursor.
    pub prompt: Option<String>,
    /// Its shell tells where its commands end, so that they can be run by
    /// `exec`.
    pub shell: bool,
    /// Who types.
    pub control: ControlView,
}

/// What a terminal shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenView {
    /// Each line, without blanks at its end.
    pub rows: Vec<String>,
    /// Characters in a line.
    pub columns: u16,
    /// Where the cursor is.
    pub cursor: CursorView,
    /// The window title that the program sets.
    pub title: String,
    /// A program has taken the whole screen, as editors do.
    pub alternate: bool,
    /// The last lines of all that was shown, as many as were asked for; what
    /// did not fit into one line is in one again.
    pub history: Vec<String>,
    /// It shows the output up to this byte.
    pub offset: u64,
}

/// Where the cursor of a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorView {
    /// Lines above it.
    pub row: u16,
    /// Characters to its left.
    pub column: u16,
    /// Whether it is shown.
    pub visible: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StreamParams")]
pub struct ViewerParams {
    /// Every byte from this offset on. Without it, a terminal sends its current
    /// screen and continues from there.
    pub from: Option<u64>,
}

/// What a viewer of a terminal says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ViewerMessage {
    /// Keys, as a terminal sends them.
    Input {
        /// As text.
        data: String,
    },
    /// The viewer's window has this size; counts for who has the keyboard.
    Resize {
        /// Characters in a line.
        columns: u16,
        /// Lines.
        rows: u16,
    },
    /// Take the keyboard.
    Take {
        /// Characters in a line of the viewer's window, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        columns: Option<u16>,
        /// Its lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rows: Option<u16>,
    },
    /// Give the keyboard back.
    Give {
        /// A note for the next person who types.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// What others have typed meanwhile is dropped, and not typed now.
        #[serde(default)]
        drop: bool,
    },
    /// The output came up to this offset.
    Ack {
        /// The first byte that has not come.
        offset: u64,
    },
}

/// A terminal to be opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "name": "dev-server", "description": "Start the dev server", "command": "npm run dev",
}))]
pub struct NewTerminal {
    /// Its name; must be unused in its session.
    pub name: String,
    /// What it is for, in a few words.
    pub description: String,
    /// The program to start in it.
    pub command: String,
    /// The session, by id or the client's own name for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The sandbox, by id or name; the requester's default when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The profile that the agent works under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Characters in a line; 80 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u16>,
    /// Lines; 24 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
    /// Wait for its end, answer with its output, and close it.
    #[serde(default)]
    pub foreground: bool,
    /// How long to wait for that, in milliseconds: 20 seconds when not given,
    /// 5 minutes at the most. It is closed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Input for a terminal, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(example = serde_json::json!({ "text": "ls", "submit": true }))]
#[schemars(example = serde_json::json!({ "keys": ["C-c"] }))]
pub struct TerminalInput {
    /// Literal text; a line end is the Enter key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Text as from a clipboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paste: Option<String>,
    /// Keys by name: `Enter`, `Esc`, `C-c`, `M-x`, `Up`, `F5` and so on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// And then Enter.
    pub submit: bool,
    /// And then the key that ends the input of programs which read lines.
    pub eof: bool,
}

/// What became of something that was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SentView {
    /// `typed`, `held` until the keyboard is given back, or `asked`.
    pub state: String,
    /// A message: why it is not typed yet, what happened to earlier held input,
    /// and the note left when the keyboard was given back.
    pub text: String,
    /// The command that a person is asked about.
    pub command_id: Option<String>,
}

/// A command for the shell of a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "command": "cd src && ls" }))]
pub struct NewExec {
    /// The text for the shell.
    pub command: String,
    /// How long to wait for its end before answering with a handle; until the
    /// end when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// How large a terminal is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// A signal for the foreground processes of a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSignal {
    /// Its name, such as `INT`.
    pub signal: String,
}

/// All terminals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalList {
    /// The oldest first.
    pub terminals: Vec<TerminalView>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub struct TerminalListParams {
    /// Only of this session, by id.
    pub session: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreenParams {
    /// The last lines of the history to include; none by default.
    #[serde(default)]
    pub lines: usize,
}

/// Returns whether a command is a shell and nothing more.
pub fn is_plain_shell(command: &str) -> bool {
    plain_shell(command).is_some()
}

/// Returns the name of the shell that a command is, if it is nothing more:
/// `bash`, `zsh` or `sh`.
pub fn plain_shell(command: &str) -> Option<&str> {
    let mut words = command.split_ascii_whitespace();
    let program = words.next()?;
    let name = ["/bin/", "/usr/bin/"]
        .iter()
        .find_map(|dir| program.strip_prefix(dir))
        .unwrap_or(program);
    let is_known = ["bash", "zsh", "sh"].contains(&name);
    (is_known && words.all(|word| word == "-i")).then_some(name)
}
