//! The document that `run_command` is owed to, line by line: what it says, and
//! what proves it here. What fails shows the line it has come to last.

use serde_json::{Value, json};

use super::Client;
use super::client::Called;
use super::run_command::crew;
use crate::support::{Home, Server};

/// Quotes the document.
fn says(line: &str) {
    eprintln!("{line}");
}

/// A server whose agents have files.
struct Crew {
    home: Home,
    _server: Server,
}

impl Crew {
    fn new(defaults: &str, experts: &[(&str, &str)]) -> Self {
        let home = crew(defaults, experts);
        let _server = home.serve(&[]);
        Self { home, _server }
    }

    /// A client that works under a profile.
    fn agent(&self, name: &str) -> Client {
        Client::stdio(&self.home, &["--toolset", "shell", "--agent", name])
    }

    /// What the policy would make of a command, which need not be installed.
    fn verdict(&self, agent: &str, command: &str) -> Value {
        let asked = json!({ "command": command, "agent": agent });
        let (status, said) = self.home.api("POST", "/policies/explain", &asked);
        assert_eq!(status, 200, "{said}");
        said["verdict"].clone()
    }

    /// The limit of the newest run, in milliseconds.
    fn limit(&self) -> Value {
        self.home.newest()["timeout_ms"].clone()
    }
}

fn run(agent: &Client, command: &str) -> Called {
    agent.call("run_command", json!({ "command": command }))
}

/// Why a command was not run.
fn refused(agent: &Client, command: &str) -> String {
    let said = run(agent, command);
    assert!(said.failed, "{command}: {said:?}");
    said.data["error"]["message"].as_str().unwrap().to_owned()
}

const DEFAULTS: &str = "\
# config/defaults.yaml
tools:
  # Shell tools - command execution (src/tools/shell/)
  shell:
    - run_command
";

const WRITER: &str = "\
# config/experts/writer/config.yaml
tools:
  shell:
    - run_command

shell:
  # Only these commands are allowed (if set, acts as whitelist)
  allow:
    - pdflatex
    - biber
    - latexmk
    - pandoc
    - wc
    - sort
    - head
    - tail
    - grep
    - find
    - ls
    - cat
  # These are always blocked (merged with global blocklist)
  deny: []
";

#[test]
fn problem() {
    says("# Universal Shell Command Access");
    says("## Problem");
    let crew = Crew::new(
        DEFAULTS,
        &[
            ("coder", ""),
            ("debugger", ""),
            ("writer", ""),
            ("researcher", ""),
            ("custom", "# nothing\n"),
        ],
    );
    says(
        "Only `coder` and `debugger` agents have access to `run_command`. Other agents (writer, \
         researcher, custom configs) cannot execute shell commands, even when the task clearly \
         calls for it.",
    );
    for name in ["coder", "debugger", "writer", "researcher", "custom"] {
        let said = run(&crew.agent(name), "echo hi");
        assert_eq!(said.text, "Exit code: 0\n\nSTDOUT:\nhi", "{name}");
    }
    says("Real examples where this hurts:");
    says(
        "- **Writer** needs to compile LaTeX (`pdflatex`, `biber`, `latexmk`), count words (`wc`), \
         or convert formats (`pandoc`)",
    );
    for command in [
        "pdflatex a.tex",
        "biber a",
        "latexmk -pdf a",
        "pandoc a.md -o a.html",
    ] {
        assert_eq!(crew.verdict("writer", command), "auto", "{command}");
    }
    assert_eq!(
        run(&crew.agent("writer"), "echo a b | wc -w").data["stdout"],
        "2\n"
    );
    says(
        "- **Researcher** needs to run Python scripts for data analysis, use `curl` for APIs, or \
         process files with `jq`",
    );
    for command in [
        "python3 a.py",
        "curl https://example.com/api",
        "jq .a a.json",
    ] {
        assert_eq!(crew.verdict("researcher", command), "auto", "{command}");
    }
    says(
        "- **Any agent** might need to count files (`ls | wc -l`), check disk usage (`du -sh`), \
         inspect file types (`file`), or decompress archives (`unzip`, `tar`)",
    );
    let custom = crew.agent("custom");
    assert_eq!(run(&custom, "ls | wc -l").data["stdout"], "0\n");
    for command in [
        "du -sh",
        "echo a > a; tar cf a.tar a; rm a; tar xf a.tar; cat a",
    ] {
        assert_eq!(run(&custom, command).data["exit_code"], 0, "{command}");
    }
    for command in ["file a", "unzip a.zip"] {
        assert_eq!(crew.verdict("custom", command), "auto", "{command}");
    }
    says(
        "Building dedicated tools for every possible action is impractical. A shell tool is the \
         universal escape hatch.",
    );
}

#[test]
fn current_state() {
    says("## Current State");
    let crew = Crew::new(DEFAULTS, &[("coder", ""), ("debugger", "")]);
    let coder = crew.agent("coder");
    says("`run_command` already exists in `src/tools/coding/coding_tools.py` with solid security:");
    says("| Layer | Protection |");
    says("|-------|-----------|");
    says(
        "| **Command blocklist** | `sudo`, `reboot`, `shutdown`, `poweroff`, `halt`, `init`, \
         `systemctl` |",
    );
    for program in [
        "sudo",
        "reboot",
        "shutdown",
        "poweroff",
        "halt",
        "init",
        "systemctl",
    ] {
        let expected = format!("`{program}` is on the list of blocked commands");
        assert_eq!(refused(&coder, program), expected);
    }
    says(
        "| **Workspace sandbox** | `WorkspaceManager.get_path()` prevents path traversal outside \
         `workspace/job_<uuid>/` |",
    );
    let outside = json!({ "command": "touch made", "working_dir": "../.." });
    let said = coder.call("run_command", outside);
    assert_eq!(said.data["error"]["code"], "outside_base");
    says("| **Timeout cap** | Hard limit of 600s (10 minutes), default 120s |");
    for (timeout, expected) in [(json!(3600), 600_000), (Value::Null, 120_000)] {
        let command = json!({ "command": "true", "timeout": timeout });
        coder.call("run_command", command);
        assert_eq!(crew.limit(), expected);
    }
    says("| **Output truncation** | 50,000 chars per stream (stdout/stderr), keeps tail |");
    let said = run(&coder, "printf 'a%050000d' 1; printf 'bb%050000d' 2 >&2");
    let kept = |digit: char| format!("{}{digit}", "0".repeat(49_999));
    assert_eq!(
        (
            &said.data["stdout"],
            &said.data["stderr"],
            &said.data["truncated"]
        ),
        (&json!(kept('1')), &json!(kept('2')), &json!(true))
    );
    says("| **Container isolation** | In production (k3s), the container itself is the sandbox |");
    // Here every run has walls of its own: walls.rs, `files_outside_cannot_be_read`
    // and `nothing_outside_is_changed`.
    says(
        "The tool is registered under the `coding` category and enabled only in `coder` and \
         `debugger` expert configs.",
    );
    let coding = ["--toolset", "coding", "--agent", "debugger"];
    let said = run(&Client::stdio(&crew.home, &coding), "echo hi");
    assert_eq!(said.data["stdout"], "hi\n");
}

#[test]
fn add_to_defaults() {
    says("## Proposal");
    says("### Phase 1: Add to defaults (minimal change)");
    says(
        "Add `run_command` to `config/defaults.yaml` so every agent inherits it. Move it from the \
         `coding` category into a new `shell` category to make it role-neutral.",
    );
    says("```yaml");
    says(DEFAULTS);
    says("```");
    let crew = Crew::new(DEFAULTS, &[("writer", "name: writer\n")]);
    let writer = crew.agent("writer");
    assert_eq!(run(&writer, "echo hi").data["stdout"], "hi\n");
    says("Expand the blocked commands list to cover more destructive operations:");
    let list = r#"```python
BLOCKED_COMMANDS = frozenset([
    # System control
    "sudo", "su",
    "reboot", "shutdown", "poweroff", "halt", "init", "systemctl",
    # Destructive filesystem ops
    "mkfs", "dd", "fdisk", "parted", "mount", "umount",
    # Permission/ownership changes
    "chmod", "chown", "chgrp",
    # Network reconfiguration
    "iptables", "ip6tables", "nft", "ifconfig", "ip",
    # Package managers (prevent system modification)
    "dnf", "yum", "apt", "apt-get", "pacman", "zypper", "snap", "flatpak",
    # Process/service manipulation
    "kill", "killall", "pkill",
])
```"#;
    says(list);
    let programs: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(programs.len(), 33);
    for program in programs {
        let expected = format!("`{program}` is on the list of blocked commands");
        for command in [format!("{program} x"), format!("ls && /sbin/{program} x")] {
            let said = run(&writer, &command);
            assert_eq!(
                said.text.lines().next(),
                Some(expected.as_str()),
                "{command}"
            );
            assert_eq!(said.data["error"]["code"], "blocked_command");
        }
    }
    says("This is safe because:");
    says(
        "1. Agents already run in workspace-sandboxed directories — they can't touch system files",
    );
    assert_ne!(run(&writer, "touch /usr/made").data["exit_code"], 0);
    says("2. Production runs in containers — the container is the real sandbox");
    // See `security`.
    says("3. The blocklist prevents the most dangerous operations");
    let expected = "`dd` is on the list of blocked commands";
    assert!(refused(&writer, "dd if=/dev/zero of=x").starts_with(expected));
    says("4. Timeout + output truncation prevent resource exhaustion");
    // `current_state`; what they do not prevent meets other limits: bombs.rs,
    // `a_memory_bomb_meets_the_memory_limit`, `a_disk_filler_meets_the_disk_limit`.
}

#[test]
fn policies_of_agents() {
    says("### Phase 2: Per-agent command policies (future, if needed)");
    says("If finer control is needed later, add optional per-config allow/deny lists:");
    says("```yaml");
    says(WRITER);
    says("```");
    let deny = "shell:\n  deny: [git]\n";
    let crew = Crew::new(
        DEFAULTS,
        &[("writer", WRITER), ("open", ""), ("denied", deny)],
    );
    let writer = crew.agent("writer");
    for program in [
        "pdflatex", "biber", "latexmk", "pandoc", "sort", "head", "tail", "grep",
    ] {
        assert_eq!(
            crew.verdict("writer", &format!("{program} x")),
            "auto",
            "{program}"
        );
    }
    assert_eq!(
        run(&writer, "ls | cat | wc -l; find .").data["stdout"],
        "0\n.\n"
    );
    let global = "`sudo` is on the list of blocked commands";
    assert_eq!(refused(&writer, "sudo ls"), global);
    let denied = crew.agent("denied");
    assert_eq!(refused(&denied, "git log"), "`git` is denied to this agent");
    assert_eq!(refused(&denied, "sudo ls"), global, "merged");
    says("Implementation sketch for the whitelist check:");
    says("```python");
    says(
        "def _check_allowed(command: str, allow_list: Optional[List[str]] = None) -> Optional[str]:",
    );
    says(r#"    """If an allow list is configured, only permit commands on it.""""#);
    says("    if allow_list is None:");
    says("        return None  # No whitelist = all non-blocked commands allowed");
    assert_eq!(run(&crew.agent("open"), "expr 1 + 1").data["stdout"], "2\n");
    says(r#"    first_word = command.strip().split()[0] if command.strip() else """#);
    says("    if first_word not in allow_list:");
    says(
        "        return f\"Command not allowed: '{first_word}'. Allowed: {', \
         '.join(sorted(allow_list))}\"",
    );
    let allowed = "biber, cat, find, grep, head, latexmk, ls, pandoc, pdflatex, sort, tail, wc";
    for (command, first_word) in [
        ("expr 1 + 1", "expr"),
        ("  expr 1", "expr"),
        ("./ls", "./ls"),
        ("ls; cat x", "ls;"),
        // Stricter: any word that starts a program, not only the first one.
        ("ls && expr 1", "expr"),
        ("ls $(expr 1)", "expr"),
    ] {
        let expected = format!("Command not allowed: '{first_word}'. Allowed: {allowed}");
        assert_eq!(refused(&writer, command), expected, "{command}");
    }
    says("    return None");
    says("```");
    says(
        "This keeps the default behavior permissive (blocklist only) while letting specific \
         configs opt into a stricter whitelist model.",
    );
}

#[test]
fn steps() {
    says("## Implementation Steps");
    says(
        "1. **Rename module**: Move `src/tools/coding/` to `src/tools/shell/` (or create \
         `src/tools/shell/` alongside, keeping `coding/` for backwards compat)",
    );
    let crew = Crew::new(
        DEFAULTS,
        &[
            ("coder", "tools:\n  coding: [run_command]\n"),
            ("debugger", ""),
            ("talker", "tools:\n  shell: []\n"),
        ],
    );
    let tools = |toolset: &str| {
        let client = Client::stdio(&crew.home, &["--toolset", toolset, "--agent", "coder"]);
        client.tools()
    };
    assert_eq!(tools("shell"), tools("coding"));
    says("2. **Update registry**: Register under `shell` category in `TOOL_REGISTRY`");
    assert_eq!(tools("shell")[0]["name"], "run_command");
    says("3. **Expand blocklist**: Add the extended set of blocked commands");
    // See `add_to_defaults`.
    says("4. **Update defaults.yaml**: Add `shell: [run_command]` to the tools section");
    assert_eq!(
        run(&crew.agent("debugger"), "echo hi").data["stdout"],
        "hi\n"
    );
    says(
        "5. **Update expert configs**: Remove `coding: [run_command]` from `coder` and `debugger` \
         configs (they inherit from defaults now)",
    );
    // One that still has it may run commands as well.
    assert_eq!(run(&crew.agent("coder"), "echo hi").data["stdout"], "hi\n");
    says("6. **Update CLAUDE.md**: Add `shell` to the tool categories documentation");
    let guide = crate::generated::read("docs/toolsets.md");
    assert!(guide.contains("\nToolset `shell`; `coding`, its earlier name"));
    says(
        "7. **Tests**: Verify blocked commands, whitelist logic (if Phase 2), and that all expert \
         configs load correctly",
    );
    // One without the tool has no commands; files that cannot be read are
    // refused with their lines (policy/src/seed_tests.rs).
    let expected = "Agent 'talker' may not run commands: run_command is not among its tools.";
    assert_eq!(refused(&crew.agent("talker"), "ls"), expected);
}

#[test]
fn security() {
    says("## Security Considerations");
    let crew = Crew::new(DEFAULTS, &[("coder", "")]);
    let coder = crew.agent("coder");
    crew.home.put("secret", "nobody's\n");
    says("**What the workspace sandbox already prevents:**");
    says("- Reading/writing files outside `workspace/job_<uuid>/`");
    let said = run(&coder, "cat ../secret; echo x > ../made; ls");
    assert_eq!(said.data["stdout"], "", "{said:?}");
    assert!(!crew.home.around().join("made").exists());
    says(
        "- The `working_dir` parameter is validated through `WorkspaceManager.get_path()` which \
         uses `Path.resolve()` + `Path.relative_to()` to block traversal",
    );
    // More of these in run_command.rs, `nothing_runs_outside`.
    std::os::unix::fs::symlink("/etc", crew.home.base().join("away")).unwrap();
    let away = json!({ "command": "touch made", "working_dir": "away" });
    let said = coder.call("run_command", away);
    assert_eq!(said.data["error"]["code"], "outside_base");
    says("**What the blocklist prevents:**");
    for (line, commands) in [
        (
            "- Privilege escalation (`sudo`, `su`)",
            &["sudo x", "su x"][..],
        ),
        (
            "- System-level damage (`reboot`, `shutdown`, `mkfs`, `dd`)",
            &["reboot", "shutdown now", "mkfs x", "dd if=x of=y"],
        ),
        (
            "- Permission changes (`chmod`, `chown`)",
            &["chmod 777 x", "chown root x"],
        ),
        (
            "- Package installation (`apt`, `dnf`, etc.)",
            &["apt install x", "dnf install x"],
        ),
    ] {
        says(line);
        for command in commands {
            assert!(refused(&coder, command).ends_with(" is on the list of blocked commands"));
        }
    }
    says("**What the container provides (production):**");
    says("- Filesystem isolation — agent only sees its own container");
    assert_ne!(
        run(&coder, &format!("ls {}", crew.home.state().display())).data["exit_code"],
        0
    );
    says("- Network policies — no lateral movement");
    let run_view = crew.home.newest();
    assert_eq!(run_view["sandbox"]["network"], "off", "{run_view}");
    says("- Resource limits — CPU/memory caps via k3s");
    assert!(
        run_view["limits"]["memory_bytes"].as_u64() > Some(0),
        "{run_view}"
    );
    says("- No root access inside the container");
    assert_ne!(run(&coder, "id -u").data["stdout"], "0\n");
    says("**Remaining risks (acceptable):**");
    says(
        "- Agent could run a fork bomb or CPU-intensive loop — mitigated by timeout cap (600s) and \
         container resource limits",
    );
    // bombs.rs, `a_fork_bomb_meets_the_process_limit` and
    // `busy_loops_leave_others_their_turn`.
    says(
        "- Agent could fill disk with output — mitigated by output truncation and workspace quotas \
         (if configured)",
    );
    assert!(
        run_view["limits"]["disk_bytes"].as_u64() > Some(0),
        "{run_view}"
    );
    says(
        "- Agent could make network requests via `curl`/`wget` — same risk as existing \
         `web_search` tool, acceptable",
    );
    // Only where the sandbox has the network.
    let devices = run(&coder, "tail -n +3 /proc/net/dev | cut -d: -f1");
    let devices = devices.data["stdout"].as_str().unwrap().trim();
    assert_eq!(devices, "lo");
}

#[test]
fn open_questions() {
    says("## Open Questions");
    let slow = "shell:\n  default_timeout: 300\n";
    let crew = Crew::new(DEFAULTS, &[("coder", ""), ("writer", slow)]);
    let coder = crew.agent("coder");
    says(
        "- **Should `shell` replace `coding` entirely, or coexist?** Simplest to just \
         rename/relocate and keep the old `coding` key as an alias for backwards compatibility.",
    );
    // See `steps`.
    says(
        "- **Should the tool description change?** Current description is coding-focused (\"run \
         tests, linters, build commands\"). For a universal tool, the description should be \
         broader (\"execute shell commands for file processing, compilation, data transformation, \
         or any other task\").",
    );
    assert_eq!(
        coder.tools()[0]["description"],
        "Execute shell commands for file processing, compilation, data transformation, or any \
         other task."
    );
    says(
        "- **Do we need per-agent timeout overrides?** A writer compiling a large LaTeX document \
         might need more than 120s default. Could add `shell.default_timeout` to config.",
    );
    run(&coder, "true");
    assert_eq!(crew.limit(), 120_000);
    run(&crew.agent("writer"), "true");
    assert_eq!(crew.limit(), 300_000);
}
