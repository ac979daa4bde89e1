//! The clients that can be set up: where each has its settings, and what it
//! wants to read there.

use std::env;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::edit::{Field, SettingsFormat};
use crate::client::{Failure, TOKEN};
use crate::paths::xdg;

/// A program that agents live in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum AgentClient {
    #[value(aliases = ["claude", "claudecode"])]
    ClaudeCode,
    #[value(alias = "claudedesktop")]
    ClaudeDesktop,
    #[value(alias = "codex-cli")]
    Codex,
    #[value(alias = "gemini-cli")]
    Gemini,
    Cursor,
    #[value(aliases = ["vs-code", "code", "copilot"])]
    Vscode,
    #[value(alias = "open-code")]
    Opencode,
    Zed,
    #[value(alias = "goose-cli")]
    Goose,
}

/// Which sessions of the client use the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SettingsScope {
    /// For you, everywhere
    User,
    /// For everybody who works in this repository, or else directory
    Project,
}

/// What a client is to start.
#[derive(Debug, Clone)]
pub(super) struct ServerEntry {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) token: Option<String>,
}

/// A client's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientSettings {
    pub(super) file: PathBuf,
    /// The directories that nothing is written outside of.
    pub(super) within: Vec<PathBuf>,
    pub(super) format: SettingsFormat,
}

impl AgentClient {
    /// What people call it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Opencode => "opencode",
            Self::Zed => "Zed",
            Self::Goose => "goose",
        }
    }

    /// Finds the client's settings, whether or not they exist.
    pub(super) fn settings(self, scope: SettingsScope) -> Result<ClientSettings, Failure> {
        let (dir, files) = match scope {
            SettingsScope::User => self.of_user()?,
            SettingsScope::Project => self.of_project()?,
        };
        let mut within = vec![dir.clone()];
        if scope == SettingsScope::User {
            within.push(home()?);
        }
        let files: Vec<PathBuf> = files.iter().map(|file| dir.join(file)).collect();
        let file = files.iter().find(|file| file.exists()).unwrap_or(&files[0]);
        let format = match file.extension().and_then(|end| end.to_str()) {
            Some("toml") => SettingsFormat::Toml,
            Some("yaml") => SettingsFormat::Yaml,
            _ => SettingsFormat::Json,
        };
        Ok(ClientSettings {
            file: file.clone(),
            within,
            format,
        })
    }

    /// A directory, and the names that the file can have in it.
    fn of_user(self) -> Result<(PathBuf, &'static [&'static str]), Failure> {
        let config = || xdg("XDG_CONFIG_HOME", ".config");
        Ok(match self {
            Self::ClaudeCode => (moved("CLAUDE_CONFIG_DIR", "")?, &[".claude.json"]),
            Self::ClaudeDesktop => (config()?, &["Claude/claude_desktop_config.json"]),
            Self::Codex => (moved("CODEX_HOME", ".codex")?, &["config.toml"]),
            Self::Gemini => (home()?, &[".gemini/settings.json"]),
            Self::Cursor => (home()?, &[".cursor/mcp.json"]),
            Self::Vscode => (config()?, &["Code/User/mcp.json"]),
            Self::Opencode => {
                let files = &["opencode/opencode.json", "opencode/opencode.jsonc"];
                (config()?, files)
            }
            Self::Zed => (config()?, &["zed/settings.json"]),
            Self::Goose => (config()?, &["goose/config.yaml"]),
        })
    }

    fn of_project(self) -> Result<(PathBuf, &'static [&'static str]), Failure> {
        let files: &[&str] = match self {
            Self::ClaudeCode => &[".mcp.json"],
            Self::Codex => &[".codex/config.toml"],
            Self::Gemini => &[".gemini/settings.json"],
            Self::Cursor => &[".cursor/mcp.json"],
            Self::Vscode => &[".vscode/mcp.json"],
            Self::Opencode => &["opencode.json", "opencode.jsonc"],
            Self::Zed => &[".zed/settings.json"],
            Self::ClaudeDesktop | Self::Goose => {
                return Err(Failure::new(
                    format!(
                        "{} has no settings for a project; nothing was written",
                        self.label()
                    ),
                    "leave --scope out: it has them for you",
                ));
            }
        };
        Ok((project()?, files))
    }

    /// Where in the settings an entry is.
    pub(super) fn place<'n>(
        self,
        name: &'n str,
        settings: &ClientSettings,
        text: &str,
    ) -> Vec<&'n str> {
        let mut place = match self {
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Gemini | Self::Cursor => {
                vec!["mcpServers"]
            }
            Self::Codex => vec!["mcp_servers"],
            Self::Vscode => vec!["servers"],
            // Its second version has them one level deeper, and reads both.
            Self::Opencode => {
                if settings.format.has(text, &["mcp", "servers"]) {
                    vec!["mcp", "servers"]
                } else {
                    vec!["mcp"]
                }
            }
            Self::Zed => vec!["context_servers"],
            Self::Goose => vec!["extensions"],
        };
        place.push(name);
        place
    }

    /// What the client wants to read about an entry.
    pub(super) fn fields(self, entry: &ServerEntry) -> Vec<Field> {
        let command = || json!(entry.command);
        let args = || json!(entry.args);
        let line = [std::slice::from_ref(&entry.command), &entry.args].concat();
        let mut fields = match self {
            Self::ClaudeCode | Self::Cursor | Self::Vscode => vec![
                always(&["type"], json!("stdio")),
                always(&["command"], command()),
                always(&["args"], args()),
            ],
            Self::ClaudeDesktop | Self::Codex | Self::Gemini | Self::Zed => {
                vec![always(&["command"], command()), always(&["args"], args())]
            }
            Self::Opencode => vec![
                always(&["type"], json!("local")),
                always(&["command"], json!(line)),
                at_first(&["enabled"], json!(true)),
            ],
            Self::Goose => vec![
                at_first(&["enabled"], json!(true)),
                always(&["type"], json!("stdio")),
                at_first(&["name"], json!(entry.name)),
                at_first(&["description"], json!("A shell for agents")),
                always(&["cmd"], command()),
                always(&["args"], args()),
                // Seconds; its own default.
                at_first(&["timeout"], json!(300)),
            ],
        };
        let path: &[&str] = match self {
            Self::Opencode => &["environment", TOKEN],
            Self::Goose => &["envs", TOKEN],
            _ => &["env", TOKEN],
        };
        fields.extend(entry.token.iter().map(|token| always(path, json!(token))));
        fields
    }

    /// Where in an entry the variables are that it sets.
    pub(super) fn environment(self) -> &'static str {
        match self {
            Self::Opencode => "environment",
            Self::Goose => "envs",
            _ => "env",
        }
    }

    /// How to turn off the shell that the client has itself, if it has one;
    /// as docs/mcp.md says.
    pub(super) fn own_shell(self) -> Option<&'static str> {
        Some(match self {
            Self::ClaudeCode => {
                r#"`"permissions": {"deny": ["Bash"]}` in `.claude/settings.json` turns it off"#
            }
            Self::ClaudeDesktop => return None,
            Self::Codex => "`shell_tool = false` below `[features]` turns it off",
            Self::Gemini => r#"`"tools": {"exclude": ["run_shell_command"]}` turns it off"#,
            Self::Opencode => r#"`"permission": {"bash": "deny"}` turns it off"#,
            Self::Goose => "`enabled: false` of the extension `developer` turns it off",
            Self::Cursor | Self::Vscode | Self::Zed => "choose the agent's tools in the client",
        })
    }
}

impl ClientSettings {
    /// Refuses to make somebody a home directory: it is most likely mistyped.
    pub(super) fn check_home(&self) -> Result<(), Failure> {
        let Ok(home) = home() else {
            return Ok(());
        };
        if self.file.starts_with(&home) && !home.is_dir() {
            Err(Failure::new(
                format!(
                    "HOME is {}, which is not there; nothing was written",
                    home.display()
                ),
                "set it to your home directory",
            ))
        } else {
            Ok(())
        }
    }
}

fn always(path: &'static [&'static str], value: Value) -> Field {
    Field {
        path,
        value,
        at_first: false,
    }
}

fn at_first(path: &'static [&'static str], value: Value) -> Field {
    Field {
        path,
        value,
        at_first: true,
    }
}

fn home() -> Result<PathBuf, Failure> {
    let home = env::var_os("HOME").map(PathBuf::from);
    home.filter(|home| home.is_absolute()).ok_or_else(|| {
        Failure::new(
            "HOME is not set; nothing was written",
            "set it to your home directory",
        )
    })
}

/// Where a client has its settings that lets people move them.
fn moved(variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
    let set = env::var_os(variable).map(PathBuf::from);
    match set.filter(|dir| dir.is_absolute()) {
        Some(dir) => Ok(dir),
        None => Ok(home()?.join(below_home)),
    }
}

/// Returns the repository around the current directory, or else the current
/// directory. A home directory that is a repository does not count as a
/// project.
fn project() -> Result<PathBuf, Failure> {
    let here = env::current_dir().map_err(|error| {
        Failure::new(
            format!("the current directory cannot be used: {error}; nothing was written"),
            "go to a directory that exists",
        )
    })?;
    let home = env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    let mut around = here
        .ancestors()
        .take_while(|dir| Some(*dir) != home.as_deref());
    let found = around.find(|dir| dir.join(".git").exists());
    Ok(found.unwrap_or(&here).to_owned())
}
