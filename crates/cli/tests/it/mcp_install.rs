//! Clients are set up, and nothing else of their settings changes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Done, Home};
use crate::tty::Tty;

/// A client, where it has its settings, and what may be in them already.
struct Client {
    name: &'static str,
    file: &'static str,
    in_project: Option<&'static str>,
    before: &'static str,
}

const OTHERS: &str =
    "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"n\": 1.50\n}";

const CLIENTS: [Client; 9] = [
    Client {
        name: "claude-code",
        file: "home/.claude.json",
        in_project: Some(".mcp.json"),
        before: OTHERS,
    },
    Client {
        name: "claude-desktop",
        file: "settings/Claude/claude_desktop_config.json",
        in_project: None,
        before: "{\n  \"preferences\": {\"a\":true}\n}\n",
    },
    Client {
        name: "codex",
        file: "home/.codex/config.toml",
        in_project: Some(".codex/config.toml"),
        before: "model = 'x' # mine\r\n\r\n[mcp_servers.other]\r\ncommand = 'x'\r\n",
    },
    Client {
        name: "gemini",
        file: "home/.gemini/settings.json",
        in_project: Some(".gemini/settings.json"),
        before: OTHERS,
    },
    Client {
        name: "cursor",
        file: "home/.cursor/mcp.json",
        in_project: Some(".cursor/mcp.json"),
        before: OTHERS,
    },
    Client {
        name: "vscode",
        file: "settings/Code/User/mcp.json",
        in_project: Some(".vscode/mcp.json"),
        before: "{\n\t// mine\n\t\"servers\": {\n\t\t\"other\": {}, // too\n\t},\n\t\"inputs\": []\n}\n",
    },
    Client {
        name: "opencode",
        file: "settings/opencode/opencode.jsonc",
        in_project: Some("opencode.json"),
        before: "{\n  // new\n  \"mcp\": {\n    \"servers\": {\n      \"other\": {}\n    }\n  }\n}\n",
    },
    Client {
        name: "zed",
        file: "settings/zed/settings.json",
        in_project: Some(".zed/settings.json"),
        before: "// Zed\n{\n  \"theme\": \"One\",\n  // no servers yet\n}\n",
    },
    Client {
        name: "goose",
        file: "settings/goose/config.yaml",
        in_project: None,
        before: "# mine\nextensions:\n  developer:\n    enabled: true\n\nGOOSE_MODE: auto # always\n",
    },
];

/// The clients whose settings are changed. Those of goose are YAML.
fn changed() -> &'static [Client] {
    let (goose, changed) = CLIENTS.split_last().unwrap();
    assert_eq!(goose.name, "goose");
    changed
}

#[test]
fn every_client_is_set_up_once_and_its_settings_come_back_as_they_were() {
    for client in changed() {
        let home = Home::untouched();
        let file = home.put(client.file, client.before);
        let read = || fs::read_to_string(&file).unwrap();
        let printed = install(&home, client.name, &["--print"]);
        assert_eq!(printed.code, Some(0), "{printed:?}");
        assert!(printed.out.contains(ours()), "{printed:?}");
        assert!(printed.err.contains(client.file), "{printed:?}");
        let asked = install(&home, client.name, &[]);
        assert_eq!(asked.code, Some(1), "nobody can be asked: {asked:?}");
        assert!(asked.err.contains("hint: --yes"), "{asked:?}");
        assert_eq!(read(), client.before, "nothing is written");
        let done = install(&home, client.name, &["--yes", "--agent", "coder"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(
            done.err.contains("\n+") && done.err.contains("@@ -"),
            "{done:?}"
        );
        let set = read();
        assert!(set.contains("\"coder\""), "{set}");
        assert_kept(client.before, &set);
        let again = install(&home, client.name, &["--yes", "--agent", "coder"]);
        assert_eq!(again.code, Some(0), "{again:?}");
        assert!(again.err.starts_with("Nothing changes"), "{again:?}");
        assert_eq!(read(), set);
        let gone = install(&home, client.name, &["--remove", "--yes"]);
        assert_eq!(gone.code, Some(0), "{gone:?}");
        assert_eq!(read(), client.before);
        let gone = install(&home, client.name, &["--remove", "--yes"]);
        assert!(gone.err.starts_with("Nothing changes"), "{gone:?}");
    }
}

#[test]
fn what_was_not_there_is_made_and_taken_away() {
    for client in changed() {
        let home = Home::untouched();
        let file = home.around().join(client.file.replace(".jsonc", ".json"));
        let printed = install(&home, client.name, &["--print"]).out;
        assert!(!file.exists());
        assert_eq!(install(&home, client.name, &["--yes"]).code, Some(0));
        assert_eq!(fs::read_to_string(&file).unwrap(), printed);
        let gone = install(&home, client.name, &["--remove", "--yes"]);
        assert_eq!(gone.code, Some(0), "{gone:?}");
        assert!(!file.exists());
    }
}

/// Nothing edits YAML and keeps comments, so people get the lines.
#[test]
fn settings_in_yaml_are_left_to_the_person() {
    let client = CLIENTS.last().unwrap();
    let home = Home::untouched();
    let file = home.put(client.file, client.before);
    let printed = install(&home, "goose", &["--print"]);
    for args in [&[][..], &["--yes"]] {
        let done = install(&home, "goose", args);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert_eq!(done.out, printed.out);
        let why = format!(
            "{} is YAML, which weighlock does not edit; nothing was written",
            file.display()
        );
        assert!(done.err.contains(&why), "{done:?}");
        assert!(done.err.contains("what it has to say is above"), "{done:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), client.before);
    }
    let lines = printed.out.strip_prefix("extensions:\n").unwrap();
    let with = client
        .before
        .replace("extensions:\n", &format!("extensions:\n{lines}"));
    fs::write(&file, &with).unwrap();
    let done = install(&home, "goose", &["--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.starts_with("Nothing changes"), "{done:?}");
    let done = install(&home, "goose", &["--remove", "--yes"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err.contains("hint: take the entry out by hand"),
        "{done:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), with);
    fs::remove_file(&file).unwrap();
    let done = install(&home, "goose", &["--remove", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(install(&home, "goose", &["--yes"]).code, Some(1));
    assert!(!file.exists());
}

#[test]
fn a_project_has_settings_of_its_own_where_the_client_reads_them() {
    for client in CLIENTS {
        let home = Home::untouched();
        fs::create_dir_all(home.base().join(".git")).unwrap();
        fs::create_dir(home.base().join("deep")).unwrap();
        let args = ["mcp", "install", client.name, "--scope", "project", "--yes"];
        let mut command = home.weighlock(&args);
        let done = command.current_dir(home.base().join("deep")).output();
        let done = done.unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        match client.in_project {
            Some(file) => {
                assert_eq!(done.status.code(), Some(0), "{err}");
                let said = fs::read_to_string(home.base().join(file)).unwrap();
                assert!(said.contains(ours()), "{said}");
            }
            None => {
                assert_eq!(done.status.code(), Some(1), "{err}");
                assert!(err.contains("no settings for a project"), "{err}");
            }
        }
        assert!(!home.around().join(client.file).exists());
    }
}

/// What clients do that pass nothing on but a few variables.
#[test]
fn what_is_written_serves_whoever_starts_it_with_a_bare_environment() {
    for at_shell in [true, false] {
        let mut home = Home::new();
        let runtime = home.put("run/x", "").parent().unwrap().to_owned();
        home.set("XDG_RUNTIME_DIR", runtime);
        let flags = ["--yes", "--require-description"];
        assert_eq!(install(&home, "cursor", &flags).code, Some(0));
        let _server = at_shell.then(|| home.serve(&[]));
        let file = home.around().join("home/.cursor/mcp.json");
        let said: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let entry = &said["mcpServers"]["weighlock"];
        let args = entry["args"].as_array().unwrap().iter();
        let mut command = Command::new(entry["command"].as_str().unwrap());
        command
            .args(args.map(|word| word.as_str().unwrap()))
            .env_clear()
            .env("HOME", home.around().join("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(home.base());
        let told = call_run(command);
        assert!(told.contains("missing_description"), "{told}");
        // And whoever has the variables finds the server that the other made.
        assert_eq!(home.call(&["run", "--", "true"]).code, Some(0));
    }
}

#[test]
fn links_stay_links_and_modes_stay_modes() {
    let mut home = Home::untouched();
    // It is below the home directory then.
    home.set("XDG_CONFIG_HOME", "");
    let real = home.put("home/dotfiles/zed.json", "{}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let file = home.around().join("home/.config/zed/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink(&real, &file).unwrap();
    let zed = |args: &[&str]| install(&home, "zed", args);
    assert_eq!(zed(&["--yes"]).code, Some(0));
    assert!(file.is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains(ours()));
    assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    assert_eq!(zed(&["--remove", "--yes"]).code, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}\n");
    let beside = fs::read_dir(real.parent().unwrap()).unwrap();
    assert_eq!(beside.count(), 1, "nothing is left beside it");
}

#[test]
fn no_link_leads_out_of_the_home_or_the_project() {
    let home = Home::untouched();
    let outside = home.put("outside.json", "{}\n");
    symlink(&outside, home.base().join(".mcp.json")).unwrap();
    symlink(home.around(), home.base().join(".cursor")).unwrap();
    fs::create_dir_all(home.around().join("home")).unwrap();
    symlink(&outside, home.around().join("home/.claude.json")).unwrap();
    symlink("nowhere", home.around().join("home/.gemini")).unwrap();
    let refused = |client: &str, scope: &str| {
        let done = install(&home, client, &["--yes", "--scope", scope]);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.err.contains("nothing was written"), "{done:?}");
    };
    refused("claude-code", "project");
    refused("cursor", "project");
    refused("claude-code", "user");
    refused("gemini", "user");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "{}\n");
    assert!(!home.around().join("mcp.json").exists());
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line_and_stays() {
    for (name, text, line) in [
        ("claude-code", "{\n  \"a\": 1\n  \"b\": 2\n}\n", Some(2)),
        ("codex", "a = 1\nb =\n", Some(2)),
        ("goose", "A: b\nC: [\n", Some(2)),
        ("codex", "mcp_servers = 1\n", None),
    ] {
        let home = Home::untouched();
        let client = CLIENTS.iter().find(|client| client.name == name).unwrap();
        let file = home.put(client.file, text);
        let done = install(&home, name, &["--yes"]);
        assert_eq!(done.code, Some(1), "{done:?}");
        let place = match line {
            Some(line) => format!("{}, line {line}: ", file.display()),
            // It is shown what a person has to write.
            None => format!("{} is not written in a way", file.display()),
        };
        assert!(done.err.contains(&place), "{done:?}");
        assert_eq!(done.out.contains(ours()), line.is_none(), "{done:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn secrets_are_written_only_when_that_is_asked_for() {
    let mut home = Home::untouched();
    let secret = "wl_0123456789abcdefghijklmnopqrstuvwxyzABCDEF";
    let asked = install(&home, "codex", &["--yes", "--with-token"]);
    assert_eq!(asked.code, Some(1), "there is none: {asked:?}");
    home.set("WEIGHLOCK_TOKEN", secret);
    let file = home.around().join("home/.codex/config.toml");
    let done = install(&home, "codex", &["--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!fs::read_to_string(&file).unwrap().contains(secret));
    fs::remove_file(&file).unwrap();
    let shared = install(
        &home,
        "codex",
        &["--yes", "--with-token", "--scope", "project"],
    );
    assert_eq!(shared.code, Some(1), "{shared:?}");
    let done = install(&home, "codex", &["--yes", "--with-token"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(fs::read_to_string(&file).unwrap().contains(secret));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert!(!format!("{done:?}").contains(secret), "it is not shown");
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    let home = Home::untouched();
    let file = home.around().join("home/.cursor/mcp.json");
    fs::create_dir_all(home.around().join("home")).unwrap();
    let begin = || Tty::start(home.weighlock(&["mcp", "install", "cursor"]));
    let mut tty = begin();
    assert!(tty.expect("write this? Enter or y = yes").contains("+++ "));
    tty.press("n");
    tty.expect("Nothing was written.");
    assert_eq!(tty.end(), Some(1));
    assert!(!file.exists());
    let mut tty = begin();
    tty.expect("write this? Enter or y = yes");
    tty.press("\r");
    tty.expect("✓ Cursor is set up");
    assert_eq!(tty.end(), Some(0));
    assert!(fs::read_to_string(&file).unwrap().contains(ours()));
    let mut tty = Tty::start(home.weighlock(&["mcp", "install", "cursor", "--remove"]));
    tty.expect("remove the file? Enter or y = yes");
    tty.press("y");
    tty.expect("✓ Cursor has no `weighlock` any more");
    assert_eq!(tty.end(), Some(0));
    assert!(!file.exists());
}

#[test]
fn what_an_entry_hands_on_besides_is_said() {
    let mut home = Home::untouched();
    home.set(
        "WEIGHLOCK_TOKEN",
        "wl_0123456789abcdefghijklmnopqrstuvwxyzABCDEF",
    );
    let before = r#"{"mcpServers": {"weighlock": {"command": "old", "env": {"LD_PRELOAD": "x"}}}}"#;
    let file = home.put("home/.cursor/mcp.json", before);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    for args in [&["--yes", "--with-token"][..], &["--yes", "--with-token"]] {
        let done = install(&home, "cursor", args);
        assert_eq!(done.code, Some(0), "{done:?}");
        let told = "note: the entry keeps the variables that it sets: LD_PRELOAD\n";
        assert!(done.err.contains(told), "{done:?}");
        // Before it is too late.
        if let Some(warned) = done.err.find("warning: others may read ") {
            assert!(warned < done.err.find("@@ -").unwrap(), "{done:?}");
        } else {
            assert!(done.err.contains("Nothing changes"), "{done:?}");
        }
    }
}

#[test]
fn nobody_is_made_a_home_directory() {
    let home = Home::untouched();
    let nowhere = home.around().join("nowhere");
    let mut command = home.weighlock(&["mcp", "install", "cursor", "--yes"]);
    let done = command.env("HOME", &nowhere).output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{err}");
    assert!(
        err.contains("nowhere, which is not there; nothing was written"),
        "{err}"
    );
    assert!(!nowhere.exists());
}

#[test]
fn whoever_has_a_shell_of_their_own_is_told_how_to_turn_it_off() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let guide = fs::read_to_string(guide).unwrap();
    for client in CLIENTS {
        let home = Home::untouched();
        let done = install(&home, client.name, &["--yes"]);
        let told = done.err.split_once("its own shell is still there");
        assert_eq!(told.is_none(), client.name == "claude-desktop", "{done:?}");
        let setting = told.and_then(|(_, how)| how.split('`').nth(1));
        assert!(
            setting.is_none_or(|setting| guide.contains(setting)),
            "{done:?}"
        );
    }
}

#[test]
fn nothing_is_set_up_from_inside_a_run() {
    let mut home = Home::untouched();
    home.set("WEIGHLOCK_RUN", "r_x");
    let done = install(&home, "cursor", &["--yes"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(!home.around().join("home/.cursor").exists());
}

/// The guide says what is written, word for word.
#[test]
fn the_guide_shows_what_is_printed() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let guide = fs::read_to_string(guide).unwrap();
    let home = Home::untouched();
    for client in CLIENTS {
        let args = ["mcp", "install", client.name, "--print"];
        let mut command = home.weighlock(&args);
        command.env_remove("WEIGHLOCK_STATE_DIR");
        let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let printed = printed.replace(ours(), "/usr/local/bin/weighlock");
        let heading = format!("\n#### {}\n", client.name);
        let (_, part) = guide.split_once(&heading).expect(client.name);
        let (_, block) = part.split_once("```").unwrap();
        let (_, block) = block.split_once('\n').unwrap();
        let (block, _) = block.split_once("```").unwrap();
        assert_eq!(block, printed, "{}", client.name);
        let file = client.file.replace("home/", "~/");
        let file = file
            .replace("settings/", "~/.config/")
            .replace(".jsonc", ".json");
        assert!(part.contains(&format!("`{file}`")), "{file}");
    }
}

fn install(home: &Home, client: &str, args: &[&str]) -> Done {
    fs::create_dir_all(home.around().join("home")).unwrap();
    home.call(&[&["mcp", "install", client], args].concat())
}

/// The program that clients are to start.
fn ours() -> &'static str {
    env!("CARGO_BIN_EXE_weighlock")
}

/// Every line is still there, in the same order; one may have got a comma.
#[track_caller]
fn assert_kept(before: &str, after: &str) {
    let plain = |text: &str| text.replace(',', "").replace("\r\n", "\n");
    let (before, after) = (plain(before), plain(after));
    let mut rest = after.as_str();
    for line in before.lines().filter(|line| line.trim().len() > 1) {
        let at = rest.find(line.trim_end_matches(['}', ']']));
        rest = &rest[at.unwrap_or_else(|| panic!("{line:?} is not in {after}"))..];
    }
}

/// Has a client's `run` called without a description, and returns the answer.
fn call_run(mut command: Command) -> String {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let call = json!({ "name": "run", "arguments": { "command": "true" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ];
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    let told = lines.find_map(|line| line.ok().filter(|line| line.contains("\"id\":2")));
    drop(input);
    child.wait().unwrap();
    told.unwrap_or_default()
}
