//! The source that `terminal` comes from, line by line. It lost its indentation
//! on the way; two blanks lead each line of a list.

use serde_json::{Value, json};

use super::Client;
use super::terminal::{call, error, open, refused, run, send, shows, user, with};
use super::walk::Here::{Holds, No, Test};
use super::walk::{Here, walk};
use crate::support::{Home, Server, eventually};

/// Two servers with the preset that this source is: one on which administrators
/// may do anything, and one on which they have a list.
struct World {
    /// Somebody who is no administrator.
    alice: Client,
    admin: Client,
    /// An administrator with a list.
    listed: Client,
    _servers: [Server; 2],
    home: Home,
    _listed_home: Home,
}

const LISTED: &str = "[policy]\nallowed_commands = \"ls,cat,git,echo,gone\"\n";

impl World {
    fn new() -> Self {
        let home = Home::strict();
        let allowed = "[policy]\nuser_allowed_commands = [\"ls\", \"echo\", \"cat\"]\n";
        let (server, alice) = user(&home, allowed);
        let token = home.token(&home.me());
        let admin = Client::http(&server, &token, "toolset=terminal");
        let listed_home = Home::strict();
        let listed_server = listed_home.serve_with(&format!("preset = \"multi-user\"\n{LISTED}"));
        Self {
            alice,
            admin,
            listed: Client::stdio(&listed_home, &["--toolset", "terminal"]),
            _servers: [server, listed_server],
            home,
            _listed_home: listed_home,
        }
    }

    /// The tool as it is listed.
    fn tool(&self) -> Value {
        self.admin.tools()[0].clone()
    }

    fn property(&self, name: &str) -> Value {
        self.tool()["inputSchema"]["properties"][name].clone()
    }

    /// What the administrator is told.
    fn told(&self, arguments: Value) -> (String, String) {
        refused(&self.admin, arguments)
    }
}

/// One to be opened, with one thing otherwise.
fn opening(name: &str, value: Value) -> Value {
    let mut asked = json!({ "action": "open", "terminal_name": "x", "description": "for a test",
                            "command": "true" });
    asked[name] = value;
    asked
}

/// The patterns that users may not have in a command.
const DANGEROUS: &str = "Blocked: Command contains disallowed patterns for non-admin users.";
const OUTSIDE: &str = "Working directory is outside your sandbox.";
const HERE: &str = "crates/cli/tests/it/mcp/terminal.rs";
const POLICY: &str = "crates/policy/src/seed_tests.rs";
const NO_MANAGER: &str = "the server is what keeps terminals: without it there is no answer at all, \
                          so one that has none cannot answer";
const NO_SESSION: &str = "every client has a session: one that it names, or one of its own";

/// Refuses what has one of the patterns in it.
fn dangerous(world: &World, command: &str) {
    let told = run(&world.alice, command);
    assert_eq!(told["error"], "dangerous_command", "{command}: {told}");
    assert_eq!(told["output"], DANGEROUS);
}

const DOCUMENT: &[(&str, Here<World>)] = &[
    (
        "\"\"\"Terminal tool — run shell commands locally, including persistent sessions.\nActions:",
        No("a heading"),
    ),
    (
        "run — one-shot command (classic terminal behaviour)",
        Holds(|world| assert_eq!(run(&world.admin, "echo hi")["output"], "hi\n")),
    ),
    (
        "open — open a named persistent terminal session\n\
         close — close a named persistent terminal session\n\
         list — list all persistent terminals for the current Navi session\n\
         status — detailed status of one persistent terminal\n\
         send_input — write text to a persistent terminal's stdin",
        Test(HERE, "terminals_are_opened_listed_typed_at_and_closed"),
    ),
    (
        "If TERMINAL_ALLOWED_COMMANDS=* (default), any command is allowed and the shell\n\
         is invoked directly (supports pipes, redirects, subshells, etc.).",
        Holds(|world| {
            let told = run(&world.admin, "(echo a | tr a b) > made; cat made; rm made");
            assert_eq!(told["output"], "b\n");
        }),
    ),
    (
        "Set TERMINAL_ALLOWED_COMMANDS to a comma-separated list to restrict to specific\n\
         executables only (e.g. \"ls,cat,git\").",
        Holds(|world| assert_eq!(run(&world.listed, "id")["error"], "not_allowed")),
    ),
    (
        "Multi-user safety:\n\
         - Non-admin users are restricted to a sandbox directory (user_data/<user_id>/)\n\
         and a curated allowlist of safe commands.",
        Holds(|world| {
            let told = run(&world.alice, "echo hi > mine; cat mine");
            assert_eq!(told["output"], "hi\n");
            assert!(world.home.base().join("user_data/alice/mine").exists());
            assert_eq!(run(&world.alice, "id")["error"], "not_allowed");
        }),
    ),
    (
        "- Dangerous patterns (curl, wget, ssh, sudo, python -c, node -e, etc.) are\n\
         blocked for non-admins even if the base command is in the allowlist.",
        Holds(|world| dangerous(world, "echo curl")),
    ),
    (
        "- Admins bypass all restrictions and use TERMINAL_ALLOWED_COMMANDS directly.\n\"\"\"",
        Holds(|world| assert_eq!(run(&world.admin, "echo curl")["output"], "curl\n")),
    ),
    (
        "from __future__ import annotations\nimport asyncio\nimport re\nimport shlex\n\
         from pathlib import Path\nfrom navi.config import settings\n\
         from ._internal.base import Tool, ToolContext, ToolResult, current_event_sink, \
         current_user_id, current_user_role\nfrom .terminal_manager import TerminalManager",
        No("what it is built of; the manager is not part of the document"),
    ),
    (
        "_DEFAULT_TIMEOUT = 20",
        Holds(|world| {
            run(&world.admin, "true");
            assert_eq!(world.home.newest()["timeout_ms"], 20_000);
        }),
    ),
    (
        "_MAX_TIMEOUT = 300",
        Holds(|world| {
            call(
                &world.admin,
                json!({ "action": "run", "command": "true", "timeout": 301 }),
            );
            assert_eq!(world.home.newest()["timeout_ms"], 300_000);
        }),
    ),
    (
        "_MAX_OUTPUT_CHARS = 5_000",
        Test(HERE, "output_is_cut_at_five_thousand_characters"),
    ),
    (
        "# Substrings that make a command line dangerous for non-admin users.\n\
         _DANGEROUS_PATTERNS = [",
        No("a heading"),
    ),
    (
        "r\"\\bcurl\\b\",",
        Holds(|world| dangerous(world, "curl x")),
    ),
    (
        "r\"\\bwget\\b\",",
        Holds(|world| dangerous(world, "echo wget")),
    ),
    ("r\"\\bnc\\b\",", Holds(|world| dangerous(world, "ls nc"))),
    (
        "r\"\\bnetcat\\b\",",
        Holds(|world| dangerous(world, "netcat")),
    ),
    (
        "r\"\\bssh\\b\",",
        Holds(|world| dangerous(world, "ls .ssh")),
    ),
    (
        "r\"\\bscp\\b\",",
        Holds(|world| dangerous(world, "scp a b")),
    ),
    ("r\"\\bsftp\\b\",", Holds(|world| dangerous(world, "sftp"))),
    (
        "r\"\\bsudo\\b\",",
        Holds(|world| dangerous(world, "sudo ls")),
    ),
    ("r\"\\bsu\\b\",", Holds(|world| dangerous(world, "su -"))),
    (
        "r\"\\bpython\\b.*-\\bc\\b\",",
        Holds(|world| dangerous(world, "python x -c y")),
    ),
    (
        "r\"\\bpython3\\b.*-\\bc\\b\",",
        Holds(|world| dangerous(world, "python3 -c 'print(1)'")),
    ),
    (
        "r\"\\bnode\\b.*-\\be\\b\",",
        Holds(|world| dangerous(world, "node -e 1")),
    ),
    (
        "r\"\\beval\\b\",",
        Holds(|world| dangerous(world, "ls; eval ls")),
    ),
    (
        "r\"\\bexec\\b\",",
        Holds(|world| dangerous(world, "exec ls")),
    ),
    (
        "r\";\\s*rm\\s+-rf\\s+/\",",
        Holds(|world| dangerous(world, "ls;rm  -rf /")),
    ),
    (
        "r\">\\s+/dev/\",",
        Holds(|world| dangerous(world, "ls > /dev/x")),
    ),
    (
        "r\"<\\s*/dev/\",\n]",
        Holds(|world| dangerous(world, "cat </dev/x")),
    ),
    (
        "_DANGEROUS_RE = re.compile(\"|\".join(_DANGEROUS_PATTERNS), re.IGNORECASE)",
        Holds(|world| dangerous(world, "echo SuDo")),
    ),
    (
        "def _check_dangerous(command: str) -> str | None:\n\
         \"\"\"Return block reason if the command contains dangerous patterns, else None.\"\"\"\n\
         if _DANGEROUS_RE.search(command):\n\
         return \"Command contains disallowed patterns for non-admin users.\"\nreturn None",
        Holds(|world| {
            dangerous(world, "ls 'not a sudo really'");
            assert_eq!(run(&world.alice, "echo pseudo")["output"], "pseudo\n");
        }),
    ),
    (
        "def _resolve_working_dir(working_dir: str | None, user_id: str | None = None, role: str | \
         None = None) -> Path | None:\n\
         \"\"\"Resolve working directory with sandbox enforcement for non-admins.\"\"\"\n\
         user_id = user_id or current_user_id.get(None)\nrole = role or current_user_role.get()\n\
         if user_id and role != \"admin\":\nsandbox = Path(\"user_data\") / user_id\n\
         sandbox = sandbox.expanduser().resolve()\n\
         sandbox.mkdir(parents=True, exist_ok=True)",
        Test(
            "crates/cli/tests/it/multi_user.rs",
            "a_directory_of_ones_own_is_made_when_it_is_first_used",
        ),
    ),
    (
        "if working_dir:\np = Path(working_dir).expanduser()\nif p.is_absolute():\n\
         resolved = p.resolve()\ntry:\nresolved.relative_to(sandbox)\nreturn resolved",
        Holds(|world| {
            let own = world.home.base().join("user_data/alice");
            let asked = json!({ "action": "run", "command": "echo *", "working_dir": own });
            assert_eq!(call(&world.alice, asked)["output"], "mine\n");
        }),
    ),
    (
        "except ValueError:\nreturn None",
        Holds(|world| {
            for dir in ["/etc", "/", "~"] {
                let asked = json!({ "action": "run", "command": "ls", "working_dir": dir });
                assert_eq!(
                    refused(&world.alice, asked),
                    error("sandbox_violation", OUTSIDE)
                );
            }
        }),
    ),
    (
        "return (sandbox / p).resolve()",
        Holds(|world| {
            std::fs::create_dir_all(world.home.base().join("user_data/alice/sub")).unwrap();
            let asked = json!({ "action": "run", "command": "echo $PWD", "working_dir": "sub" });
            let told = call(&world.alice, asked);
            assert!(
                told["output"]
                    .as_str()
                    .unwrap()
                    .ends_with("user_data/alice/sub\n")
            );
            // Theirs does not look where that leads; here nobody gets out.
            let asked = json!({ "action": "run", "command": "ls", "working_dir": "sub/../.." });
            assert_eq!(
                refused(&world.alice, asked),
                error("sandbox_violation", OUTSIDE)
            );
        }),
    ),
    (
        "return sandbox",
        Holds(|world| {
            let told = run(&world.alice, "echo $PWD");
            assert!(
                told["output"]
                    .as_str()
                    .unwrap()
                    .ends_with("user_data/alice\n")
            );
        }),
    ),
    (
        "if working_dir:\nreturn Path(working_dir).expanduser().resolve()\nreturn None",
        // Theirs lets administrators out; here nobody runs outside the base.
        Test(HERE, "working_directories_stay_inside"),
    ),
    (
        "class TerminalTool(Tool):\nname = \"terminal\"",
        Holds(|world| assert_eq!(world.tool()["name"], "terminal")),
    ),
    (
        "description = (\n\
         \"Run shell commands locally. Supports both one-shot execution (run) and \"\n\
         \"persistent named terminal sessions (open/close/list/status/send_input). \"\n\
         \"Use persistent terminals for long-running processes, dev servers, or \"\n\
         \"interactive workflows where state (cwd, env) must be preserved.\"\n)",
        Holds(|world| {
            assert_eq!(
                world.tool()["description"],
                "Run shell commands locally. Supports both one-shot execution (run) and \
                 persistent named terminal sessions (open/close/list/status/send_input). \
                 Use persistent terminals for long-running processes, dev servers, or \
                 interactive workflows where state (cwd, env) must be preserved."
            );
        }),
    ),
    (
        "parameters = {\n\"type\": \"object\",\n\"properties\": {",
        Holds(|world| {
            let schema = &world.tool()["inputSchema"];
            assert_eq!(schema["type"], "object");
            // In their order, in which a model fills them in.
            let tool = world.tool();
            assert_eq!(
                super::fields(&tool),
                [
                    "action",
                    "terminal_name",
                    "description",
                    "command",
                    "background",
                    "working_dir",
                    "timeout",
                    "input"
                ]
            );
        }),
    ),
    (
        "\"action\": {\n\"type\": \"string\",\n\
         \"enum\": [\"run\", \"open\", \"close\", \"list\", \"status\", \"send_input\"],\n\
         \"description\": \"Operation to perform.\",\n},",
        Holds(|world| {
            assert_eq!(
                world.property("action"),
                json!({
                    "type": "string",
                    "enum": ["run", "open", "close", "list", "status", "send_input"],
                    "description": "Operation to perform.",
                })
            );
        }),
    ),
    (
        "\"terminal_name\": {\n\"type\": \"string\",\n\
         \"description\": \"Name for the persistent terminal (required for open, close, status, \
         send_input).\",\n},",
        Holds(|world| {
            let said = "Name for the persistent terminal (required for open, close, status, \
                        send_input).";
            let expected = json!({ "type": "string", "description": said });
            assert_eq!(world.property("terminal_name"), expected);
        }),
    ),
    (
        "\"description\": {\n\"type\": \"string\",\n\
         \"description\": \"Why this terminal is being opened (required for open).\",\n},",
        Holds(|world| {
            let said = "Why this terminal is being opened (required for open).";
            let expected = json!({ "type": "string", "description": said });
            assert_eq!(world.property("description"), expected);
        }),
    ),
    (
        "\"command\": {\n\"type\": \"string\",\n\
         \"description\": \"Shell command to execute (required for run and open).\",\n},",
        Holds(|world| {
            let said = "Shell command to execute (required for run and open).";
            let expected = json!({ "type": "string", "description": said });
            assert_eq!(world.property("command"), expected);
        }),
    ),
    (
        "\"background\": {\n\"type\": \"boolean\",\n\
         \"description\": \"Run in background without waiting for completion (for open). Default \
         false.\",\n},",
        Holds(|world| {
            let said =
                "Run in background without waiting for completion (for open). Default false.";
            let expected = json!({ "type": "boolean", "description": said });
            assert_eq!(world.property("background"), expected);
        }),
    ),
    (
        "\"working_dir\": {\n\"type\": \"string\",\n\
         \"description\": \"Working directory (optional, defaults to home or sandbox).\",\n},",
        Holds(|world| {
            let said = "Working directory (optional, defaults to home or sandbox).";
            let expected = json!({ "type": "string", "description": said });
            assert_eq!(world.property("working_dir"), expected);
        }),
    ),
    (
        "\"timeout\": {\n\"type\": \"integer\",\n\
         \"description\": f\"Timeout in seconds (default {_DEFAULT_TIMEOUT}, max \
         {_MAX_TIMEOUT}).\",\n},",
        Holds(|world| {
            let said = "Timeout in seconds (default 20, max 300).";
            let expected = json!({ "type": "integer", "description": said });
            assert_eq!(world.property("timeout"), expected);
        }),
    ),
    (
        "\"input\": {\n\"type\": \"string\",\n\
         \"description\": \"Text to send to the terminal's stdin (for send_input).\",\n},\n},",
        Holds(|world| {
            let said = "Text to send to the terminal's stdin (for send_input).";
            let expected = json!({ "type": "string", "description": said });
            assert_eq!(world.property("input"), expected);
        }),
    ),
    (
        "\"required\": [\"action\"],\n}",
        Holds(|world| assert_eq!(world.tool()["inputSchema"]["required"], json!(["action"]))),
    ),
    (
        "def __init__(self, terminal_manager: TerminalManager | None = None) -> None:\n\
         self._tm = terminal_manager\n\
         # ── Execute dispatcher ─────────────────────────────────────────────────\n\
         async def execute(self, params: dict, ctx: ToolContext | None = None) -> ToolResult:",
        No("how it is called there"),
    ),
    (
        "action = params.get(\"action\", \"\")\nif not action:\n\
         return ToolResult(success=False, output=\"Missing 'action' parameter.\", \
         error=\"missing_action\")",
        Holds(|world| {
            let missing = error("missing_action", "Missing 'action' parameter.");
            assert_eq!(world.told(json!({})), missing);
            assert_eq!(world.told(json!({ "action": "" })), missing);
        }),
    ),
    (
        "role = ctx.user_role if ctx else current_user_role.get()\n\
         user_id = ctx.user_id if ctx else current_user_id.get(None)\n\
         session_id = ctx.session_id if ctx else None",
        // Not from what a call says of itself.
        Test(HERE, "whatever_is_wrong_has_a_code"),
    ),
    (
        "match action:\ncase \"run\":\nreturn await self._run(params, role, user_id)\n\
         case \"open\":\nreturn await self._open(params, role, user_id, session_id)\n\
         case \"close\":\nreturn await self._close(params, session_id)\n\
         case \"list\":\nreturn self._list(session_id)\n\
         case \"status\":\nreturn self._status(params, session_id)\n\
         case \"send_input\":\nreturn await self._send_input(params, session_id)",
        No("each of them is below"),
    ),
    (
        "case _:\n\
         return ToolResult(success=False, output=f\"Unknown action: {action}\", \
         error=\"invalid_action\")",
        Holds(|world| {
            let told = world.told(json!({ "action": "reopen" }));
            assert_eq!(told, error("invalid_action", "Unknown action: reopen"));
        }),
    ),
    (
        "# ── Action handlers ──────────────────────────────────────────────────────\n\
         async def _run(self, params: dict, role: str | None, user_id: str | None) -> ToolResult:\n\
         \"\"\"One-shot command execution (original terminal behaviour).\"\"\"",
        No("a heading"),
    ),
    (
        "command = params.get(\"command\", \"\").strip()\nif not command:\n\
         return ToolResult(success=False, output=\"Empty command.\", error=\"empty_command\")",
        Holds(|world| {
            for asked in [
                json!({ "action": "run" }),
                json!({ "action": "run", "command": " " }),
            ] {
                assert_eq!(world.told(asked), error("empty_command", "Empty command."));
            }
            assert_eq!(run(&world.admin, "\n echo hi \t")["output"], "hi\n");
        }),
    ),
    (
        "working_dir = params.get(\"working_dir\") or None",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "pwd", "working_dir": "" });
            let base = world.home.base();
            assert_eq!(
                call(&world.admin, asked)["output"],
                format!("{}\n", base.display())
            );
        }),
    ),
    (
        "raw_timeout = params.get(\"timeout\")\n\
         timeout = max(1, min(int(raw_timeout), _MAX_TIMEOUT)) if raw_timeout is not None else \
         _DEFAULT_TIMEOUT",
        Test(
            "crates/mcp/src/terminal/params.rs",
            "timeouts_are_read_as_whole_numbers_within_bounds",
        ),
    ),
    (
        "cwd = _resolve_working_dir(working_dir, user_id, role)\nif cwd is None and working_dir:\n\
         return ToolResult(success=False, output=\"Working directory is outside your sandbox.\", \
         error=\"sandbox_violation\")",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "ls", "working_dir": "/etc" });
            let told = error(
                "sandbox_violation",
                "Working directory is outside your sandbox.",
            );
            assert_eq!(refused(&world.alice, asked), told);
        }),
    ),
    (
        "# Admin / legacy unrestricted mode\nif not user_id or role == \"admin\":\n\
         unrestricted = settings.terminal_allowed_commands.strip() == \"*\"\nif unrestricted:\n\
         return await self._run_shell(command, cwd, timeout)",
        Holds(|world| assert_eq!(run(&world.admin, "echo $((6 * 7))")["output"], "42\n")),
    ),
    (
        "return await self._run_restricted(command, cwd, timeout)",
        Holds(|world| {
            assert_eq!(
                run(&world.listed, "echo $((6 * 7))")["output"],
                "$((6 * 7))\n"
            );
        }),
    ),
    (
        "# Non-admin multi-user mode\ndanger = _check_dangerous(command)\nif danger:\n\
         return ToolResult(success=False, output=f\"Blocked: {danger}\", error=\"dangerous_command\")",
        Holds(|world| dangerous(world, "echo curl")),
    ),
    (
        "return await self._run_user_restricted(command, cwd, timeout)",
        Holds(|world| assert_eq!(run(&world.alice, "echo a | tr a b")["output"], "b\n")),
    ),
    (
        "async def _open(self, params: dict, role: str | None, user_id: str | None, session_id: str \
         | None) -> ToolResult:",
        No("a heading"),
    ),
    (
        "if self._tm is None:\n\
         return ToolResult(success=False, output=\"Terminal manager is not available.\", \
         error=\"no_manager\")",
        No(NO_MANAGER),
    ),
    (
        "if not session_id:\n\
         return ToolResult(success=False, output=\"Persistent terminals require a session context.\", \
         error=\"no_session\")",
        Test(HERE, "a_session_that_is_closed_has_no_terminals"),
    ),
    (
        "name = params.get(\"terminal_name\", \"\").strip()\n\
         description = params.get(\"description\", \"\").strip()\n\
         command = params.get(\"command\", \"\").strip()\n\
         background = bool(params.get(\"background\"))\n\
         working_dir = params.get(\"working_dir\") or None\nraw_timeout = params.get(\"timeout\")\n\
         timeout = max(1, min(int(raw_timeout), _MAX_TIMEOUT)) if raw_timeout is not None else \
         _DEFAULT_TIMEOUT",
        Holds(|world| {
            let asked = json!({ "action": "open", "terminal_name": "  x ", "background": 1,
                                "description": " why\n", "command": "\tcat " });
            let known = call(&world.admin, asked)["metadata"].clone();
            assert_eq!(
                [&known["name"], &known["description"], &known["command"]],
                ["x", "why", "cat"]
            );
            assert_eq!(with(&world.admin, "close", " x ")["success"], true);
        }),
    ),
    (
        "if not name:\n\
         return ToolResult(success=False, output=\"Missing 'terminal_name' for open.\", \
         error=\"missing_name\")",
        Holds(|world| {
            let told = world.told(opening("terminal_name", json!(" ")));
            assert_eq!(
                told,
                error("missing_name", "Missing 'terminal_name' for open.")
            );
        }),
    ),
    (
        "if not description:\n\
         return ToolResult(success=False, output=\"Missing 'description' for open.\", \
         error=\"missing_description\")",
        Holds(|world| {
            let told = world.told(opening("description", json!(null)));
            assert_eq!(
                told,
                error("missing_description", "Missing 'description' for open.")
            );
        }),
    ),
    (
        "if not command:\n\
         return ToolResult(success=False, output=\"Missing 'command' for open.\", \
         error=\"empty_command\")",
        Holds(|world| {
            let told = world.told(opening("command", json!("")));
            assert_eq!(told, error("empty_command", "Missing 'command' for open."));
        }),
    ),
    (
        "cwd = _resolve_working_dir(working_dir, user_id, role)\nif cwd is None and working_dir:\n\
         return ToolResult(success=False, output=\"Working directory is outside your sandbox.\", \
         error=\"sandbox_violation\")",
        Holds(|world| {
            let told = refused(&world.alice, opening("working_dir", json!("/etc")));
            assert_eq!(told, error("sandbox_violation", OUTSIDE));
        }),
    ),
    (
        "# Security checks (same as run)\nif not user_id or role == \"admin\":\n\
         unrestricted = settings.terminal_allowed_commands.strip() == \"*\"\nif not unrestricted:\n\
         tokens = shlex.split(command)\nallowed = settings.terminal_allowed_commands_list\n\
         if tokens and tokens[0] not in allowed:\nreturn ToolResult(\nsuccess=False,\n\
         output=f\"Command '{tokens[0]}' not allowed. Allowed: {allowed}.\",\n\
         error=\"not_allowed\",\n)",
        Holds(|world| {
            let told = refused(&world.listed, opening("command", json!("'id' -u")));
            let text = "Command 'id' not allowed. Allowed: ['ls', 'cat', 'git', 'echo', 'gone'].";
            assert_eq!(told, error("not_allowed", text));
        }),
    ),
    (
        "else:\ndanger = _check_dangerous(command)\nif danger:\n\
         return ToolResult(success=False, output=f\"Blocked: {danger}\", error=\"dangerous_command\")",
        Holds(|world| {
            let told = refused(&world.alice, opening("command", json!("cat ~/.ssh")));
            assert_eq!(told, error("dangerous_command", DANGEROUS));
        }),
    ),
    (
        "tokens = shlex.split(command)\nallowed = settings.terminal_user_allowed_commands_list\n\
         if tokens and tokens[0] not in allowed:\nreturn ToolResult(\nsuccess=False,\n\
         output=f\"Command '{tokens[0]}' not allowed for non-admin users. Allowed: {allowed}.\",\n\
         error=\"not_allowed\",\n)",
        Holds(|world| {
            let told = refused(&world.alice, opening("command", json!("id")));
            let text =
                "Command 'id' not allowed for non-admin users. Allowed: ['ls', 'echo', 'cat'].";
            assert_eq!(told, error("not_allowed", text));
        }),
    ),
    (
        "# Determine whether to use shell or exec based on restrictions\n\
         exec_tokens: list[str] | None = None\nif not user_id or role == \"admin\":\n\
         unrestricted = settings.terminal_allowed_commands.strip() == \"*\"\nif not unrestricted:\n\
         try:\nexec_tokens = shlex.split(command)\nexcept ValueError as e:\n\
         return ToolResult(success=False, output=f\"Invalid command syntax: {e}\", error=str(e))",
        Holds(|world| {
            let told = open(&world.listed, "x", "echo 'a  b'; id", false);
            assert_eq!(told["output"], "a  b; id\n");
            // Theirs fails at the first of the two, without an answer.
            let told = refused(&world.listed, opening("command", json!("echo \"")));
            let text = "Invalid command syntax: No closing quotation";
            assert_eq!(told, error("No closing quotation", text));
        }),
    ),
    (
        "else:\n# Non-admin: always use exec to enforce restrictions\ntry:\n\
         exec_tokens = shlex.split(command)\nexcept ValueError as e:\n\
         return ToolResult(success=False, output=f\"Invalid command syntax: {e}\", error=str(e))",
        Holds(|world| {
            assert_eq!(
                open(&world.alice, "x", "echo $HOME; id", false)["output"],
                "$HOME; id\n"
            );
            let told = refused(&world.alice, opening("command", json!("echo \\")));
            let text = "Invalid command syntax: No escaped character";
            assert_eq!(told, error("No escaped character", text));
        }),
    ),
    (
        "try:\nsession = await self._tm.open(\nsession_id=session_id,\nname=name,\n\
         description=description,\ncommand=command,\nbackground=background,\ncwd=cwd,\n\
         timeout=timeout,\nevent_sink=current_event_sink.get(),\nexec_tokens=exec_tokens,\n)",
        Holds(|world| {
            let told = open(&world.admin, "kept", "cat", true);
            assert_eq!(told["metadata"]["cwd"], json!(world.home.base()));
        }),
    ),
    (
        "except ValueError as e:\nreturn ToolResult(success=False, output=str(e), \
         error=\"already_exists\")",
        Holds(|world| {
            let told = open(&world.admin, "kept", "cat", true);
            assert_eq!(told["error"], "already_exists");
            let text = told["output"].as_str().unwrap();
            assert!(text.starts_with("terminal `kept` already exists"), "{text}");
        }),
    ),
    (
        "except Exception as e:\n\
         return ToolResult(success=False, output=f\"Failed to open terminal: {e}\", error=str(e))",
        Holds(|world| {
            let (what, text) = world.told(opening("working_dir", json!("nowhere")));
            assert_eq!(text, format!("Failed to open terminal: {what}"));
        }),
    ),
    (
        "if background:\nreturn ToolResult(\nsuccess=True,\n\
         output=f\"Terminal '{name}' opened in background. PID: {session.proc.pid if session.proc \
         else 'N/A'}.\",\nmetadata=session.summary(),\n)",
        Holds(|world| {
            let told = open(&world.admin, "other", "cat", true);
            let pid = told["metadata"]["pid"].as_u64().unwrap();
            let text = format!("Terminal 'other' opened in background. PID: {pid}.");
            assert_eq!(told["output"], text);
            assert_eq!(told["success"], true);
            with(&world.admin, "close", "other");
        }),
    ),
    (
        "# Foreground open — gather output and close immediately\n\
         output_parts = list(session.output_buffer)\ncombined = \"\".join(output_parts)\n\
         if len(combined) > _MAX_OUTPUT_CHARS:\n\
         combined = combined[:_MAX_OUTPUT_CHARS] + f\"\\n…[truncated — {len(combined)} chars total]\"",
        Holds(|world| {
            let told = open(&world.admin, "front", "printf 'x%.0s' $(seq 6000)", false);
            let cut = format!("{}\n…[truncated — 6000 chars total]", "x".repeat(5000));
            assert_eq!(told["output"], cut);
        }),
    ),
    (
        "rc = session.proc.returncode if session.proc else None\n\
         # Close foreground terminal immediately so it doesn't clutter list\n\
         await self._tm.close(session_id, name)",
        Holds(|world| {
            open(&world.admin, "front", "true", false);
            let list = call(&world.admin, json!({ "action": "list" }));
            let text = list["output"].as_str().unwrap();
            assert!(!text.contains("front"), "{text}");
        }),
    ),
    (
        "return ToolResult(\nsuccess=rc == 0,\noutput=combined or \"(no output)\",\n\
         metadata={\"returncode\": rc, **session.summary()},\n\
         error=None if rc == 0 else f\"Exit code {rc}\",\n)",
        Holds(|world| {
            let told = open(&world.admin, "front", "true", false);
            assert_eq!(
                (&told["success"], &told["error"]),
                (&json!(true), &json!(null))
            );
            assert_eq!(told["output"], "(no output)");
            let told = open(&world.admin, "front", "exit 3", false);
            assert_eq!(
                (&told["success"], &told["error"]),
                (&json!(false), &json!("Exit code 3"))
            );
            let known = &told["metadata"];
            assert_eq!(
                (&known["returncode"], &known["name"]),
                (&json!(3), &json!("front"))
            );
        }),
    ),
    (
        "async def _close(self, params: dict, session_id: str | None) -> ToolResult:\n\
         if self._tm is None:\n\
         return ToolResult(success=False, output=\"Terminal manager is not available.\", \
         error=\"no_manager\")",
        No(NO_MANAGER),
    ),
    (
        "if not session_id:\n\
         return ToolResult(success=False, output=\"No session context.\", error=\"no_session\")",
        No(NO_SESSION),
    ),
    (
        "name = params.get(\"terminal_name\", \"\").strip()\nif not name:\n\
         return ToolResult(success=False, output=\"Missing 'terminal_name' for close.\", \
         error=\"missing_name\")",
        Holds(|world| {
            let told = world.told(json!({ "action": "close" }));
            assert_eq!(
                told,
                error("missing_name", "Missing 'terminal_name' for close.")
            );
        }),
    ),
    (
        "ok = await self._tm.close(session_id, name)\nif not ok:\n\
         return ToolResult(success=False, output=f\"Terminal '{name}' not found.\", \
         error=\"not_found\")",
        Holds(|world| {
            let told = world.told(json!({ "action": "close", "terminal_name": "none" }));
            assert_eq!(told, error("not_found", "Terminal 'none' not found."));
        }),
    ),
    (
        "return ToolResult(success=True, output=f\"Terminal '{name}' closed.\")",
        Holds(|world| {
            assert_eq!(
                with(&world.admin, "close", "kept")["output"],
                "Terminal 'kept' closed."
            );
        }),
    ),
    (
        "def _list(self, session_id: str | None) -> ToolResult:\nif self._tm is None:\n\
         return ToolResult(success=False, output=\"Terminal manager is not available.\", \
         error=\"no_manager\")",
        No(NO_MANAGER),
    ),
    (
        "if not session_id:\n\
         return ToolResult(success=False, output=\"No session context.\", error=\"no_session\")",
        No(NO_SESSION),
    ),
    (
        "items = self._tm.list(session_id)\nif not items:\n\
         return ToolResult(success=True, output=\"No active terminals for this session.\")",
        Holds(|world| {
            let told = call(&world.admin, json!({ "action": "list" }));
            assert_eq!(told["output"], "No active terminals for this session.");
            assert_eq!(told["success"], true);
        }),
    ),
    (
        "lines = [f\"Active terminals ({len(items)}):\"]\nfor item in items:\n\
         status_emoji = \"🟢\" if item[\"status\"] == \"busy\" else \"⚪\"\nlines.append(\n\
         f\" {status_emoji} {item['name']}: {item['description']} \"\n\
         f\"({item['status']}, PID {item.get('pid') or 'N/A'}, \"\n\
         f\"uptime {item.get('uptime_seconds', 0)}s)\"\n)\n\
         return ToolResult(success=True, output=\"\\n\".join(lines), metadata={\"terminals\": items})",
        Holds(|world| {
            open(&world.admin, "one", "cat", true);
            open(&world.admin, "two", "sleep 1000", true);
            let list = || call(&world.admin, json!({ "action": "list" }));
            eventually("one waits for input", || {
                list()["metadata"]["terminals"][0]["status"] == "idle"
            });
            let told = list();
            let line = |mark: &str, at: usize| {
                let item = &told["metadata"]["terminals"][at];
                format!(
                    "  {mark} {}: for a test ({}, PID {}, uptime {}s)",
                    item["name"].as_str().unwrap(),
                    item["status"].as_str().unwrap(),
                    item["pid"],
                    item["uptime_seconds"]
                )
            };
            let lines = ["Active terminals (2):".into(), line("⚪", 0), line("🟢", 1)];
            assert_eq!(told["output"], lines.join("\n"));
        }),
    ),
    (
        "def _status(self, params: dict, session_id: str | None) -> ToolResult:\n\
         if self._tm is None:\n\
         return ToolResult(success=False, output=\"Terminal manager is not available.\", \
         error=\"no_manager\")",
        No(NO_MANAGER),
    ),
    (
        "if not session_id:\n\
         return ToolResult(success=False, output=\"No session context.\", error=\"no_session\")",
        No(NO_SESSION),
    ),
    (
        "name = params.get(\"terminal_name\", \"\").strip()\nif not name:\n\
         return ToolResult(success=False, output=\"Missing 'terminal_name' for status.\", \
         error=\"missing_name\")",
        Holds(|world| {
            let told = world.told(json!({ "action": "status" }));
            assert_eq!(
                told,
                error("missing_name", "Missing 'terminal_name' for status.")
            );
        }),
    ),
    (
        "st = self._tm.status(session_id, name)\nif st is None:\n\
         return ToolResult(success=False, output=f\"Terminal '{name}' not found.\", \
         error=\"not_found\")",
        Holds(|world| {
            let told = world.told(json!({ "action": "status", "terminal_name": "none" }));
            assert_eq!(told, error("not_found", "Terminal 'none' not found."));
        }),
    ),
    (
        "lines = [\nf\"Terminal: {st['name']}\",\nf\"Description: {st['description']}\",\n\
         f\"Command: {st['command']}\",\nf\"Status: {st['status']}\",\n\
         f\"PID: {st.get('pid') or 'N/A'}\",\nf\"CWD: {st.get('cwd') or 'N/A'}\",\n\
         f\"Uptime: {st.get('uptime_seconds', 0)}s\",\nf\"Last active: {st['last_active']}\",\n]",
        Holds(|world| {
            let told = with(&world.admin, "status", "two");
            let known = &told["metadata"];
            let text = format!(
                "Terminal: two\nDescription: for a test\nCommand: sleep 1000\nStatus: busy\n\
                 PID: {}\nCWD: {}\nUptime: {}s\nLast active: {}",
                known["pid"],
                world.home.base().display(),
                known["uptime_seconds"],
                known["last_active"].as_str().unwrap()
            );
            assert_eq!(told["output"], text);
        }),
    ),
    (
        "tail = st.get(\"output_tail\", [])\nif tail:\nlines.append(\"Output tail:\")\n\
         for line in tail:\nlines.append(f\" {line.rstrip()}\")\n\
         return ToolResult(success=True, output=\"\\n\".join(lines), metadata=st)",
        Holds(|world| {
            send(&world.admin, "one", "hi \n");
            shows(&world.admin, "one", "\nOutput tail:\n  hi\n  hi");
            let told = with(&world.admin, "status", "one");
            assert_eq!(told["metadata"]["output_tail"], json!(["hi", "hi"]));
        }),
    ),
    (
        "async def _send_input(self, params: dict, session_id: str | None) -> ToolResult:\n\
         if self._tm is None:\n\
         return ToolResult(success=False, output=\"Terminal manager is not available.\", \
         error=\"no_manager\")",
        No(NO_MANAGER),
    ),
    (
        "if not session_id:\n\
         return ToolResult(success=False, output=\"No session context.\", error=\"no_session\")",
        No(NO_SESSION),
    ),
    (
        "name = params.get(\"terminal_name\", \"\").strip()\ntext = params.get(\"input\", \"\")",
        Holds(|world| {
            // Nothing is as good as any text.
            assert_eq!(with(&world.admin, "send_input", " one ")["success"], true);
        }),
    ),
    (
        "if not name:\n\
         return ToolResult(success=False, output=\"Missing 'terminal_name' for send_input.\", \
         error=\"missing_name\")",
        Holds(|world| {
            let told = world.told(json!({ "action": "send_input", "input": "x" }));
            assert_eq!(
                told,
                error("missing_name", "Missing 'terminal_name' for send_input.")
            );
        }),
    ),
    (
        "ok = await self._tm.send_input(session_id, name, text)\nif not ok:\n\
         return ToolResult(success=False, output=f\"Cannot send input to '{name}'. Terminal may be \
         closed or not accepting input.\", error=\"send_failed\")",
        Holds(|world| {
            let told = send(&world.admin, "none", "x");
            let text =
                "Cannot send input to 'none'. Terminal may be closed or not accepting input.";
            assert_eq!(
                (&told["error"], &told["output"]),
                (&json!("send_failed"), &json!(text))
            );
        }),
    ),
    (
        "return ToolResult(success=True, output=f\"Sent input to '{name}'.\")",
        Holds(|world| {
            // As it is: in pieces, too.
            for piece in ["in pie", "ces\n"] {
                assert_eq!(
                    send(&world.admin, "one", piece)["output"],
                    "Sent input to 'one'."
                );
            }
            shows(&world.admin, "one", "\n  in pieces\n  in pieces");
        }),
    ),
    (
        "# ── Low-level runners (unchanged from original) ─────────────────────────\n\
         async def _run_shell(self, command: str, cwd: Path | None, timeout: int) -> ToolResult:\n\
         \"\"\"Run via shell — supports pipes, redirects, etc.\"\"\"\ntry:\n\
         proc = await asyncio.create_subprocess_shell(\ncommand,\nstdout=asyncio.subprocess.PIPE,\n\
         stderr=asyncio.subprocess.PIPE,\ncwd=cwd,\n)",
        Holds(|world| {
            let told = run(&world.admin, "echo \"$0\"; echo oh | cat >&2");
            assert_eq!(told["output"], "/bin/sh\n\n[stderr]\noh\n");
        }),
    ),
    (
        "try:\nstdout, stderr = await asyncio.wait_for(proc.communicate(), timeout=timeout)\n\
         except asyncio.TimeoutError:\nproc.kill()\n\
         return ToolResult(success=False, output=f\"Timed out after {timeout}s\", error=\"timeout\")",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "sleep 1000", "timeout": 1 });
            assert_eq!(world.told(asked), error("timeout", "Timed out after 1s"));
        }),
    ),
    (
        "output_parts = []\nif stdout:\noutput_parts.append(stdout.decode(errors=\"replace\"))",
        Holds(|world| {
            assert_eq!(
                run(&world.admin, "printf 'a\\377b\\n'")["output"],
                "a\u{fffd}b\n"
            );
        }),
    ),
    (
        "if stderr:\noutput_parts.append(f\"[stderr]\\n{stderr.decode(errors=\"replace\")}\")",
        Holds(|world| assert_eq!(run(&world.admin, "echo oh >&2")["output"], "[stderr]\noh\n")),
    ),
    (
        "combined = \"\\n\".join(output_parts) or \"(no output)\"",
        Holds(|world| {
            assert_eq!(
                run(&world.admin, "printf a; printf b >&2")["output"],
                "a\n[stderr]\nb"
            );
            assert_eq!(run(&world.admin, "true")["output"], "(no output)");
        }),
    ),
    (
        "if len(combined) > _MAX_OUTPUT_CHARS:\n\
         combined = combined[:_MAX_OUTPUT_CHARS] + f\"\\n…[truncated — {len(combined)} chars total]\"",
        Holds(|world| {
            let told = run(&world.admin, "seq 1000 9999");
            let text = told["output"].as_str().unwrap();
            assert!(text.ends_with("\n1999\n\n…[truncated — 45000 chars total]"));
            assert_eq!(
                text.chars().count(),
                5000 + "\n…[truncated — 45000 chars total]".chars().count()
            );
        }),
    ),
    (
        "success = proc.returncode == 0\nreturn ToolResult(\nsuccess=success,\noutput=combined,\n\
         metadata={\"returncode\": proc.returncode},\n\
         error=None if success else f\"Exit code {proc.returncode}\",\n)",
        Holds(|world| {
            for (command, code, error) in [
                ("true", 0, json!(null)),
                ("exit 9", 9, json!("Exit code 9")),
                ("kill -15 $$", -15, json!("Exit code -15")),
            ] {
                let told = run(&world.admin, command);
                assert_eq!(told["success"], code == 0);
                assert_eq!(told["metadata"]["returncode"], code);
                assert_eq!(told["error"], error);
            }
        }),
    ),
    (
        "except Exception as e:\n\
         return ToolResult(success=False, output=f\"Execution error: {e}\", error=str(e))",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "ls", "working_dir": "nowhere" });
            let (what, text) = world.told(asked);
            assert_eq!(text, format!("Execution error: {what}"));
        }),
    ),
    (
        "async def _run_restricted(self, command: str, cwd: Path | None, timeout: int) -> \
         ToolResult:\n\
         \"\"\"Run with allowlist check — exec directly, no shell features.\"\"\"\ntry:\n\
         tokens = shlex.split(command)\nexcept ValueError as e:\n\
         return ToolResult(success=False, output=f\"Invalid command syntax: {e}\", error=str(e))",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "echo 'a" });
            let text = "Invalid command syntax: No closing quotation";
            assert_eq!(
                refused(&world.listed, asked),
                error("No closing quotation", text)
            );
        }),
    ),
    (
        "if not tokens:\n\
         return ToolResult(success=False, output=\"Empty command.\", error=\"empty_command\")",
        Test(POLICY, "multi_user_for_administrators"),
    ),
    (
        "allowed = settings.terminal_allowed_commands_list\nif tokens[0] not in allowed:\n\
         return ToolResult(\nsuccess=False,\n\
         output=f\"Command '{tokens[0]}' is not in the allowed list. \"\n\
         f\"Allowed: {allowed}. Set TERMINAL_ALLOWED_COMMANDS=* to allow all.\",\n\
         error=\"not_allowed\",\n)",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "id" });
            let text = "Command 'id' is not in the allowed list. Allowed: ['ls', 'cat', 'git', \
                        'echo', 'gone']. Set TERMINAL_ALLOWED_COMMANDS=* to allow all.";
            assert_eq!(refused(&world.listed, asked), error("not_allowed", text));
        }),
    ),
    (
        "try:\nproc = await asyncio.create_subprocess_exec(\n*tokens,\n\
         stdout=asyncio.subprocess.PIPE,\nstderr=asyncio.subprocess.PIPE,\ncwd=cwd,\n)",
        Holds(|world| {
            let told = run(&world.listed, "echo 'a  b' | cat > $HOME; id");
            assert_eq!(told["output"], "a  b | cat > $HOME; id\n");
        }),
    ),
    (
        "try:\nstdout, stderr = await asyncio.wait_for(proc.communicate(), timeout=timeout)\n\
         except asyncio.TimeoutError:\nproc.kill()\n\
         return ToolResult(success=False, output=f\"Timed out after {timeout}s\", error=\"timeout\")\n\
         output_parts = []\nif stdout:\noutput_parts.append(stdout.decode(errors=\"replace\"))\n\
         if stderr:\noutput_parts.append(f\"[stderr]\\n{stderr.decode(errors=\"replace\")}\")\n\
         combined = \"\\n\".join(output_parts) or \"(no output)\"\n\
         if len(combined) > _MAX_OUTPUT_CHARS:\n\
         combined = combined[:_MAX_OUTPUT_CHARS] + f\"\\n…[truncated — {len(combined)} chars total]\"\n\
         success = proc.returncode == 0\nreturn ToolResult(\nsuccess=success,\noutput=combined,\n\
         metadata={\"returncode\": proc.returncode},\n\
         error=None if success else f\"Exit code {proc.returncode}\",\n)",
        Holds(|world| {
            // The same as above.
            let told = run(&world.listed, "ls nowhere");
            assert!(
                told["output"]
                    .as_str()
                    .unwrap()
                    .starts_with("[stderr]\nls: "),
                "{told}"
            );
            assert_eq!(told["error"], "Exit code 2");
        }),
    ),
    (
        "except FileNotFoundError:\n\
         return ToolResult(success=False, output=f\"Command not found: {tokens[0]}\", \
         error=\"not_found\")",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "gone x" });
            let told = error("not_found", "Command not found: gone");
            assert_eq!(refused(&world.listed, asked), told);
        }),
    ),
    (
        "except Exception as e:\n\
         return ToolResult(success=False, output=f\"Execution error: {e}\", error=str(e))",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "ls", "working_dir": "nowhere" });
            let (what, text) = refused(&world.listed, asked);
            assert_eq!(text, format!("Execution error: {what}"));
        }),
    ),
    (
        "async def _run_user_restricted(self, command: str, cwd: Path | None, timeout: int) -> \
         ToolResult:\n\
         \"\"\"Run for non-admin users: allowlist + shell features + sandbox cwd.\"\"\"\ntry:\n\
         tokens = shlex.split(command)\nexcept ValueError as e:\n\
         return ToolResult(success=False, output=f\"Invalid command syntax: {e}\", error=str(e))",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "echo 'a" });
            let text = "Invalid command syntax: No closing quotation";
            assert_eq!(
                refused(&world.alice, asked),
                error("No closing quotation", text)
            );
        }),
    ),
    (
        "if not tokens:\n\
         return ToolResult(success=False, output=\"Empty command.\", error=\"empty_command\")",
        Test(POLICY, "multi_user_for_users"),
    ),
    (
        "allowed = settings.terminal_user_allowed_commands_list\nif tokens[0] not in allowed:\n\
         return ToolResult(\nsuccess=False,\n\
         output=f\"Command '{tokens[0]}' is not in the allowed list for non-admin users. \"\n\
         f\"Allowed: {allowed}.\",\nerror=\"not_allowed\",\n)",
        Holds(|world| {
            let asked = json!({ "action": "run", "command": "id" });
            let text = "Command 'id' is not in the allowed list for non-admin users. Allowed: ['ls', \
                        'echo', 'cat'].";
            assert_eq!(refused(&world.alice, asked), error("not_allowed", text));
        }),
    ),
    (
        "return await self._run_shell(command, str(cwd) if cwd else None, timeout)",
        Holds(|world| {
            let told = run(&world.alice, "echo a | tr a b; id -u >&2");
            assert!(
                told["output"]
                    .as_str()
                    .unwrap()
                    .starts_with("b\n\n[stderr]\n"),
                "{told}"
            );
        }),
    ),
];

#[test]
fn every_line_of_the_source_holds() {
    walk(&World::new(), DOCUMENT);
}
