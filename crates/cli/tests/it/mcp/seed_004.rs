//! The document that `Bash` is owed to, line by line: what it says, and what
//! proves it here. What fails shows the line it has come to last.

use serde_json::{Value, json};

use super::Client;
use super::bash::{home, told, truncate};
use crate::support::{Home, Server, eventually};

/// Quotes the document.
fn says(line: &str) {
    eprintln!("{line}");
}

/// A server that judges as the document does, and a client of it.
struct Host {
    agent: Client,
    _server: Server,
    home: Home,
}

impl Host {
    fn new() -> Self {
        Self::within(home(), &[])
    }

    fn within(home: Home, flags: &[&str]) -> Self {
        let _server = home.serve(&[]);
        let agent = Client::stdio(&home, &[&["--toolset", "bash"], flags].concat());
        Self {
            agent,
            _server,
            home,
        }
    }

    /// What `Bash` answers.
    fn bash(&self, arguments: Value) -> Value {
        told(self.agent.call("Bash", arguments))
    }

    /// What it answers to nothing but a command.
    fn run(&self, command: &str) -> Value {
        self.bash(json!({ "command": command }))
    }

    /// What its last run is on the record.
    fn last(&self) -> Value {
        self.home.newest()
    }

    /// The limit of a run in milliseconds.
    fn limit(&self, timeout: Value) -> Value {
        self.bash(json!({ "command": "true", "timeout": timeout }));
        self.last()["timeout_ms"].clone()
    }

    fn tool(&self, name: &str) -> Value {
        let mut tools = self.agent.tools().into_iter();
        tools.find(|tool| tool["name"] == name).unwrap()
    }

    /// Why a command was refused, which has nothing else to say.
    fn refused(&self, command: &str) -> Value {
        let said = self.run(command);
        let seen = ["success", "stdout", "exit_code", "duration_ms", "state"];
        let seen = seen.map(|name| said[name].clone());
        let expected = [
            json!(false),
            json!(""),
            json!(-1),
            json!(0),
            json!("blocked"),
        ];
        assert_eq!(seen, expected, "{command}: {said}");
        said["stderr"].clone()
    }
}

#[test]
fn summary() {
    says("# Proposal: Enhanced Bash Tool");
    says("- **Proposal ID**: 0028");
    says("- **Author**: mycode team");
    says("- **Status**: Draft");
    says("- **Created**: 2025-01-15");
    says("- **Updated**: 2025-01-15");
    says("## Summary");
    says(
        "Enhance the Bash tool with background execution, streaming output, improved timeout \
         handling, and safety features. This enables running long commands without blocking and \
         provides better control over shell operations.",
    );
    // Claims nothing: each of them is below.
    says("## Motivation");
    says("The current Bash tool has limitations:");
    let host = Host::new();
    says("1. **Blocking only**: Must wait for command completion");
    let started = host.bash(json!({ "command": "sleep 600", "run_in_background": true }));
    assert_eq!(started["success"], true);
    host.agent
        .call("TaskStop", json!({ "task_id": started["task_id"] }));
    says("2. **No streaming**: Output only shown after completion");
    // See `streaming`.
    says("3. **Fixed timeout**: 30 second limit is too restrictive");
    assert_eq!(host.limit(json!(300_000)), 300_000);
    says("4. **Limited safety**: No command blocking");
    host.refused("rm -rf /");
    says("5. **No working directory persistence**: Each command is isolated");
    // The design below has `cwd` instead; what keeps a directory is a shell in
    // a terminal (toolset `weighlock`).
    std::fs::create_dir(host.home.base().join("below")).unwrap();
    let base = format!("{}\n", host.home.base().display());
    assert_eq!(
        host.run("cd below; pwd")["stdout"],
        base.replace("base\n", "base/below\n")
    );
    assert_eq!(host.run("pwd")["stdout"], base);
    let below = json!({ "command": "pwd", "cwd": "below" });
    assert_eq!(
        host.bash(below)["stdout"],
        base.replace("base\n", "base/below\n")
    );
    says("Enhanced Bash enables flexible, safe shell command execution.");
}

#[test]
fn reference() {
    says("## Claude Code Reference");
    says("Claude Code's Bash tool provides rich functionality:");
    says("### From Tool Description");
    says("```");
    let host = Host::new();
    let tool = host.tool("Bash");
    let described = tool["description"].as_str().unwrap();
    says("- timeout: Optional timeout in milliseconds (up to 600000 / 10 minutes)");
    assert_eq!(host.limit(json!(600_000)), 600_000);
    says("- run_in_background: Run command without waiting for completion");
    // See `background`.
    says("- description: Clear description of what the command does");
    host.bash(json!({ "command": "true", "description": "Do nothing" }));
    assert_eq!(host.last()["description"], "Do nothing");
    says("- Output truncated at 30000 characters");
    // See `truncation`.
    says("```");
    says("### Key Features");
    says("- Configurable timeout up to 10 minutes");
    says("- Background execution with task ID");
    says("- Command description for clarity");
    says("- Output truncation");
    // `foreground`, `background`, `truncation`; the description is on record,
    // `user_experience`.
    says("- Sandboxing option");
    assert_eq!(host.last()["sandbox"]["network"], "off");
    says("### Safety Guidelines");
    says("```");
    for (line, advice) in [
        (
            "- Quote paths with spaces",
            "- Always quote paths with spaces",
        ),
        ("- Use absolute paths", "- Use absolute paths when possible"),
        (
            "- Avoid cd, prefer absolute paths",
            "- cwd: Working directory override",
        ),
        (
            "- Don't use find/grep/cat (use dedicated tools)",
            "- Prefer dedicated tools over: find, grep, cat, head, tail",
        ),
        (
            "- Chain commands with && or ;",
            "- Use && to chain dependent commands",
        ),
    ] {
        says(line);
        assert!(described.contains(advice), "{advice}");
    }
    says("```");
}

#[test]
fn api() {
    says("## Detailed Design");
    says("### API Design");
    let host = Host::new();
    let tool = host.tool("Bash");
    let input = &tool["inputSchema"];
    let field = |name: &str| input["properties"][name].clone();
    let typed = |name: &str, kind: &str, comment: &str| {
        assert_eq!(field(name)["type"], kind, "{name}");
        assert_eq!(field(name)["description"], comment);
    };
    says("```typescript");
    says("// src/tools/bash/types.ts");
    says("interface BashInput {");
    says("  command: string;");
    assert_eq!(input["required"], json!(["command"]));
    assert_eq!(field("command")["type"], "string");
    says("  description?: string;          // What this command does");
    typed("description", "string", "What this command does");
    says("  timeout?: number;              // Ms, default 120000, max 600000");
    typed("timeout", "number", "Ms, default 120000, max 600000");
    says("  run_in_background?: boolean;   // Don't wait for completion");
    typed("run_in_background", "boolean", "Don't wait for completion");
    says("  cwd?: string;                  // Working directory override");
    typed("cwd", "string", "Working directory override");
    says("  env?: Record<string, string>;  // Additional env vars");
    typed("env", "object", "Additional env vars");
    assert_eq!(field("env")["additionalProperties"]["type"], "string");
    says("}");
    assert_eq!(input["properties"].as_object().unwrap().len(), 6);
    let result = r"interface BashOutput {
  success: boolean;
  stdout: string;
  stderr: string;
  exit_code: number;
  duration_ms: number;
  truncated?: boolean;
  // For background tasks
  task_id?: string;
  output_file?: string;
}";
    says(result);
    let output = &tool["outputSchema"]["properties"];
    for line in result.lines().filter_map(|line| line.strip_suffix(';')) {
        let (name, kind) = line.trim().split_once(": ").unwrap();
        let kind = kind.replace("number", "integer");
        assert_eq!(output[name.trim_end_matches('?')]["type"], kind, "{line}");
    }
    let fields =
        |said: Value| -> Vec<String> { said.as_object().unwrap().keys().cloned().collect() };
    let plain = [
        "success",
        "stdout",
        "stderr",
        "exit_code",
        "duration_ms",
        "truncated",
    ];
    assert_eq!(fields(host.run("true")), plain);
    says(
        r"interface BashConfig {
  defaultTimeout: number;
  maxTimeout: number;
  maxOutputSize: number;
  blockedCommands: string[];
  requireDescription: boolean;
  sandboxMode: boolean;
}",
    );
    // How much is shown goes with the preset; walls are no option.
    let settings = "[limits]\ntimeout_default = \"2m\"\ntimeout_max = \"10m\"\n[policy]\n\
                    blocked_commands = [\"mkfs\"]\nrequire_description = true\n";
    let settings = host.home.put("all.toml", settings);
    let done = { &host.home }.call(&["check", "--config", settings.to_str().unwrap(), "true"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    says("const DEFAULT_CONFIG: BashConfig = {");
    says("  defaultTimeout: 120000,    // 2 minutes");
    assert_eq!(host.limit(Value::Null), 120_000);
    says("  maxTimeout: 600000,        // 10 minutes");
    let (_, asked) = host.home.ask("true", json!({ "timeout_ms": 700_000 }));
    assert_eq!(asked["timeout_ms"], 600_000, "of the preset, too");
    says("  maxOutputSize: 30000,      // 30K characters");
    // See `truncation`.
    says("  blockedCommands: [");
    for (line, blocked) in [
        ("    'rm -rf /',", "rm -rf /"),
        ("    'mkfs',", "mkfs"),
        ("    'dd if=/dev/zero',", "dd if=/dev/zero"),
        ("    ':(){:|:&};:',           // Fork bomb", ":(){:|:&};:"),
    ] {
        says(line);
        let expected = format!("Command contains blocked pattern: {blocked}");
        assert_eq!(host.refused(&format!("echo; {blocked}")), expected);
    }
    says("  ],");
    says("  requireDescription: false,");
    assert_eq!(host.run("true")["success"], true);
    let strict = Client::stdio(&host.home, &["--toolset", "bash", "--require-description"]);
    let said = strict.call("Bash", json!({ "command": "true" }));
    assert_eq!(
        (said.failed, &said.data["error"]["code"]),
        (true, &json!("missing_description"))
    );
    says("  sandboxMode: false");
    // Stricter: it cannot be turned off by whoever calls.
    assert_eq!(host.last()["sandbox"]["name"], "default");
    says("};");
    says("```");
}

#[test]
fn the_tool() {
    says("### Enhanced Bash Tool");
    says("```typescript");
    says("// src/tools/bash/bash-tool.ts");
    says("const bashTool: Tool<BashInput> = {");
    says("  name: 'Bash',");
    let host = Host::new();
    let tool = host.tool("Bash");
    let described = r"  description: `Execute shell commands with configurable options.

Parameters:
- command: The command to execute (required)
- description: What this command does (recommended)
- timeout: Timeout in milliseconds (default: 120000, max: 600000)
- run_in_background: Run without waiting (returns task_id)
- cwd: Working directory override
- env: Additional environment variables

Best practices:
- Always quote paths with spaces
- Use absolute paths when possible
- Use && to chain dependent commands
- Use ; to run commands regardless of previous success
- Prefer dedicated tools over: find, grep, cat, head, tail

For long-running commands, use run_in_background: true
and TaskOutput tool to check results.
`,";
    says(described);
    assert_eq!(tool["description"], described.split('`').nth(1).unwrap());
    let field = |name: &str| tool["inputSchema"]["properties"][name].clone();
    let refused = |arguments: Value| {
        let said = host.agent.call("Bash", arguments);
        assert!(
            said.failed && said.data["error"]["hint"].is_string(),
            "{said:?}"
        );
    };
    says("  parameters: z.object({");
    says("    command: z.string().min(1),");
    assert_eq!(field("command")["minLength"], 1);
    refused(json!({}));
    refused(json!({ "command": "" }));
    says("    description: z.string().optional(),");
    refused(json!({ "command": "true", "description": 1 }));
    says("    timeout: z.number().min(0).max(600000).optional(),");
    let range = (
        field("timeout")["minimum"].clone(),
        field("timeout")["maximum"].clone(),
    );
    assert_eq!(range, (json!(0), json!(600_000)));
    refused(json!({ "command": "true", "timeout": -1 }));
    refused(json!({ "command": "true", "timeout": 600_001 }));
    says("    run_in_background: z.boolean().optional(),");
    refused(json!({ "command": "true", "run_in_background": 1 }));
    says("    cwd: z.string().optional(),");
    refused(json!({ "command": "true", "cwd": 1 }));
    says("    env: z.record(z.string()).optional()");
    refused(json!({ "command": "true", "env": { "A": 1 } }));
    says("  }),");
    // What such an object does not know it drops.
    assert_eq!(
        host.bash(json!({ "command": "true", "more": 1 }))["success"],
        true
    );
    says("  execute: async (input, context) => {");
    says("    return bashExecutor.execute(input, context);");
    says("  }");
    says("};");
    says("```");
}

#[test]
fn foreground() {
    says("### Bash Executor");
    says(
        r"```typescript
// src/tools/bash/executor.ts
class BashExecutor {
  private config: BashConfig;
  private taskManager: TaskManager;

  constructor(config?: Partial<BashConfig>) {
    this.config = { ...DEFAULT_CONFIG, ...config };
    this.taskManager = new TaskManager();
  }",
    );
    // The settings of the server (`api`), and its tasks (`background`).
    let host = Host::new();
    says("  async execute(input: BashInput, context: ToolContext): Promise<BashOutput> {");
    says("    // Safety check");
    says("    const safetyResult = this.checkSafety(input.command);");
    says("    if (!safetyResult.safe) {");
    says(
        r"      return {
        success: false,
        stdout: '',
        stderr: safetyResult.reason,
        exit_code: -1,
        duration_ms: 0
      };
    }",
    );
    assert_eq!(host.refused("chmod -R 777 ."), "Insecure permissions");
    says("    // Determine execution mode");
    says("    if (input.run_in_background) {");
    says("      return this.executeBackground(input, context);");
    says("    }");
    // See `background`; what is blocked is not started there either.
    let said = host.bash(json!({ "command": "rm -rf /", "run_in_background": true }));
    assert_eq!(
        (&said["exit_code"], &said["task_id"]),
        (&json!(-1), &Value::Null)
    );
    says("    return this.executeForeground(input, context);");
    says("  }");
    says("  private async executeForeground(");
    says("    input: BashInput,");
    says("    context: ToolContext");
    says("  ): Promise<BashOutput> {");
    says("    const timeout = Math.min(");
    says("      input.timeout || this.config.defaultTimeout,");
    assert_eq!(host.limit(json!(0)), 120_000);
    says("      this.config.maxTimeout");
    says("    );");
    says("    const cwd = input.cwd || context.cwd;");
    let base = format!("{}\n", host.home.base().display());
    assert_eq!(
        host.bash(json!({ "command": "pwd", "cwd": "" }))["stdout"],
        base
    );
    says("    const start = Date.now();");
    let took = host.agent.call("Bash", json!({ "command": "true" }));
    assert!(took.data["duration_ms"].is_u64());
    says(
        r"    try {
      const { stdout, stderr } = await execAsync(input.command, {
        cwd,
        timeout,",
    );
    says("        maxBuffer: this.config.maxOutputSize * 2,");
    // More is not an error here: see `truncation`.
    says("        env: { ...process.env, ...input.env },");
    let env = json!({ "command": "echo $A $HOME", "env": { "A": "a", "HOME": "/h" } });
    assert_eq!(host.bash(env)["stdout"], "a /h\n");
    says("        shell: '/bin/bash'");
    assert_eq!(
        host.run("[[ a == a ]] && echo ${BASH##*/}")["stdout"],
        "bash\n"
    );
    says("      });");
    says(
        r"      return {
        success: true,
        stdout: this.truncate(stdout),
        stderr: this.truncate(stderr),
        exit_code: 0,
        duration_ms: Date.now() - start,
        truncated: stdout.length > this.config.maxOutputSize
      };",
    );
    assert_eq!(
        host.run("echo a; echo b >&2"),
        json!({ "success": true, "stdout": "a\n", "stderr": "b\n", "exit_code": 0,
                "duration_ms": "some", "truncated": false })
    );
    says("    } catch (error) {");
    says("      const execError = error as ExecException;");
    says("      return {");
    says("        success: false,");
    says("        stdout: this.truncate(execError.stdout || ''),");
    let failed = host.run("echo a; echo b >&2; exit 7");
    assert_eq!(
        (&failed["success"], &failed["stdout"]),
        (&json!(false), &json!("a\n"))
    );
    says("        stderr: this.truncate(execError.stderr || execError.message),");
    assert_eq!(failed["stderr"], "b\n");
    assert_eq!(host.run("false")["stderr"], "Command failed: false\n");
    says("        exit_code: execError.code || 1,");
    assert_eq!(failed["exit_code"], 7);
    assert_eq!(host.run("kill -9 $$")["exit_code"], 1);
    let late =
        host.bash(json!({ "command": "trap 'exit 0' TERM; sleep 600 & wait", "timeout": 200 }));
    assert_eq!(
        (&late["success"], &late["exit_code"]),
        (&json!(false), &json!(1))
    );
    says("        duration_ms: Date.now() - start");
    assert_eq!(failed["duration_ms"], "some");
    says("      };");
    says("    }");
    says("  }");
}

#[test]
fn background() {
    let host = Host::new();
    says("  private async executeBackground(");
    says("    input: BashInput,");
    says("    context: ToolContext");
    says("  ): Promise<BashOutput> {");
    let command = "echo $A; until test -e go; do sleep 0.01; done; pwd >&2; exit 5";
    std::fs::create_dir(host.home.base().join("below")).unwrap();
    let started = host.bash(
        json!({ "command": command, "description": "Wait", "cwd": "below",
                                    "env": { "A": "a" }, "run_in_background": true }),
    );
    let task = started["task_id"].as_str().unwrap();
    let file = started["output_file"].as_str().unwrap();
    says("    const taskId = generateTaskId('bash');");
    assert!(task.starts_with("bash-"), "{task}");
    says("    const outputFile = path.join(os.tmpdir(), `mycode-${taskId}.log`);");
    // Not where everybody may write.
    assert!(file.ends_with(&format!("/{task}.log")), "{file}");
    says("    const cwd = input.cwd || context.cwd;");
    assert_eq!(
        host.last()["cwd"],
        host.home.base().join("below").to_str().unwrap()
    );
    says(
        r"    const child = spawn('bash', ['-c', input.command], {
      cwd,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...input.env }
    });",
    );
    assert_eq!(host.last()["shell"], "bash");
    says("    // Setup output logging");
    says("    const logStream = fs.createWriteStream(outputFile);");
    eventually("it is written", || {
        std::fs::read_to_string(file).unwrap() == "a\n"
    });
    says("    child.stdout?.pipe(logStream);");
    says("    child.stderr?.pipe(logStream);");
    // `background` compares both at the end, when each has written something.
    says("    // Register with task manager");
    says("    this.taskManager.register({");
    let listed = told(host.agent.call("TaskList", json!({})));
    let listed = &listed["tasks"][0];
    for (line, name, value) in [
        ("      id: taskId,", "task_id", task),
        ("      type: 'bash',", "task_id", task),
        ("      command: input.command,", "command", command),
        (
            "      description: input.description,",
            "description",
            "Wait",
        ),
    ] {
        says(line);
        assert_eq!(listed[name], value, "{listed}");
    }
    says("      pid: child.pid!,");
    let (_, shown) = host
        .home
        .api("GET", &format!("/tasks/{task}"), &Value::Null);
    assert!(shown["processes"][0]["pid"].is_u64(), "{shown}");
    says("      outputFile,");
    assert_eq!(listed["output_file"], file);
    says("      startedAt: new Date(),");
    assert!(listed["started_at"].is_string());
    says("      status: 'running'");
    assert_eq!(listed["status"], "running");
    says("    });");
    says("    // Handle completion");
    says("    child.on('exit', (code) => {");
    says("      this.taskManager.complete(taskId, code || 0);");
    says("    });");
    std::fs::write(host.home.base().join("below/go"), "").unwrap();
    let ended = told(host.agent.call("TaskOutput", json!({ "task_id": task })));
    let below = format!("a\n{}\n", host.home.base().join("below").display());
    assert_eq!(
        (&ended["status"], &ended["exit_code"], &ended["output"]),
        (&json!("failed"), &json!(5), &json!(below))
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), below);
    says("    // Detach");
    says("    child.unref();");
    // It outlives the server, since tasks are runs: crash.rs,
    // `a_killed_server_finds_every_run_again_and_its_truth`.
    says("    return {");
    says(
        r"      success: true,
      stdout: `Background task started: ${taskId}`,
      stderr: '',
      exit_code: 0,
      duration_ms: 0,
      task_id: taskId,
      output_file: outputFile
    };
  }",
    );
    let message = format!("Background task started: {task}");
    let expected = json!({ "success": true, "stdout": message, "stderr": "", "exit_code": 0,
                           "duration_ms": 0, "task_id": task, "output_file": file });
    assert_eq!(started, expected);
}

#[test]
fn safety() {
    let host = Host::new();
    says("  private checkSafety(command: string): { safe: boolean; reason: string } {");
    says("    // Check blocked patterns");
    says("    for (const blocked of this.config.blockedCommands) {");
    says("      if (command.includes(blocked)) {");
    says("        return {");
    says("          safe: false,");
    says("          reason: `Command contains blocked pattern: ${blocked}`");
    // Anywhere in it, and whatever it means there.
    for command in ["ls; rm -rf /tmp/x", "echo 'rm -rf /'"] {
        assert_eq!(
            host.refused(command),
            "Command contains blocked pattern: rm -rf /"
        );
    }
    says("        };");
    says("      }");
    says("    }");
    says("    // Warn about dangerous patterns");
    says("    const dangerous = [");
    for (line, commands, reason) in [
        (
            r"      { pattern: /rm\s+-rf\s+\//, reason: 'Recursive delete from root' },",
            ["rm  -rf /", "ls; rm -rf  /home"],
            "Recursive delete from root",
        ),
        (
            r"      { pattern: />\s*\/dev\/sd/, reason: 'Writing to block device' },",
            ["echo x > /dev/sda", "echo >/dev/sdb1"],
            "Writing to block device",
        ),
        (
            r"      { pattern: /chmod\s+-R\s+777/, reason: 'Insecure permissions' },",
            ["chmod -R 777 x", "chmod  -R  777 x"],
            "Insecure permissions",
        ),
    ] {
        says(line);
        for command in commands {
            assert_eq!(host.refused(command), reason, "{command}");
        }
    }
    says("    ];");
    says("    for (const { pattern, reason } of dangerous) {");
    says("      if (pattern.test(command)) {");
    says("        return { safe: false, reason };");
    says("      }");
    says("    }");
    says("    return { safe: true, reason: '' };");
    assert_eq!(
        host.run("mkdir -p x/y; rm -rf x; chmod 700 .")["stderr"],
        ""
    );
    says("  }");
}

#[test]
fn truncation() {
    let host = Host::new();
    says(
        r"  private truncate(output: string): string {
    if (output.length <= this.config.maxOutputSize) {
      return output;
    }",
    );
    let zeros = |count: usize| format!("printf '%0{count}d' 1");
    let expected = |count: usize| truncate(&format!("{}1", "0".repeat(count - 1)));
    assert_eq!(
        host.run(&zeros(30_000))["stdout"].as_str().unwrap().len(),
        30_000
    );
    says("    const half = Math.floor(this.config.maxOutputSize / 2);");
    says("    const truncated = output.length - this.config.maxOutputSize;");
    says(
        r"    return `${output.slice(0, half)}\n\n... (${truncated} characters truncated) ...\n\n${output.slice(-half)}`;
  }
}",
    );
    // Characters are what people count as such, not units of UTF-16; more in
    // bash.rs, `long_output_loses_its_middle`.
    for count in [30_001, 75_678] {
        let said = host.run(&zeros(count));
        assert_eq!(said["stdout"], expected(count));
        assert_eq!(said["truncated"], true);
    }
    let said = host.run(&format!("{} >&2; exit 1", zeros(40_000)));
    assert_eq!(said["stderr"], expected(40_000));
    says("export const bashExecutor = new BashExecutor();");
    says("```");
}

#[test]
fn streaming() {
    says("### Streaming Support");
    says(
        r"```typescript
// src/tools/bash/streaming.ts
async function* executeWithStreaming(
  command: string,
  options: SpawnOptions
): AsyncGenerator<StreamEvent> {
  const child = spawn('bash', ['-c', command], {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe']
  });",
    );
    let host = Host::new();
    let wait = |file: &str| format!("until test -e {file}; do sleep 0.01; done");
    let command = format!(
        "cat; echo out; {}; echo err >&2; {}; exit 6",
        wait("first"),
        wait("second")
    );
    let call = { &host.agent }.begin_with_progress("Bash", json!({ "command": command }), "s");
    let heard = |line: &str| {
        host.agent.hears(line, |message| {
            message["method"] == "notifications/progress" && message["params"]["message"] == line
        });
    };
    says(
        r"  // Stream stdout
  if (child.stdout) {
    child.stdout.on('data', (data: Buffer) => {
      // Yield to event loop
    });
  }",
    );
    heard("out");
    says(
        r"  // Stream stderr
  if (child.stderr) {
    child.stderr.on('data', (data: Buffer) => {
      // Yield to event loop
    });
  }",
    );
    std::fs::write(host.home.base().join("first"), "").unwrap();
    heard("err");
    says(
        r"  // Wait for completion
  const exitCode = await new Promise<number>((resolve) => {
    child.on('exit', (code) => resolve(code || 0));
  });

  yield { type: 'exit', code: exitCode };
}
```",
    );
    std::fs::write(host.home.base().join("second"), "").unwrap();
    assert_eq!(told(host.agent.answered(call))["exit_code"], 6);
    says("### File Changes");
    says(
        r"| File | Action | Description |
|------|--------|-------------|
| `src/tools/bash/types.ts` | Create | Type definitions |
| `src/tools/bash/bash-tool.ts` | Modify | Enhanced tool |
| `src/tools/bash/executor.ts` | Create | Command execution |
| `src/tools/bash/safety.ts` | Create | Safety checks |
| `src/tools/bash/streaming.ts` | Create | Streaming output |
| `src/tools/bash/index.ts` | Modify | Updated exports |
| `src/tasks/task-manager.ts` | Modify | Background task support |",
    );
    // Not proved: how their program is built; nothing that a host of the tool sees.
}

/// Boxes are drawn by the host; what is in them comes from here.
#[test]
fn user_experience() {
    let host = Host::new();
    says("## User Experience");
    says("### Foreground with Description");
    says(
        r#"```
Agent: [Bash: command="npm run build", description="Build the project"]

Running: Build the project

✓ Command completed (4.2s)
stdout:
  > mycode@1.0.0 build
  > tsc

  Build completed successfully.
```"#,
    );
    let command = "echo 'Build completed successfully.'";
    let said = host.bash(json!({ "command": command, "description": "Build the project" }));
    assert_eq!(said["stdout"], "Build completed successfully.\n");
    assert_eq!(host.last()["description"], "Build the project");
    says("### Background Execution");
    says(
        r#"```
Agent: [Bash: command="npm test", run_in_background=true, description="Run tests"]

┌─ Background Task Started ─────────────────────────┐
│ Task ID: bash-abc123                             │
│ Command: npm test                                 │
│ Output: /tmp/mycode-bash-abc123.log              │
│                                                   │"#,
    );
    let started = host.bash(json!({ "command": "echo ok", "description": "Run tests",
                                    "run_in_background": true }));
    says("│ Use /tasks to check status                        │");
    let listed = told(host.agent.call("TaskList", json!({})));
    assert_eq!(listed["tasks"][0]["task_id"], started["task_id"]);
    says("│ Use TaskOutput to get results                     │");
    let got = told(
        host.agent
            .call("TaskOutput", json!({ "task_id": started["task_id"] })),
    );
    assert_eq!(
        (&got["output"], &got["exit_code"]),
        (&json!("ok\n"), &json!(0))
    );
    says("└───────────────────────────────────────────────────┘");
    says("```");
    says("### Streaming Output (Long Command)");
    says(
        r#"```
Agent: [Bash: command="npm install", timeout=300000]

Running: npm install
────────────────────────────────────────────────────
added 1 package in 1s
⠋ Installing dependencies...
added 50 packages in 5s
⠙ Installing dependencies...
added 200 packages in 15s
✓ added 523 packages in 32s
────────────────────────────────────────────────────
Exit code: 0
Duration: 32.4s
```"#,
    );
    // See `streaming`: each line is the message of a progress notification.
    says("### Safety Block");
    says(
        r#"```
Agent: [Bash: command="rm -rf /"]

⚠️ Command Blocked

This command matches a blocked pattern:
  "rm -rf /" - Recursive delete from root

This operation is not allowed for safety.
If you need to delete files, specify exact paths.
```"#,
    );
    let said = host.run("rm -rf /");
    assert_eq!(said["stderr"], "Command contains blocked pattern: rm -rf /");
    assert_eq!(
        said["error"]["hint"],
        "If you need to delete files, specify exact paths."
    );
    says("### Output Truncation");
    says(
        r#"```
Agent: [Bash: command="cat large-file.log"]

Output (truncated):
────────────────────────────────────────────────────
[2024-01-15 10:00:00] Starting application...
[2024-01-15 10:00:01] Loading configuration...
...

... (45,678 characters truncated) ...

[2024-01-15 10:15:42] Request completed
[2024-01-15 10:15:43] Shutting down...
────────────────────────────────────────────────────
```"#,
    );
    std::fs::write(host.home.base().join("large-file.log"), "x".repeat(75_678)).unwrap();
    let said = host.run("cat large-file.log");
    // For a person a number has commas; the code above has none.
    let shown = said["stdout"].as_str().unwrap();
    assert!(shown.contains("x\n\n... (45678 characters truncated) ...\n\nx"));
}

#[test]
fn alternatives() {
    says("## Alternatives Considered");
    says(
        r"### Alternative 1: PTY-based Execution
Use pseudo-terminal for full interactivity.

**Pros**: Interactive commands work
**Cons**: Complex, security concerns
**Decision**: Deferred - Consider for advanced use",
    );
    // Toolsets `terminal` and `weighlock` have them; here there is none.
    let host = Host::new();
    assert_eq!(
        host.run("test -t 0 || test -t 1 || echo none")["stdout"],
        "none\n"
    );
    says(
        r"### Alternative 2: Sandboxed Containers
Run commands in Docker/Podman.

**Pros**: Full isolation
**Cons**: Heavy, requires container runtime
**Decision**: Optional via sandboxMode config",
    );
    // Every run has walls, without a container: walls.rs.
    host.home.put("outside", "x");
    assert_ne!(host.run("cat ../outside")["exit_code"], 0);
    says(
        r"### Alternative 3: PowerShell Support
Add Windows PowerShell support.

**Pros**: Cross-platform
**Cons**: Different syntax, complexity
**Decision**: Deferred - Focus on Bash first",
    );
    // Not proved: commands run on Linux hosts only.
}

#[test]
fn security() {
    says("## Security Considerations");
    let mut home = home();
    home.set("API_KEY", "hidden");
    let host = Host::within(home, &[]);
    says("1. **Command Blocking**: Block dangerous patterns");
    // `safety`, and the patterns that follow here.
    says("2. **Path Injection**: Validate file paths");
    for cwd in ["../..", "/etc", "a\0b"] {
        let said = host
            .agent
            .call("Bash", json!({ "command": "touch made", "cwd": cwd }));
        assert!(said.failed, "{cwd:?}: {said:?}");
    }
    says("3. **Environment Isolation**: Don't leak sensitive env vars");
    // Stricter than `...process.env`: a list says what of it is seen.
    assert_eq!(host.run("env | grep -c hidden")["stdout"], "0\n");
    says("4. **Resource Limits**: Limit CPU/memory usage");
    assert!(host.last()["limits"]["memory_bytes"].as_u64() > Some(0));
    says("5. **Timeout Enforcement**: Kill hung processes");
    let command = "setsid sleep 600 & trap '' TERM; sleep 600";
    let env = json!({ "WL_MARK": host.home.mark });
    let said = host.bash(json!({ "command": command, "timeout": 200, "env": env }));
    assert_eq!(said["state"], "timed_out");
    eventually("nothing is left", || host.home.processes().is_empty());
    says("```typescript");
    says("const SAFETY_PATTERNS = [");
    for (line, command, reason) in [
        (
            r"  /rm\s+-rf\s+\//,",
            "rm  -rf  /x",
            "Recursive delete from root",
        ),
        (
            r"  /mkfs/,",
            "mkfs.ext4 x",
            "Command contains blocked pattern: mkfs",
        ),
        (
            r"  /dd\s+if=.*of=\/dev/,",
            "dd if=x of=/dev/y",
            "Writing to device",
        ),
        (
            r"  />\s*\/etc/,",
            "echo x >/etc/x",
            "Writing to system configuration",
        ),
        (
            r"  /curl.*\|\s*bash/,  // Pipe to shell",
            "curl x | bash",
            "Pipe to shell",
        ),
    ] {
        says(line);
        // Of `mkfs` the blocked text, which is the same, comes first.
        assert_eq!(host.refused(command), reason, "{command}");
    }
    says("];");
    says("```");
}

/// Nothing is left to try: these say where it is tried.
#[test]
fn the_rest() {
    says("## Testing Strategy");
    says("1. **Unit Tests**:");
    says("   - Command parsing");
    // crates/shell/tests/it/tables.rs, `bash_is_read_as_bash_reads_it`;
    // crates/policy/tests/cases.rs, `every_case_gets_its_verdict_and_reason`.
    says("   - Safety checks");
    // `safety`, and crates/policy/src/seed_tests.rs, `bash`.
    says("   - Output truncation");
    // `truncation`, and bash.rs, `long_output_loses_its_middle`.
    says("   - Timeout handling");
    // `foreground`, and bash.rs, `time_is_limited`.
    says("2. **Integration Tests**:");
    says("   - Background execution");
    // `background`, and tasks.rs, `tasks_go_on_in_the_background`.
    says("   - Streaming output");
    // `streaming`.
    says("   - Error handling");
    // bash.rs, `bad_input_is_told`.
    says("3. **Security Tests**:");
    says("   - Blocked commands");
    says("   - Injection attempts");
    says("   - Resource limits");
    // `security`; crates/policy/tests/properties.rs,
    // `no_wrapper_makes_a_command_milder`; bombs.rs,
    // `a_memory_bomb_meets_the_memory_limit`.
    says("## Migration Path");
    says("1. **Phase 1**: Configurable timeout");
    says("2. **Phase 2**: Background execution");
    says("3. **Phase 3**: Streaming output");
    says("4. **Phase 4**: Enhanced safety");
    says("5. **Phase 5**: Sandboxing option");
    // `foreground`, `background`, `streaming`, `safety` and `security`.
    says("Backward compatible with existing Bash usage.");
    let host = Host::new();
    assert_eq!(host.run("echo hi")["stdout"], "hi\n");
    says(
        r"## References

- [Node.js Child Process](https://nodejs.org/api/child_process.html)
- [Bash Reference Manual](https://www.gnu.org/software/bash/manual/)
- [Shell Command Injection Prevention](https://owasp.org/www-community/attacks/Command_Injection)
- [Container Sandboxing](https://docs.docker.com/engine/security/)",
    );
}
