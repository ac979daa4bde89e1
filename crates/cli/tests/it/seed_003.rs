//! The plan that `/agent/terminal` is owed to, line by line, as somebody would
//! try it who has nothing else.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::caller::{Caller, Said, add, audit, sandbox};
use crate::mcp::walk::Here::{Holds, No, Test};
use crate::mcp::walk::{Here, walk};
use crate::mcp::{Client, refused};
use crate::support::{Home, Server};

/// A server that judges as the plan does, its owner, and the agent of the plan.
struct World {
    owner: Caller,
    alphonse: Caller,
    token: String,
    /// Where the agent works.
    files: Value,
    _server: Server,
    home: Home,
}

impl World {
    fn new() -> Self {
        let home = Home::strict();
        let server = home.serve_with("preset = \"approval\"\n");
        let owner = Caller::owner(&home);
        let token = add(&home, "alphonse", "agent", json!({}));
        Self {
            alphonse: owner.bearing(&token),
            token,
            files: sandbox(&home, "files", json!({})),
            owner,
            _server: server,
            home,
        }
    }

    /// Has the agent ask for a command in its sandbox.
    fn ask(&self, command: &str) -> Said {
        self.ask_with(command, json!({}))
    }

    /// The same with more in the request.
    fn ask_with(&self, command: &str, more: Value) -> Said {
        let mut asked = json!({ "sandbox_id": self.files["sandbox_id"], "command": command });
        for (name, value) in more.as_object().unwrap() {
            asked[name] = value.clone();
        }
        self.alphonse.post("/commands", &asked)
    }

    /// Has the owner answer for a command, and waits until it has ended.
    fn decide(&self, run: &Value, how: &str) -> Value {
        let path = format!("/commands/{}", text(&run["command_id"]));
        let said = self.owner.post(&format!("{path}/{how}"), &Value::Null);
        said.expect(200);
        let ended = self.owner.get(&format!("{path}?wait_ms=60000"));
        ended.expect(200)
    }

    /// What the policy says of a command, which need not be installed.
    fn verdict(&self, command: &str) -> String {
        let asked = json!({ "command": command, "sandbox_id": self.files["sandbox_id"] });
        let said = self.alphonse.post("/policies/explain", &asked).expect(200);
        text(&said["verdict"]).to_owned()
    }

    fn has(&self, file: &str) -> bool {
        self.home.base().join("files").join(file).exists()
    }

    /// The names of a table's columns.
    fn columns(&self, table: &str) -> Vec<String> {
        let database = Connection::open(self.home.state().join("weighlock.db")).unwrap();
        let mut found = database
            .prepare("SELECT name FROM pragma_table_info(?1)")
            .unwrap();
        let names = found.query_map([table], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    }

    #[track_caller]
    fn has_columns(&self, table: &str, wanted: &[&str]) {
        let found = self.columns(table);
        for name in wanted {
            assert!(found.iter().any(|one| one == name), "{table}: {found:?}");
        }
    }

    /// One sandbox of the agent's owner, to be changed and taken away.
    fn other(&self) -> Value {
        sandbox(&self.home, "other", json!({}))
    }
}

#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// What the verdict of each is.
#[track_caller]
fn all(world: &World, commands: &[&str], verdict: &str) {
    for command in commands {
        assert_eq!(world.verdict(command), verdict, "{command}");
    }
}

const REPORTED: &str = "crates/cli/tests/it/reported.rs";

const DOCUMENT: &[(&str, Here<World>)] = &[
    ("# Terminal Tool Plan", No("a heading")),
    ("## Goal", No("a heading")),
    (
        "Allow Alphonse to execute safe, user-approved shell commands within sandboxed directories.",
        Holds(|world| {
            let waits = world.ask("touch made").expect(202);
            let ran = world.decide(&waits, "approve");
            assert_eq!((&ran["exit_code"], world.has("made")), (&json!(0), true));
            assert_eq!(ran["sandbox"]["level"], "full");
        }),
    ),
    ("## Requirements", No("a heading")),
    (
        "- Auto-approve read-only commands.",
        Holds(|world| {
            let ran = world.ask("ls").expect(200);
            assert_eq!(ran["status"], "executed");
            assert_eq!(ran["approved_by"], Value::Null);
        }),
    ),
    (
        "- Explicit approval for write/dangerous commands.",
        Holds(|world| {
            let waits = world.ask("touch unasked").expect(202);
            assert_eq!(waits["status"], "pending");
            assert!(!world.has("unasked"));
            let ran = world.decide(&waits, "approve");
            assert_eq!(ran["approved_by"], json!(world.home.me()));
        }),
    ),
    (
        "- Sandbox directories stored in nerve-db (per user/workspace).",
        Holds(|world| {
            let database = Connection::open(world.home.state().join("weighlock.db")).unwrap();
            let sql = "SELECT path FROM terminal_sandboxes WHERE label = 'files'";
            let path: String = database.query_row(sql, [], |row| row.get(0)).unwrap();
            assert_eq!(json!(path), world.files["path"]);
        }),
    ),
    (
        "- Commands run synchronously for now.",
        Holds(|world| {
            // And longer ones answer with a handle.
            let ran = world.ask("cat made; ls").expect(200);
            assert_eq!(
                (&ran["status"], &ran["exit_code"]),
                (&json!("executed"), &json!(0))
            );
        }),
    ),
    (
        "- Full audit trail (command, output, exit code, approvals).",
        Holds(|world| {
            let waits = world.ask("touch told; echo said; exit 3").expect(202);
            let ran = world.decide(&waits, "approve");
            let id = text(&ran["command_id"]);
            let told: Vec<Value> = audit(&world.home, &format!("run={id}"));
            let told = Value::from(told).to_string();
            for wanted in [
                "touch told; echo said; exit 3",
                "\"exit_code\":3",
                "approval",
            ] {
                assert!(told.contains(wanted), "no {wanted} in {told}");
            }
            assert_eq!(world.home.output(id), b"said\n");
            world.home.assert_audit_verifies();
        }),
    ),
    ("## Concepts", No("a heading")),
    ("### Tool: `terminal`", No("a heading")),
    (
        "Runs a single command in a sandbox root.",
        Holds(|world| {
            let ran = world.ask("pwd").expect(200);
            assert_eq!(ran["stdout"], format!("{}\n", text(&world.files["path"])));
        }),
    ),
    (
        "The tool itself never selects a sandbox.",
        Holds(|world| {
            let asked = json!({ "command": "ls" });
            let said = world.alphonse.post("/commands", &asked);
            assert_eq!(said.outcome(), (400, "no_sandbox_named".into()));
            let flags = ["--toolset", "terminal"];
            let agent = Client::stdio_as(&world.home, &world.token, &flags, json!({}));
            let run = json!({ "action": "run", "command": "ls" });
            let told = agent.call("terminal", run);
            assert!(told.failed, "{told:?}");
            assert_eq!(told.data["metadata"]["code"], "no_sandbox_named");
        }),
    ),
    ("### Ability: `terminal.run_command`", No("a heading")),
    (
        "Collects:\n- `sandbox_id`\n- `command`\n- `cwd`",
        Holds(|world| {
            std::fs::create_dir(world.home.base().join("files/below")).unwrap();
            let ran = world.ask_with("pwd", json!({ "cwd": "below" })).expect(200);
            assert_eq!(ran["sandbox_id"], world.files["sandbox_id"]);
            assert_eq!(ran["command"], "pwd");
            assert_eq!(ran["cwd"], format!("{}/below", text(&world.files["path"])));
            assert_eq!(ran["stdout"], format!("{}\n", text(&ran["cwd"])));
        }),
    ),
    ("Steps:", No("a heading")),
    (
        "1. Validate the sandbox exists and is active.",
        Holds(|world| {
            let nowhere = world.ask_with("ls", json!({ "sandbox_id": "nowhere" }));
            assert_eq!(nowhere.outcome(), (404, "no_such_sandbox".into()));
            let path = format!("/sandboxes/{}", text(&world.files["sandbox_id"]));
            let switch = |on: bool| {
                let change = json!({ "is_active": on });
                world.owner.ask("PATCH", &path, &change).expect(200);
            };
            switch(false);
            assert_eq!(world.ask("ls").outcome(), (409, "sandbox_inactive".into()));
            switch(true);
            world.ask("ls").expect(200);
        }),
    ),
    (
        "2. Parse command type (read-only vs write/dangerous).\n\
         3. If read-only, auto-approve and execute.\n\
         4. If write/dangerous, request approval.",
        Holds(|world| {
            // By what it does, not by its first word.
            all(world, &["ls", "ls | head -1", "cat made && pwd"], "auto");
            all(
                world,
                &["ls > listed", "ls; rm made", "cat $(touch x)"],
                "ask",
            );
        }),
    ),
    (
        "5. Execute and log results.",
        Holds(|world| {
            let ran = world.ask("ls nowhere").expect(200);
            let path = format!("/commands/{}", text(&ran["command_id"]));
            let logged = world.alphonse.get(&path).expect(200);
            assert_eq!(logged["status"], "failed");
            assert_eq!(
                (&logged["exit_code"], &logged["stderr"]),
                (&json!(2), &ran["stderr"])
            );
        }),
    ),
    ("## Policy (initial)", No("a heading")),
    (
        "### Auto-approve\n- `ls`, `pwd`, `rg`, `cat`, `head`, `tail`, `stat`",
        Holds(|world| {
            let listed = ["ls", "pwd", "rg x", "cat x", "head x", "tail x", "stat x"];
            all(world, &listed, "auto");
        }),
    ),
    (
        "### Require approval\n- `touch`, `mkdir`, `cp`, `mv`, `rm`",
        Holds(|world| {
            all(
                world,
                &["touch x", "mkdir x", "cp x y", "mv x y", "rm x"],
                "ask",
            );
        }),
    ),
    (
        "### Always reject\n- `sudo`, `curl | sh`, package installs, `rm -rf /`",
        Holds(|world| {
            let listed = [
                "sudo ls",
                "curl x.example | sh",
                "apt-get install x",
                "rm -rf /",
            ];
            all(world, &listed, "reject");
            let said = world.ask("sudo ls").expect(200);
            assert_eq!(said["status"], "rejected");
            assert_eq!(said["started_at"], Value::Null);
        }),
    ),
    ("## Data Model (nerve-db)", No("a heading")),
    (
        "### `terminal_sandboxes`\n- `sandbox_id`\n- `owner_principal_id`\n- `label`\n- `path`\n\
         - `is_active`\n- `created_at`, `updated_at`",
        Holds(|world| {
            let names = [
                "sandbox_id",
                "owner_principal_id",
                "label",
                "path",
                "is_active",
                "created_at",
                "updated_at",
            ];
            world.has_columns("terminal_sandboxes", &names);
            assert!(names.iter().all(|&name| !world.files[name].is_null()));
        }),
    ),
    (
        "### `terminal_sessions`\n- `session_id`\n- `principal_id`\n- `sandbox_id`\n\
         - `status` (`pending|approved|rejected|executed|failed`)\n- `created_at`, `updated_at`",
        Holds(|world| {
            let names = [
                "session_id",
                "principal_id",
                "sandbox_id",
                "status",
                "created_at",
                "updated_at",
            ];
            world.has_columns("terminal_sessions", &names);
            let named = |name: &str| json!({ "session_id": name });
            let status = |run: &Value| {
                let path = format!("/sessions/{}", text(&run["session_id"]));
                let session = world.alphonse.get(&path).expect(200);
                assert!(
                    names.iter().all(|&name| !session[name].is_null()),
                    "{session}"
                );
                text(&session["status"]).to_owned()
            };
            let waits = world.ask_with("touch x", named("s")).expect(202);
            assert_eq!(status(&waits), "pending");
            world.decide(&waits, "reject");
            assert_eq!(status(&waits), "rejected");
            let ran = world.ask_with("ls", named("s")).expect(200);
            assert_eq!(status(&ran), "executed");
            let failed = world.ask_with("ls nowhere", named("s")).expect(200);
            assert_eq!(status(&failed), "failed");
            let external = json!({ "session_id": "s", "executor": "external" });
            let begun = world.ask_with("ls", external).expect(202);
            assert_eq!(status(&begun), "approved");
        }),
    ),
    (
        "### `terminal_commands`\n- `command_id`\n- `session_id`\n- `command`\n- `cwd`\n- `status`\n\
         - `stdout`\n- `stderr`\n- `exit_code`\n- `requested_by`\n- `approved_by`\n\
         - `created_at`, `updated_at`",
        Holds(|world| {
            let names = [
                "command_id",
                "session_id",
                "command",
                "cwd",
                "status",
                "exit_code",
                "requested_by",
                "approved_by",
                "created_at",
                "updated_at",
            ];
            world.has_columns("terminal_commands", &names);
            let waits = world.ask("touch x; echo out; echo err >&2").expect(202);
            let ran = world.decide(&waits, "approve");
            assert!(names.iter().all(|&name| !ran[name].is_null()), "{ran}");
            // Output may be long: it is in files beside the database.
            assert_eq!(
                (&ran["stdout"], &ran["stderr"]),
                (&json!("out\n"), &json!("err\n"))
            );
            assert_eq!(ran["requested_by"], "alphonse");
        }),
    ),
    ("## API Endpoints", No("a heading")),
    ("### Sandboxes", No("a heading")),
    (
        "- `GET /agent/terminal/sandboxes`\n\
         - `GET /agent/terminal/sandboxes/{sandbox_id}`\n\
         - `POST /agent/terminal/sandboxes`\n\
         - `PATCH /agent/terminal/sandboxes/{sandbox_id}`\n\
         - `DELETE /agent/terminal/sandboxes/{sandbox_id}`",
        Holds(|world| {
            let other = world.other();
            let path = format!("/sandboxes/{}", text(&other["sandbox_id"]));
            let listed = world.owner.get("/sandboxes").expect(200)["sandboxes"].to_string();
            assert!(listed.contains(text(&other["sandbox_id"])), "{listed}");
            assert_eq!(world.owner.get(&path).expect(200), other);
            let change = json!({ "label": "renamed" });
            let changed = world.owner.ask("PATCH", &path, &change).expect(200);
            assert_eq!(changed["label"], "renamed");
            assert_eq!(world.owner.ask("DELETE", &path, &Value::Null).status, 204);
            assert_eq!(world.owner.get(&path).status, 404);
            assert!(world.home.base().join("other").exists());
        }),
    ),
    ("### Commands + Approval", No("a heading")),
    (
        "- `POST /agent/terminal/commands`\n\
         - `GET /agent/terminal/commands`\n\
         - `GET /agent/terminal/commands/{command_id}`\n\
         - `POST /agent/terminal/commands/{command_id}/approve`\n\
         - `POST /agent/terminal/commands/{command_id}/reject`",
        Holds(|world| {
            let (first, second) = (world.ask("touch first"), world.ask("touch second"));
            let (first, second) = (first.expect(202), second.expect(202));
            let listed = world.alphonse.get("/commands?limit=2").expect(200);
            assert_eq!(listed["commands"][1]["command_id"], first["command_id"]);
            assert_eq!(world.decide(&first, "approve")["status"], "executed");
            assert_eq!(world.decide(&second, "reject")["status"], "rejected");
            assert_eq!((world.has("first"), world.has("second")), (true, false));
            // An agent decides nothing.
            let third = world.ask("touch third").expect(202);
            for how in ["approve", "reject"] {
                let path = format!("/commands/{}/{how}", text(&third["command_id"]));
                assert_eq!(world.alphonse.post(&path, &Value::Null).status, 403);
            }
        }),
    ),
    (
        "- `POST /agent/terminal/commands/{command_id}/finalize`",
        Test(REPORTED, "a_report_is_recorded_once_and_can_be_read"),
    ),
    ("## UI Flow", No("a heading")),
    (
        "1. User requests a file action.\n2. Alphonse proposes command + sandbox.",
        Holds(|world| {
            let waits = world.ask("touch proposed").expect(202);
            let path = format!("/approvals/{}", text(&waits["approval_id"]));
            let asked = world.owner.get(&path).expect(200);
            assert_eq!(
                (&asked["command"], &asked["sandbox"]),
                (&json!("touch proposed"), &json!("files"))
            );
        }),
    ),
    (
        "3. UI shows approval prompt if needed.",
        Test(
            "ui/tests/run.spec.ts",
            "a run that waits leads to its question",
        ),
    ),
    (
        "4. Upon approval, run and show output.",
        Test(
            "ui/tests/inbox.spec.ts",
            "a change is judged by its effect, and exactly that is applied",
        ),
    ),
    ("## Notes", No("a heading")),
    (
        "- Sandbox ownership should be per principal (admin or user).",
        Holds(|world| assert_eq!(world.files["owner_principal_id"], json!(world.home.me()))),
    ),
    (
        "- Multiple sandboxes are allowed per principal.",
        Holds(|world| {
            let second = sandbox(&world.home, "second", json!({}));
            let [one, two] = [&world.files, &second];
            assert_eq!(one["owner_principal_id"], two["owner_principal_id"]);
            assert_ne!(one["sandbox_id"], two["sandbox_id"]);
        }),
    ),
    (
        "- Channel access should not override sandbox permissions.",
        Holds(|world| {
            sandbox(&world.home, "secret", json!({ "agents": [] }));
            let said = world.ask_with("ls", json!({ "sandbox_id": "secret" }));
            assert_eq!(said.outcome(), (404, "no_such_sandbox".into()));
            let flags = ["--sandbox", "secret"];
            let agent = Client::stdio_as(&world.home, &world.token, &flags, json!({}));
            let call = agent.begin("run", json!({ "command": "ls" }));
            assert_eq!(refused(&agent, call), "no_such_sandbox");
        }),
    ),
];

#[test]
fn it_holds_line_by_line() {
    walk(&World::new(), DOCUMENT);
}
