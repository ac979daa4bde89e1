//! Agents' own settings, from the YAML files of the tool they were written
//! for. Everything else in those files is somebody else's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::rules::check::{ToolCheck, not_on_list};
use crate::rules::glob::WordPattern;
use crate::rules::matcher::{PartMatcher, ProgramNames, TextMatcher};
use crate::rules::rule::{Rule, RuleSubject};
use crate::{Layer, LayerKind, LoadError, Verdict};

/// The tool that an agent must have to run commands.
const TOOL: &str = "run_command";

/// What each agent may run. An agent without a file has the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agents {
    defaults: Agent,
    by_name: BTreeMap<String, Agent>,
}

/// What one agent may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// It has the tool to run commands at all.
    pub may_run: bool,
    /// Only these programs, sorted; none means all that are not denied.
    pub allow: Option<Vec<String>>,
    /// Never these programs, sorted; beside the preset's own list.
    pub deny: Vec<String>,
    /// The time limit of a run that names none.
    pub default_timeout: Option<Duration>,
}

/// The parts of a file that are ours. Wrong types in them are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawAgent {
    tools: Option<RawTools>,
    shell: Option<RawShell>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawTools {
    shell: Option<Vec<String>>,
    /// What `shell` was called before.
    coding: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawShell {
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    /// Seconds.
    default_timeout: Option<u32>,
}

/// Reads `defaults.yaml` and each agent's `config.yaml`.
pub fn read(defaults: &str, configs: &[(&str, &str)]) -> Result<Agents, Vec<LoadError>> {
    let mut errors = vec![];
    let mut parse = |file: &str, text: &str| match yaml(file, text) {
        Ok(raw) => raw,
        Err(error) => {
            errors.push(error);
            RawAgent::default()
        }
    };
    let defaults = Agent::default().refined(parse("defaults.yaml", defaults));
    let by_name = configs
        .iter()
        .map(|(name, text)| {
            let raw = parse(&format!("{name}/config.yaml"), text);
            ((*name).to_owned(), defaults.refined(raw))
        })
        .collect();
    match errors.is_empty() {
        true => Ok(Agents { defaults, by_name }),
        false => Err(errors),
    }
}

fn yaml(file: &str, text: &str) -> Result<RawAgent, LoadError> {
    // A file with nothing but comments is a file that sets nothing.
    serde_saphyr::from_str::<Option<RawAgent>>(text)
        .map(Option::unwrap_or_default)
        .map_err(|error| {
            let place = error.location();
            let error = error.without_snippet();
            let message = error.to_string();
            let message = message.lines().next().unwrap_or("").to_owned();
            LoadError {
                file: file.to_owned(),
                line: place.map_or(1, |place| place.line() as usize).max(1),
                column: place.map_or(1, |place| place.column() as usize).max(1),
                message: match message.split_once(" at line ") {
                    Some((message, _)) => message.to_owned(),
                    None => message,
                },
                hint: "tools.shell, shell.allow and shell.deny are lists of names; \
                       shell.default_timeout is a number of seconds"
                    .into(),
            }
        })
}

impl Agent {
    /// Returns this profile with the values that a file overrides.
    fn refined(&self, raw: RawAgent) -> Self {
        let tools = raw.tools.unwrap_or_default();
        let shell = raw.shell.unwrap_or_default();
        let named = [tools.shell, tools.coding];
        let may_run = match named.iter().all(Option::is_none) {
            true => self.may_run,
            false => named.iter().flatten().flatten().any(|tool| tool == TOOL),
        };
        let mut deny = self.deny.clone();
        deny.extend(shell.deny.unwrap_or_default());
        Self {
            may_run,
            allow: shell.allow.map(sorted).or_else(|| self.allow.clone()),
            deny: sorted(deny),
            default_timeout: shell
                .default_timeout
                .map(|seconds| Duration::from_secs(seconds.into()))
                .or(self.default_timeout),
        }
    }

    /// Returns the rules that follow from it.
    pub fn layer(&self, name: &str) -> Layer {
        let mut layer = Layer {
            kind: LayerKind::Agent,
            name: LayerKind::Agent.name().to_owned(),
            ..Layer::default()
        };
        if !self.may_run {
            layer.check(
                0,
                "tools",
                "A person can add run_command to its tools.",
                ToolCheck::NoTool(name.to_owned()),
            );
        }
        if !self.deny.is_empty() {
            layer.rules.push(Rule {
                because: "is denied to this agent".into(),
                code: "denied".into(),
                ..rule("deny", Verdict::Reject, programs(&self.deny))
            });
            // Also where the text is not understood.
            let words = TextMatcher::FirstWord(self.deny.iter().cloned().collect());
            layer.rules.push(Rule {
                says: "`{match}` is denied to this agent".into(),
                code: "denied".into(),
                ..rule("deny", Verdict::Reject, RuleSubject::Text(words))
            });
        }
        if let Some(allow) = &self.allow {
            layer.check(
                usize::MAX,
                "allow",
                "Use one of the allowed commands.",
                ToolCheck::First(allow.clone()),
            );
            if !allow.is_empty() {
                layer
                    .rules
                    .push(rule("allowed", Verdict::Auto, programs(allow)));
            }
            layer.otherwise = Some(layer.rules.len());
            layer.rules.push(Rule {
                says: not_on_list("{match}", allow),
                remedy: "Use one of the allowed commands.".into(),
                code: "not_allowed".into(),
                ..rule("allow", Verdict::Reject, RuleSubject::Else)
            });
        }
        layer
    }
}

impl Agents {
    /// Returns an agent; one that nobody wrote a file for has the defaults.
    pub fn get(&self, name: &str) -> &Agent {
        self.by_name.get(name).unwrap_or(&self.defaults)
    }

    /// Returns the agents that have a file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Returns an agent's rules.
    pub fn layer(&self, name: &str) -> Arc<Layer> {
        Arc::new(self.get(name).layer(name))
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

fn programs(names: &[String]) -> RuleSubject {
    let mut programs = ProgramNames::default();
    for name in names {
        programs.add(WordPattern::from_pieces(vec![name.clone()]));
    }
    let matcher = PartMatcher {
        programs,
        ..PartMatcher::default()
    };
    RuleSubject::Part(Box::new(matcher), vec![])
}

fn rule(name: &str, verdict: Verdict, what: RuleSubject) -> Rule {
    let about = match &what {
        RuleSubject::Part(matcher, _) => matcher.about(),
        RuleSubject::Text(matcher) => matcher.about(),
        _ => "everything else".into(),
    };
    Rule::new(name, verdict, what, about)
}
