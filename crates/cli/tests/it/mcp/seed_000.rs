//! The document that `ExecuteCommand` comes from, line by line.

use serde_json::{Value, json};

use super::Client;
use super::client::Called;
use super::walk::Here::{Holds, No, Test};
use super::walk::{Here, walk};
use crate::support::{Home, Server};

/// A server with the preset that this document is, and a client of it.
struct World {
    agent: Client,
    _server: Server,
    home: Home,
}

impl World {
    fn call(&self, arguments: Value) -> Called {
        self.agent.call("ExecuteCommand", arguments)
    }

    fn execute(&self, command: &str) -> Called {
        self.call(json!({ "command": command }))
    }

    /// The list refuses every command that contains this.
    #[track_caller]
    fn refuses(&self, entry: &str) {
        assert!(
            self.entries().contains(&entry.to_owned()),
            "no entry `{entry}`"
        );
        let told = self.execute(&format!("echo x; {entry} x"));
        let text = "Command is not allowed by terminal blacklist.";
        assert_eq!((told.text.as_str(), told.failed), (text, true), "{entry}");
    }

    /// The list in force.
    fn entries(&self) -> Vec<String> {
        let (_, list) = self.home.api("GET", "/blacklist", &Value::Null);
        serde_json::from_value(list["commandBlacklist"].clone()).unwrap()
    }

    fn save(&self, entries: Value) -> u16 {
        let list = json!({ "commandBlacklist": entries });
        self.home.api("PUT", "/blacklist", &list).0
    }

    fn reset(&self) {
        assert_eq!(self.home.api("DELETE", "/blacklist", &Value::Null).0, 200);
    }

    fn file(&self) -> std::path::PathBuf {
        self.home.base().join(".agents/terminal.json")
    }

    fn runs(&self) -> usize {
        self.home.run_dirs()
    }
}

const VERBS: &str = "crates/cli/tests/it/verbs.rs";
const HERE: &str = "crates/cli/tests/it/mcp/execute_command.rs";
const PAGES: &str = "ui/tests/config.spec.ts";
const THEIRS: &str = "how their program is built; nothing that a host of the tool sees";

const DOCUMENT: &[(&str, Here<World>)] = &[
    (
        "# Terminal command execution and terminal config",
        No("a heading"),
    ),
    ("**Date:** 2026-02-16", No("a date")),
    ("**Status:** Design", No("a status")),
    (
        "**Scope:** Built-in tool to run shell commands on the host (local deployment); terminal \
         config UI and command blacklist. No streaming output.",
        No("a summary of what follows"),
    ),
    ("## 1. Purpose and scope", No("a heading")),
    (
        "- **ExecuteCommand tool:** The agent can run one shell command (and optional working \
         directory) on the machine where SmallEBot runs.",
        Holds(|world| {
            assert_eq!(
                world.execute("echo hi").text,
                "ExitCode: 0\nStdout: hi\nStderr: "
            );
        }),
    ),
    (
        "Execution is cross-platform (Windows / Linux / macOS), with a timeout and optional \
         working directory.",
        No("commands run on Linux hosts only; the rest is below"),
    ),
    (
        "Output is returned as plain text (stdout + stderr); no streaming in this version.",
        Holds(|world| {
            let told = world.execute("echo hi; echo oh >&2");
            assert_eq!(told.text, "ExitCode: 0\nStdout: hi\nStderr: oh");
            assert_eq!(told.data, Value::Null, "plain text and nothing else");
        }),
    ),
    (
        "- **Terminal config:** A new UI and persisted config for “terminal” behaviour. The only \
         setting in this version is a **command blacklist**.",
        Test(
            VERBS,
            "a_blacklist_of_ones_own_replaces_the_built_in_one_at_once",
        ),
    ),
    (
        "Before running any command, the tool checks the user’s command against this blacklist; \
         if it matches, the tool returns an error and does not execute.",
        Holds(|world| {
            let before = world.runs();
            world.refuses("dd if=");
            assert_eq!(world.runs(), before, "nothing was begun");
        }),
    ),
    (
        "- **Deployment assumption:** SmallEBot is intended for local deployment (server = user’s \
         machine). The terminal runs in that same environment. Security is “user’s own risk”; the \
         blacklist is a safeguard against obviously dangerous commands, not a full sandbox.",
        No("an assumption; there are walls around every command here, whatever the list says"),
    ),
    ("## 2. Command blacklist", No("a heading")),
    (
        "- **Semantics:** The blacklist is a list of strings. Before executing a command, the tool \
         normalizes the command (e.g. trim, collapse internal spaces) and checks whether it \
         **contains** any blacklist entry.",
        Holds(|world| {
            let told = world.execute("  echo   x;   mkfs.ext4   /dev/x  ");
            assert_eq!(told.text, "Command is not allowed by terminal blacklist.");
            let told = world.execute(" \n chown \t  -R x y");
            assert_eq!(told.text, "Command is not allowed by terminal blacklist.");
        }),
    ),
    (
        "Matching is **case-insensitive**.",
        Holds(|world| {
            let told = world.execute("echo CHOWN -r");
            assert_eq!(told.text, "Command is not allowed by terminal blacklist.");
        }),
    ),
    (
        "If any entry is contained, execution is refused and the tool returns a short error (e.g. \
         “Command is not allowed by terminal blacklist.”).",
        Holds(|world| world.refuses("wget -O-")),
    ),
    (
        "- **Persistence:** Stored in a single file under the app’s agent config area: \
         `.agents/terminal.json` (same base path as `.agents/.mcp.json`). Structure: `{ \
         \"commandBlacklist\": [ \"entry1\", \"entry2\", ... ] }`.",
        Holds(|world| {
            assert_eq!(world.save(json!(["entry1", "entry2"])), 200);
            let text = std::fs::read_to_string(world.file()).unwrap();
            let saved: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(saved, json!({ "commandBlacklist": ["entry1", "entry2"] }));
            world.refuses("entry2");
            world.reset();
        }),
    ),
    (
        "If the file is missing or invalid, the app uses the **default blacklist** (see below)",
        Holds(|world| {
            assert!(!world.file().exists());
            world.refuses("chown -R");
            std::fs::create_dir_all(world.file().parent().unwrap()).unwrap();
            for invalid in ["", "{", "[]", "{\"commandBlacklist\": 5}"] {
                std::fs::write(world.file(), invalid).unwrap();
                world.refuses("chown -R");
            }
            world.reset();
        }),
    ),
    (
        "and may optionally create the file with that default when the user opens Terminal config.",
        No("it may, and does not: looking changes nothing"),
    ),
    (
        "- **Default blacklist (built-in):** The following entries are included by default so that \
         common dangerous commands are blocked even before the user adds any. They are chosen to \
         be substrings that commonly appear in destructive one-liners; the user can remove or \
         edit them in Terminal config.",
        Holds(|world| {
            assert_eq!(world.entries().len(), 18);
            let all = world.entries();
            let kept: Vec<_> = all.iter().filter(|entry| *entry != "chown -R").collect();
            assert_eq!(world.save(json!(kept)), 200);
            let told = world.execute("echo chown -R");
            assert_eq!(told.text, "ExitCode: 0\nStdout: chown -R\nStderr: ");
            world.reset();
        }),
    ),
    ("**Linux / macOS (bash/sh):**", No("a heading")),
    ("- `rm -rf /`", Holds(|world| world.refuses("rm -rf /"))),
    ("- `rm -rf /*`", Holds(|world| world.refuses("rm -rf /*"))),
    (
        "- `:(){ :|:& };:` (fork bomb)",
        Holds(|world| world.refuses(":(){ :|:& };:")),
    ),
    ("- `mkfs.`", Holds(|world| world.refuses("mkfs."))),
    ("- `dd if=`", Holds(|world| world.refuses("dd if="))),
    ("- `>/dev/sd`", Holds(|world| world.refuses(">/dev/sd"))),
    (
        "- `chmod -R 777 /`",
        Holds(|world| world.refuses("chmod -R 777 /")),
    ),
    ("- `chown -R`", Holds(|world| world.refuses("chown -R"))),
    (
        "- `wget -O-` (often used with `| sh`; conservative block)",
        Holds(|world| world.refuses("wget -O-")),
    ),
    (
        "- `curl | sh` (common pattern for “pipe to shell”)",
        Holds(|world| world.refuses("curl | sh")),
    ),
    (
        "**Windows (cmd/PowerShell):**",
        No("a heading; its entries count here, too"),
    ),
    ("- `format `", Holds(|world| world.refuses("format "))),
    ("- `del /s /q`", Holds(|world| world.refuses("del /s /q"))),
    ("- `rd /s /q`", Holds(|world| world.refuses("rd /s /q"))),
    ("- `format c:`", Holds(|world| world.refuses("format c:"))),
    ("- `format d:`", Holds(|world| world.refuses("format d:"))),
    ("- `shutdown /`", Holds(|world| world.refuses("shutdown /"))),
    ("- `reg delete`", Holds(|world| world.refuses("reg delete"))),
    ("**Cross-platform / generic:**", No("a heading")),
    (
        "- `sudo ` (optional; uncomment if you want to block any sudo by default)",
        Holds(|world| world.refuses("sudo ")),
    ),
    (
        "The implementation will define this list as a constant or static list; the saved \
         `terminal.json` is merged with or replaces this default (design choice: either “default + \
         user additions” or “file overrides default entirely”).",
        Test(
            VERBS,
            "a_blacklist_of_ones_own_replaces_the_built_in_one_at_once",
        ),
    ),
    (
        "Recommended: **if the file exists, use only the file’s list**;",
        Holds(|world| {
            assert_eq!(world.save(json!(["only this"])), 200);
            world.refuses("only this");
            assert!(!world.execute("echo chown -R").failed);
            // None at all is a list, too.
            assert_eq!(world.save(json!([])), 200);
            assert!(!world.execute("echo only this").failed);
            world.reset();
        }),
    ),
    (
        "if the file does not exist, use the default list and, when the user opens Terminal config \
         for the first time, show and persist that default so the user can edit it.",
        Holds(|world| {
            let shown = world.home.call(&["blacklist"]);
            assert_eq!(shown.out.lines().count(), 18, "{shown:?}");
            assert_eq!(
                world.home.call(&["blacklist", "add", "deploy"]).code,
                Some(0)
            );
            assert_eq!(world.entries().len(), 19, "the default, with one more");
            world.reset();
        }),
    ),
    ("## 3. Terminal config UI and service", No("a heading")),
    (
        "- **Entry point:** In the main app bar (e.g. next to MCP config and Skills config), add a \
         toolbar button with a “Terminal” or “Terminal config” icon and tooltip “Terminal config”. \
         Click opens a dialog.",
        Test(
            PAGES,
            "the first opening shows the built-in list, and what is empty or there already is \
             refused with a reason",
        ),
    ),
    (
        "- **Dialog (TerminalConfigDialog):** - Title: “Terminal config”. - Content: A single \
         section “Command blacklist”. List of blacklist entries; each row shows one entry with an \
         optional “Remove” button. An “Add” control (text field + Add button, or inline add) to \
         append a new entry.",
        Test(
            VERBS,
            "a_blacklist_of_ones_own_replaces_the_built_in_one_at_once",
        ),
    ),
    (
        "Empty or duplicate entries are not added (validation).",
        Holds(|world| {
            assert_eq!(world.save(json!(["x", ""])), 400);
            let before = world.entries();
            for wrong in ["", "  ", "chown -R"] {
                assert_eq!(world.home.call(&["blacklist", "add", wrong]).code, Some(1));
            }
            assert_eq!(world.entries(), before);
        }),
    ),
    (
        "- Buttons: “Save” (persist to `.agents/terminal.json` and close, or just persist and keep \
         dialog open with a Snackbar “Saved”), “Cancel” (discard unsaved changes and close). - On \
         open: Load current blacklist from `ITerminalConfigService` (which reads \
         `.agents/terminal.json` or returns default list). If the file does not exist, show the \
         default blacklist and allow the user to save it as the initial config.",
        Test(
            PAGES,
            "what was changed is thrown away only when a person says so",
        ),
    ),
    (
        "- **Service:** `ITerminalConfigService` in the host (e.g. `SmallEBot.Services` or \
         `SmallEBot.Services.Terminal`). - `GetCommandBlacklistAsync(CancellationToken)` for the UI \
         (async load). - `GetCommandBlacklist()` sync for the ExecuteCommand tool (read file or \
         in-memory cache; see below). - `SaveCommandBlacklistAsync(IReadOnlyList<string>, \
         CancellationToken)` to write `.agents/terminal.json`. - Default blacklist: exposed as a \
         static or instance property so both the UI (initial load) and the tool (when file \
         missing) use the same list.",
        Holds(|world| {
            // The three of them are one address; what it shows is what counts.
            assert_eq!(world.save(json!(["mine"])), 200);
            assert_eq!(world.entries(), ["mine"]);
            world.refuses("mine");
            world.reset();
            world.refuses("sudo ");
        }),
    ),
    (
        "- **Implementation note:** For the tool, we need a synchronous way to get the blacklist \
         (agent tool invocations are often sync). Options: (1) Read the file synchronously in \
         `GetCommandBlacklist()` (simple, no cache), or (2) keep an in-memory cache updated on \
         Load/Save and in the tool path. Option (1) is acceptable for a small JSON file and avoids \
         cache invalidation; option (2) is better if we expect many executions per second. First \
         version: **read file sync in GetCommandBlacklist()**; if file missing, return default \
         blacklist.",
        Holds(|world| {
            // What somebody writes into the file counts for the next command.
            std::fs::create_dir_all(world.file().parent().unwrap()).unwrap();
            for entry in ["first", "second"] {
                let list = json!({ "commandBlacklist": [entry] });
                std::fs::write(world.file(), list.to_string()).unwrap();
                world.refuses(entry);
            }
            world.reset();
        }),
    ),
    (
        "- **Registration:** Register `ITerminalConfigService` as scoped (or singleton if stateless \
         with sync file read). Dialog and MainLayout need it; BuiltInToolFactory needs it for the \
         ExecuteCommand tool (see below).",
        No(THEIRS),
    ),
    (
        "## 4. ExecuteCommand tool (cross-platform, no streaming)",
        No("a heading"),
    ),
    (
        "- **Tool name:** `ExecuteCommand` (or `RunCommand`). Single tool with two parameters:",
        Holds(|world| {
            let tools = world.agent.tools();
            assert_eq!(tools[0]["name"], "ExecuteCommand");
            let parameters = super::fields(&tools[0]);
            assert_eq!(parameters, ["command", "workingDirectory"]);
        }),
    ),
    (
        "- `command` (required, string): The shell command line to run (e.g. `dotnet build`, `git \
         status`).",
        Test(HERE, "its_shape_is_the_one_of_the_document"),
    ),
    (
        "- `workingDirectory` (optional, string): Working directory for the process; must resolve \
         under `AppDomain.CurrentDomain.BaseDirectory` (or allow empty to mean current directory / \
         base directory — define explicitly).",
        Holds(|world| {
            let base = world.home.base();
            std::fs::create_dir_all(base.join("sub")).unwrap();
            for (directory, place) in [("", base.clone()), ("sub", base.join("sub"))] {
                let asked = json!({ "command": "pwd", "workingDirectory": directory });
                let text = format!("ExitCode: 0\nStdout: {}\nStderr: ", place.display());
                assert_eq!(world.call(asked).text, text);
            }
            let shape = &world.agent.tools()[0]["inputSchema"]["properties"]["workingDirectory"];
            let said = shape["description"].as_str().unwrap();
            assert!(said.ends_with("Empty means the base directory."), "{said}");
        }),
    ),
    (
        "If invalid or outside base, return error and do not run.",
        Holds(|world| {
            let before = world.runs();
            for directory in ["..", "/etc", "nowhere"] {
                let asked = json!({ "command": "touch ran", "workingDirectory": directory });
                let told = world.call(asked);
                assert!(told.failed && told.text.starts_with("Working directory is "));
            }
            assert_eq!(world.runs(), before);
        }),
    ),
    ("- **Execution flow:**", No("a heading")),
    (
        "1. Normalize `command` (trim, collapse spaces).",
        Holds(|world| {
            // For the list; what runs keeps the spaces that it has in it.
            let told = world.execute("  printf '%s' 'a  b' ");
            assert_eq!(told.text, "ExitCode: 0\nStdout: a  b\nStderr: ");
        }),
    ),
    (
        "2. Call `ITerminalConfigService.GetCommandBlacklist()`. If the normalized command contains \
         any blacklist entry (case-insensitive), return error and stop.",
        Holds(|world| world.refuses("reg delete")),
    ),
    (
        "3. Resolve `workingDirectory` if provided; validate it is under base directory; else use \
         base directory or current directory (chosen one must be documented).",
        Test(HERE, "working_directories_are_below_the_base"),
    ),
    (
        "4. Start process: - **Windows:** Use `cmd.exe /c \"<command>\"` or `powershell.exe \
         -NoProfile -Command \"<command>\"`. Choose one and document (e.g. PowerShell for consistent \
         encoding and stderr).",
        No("commands run on Linux hosts only"),
    ),
    (
        "- **Linux / macOS:** Use `/bin/sh -c \"<command>\"`.",
        Holds(|world| {
            let told = world.execute("echo \"$0\"; echo a | tr a b");
            assert_eq!(told.text, "ExitCode: 0\nStdout: /bin/sh\nb\nStderr: ");
        }),
    ),
    (
        "5. Set timeout (e.g. 60 seconds);",
        Holds(|world| {
            world.execute("true");
            let (_, list) = world.home.api("GET", "/commands?limit=1", &Value::Null);
            assert_eq!(list["commands"][0]["timeout_ms"], 60_000, "{list}");
        }),
    ),
    (
        "if process does not exit in time, kill it and return a message like “Command timed out \
         after 60 seconds.”",
        Test(
            HERE,
            "a_command_that_takes_too_long_is_ended_and_says_what_it_wrote",
        ),
    ),
    (
        "6. Capture stdout and stderr (both to the same stream or separate); return a single string \
         to the agent (e.g. “ExitCode: <n>\\nStdout: …\\nStderr: …” or “Stdout: …\\nStderr: \
         …\\nExit code: <n>”). Use a consistent format so the model can parse it.",
        Holds(|world| {
            for (command, text) in [
                (
                    "echo a; echo b >&2; exit 7",
                    "ExitCode: 7\nStdout: a\nStderr: b",
                ),
                ("echo a", "ExitCode: 0\nStdout: a\nStderr: "),
                ("echo b >&2", "ExitCode: 0\nStdout: \nStderr: b"),
                ("exit 1", "ExitCode: 1\nStdout: \nStderr: "),
            ] {
                assert_eq!(world.execute(command).text, text);
            }
        }),
    ),
    (
        "- **Errors:** All errors (blacklist hit, invalid working dir, timeout, process start \
         failure) return a short English message string; no exception thrown to the agent.",
        Test(HERE, "whatever_is_wrong_is_a_short_text"),
    ),
    (
        "- **Integration:** Add `ExecuteCommand` to `IBuiltInToolFactory.CreateTools()`. The factory \
         must receive `ITerminalConfigService` (and possibly `ILogger`) via constructor injection. \
         The tool handler will be an instance method that calls a helper which uses \
         `ITerminalConfigService.GetCommandBlacklist()` and then runs the process. So \
         `BuiltInToolFactory` becomes stateful (holds the service reference) and creates one tool \
         that delegates to this instance method.",
        No(THEIRS),
    ),
    (
        "- **No streaming:** Output is collected in full after the process exits (or timeout) and \
         returned in one go.",
        Holds(|world| {
            let told = world.execute("for i in 1 2 3; do echo $i; sleep 0.1; done");
            assert_eq!(told.text, "ExitCode: 0\nStdout: 1\n2\n3\nStderr: ");
        }),
    ),
    ("## 5. File and project layout", No("a heading")),
    (
        "- **Config file:** `{BaseDirectory}/.agents/terminal.json`. Same base as `.mcp.json`; \
         ensure `.agents` exists when saving (e.g. `Directory.CreateDirectory`).",
        Holds(|world| {
            let _ = std::fs::remove_dir_all(world.home.base().join(".agents"));
            assert_eq!(world.save(json!(["x"])), 200);
            assert!(world.home.base().join(".agents/terminal.json").is_file());
            world.reset();
        }),
    ),
    (
        "- **New/updated code:** - **Service:** `SmallEBot/Services/Terminal/TerminalConfigService.cs` \
         (interface + class), or under an existing namespace; implement `ITerminalConfigService` \
         with default blacklist constant and file read/write. - **UI:** \
         `SmallEBot/Components/Terminal/TerminalConfigDialog.razor` (and optional `_Imports` or \
         namespace). MainLayout: add icon button and `OpenTerminalConfig()` that shows \
         `TerminalConfigDialog`. - **Tool:** Extend `SmallEBot/Services/Agent/BuiltInToolFactory.cs`: \
         inject `ITerminalConfigService`, add instance method for ExecuteCommand (with blacklist \
         check and process run), and add it to `CreateTools()`. Optionally extract process execution \
         to a small `TerminalCommandRunner` or similar in the same assembly for clarity and \
         testability.",
        No(THEIRS),
    ),
    (
        "- **CLAUDE.md / README:** Already state local deployment. Optionally add one line: \
         “Terminal: built-in ExecuteCommand tool; config and command blacklist in Terminal config \
         (App bar).”",
        No("docs/toolsets.md has its line"),
    ),
    ("## 6. Summary", No("a heading")),
    ("| Item | Choice |", No("a heading")),
    (
        "| Tool | Single `ExecuteCommand(command, workingDirectory?)` |",
        Test(HERE, "its_shape_is_the_one_of_the_document"),
    ),
    (
        "| Output | Non-streaming; full stdout + stderr + exit code after exit or timeout |",
        Test(HERE, "long_output_has_both_ends_and_can_be_read"),
    ),
    (
        "| Blacklist | Substring, case-insensitive; persisted in `.agents/terminal.json` |",
        Test("crates/policy/src/seed_tests.rs", "blacklist"),
    ),
    (
        "| Default blacklist | Built-in list of common dangerous commands (see section 2) |",
        Test(VERBS, "the_blacklist_blocks_before_anything_runs"),
    ),
    (
        "| UI | App bar → “Terminal config” dialog; edit blacklist, Save/Cancel |",
        Test(
            PAGES,
            "saved, an entry blocks what contains it, whatever its case and spacing",
        ),
    ),
    (
        "| Service | `ITerminalConfigService`: GetCommandBlacklist (sync), GetCommandBlacklistAsync, \
         SaveCommandBlacklistAsync, default list |",
        No(THEIRS),
    ),
    (
        "| Process | Windows: cmd or PowerShell; Linux/macOS: `/bin/sh -c`; timeout e.g. 60s; working \
         dir optional, under base dir |",
        Test(HERE, "it_answers_with_exit_code_and_both_streams"),
    ),
    (
        "No streaming in this version. No allowlist; only blacklist.",
        Holds(|world| {
            // Whatever is not on the list runs.
            let told = world.execute("nobody-knows-this-program");
            assert!(told.text.starts_with("ExitCode: 127\n"), "{told:?}");
        }),
    ),
];

#[test]
fn every_line_of_the_document_holds() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "execute-command"]);
    let world = World {
        agent,
        _server,
        home,
    };
    walk(&world, DOCUMENT);
}
