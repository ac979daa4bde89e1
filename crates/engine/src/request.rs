//! A request, and the checks that it is valid.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use weighlock_exec::{Limits, Shell, Size, Stdin};
use weighlock_policy::Times;
use weighlock_store::Key;
use weighlock_walls::{Review, is_variable_name};

use crate::error::{Error, brief};
use crate::hex::hex;
use crate::principal::Principal;
use crate::view::TerminalDetail;

/// The kernel takes no longer argument (MAX_ARG_STRLEN, with its NUL).
const MAX_COMMAND: usize = 128 * 1024 - 1;

/// Together with the command well below what the kernel takes (ARG_MAX).
const MAX_ENV: usize = 1024 * 1024;

/// Longer than any name for a request.
const MAX_KEY: usize = 255;

/// Longer than anyone means; such a number is a mistake in units.
const ABSURD: Duration = Duration::from_secs(366 * 24 * 3600);

/// What a command reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    #[default]
    None,
    /// This, and then the end.
    Text(Vec<u8>),
    /// What [`Runs::feed`](crate::Runs::feed) will hand over.
    Open,
    /// What is typed at a terminal of its own, where it writes, too.
    Terminal(Terminal),
}

/// The terminal that a command is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// Its name in its session.
    pub name: String,
    /// How large it is in the beginning.
    pub size: Size,
}

/// Describes the terminal that a command is to have.
pub(crate) fn terminal_detail(terminal: &Terminal) -> TerminalDetail {
    TerminalDetail {
        name: terminal.name.clone(),
        columns: terminal.size.columns,
        rows: terminal.size.rows,
    }
}

impl Input {
    /// Returns how many bytes are known.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(bytes) => bytes.len(),
            Self::None | Self::Open | Self::Terminal(_) => 0,
        }
    }

    /// Returns the start of the known input as text.
    pub(crate) fn shown(&self, most: usize) -> Option<String> {
        match self {
            Self::Text(bytes) => {
                let shown = &bytes[..bytes.len().min(most)];
                Some(String::from_utf8_lossy(shown).into_owned())
            }
            Self::None | Self::Open | Self::Terminal(_) => None,
        }
    }
}

/// One command, and how to run it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The requester.
    pub principal: Principal,
    /// The text for the shell.
    pub command: String,
    /// What the requester says it is for.
    pub description: Option<String>,
    /// What it belongs together with: a session's id, or the client's own name
    /// for one; one is opened for it when not given.
    pub session: Option<String>,
    /// The sandbox, by id or name; its principal's default when not given.
    pub sandbox: Option<String>,
    /// Where to run; the sandbox's directory when not given.
    pub cwd: Option<String>,
    /// Variables to add to the environment.
    pub env: Vec<(String, String)>,
    /// The profile that the agent works under.
    pub agent: Option<String>,
    /// What reads the command; when not given, `sh` where all shells read it
    /// alike, and bash otherwise.
    pub shell: Option<Shell>,
    /// What it reads.
    pub input: Input,
    /// The hard limit in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The limit for silence in milliseconds.
    pub idle_ms: Option<i64>,
    /// How long the caller is willing to wait, in milliseconds; until the end
    /// when not given.
    pub wait_ms: Option<i64>,
    /// Nobody waits for it: unless said otherwise, its time limit is the
    /// longest there is.
    pub background: bool,
    /// It is ended if whoever asks for it does not wait for it any more, as
    /// [`Life::attend`](crate::Life::attend) does.
    pub attended: bool,
    /// Whether what the shell leaves running may go on.
    pub keep: bool,
    /// The requester runs it itself, and reports what it did.
    pub external: bool,
    /// It is typed at the shell of this terminal: the id of its run.
    pub in_terminal: Option<String>,
    /// That terminal writes directly, so that reading is not the only thing a
    /// command could do there.
    pub writes_directly: bool,
    /// Where that shell is.
    pub shell_dir: Option<String>,
    /// The client's own name for this request: made twice, it runs once.
    pub key: Option<String>,
    /// When a person is asked, where that is not to be as the sandbox has it;
    /// nobody asks for less than it wants.
    pub review: Option<Review>,
    /// It is tried on a copy, and every change is asked about.
    pub preview: bool,
}

impl Request {
    /// A plain request: in the directory of its principal's sandbox, with the
    /// default limits, and read by the shell that its text wants.
    pub fn new(principal: Principal, command: impl Into<String>) -> Self {
        Self {
            principal,
            command: command.into(),
            description: None,
            session: None,
            sandbox: None,
            cwd: None,
            env: vec![],
            agent: None,
            shell: None,
            external: false,
            in_terminal: None,
            writes_directly: false,
            shell_dir: None,
            key: None,
            review: None,
            preview: false,
            input: Input::default(),
            timeout_ms: None,
            idle_ms: None,
            wait_ms: None,
            background: false,
            attended: false,
            keep: false,
        }
    }

    /// Checks what can be checked without touching anything.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.command.trim().is_empty() {
            return Err(Error::invalid(
                "empty_command",
                "the command is empty; nothing was run".into(),
                "give the text of a command",
            ));
        }
        if self.external && self.preview {
            return Err(Error::invalid(
                "no_copy",
                "a command that its requester runs cannot be tried on a copy; nothing was \
                 run"
                .into(),
                "leave `preview` out, or let it be run here",
            ));
        }
        if self.command.contains('\0') {
            return Err(Error::invalid(
                "invalid_command",
                "the command has a NUL byte, which no shell can read; nothing was run".into(),
                "remove the NUL byte",
            ));
        }
        if self.command.len() > MAX_COMMAND {
            return Err(Error::invalid(
                "command_too_long",
                format!(
                    "the command has {} bytes; the kernel takes at most {MAX_COMMAND}; \
                     nothing was run",
                    self.command.len()
                ),
                "put the text into a file and run that, or give it as standard input",
            ));
        }
        if self
            .key
            .as_ref()
            .is_some_and(|key| key.is_empty() || key.len() > MAX_KEY)
        {
            return Err(Error::invalid(
                "invalid_key",
                format!("an idempotency key has 1 to {MAX_KEY} bytes; nothing was run"),
                "use a UUID",
            ));
        }
        self.check_env()
    }

    fn check_env(&self) -> Result<(), Error> {
        let mut size = 0;
        for (name, value) in &self.env {
            if !is_variable_name(name) || value.contains('\0') {
                return Err(Error::invalid(
                    "invalid_environment",
                    format!(
                        "`{}` cannot be an environment variable; nothing was run",
                        brief(name)
                    ),
                    "a name has no `=`, and neither name nor value has a NUL byte",
                ));
            }
            size += name.len() + value.len() + 2;
        }
        if size > MAX_ENV || self.env.iter().any(|(_, value)| value.len() > MAX_COMMAND) {
            return Err(Error::invalid(
                "environment_too_large",
                format!("the environment has {size} bytes; nothing was run"),
                "put large values into files",
            ));
        }
        Ok(())
    }

    /// Works out the clocks; says what was clamped.
    pub(crate) fn limits(
        &self,
        times: Times,
        keep: Duration,
        output_bytes: u64,
    ) -> Result<(Limits, Vec<String>), Error> {
        let mut warnings = vec![];
        let asked = time("time limit", self.timeout_ms)?;
        let default = if self.background {
            times.max
        } else {
            times.default
        };
        let hard = asked.unwrap_or(default).min(times.max);
        if let Some(asked) = asked.filter(|&asked| asked > times.max) {
            warnings.push(format!(
                "the time limit of {} s is above the maximum of {} s and was lowered to it",
                asked.as_secs_f64(),
                times.max.as_secs_f64()
            ));
        }
        let limits = Limits {
            hard,
            idle: time("idle limit", self.idle_ms)?,
            keep: self.keep.then_some(keep),
            output_bytes,
        };
        Ok((limits, warnings))
    }

    /// Returns how long the caller waits; `None` is until the end.
    pub(crate) fn wait(&self) -> Result<Option<Duration>, Error> {
        match self.wait_ms {
            _ if self.background => Ok(Some(Duration::ZERO)),
            Some(0) => Ok(Some(Duration::ZERO)),
            other => time("time to wait", other),
        }
    }

    /// Returns how long the caller waits for the end of a started run. An
    /// external command does not wait, because its requester has to learn first
    /// that it may run it.
    pub(crate) fn wait_for_end(&self) -> Result<Option<Duration>, Error> {
        let wait = self.wait()?;
        Ok(if self.external {
            Some(Duration::ZERO)
        } else {
            wait
        })
    }

    /// Returns how long the caller waits for a person's answer and all that
    /// follows: not at all, unless it says so.
    pub(crate) fn wait_for_answer(&self) -> Result<Option<Duration>, Error> {
        match self.wait_ms {
            None => Ok(Some(Duration::ZERO)),
            Some(_) => self.wait(),
        }
    }

    /// Returns who has to wait for it, if somebody has to.
    pub(crate) fn attends(&self) -> Option<Principal> {
        self.attended.then(|| self.principal.clone())
    }

    /// Returns the profile that counts: an agent's own is what it is.
    pub(crate) fn profile(&self) -> Option<&str> {
        match self.principal.is_agent() {
            true => Some(self.principal.name()),
            false => self.agent.as_deref(),
        }
    }

    /// Refuses an agent that would pass for another.
    pub(crate) fn check_profile(&self) -> Result<(), Error> {
        let own = self.principal.name();
        match &self.agent {
            Some(named) if self.principal.is_agent() && named != own => Err(Error::invalid(
                "not_your_profile",
                format!(
                    "{own} cannot work under the profile of `{}`; nothing was run",
                    brief(named)
                ),
                "leave `agent` out",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the request's key, with what tells the same request from
    /// another: all that is asked for, but not how it is waited for, and not
    /// where the shell of a terminal is by now.
    pub(crate) fn keyed(&self) -> Option<Key> {
        let key = self.key.clone()?;
        let input = match &self.input {
            Input::Text(bytes) => bytes.as_slice(),
            Input::None | Input::Open | Input::Terminal(_) => &[],
        };
        let said = json!([
            [&self.command],
            [
                &self.description,
                &self.session,
                &self.sandbox,
                &self.cwd,
                &self.agent
            ],
            self.env,
            self.shell,
            input,
            [self.timeout_ms, self.idle_ms],
            [
                self.background,
                self.keep,
                self.external,
                self.input == Input::Open
            ],
            [self.review, self.preview],
            [self.terminal(), &self.in_terminal],
        ]);
        Some(Key {
            principal: self.principal.name().to_owned(),
            key,
            hash: hex(&Sha256::digest(said.to_string().as_bytes())),
        })
    }

    pub(crate) fn stdin(&self) -> Stdin {
        match self.input {
            Input::None => Stdin::Null,
            Input::Text(_) => Stdin::File,
            Input::Open => Stdin::Pipe,
            Input::Terminal(ref terminal) => Stdin::Terminal(terminal.size),
        }
    }

    /// Returns the terminal that it is to have.
    pub(crate) fn terminal(&self) -> Option<&Terminal> {
        match &self.input {
            Input::Terminal(terminal) => Some(terminal),
            _ => None,
        }
    }
}

fn time(what: &str, millis: Option<i64>) -> Result<Option<Duration>, Error> {
    let Some(asked) = millis else {
        return Ok(None);
    };
    match u64::try_from(asked).map(Duration::from_millis) {
        Ok(time) if !time.is_zero() && time <= ABSURD => Ok(Some(time)),
        _ => Err(Error::invalid(
            "invalid_time",
            format!("{} is not valid as {what}; nothing was run", said(asked)),
            "give a positive time of at most a year, or none for the default",
        )),
    }
}

/// A time as somebody may have given it: most tools take seconds.
fn said(millis: i64) -> String {
    match millis % 1000 {
        0 => format!("{} s", millis / 1000),
        _ => format!("{millis} ms"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn request(command: &str) -> Request {
        Request::new(Principal::library("test"), command)
    }

    fn times() -> Times {
        Times {
            default: Duration::from_secs(20),
            max: Duration::from_secs(300),
        }
    }

    fn hard(timeout_ms: Option<i64>) -> Result<(Duration, usize), &'static str> {
        let request = Request {
            timeout_ms,
            ..request("x")
        };
        let (limits, warnings) = request
            .limits(times(), Duration::ZERO, 1)
            .map_err(|error| error.problem().code)?;
        Ok((limits.hard, warnings.len()))
    }

    #[test]
    fn too_much_time_is_clamped_and_said() {
        assert_eq!(hard(None), Ok((Duration::from_secs(20), 0)));
        assert_eq!(hard(Some(1)), Ok((Duration::from_millis(1), 0)));
        assert_eq!(hard(Some(300_000)), Ok((Duration::from_secs(300), 0)));
        assert_eq!(hard(Some(300_001)), Ok((Duration::from_secs(300), 1)));
    }

    #[test]
    fn nonsense_is_refused() {
        for millis in [0, -1, i64::MIN, i64::MAX] {
            assert_eq!(hard(Some(millis)), Err("invalid_time"), "{millis}");
        }
    }

    #[test]
    fn a_key_stands_for_all_that_is_asked_for() {
        let keyed = || Request {
            key: Some("k".into()),
            ..request("true")
        };
        let hash = |request: Request| request.keyed().map(|key| key.hash);
        let terminal = |name: &str| {
            Input::Terminal(Terminal {
                name: name.into(),
                size: Size {
                    columns: 80,
                    rows: 24,
                },
            })
        };
        let mut others: Vec<Request> = (0..6).map(|_| keyed()).collect();
        others[1].review = Some(Review::Before);
        others[2].preview = true;
        others[3].input = terminal("one");
        others[4].input = terminal("two");
        others[5].in_terminal = Some("r_1".into());
        let hashes: HashSet<_> = others.into_iter().map(hash).collect();
        assert_eq!(hashes.len(), 6);
        // How long somebody waits is not what is asked for.
        let patient = Request {
            wait_ms: Some(1),
            attended: true,
            ..keyed()
        };
        assert_eq!(hash(patient), hash(keyed()));
    }

    #[test]
    fn what_no_shell_can_read_is_refused() {
        let code = |request: Request| request.check().map_err(|error| error.problem().code);
        assert_eq!(code(request("true")), Ok(()));
        assert_eq!(code(request(" \n")), Err("empty_command"));
        assert_eq!(code(request("a\0b")), Err("invalid_command"));
        let long = "x".repeat(1024 * 1024);
        assert_eq!(code(request(&long)), Err("command_too_long"));
        let env = |name: &str, value: &str| Request {
            env: vec![(name.into(), value.into())],
            ..request("true")
        };
        assert_eq!(code(env("A", "b=c")), Ok(()));
        assert_eq!(code(env("", "b")), Err("invalid_environment"));
        assert_eq!(code(env("A=B", "c")), Err("invalid_environment"));
        assert_eq!(code(env("A", "\0")), Err("invalid_environment"));
        assert_eq!(code(env("A", &long)), Err("environment_too_large"));
    }
}
