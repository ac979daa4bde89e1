//! The rules in force: read at the start, read again when a file changes, and
//! never replaced by something that cannot be read.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use weighlock_policy::{
    Agents, Allows, Blacklist, Facts, Grant, Granted, Layer, LayerKind, LoadError, Place, Preset,
    Reader, Rules, Scope, Settings, agents, example_place, understand,
};

use crate::config::{Config, PolicyFiles};
use crate::mutex::lock;

/// Far more than anyone writes by hand.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Rules that were read, and what they were read from.
pub(crate) struct Policy {
    sources: Sources,
    in_force: Mutex<Arc<InForce>>,
    grants: Mutex<Vec<Arc<Granted>>>,
    /// The presets with the blacklist that was seen last.
    listed: Mutex<Option<(Blacklist, Rules)>>,
    /// What became of files since the record was told.
    news: Mutex<Vec<News>>,
}

/// Rule files that have changed.
pub(crate) struct News {
    /// The files that are read now, each with what it looked like.
    pub(crate) files: Vec<String>,
    /// Why they are not in force; empty if they are.
    pub(crate) broken: Vec<String>,
}

struct Sources {
    presets: Vec<Preset>,
    settings: Settings,
    files: PolicyFiles,
    sandboxes: Vec<(String, PathBuf)>,
}

/// One reading of all files.
pub(crate) struct InForce {
    presets: Rules,
    server: Option<Arc<Layer>>,
    sandboxes: HashMap<String, Arc<Layer>>,
    agents: Option<Agents>,
    seen: Seen,
    /// Why newer files are not in force.
    pub(crate) broken: Vec<LoadError>,
}

/// A rule file: which one it is, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleFile {
    /// `server`, or `sandbox.` and the sandbox's name.
    pub(crate) id: String,
    /// The sandbox whose rules they are; the server's if there is none.
    pub(crate) sandbox: Option<String>,
    pub(crate) path: PathBuf,
}

/// Rules that take the place of a file's for once.
pub(crate) struct RuleDraft {
    sandbox: Option<String>,
    layer: Arc<Layer>,
}

impl RuleFile {
    /// The server's, where the settings name no file.
    pub(crate) fn none() -> Self {
        Self {
            id: "server".into(),
            sandbox: None,
            path: PathBuf::new(),
        }
    }

    pub(crate) fn kind(&self) -> LayerKind {
        match self.sandbox {
            None => LayerKind::Server,
            Some(_) => LayerKind::Sandbox,
        }
    }

    /// Reads a text as if the file had it.
    pub(crate) fn layer(&self, text: &str) -> Result<Layer, Vec<LoadError>> {
        Layer::load(self.kind(), "draft", text, &for_examples)
    }

    /// The same, to be tried.
    pub(crate) fn draft(&self, text: &str) -> Result<RuleDraft, Vec<LoadError>> {
        Ok(RuleDraft {
            sandbox: self.sandbox.clone(),
            layer: Arc::new(self.layer(text)?),
        })
    }

    /// Returns what the file says now; nothing where there is none.
    pub(crate) fn text(&self) -> io::Result<String> {
        match read_small(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        }
    }
}

/// What files looked like when they were read.
type Seen = Vec<(PathBuf, Option<(SystemTime, u64)>)>;

impl Policy {
    /// Reads everything. Any error means that there are no rules to start
    /// with.
    pub(crate) fn read(config: &Config) -> Result<Self, Vec<LoadError>> {
        let sources = Sources {
            presets: config.presets.clone(),
            settings: config.settings.clone(),
            files: config.policy.clone(),
            sandboxes: config
                .sandboxes
                .iter()
                .filter_map(|sandbox| Some((sandbox.name.clone(), sandbox.rules.clone()?)))
                .collect(),
        };
        let in_force = Mutex::new(Arc::new(sources.read()?));
        Ok(Self {
            sources,
            in_force,
            grants: Mutex::new(vec![]),
            listed: Mutex::default(),
            news: Mutex::default(),
        })
    }

    /// Returns the rules in force, after a look at whether files have changed.
    pub(crate) fn current(&self) -> Arc<InForce> {
        let mut current = lock(&self.in_force);
        let seen = self.sources.seen();
        if seen != current.seen {
            *current = Arc::new(match self.sources.read() {
                Ok(fresh) => {
                    tracing::info!("the rules were read again");
                    fresh
                }
                Err(errors) => {
                    for error in &errors {
                        tracing::error!(%error, "the rules before this stay in force");
                    }
                    InForce {
                        presets: current.presets.clone(),
                        server: current.server.clone(),
                        sandboxes: current.sandboxes.clone(),
                        agents: current.agents.clone(),
                        seen,
                        broken: errors,
                    }
                }
            });
            lock(&self.news).push(current.news());
        }
        Arc::clone(&current)
    }

    /// Returns the presets with a blacklist of a person's own, which seldom
    /// changes.
    fn with_list(&self, list: Blacklist) -> Rules {
        let mut listed = lock(&self.listed);
        if let Some((known, rules)) = &*listed
            && *known == list
        {
            return rules.clone();
        }
        let rules = self.sources.base(Some(list.clone()));
        *listed = Some((list, rules.clone()));
        rules
    }

    /// Returns the rule files there are, or could be.
    pub(crate) fn rule_files(&self) -> Vec<RuleFile> {
        let server = self.sources.files.rules.iter().map(|path| RuleFile {
            id: "server".into(),
            sandbox: None,
            path: path.clone(),
        });
        let sandboxes = self.sources.sandboxes.iter().map(|(name, path)| RuleFile {
            id: format!("sandbox.{name}"),
            sandbox: Some(name.clone()),
            path: path.clone(),
        });
        server.chain(sandboxes).collect()
    }

    /// Takes what the record has to be told.
    pub(crate) fn take_news(&self) -> Vec<News> {
        std::mem::take(&mut lock(&self.news))
    }

    /// Puts grants in force in place of those before. One that means nothing
    /// any more is left out, and said.
    pub(crate) fn set_grants(&self, grants: Vec<Grant>) {
        let mut checked = vec![];
        for grant in grants {
            let id = grant.id.clone();
            match grant.check(&for_examples) {
                Ok(granted) => checked.push(Arc::new(granted)),
                Err(errors) => tracing::warn!(id, ?errors, "a grant cannot be used"),
            }
        }
        *lock(&self.grants) = checked;
    }

    /// Returns the grants in force.
    pub(crate) fn grants(&self) -> Vec<Grant> {
        let grants = lock(&self.grants);
        grants
            .iter()
            .map(|granted| granted.grant().clone())
            .collect()
    }

    /// Puts together what one request is judged by. A draft takes the place
    /// of its rule file.
    pub(crate) fn rules(
        &self,
        in_force: &InForce,
        blacklist: Option<Blacklist>,
        who: &For<'_>,
        draft: Option<&RuleDraft>,
    ) -> Rules {
        let mut rules = match blacklist {
            Some(list) => self.with_list(list),
            None => in_force.presets.clone(),
        };
        let drafted = |of: Option<&str>| {
            let draft = draft.filter(|draft| draft.sandbox.as_deref() == of)?;
            Some(Arc::clone(&draft.layer))
        };
        let sandbox = drafted(Some(who.sandbox));
        let sandbox = sandbox.or_else(|| in_force.sandboxes.get(who.sandbox).cloned());
        let server = drafted(None).or_else(|| in_force.server.clone());
        [server, sandbox]
            .into_iter()
            .flatten()
            .chain(who.layers.iter().cloned())
            .for_each(|layer| rules.add(layer));
        if let (Some(agents), Some(name)) = (&in_force.agents, who.agent) {
            rules.add(agents.layer(name));
        }
        let grants = lock(&self.grants);
        grants
            .iter()
            .for_each(|granted| rules.grant(Arc::clone(granted)));
        rules
    }
}

/// For whom rules are put together.
pub(crate) struct For<'a> {
    pub(crate) agent: Option<&'a str>,
    pub(crate) sandbox: &'a str,
    /// Rules of the sandbox's own.
    pub(crate) layers: &'a [Arc<Layer>],
}

impl InForce {
    pub(crate) fn news(&self) -> News {
        let files = self.seen.iter().filter_map(|(path, looks)| {
            let (_, size) = looks.as_ref()?;
            Some(format!("{} ({size} bytes)", path.display()))
        });
        News {
            files: files.collect(),
            broken: self.broken.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the server's rule file, if there is one.
    pub(crate) fn rules_file(&self) -> Option<String> {
        self.server.as_ref()?;
        let (path, _) = self.seen.first()?;
        Some(path.display().to_string())
    }

    /// Returns whether an agent may be named: whoever has set profiles up
    /// means one of them.
    pub(crate) fn knows(&self, agent: &str) -> bool {
        let names = self.agents.as_ref().map(Agents::names);
        names.is_none_or(|mut names| names.any(|name| name == agent))
    }

    /// Returns the time limit that an agent's own file sets.
    pub(crate) fn timeout(&self, agent: Option<&str>) -> Option<Duration> {
        let agents = self.agents.as_ref()?;
        agents.get(agent?).default_timeout
    }

    /// Returns the agents that have a file.
    pub(crate) fn agents(&self) -> Vec<String> {
        let names = self.agents.iter().flat_map(Agents::names);
        names.map(str::to_owned).collect()
    }
}

/// Reads a rule text as the server's layer.
pub(crate) fn draft(file: &str, text: &str) -> Result<Arc<Layer>, Vec<LoadError>> {
    Layer::load(LayerKind::Server, file, text, &for_examples).map(Arc::new)
}

/// Reads a rule text as a sandbox's layer.
pub(crate) fn sandbox_layer(name: &str, text: &str) -> Result<Arc<Layer>, Vec<LoadError>> {
    Layer::load(LayerKind::Sandbox, name, text, &for_examples).map(Arc::new)
}

/// Checks that a grant means something.
pub(crate) fn check_grant(grant: &Grant) -> Result<(), Vec<LoadError>> {
    grant.clone().check(&for_examples).map(drop)
}

/// Reads a pattern as a person would grant it; none if it means nothing.
pub(crate) fn granted(pattern: &str) -> Option<Granted> {
    let grant = Grant {
        id: "draft".into(),
        allows: Allows::Pattern(pattern.to_owned()),
        scope: Scope::default(),
        until: None,
        by: String::new(),
        created: 0,
    };
    grant.check(&for_examples).ok()
}

/// What examples in rules and grants are understood as: they run nowhere in
/// particular.
pub(crate) fn for_examples(text: &str) -> Facts {
    understand(text, Reader::Either, &[], &example_place())
}

impl Sources {
    fn base(&self, blacklist: Option<Blacklist>) -> Rules {
        let settings = Settings {
            blacklist,
            ..self.settings.clone()
        };
        Rules::base(&self.presets, &settings)
    }

    fn read(&self) -> Result<InForce, Vec<LoadError>> {
        // Looked at first: a change while reading is noticed the next time.
        let seen = self.seen();
        let mut errors = vec![];
        let mut layer = |kind, path: &Path| match load(kind, path) {
            Ok(layer) => Some(Arc::new(layer)),
            Err(wrong) => {
                errors.extend(wrong);
                None
            }
        };
        let there = |path: &&Path| !self.files.optional || path.exists();
        let server = self.files.rules.as_deref().filter(there);
        let server = server.and_then(|path| layer(LayerKind::Server, path));
        let sandboxes = self
            .sandboxes
            .iter()
            .filter_map(|(name, path)| Some((name.clone(), layer(LayerKind::Sandbox, path)?)));
        let sandboxes = sandboxes.collect();
        let agents = match self.files.agents.as_deref().map(read_agents).transpose() {
            Ok(agents) => agents,
            Err(wrong) => {
                errors.extend(wrong);
                None
            }
        };
        match errors.is_empty() {
            true => Ok(InForce {
                presets: self.base(None),
                server,
                sandboxes,
                agents,
                seen,
                broken: vec![],
            }),
            false => Err(errors),
        }
    }

    fn seen(&self) -> Seen {
        let rules = self.files.rules.iter().cloned();
        let sandboxes = self.sandboxes.iter().map(|(_, path)| path.clone());
        let agents = self.files.agents.iter().flat_map(|dir| agent_files(dir));
        rules
            .chain(sandboxes)
            .chain(agents)
            .map(|path| {
                let looks = fs::metadata(&path);
                let looks = looks.and_then(|meta| Ok((meta.modified()?, meta.len())));
                (path, looks.ok())
            })
            .collect()
    }
}

fn load(kind: LayerKind, path: &Path) -> Result<Layer, Vec<LoadError>> {
    let name = path.display().to_string();
    let text = read_small(path).map_err(|error| vec![cannot_read(path, &error)])?;
    Layer::load(kind, &name, &text, &for_examples)
}

/// Returns the files of a directory of agents: the defaults first.
fn agent_files(dir: &Path) -> Vec<PathBuf> {
    let experts = fs::read_dir(dir.join("experts"))
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = experts
        .map(|entry| entry.path().join("config.yaml"))
        .collect();
    files.sort();
    files.insert(0, dir.join("defaults.yaml"));
    files
}

fn read_agents(dir: &Path) -> Result<Agents, Vec<LoadError>> {
    if !dir.is_dir() {
        let error = io::Error::from(io::ErrorKind::NotADirectory);
        return Err(vec![cannot_read(dir, &error)]);
    }
    let mut texts = vec![];
    for (at, path) in agent_files(dir).iter().enumerate() {
        match read_small(path) {
            Ok(text) => {
                let name = path.parent().and_then(Path::file_name);
                texts.push((
                    name.unwrap_or_default().to_string_lossy().into_owned(),
                    text,
                ));
            }
            // A directory of something else, or nothing set for everybody.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if at == 0 {
                    texts.push((String::new(), String::new()));
                }
            }
            Err(error) => return Err(vec![cannot_read(path, &error)]),
        }
    }
    let (defaults, configs) = texts.split_first().expect("the defaults come first");
    let configs: Vec<(&str, &str)> = configs
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    agents::read(&defaults.1, &configs)
}

fn read_small(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = fs::File::open(path)?;
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other("it is larger than 4 MiB"));
    }
    Ok(text)
}

fn cannot_read(path: &Path, error: &io::Error) -> LoadError {
    LoadError {
        file: path.display().to_string(),
        line: 1,
        column: 1,
        message: format!("it cannot be read: {error}"),
        hint: "fix it, or remove it from the settings".into(),
    }
}

/// Where a command would run, as the policy needs it.
pub(crate) fn place(root: &Path, cwd: &Path, home: &Path) -> Place {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Place {
        root: text(root),
        cwd: text(cwd),
        home: text(home),
    }
}
