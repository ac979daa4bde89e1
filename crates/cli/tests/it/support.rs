//! A home of its own for each test, with a server that dies with it.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
pub(crate) use weighlock_testing::{
    SYSTEM_PATH as SYSTEM, have, is_installed, not_as_this_user, skip,
};

/// One owner: a base directory, a state directory, at most one server.
pub(crate) struct Home {
    dir: TempDir,
    /// Stands in the environment of every command that is run here, so that
    /// its processes can be found from outside.
    pub(crate) mark: String,
    /// Where the state directory is seen from here, when the server has
    /// mounts of its own.
    seen_at: OnceLock<PathBuf>,
    /// What our binary finds in its environment beside or instead of the usual.
    env: Vec<(String, OsString)>,
    /// Commands are judged as they are without any settings.
    strict: bool,
    /// People are asked before commands run, and not about what they change.
    asks_before: bool,
}

/// What most tests are about happens to commands that run: here they do, and
/// with our own time limits.
const LENIENT: &str = "preset = \"blacklist\"\n";
const OWN_LIMITS: &str = "timeout_default = \"120s\"\ntimeout_max = \"24h\"\n";

/// A server in the foreground.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// What it said until it was ready.
    pub(crate) said: String,
}

/// What a command of ours did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

impl Home {
    /// A home in which whatever is asked for runs.
    pub(crate) fn new() -> Self {
        let mut home = Self::untouched();
        home.strict = false;
        home.asks_before = true;
        home.put("settings/weighlock/config.toml", &home.lenient(""));
        home
    }

    /// A home in which commands are judged as they are for everybody, and asked
    /// about before they run.
    pub(crate) fn strict() -> Self {
        let mut home = Self::untouched();
        home.asks_before = true;
        home.put("settings/weighlock/config.toml", &home.lenient(""));
        home
    }

    /// A home without settings.
    pub(crate) fn untouched() -> Self {
        Self::within(&std::env::temp_dir()).unwrap()
    }

    /// The same in a directory.
    pub(crate) fn within(outer: &Path) -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = tempfile::Builder::new().prefix("wl").tempdir_in(outer)?;
        fs::create_dir(dir.path().join("base")).unwrap();
        Ok(Self {
            mark: format!("{}-{next}", std::process::id()),
            seen_at: OnceLock::new(),
            env: vec![],
            strict: true,
            asks_before: false,
            dir,
        })
    }

    /// Settings with which what is asked for runs, unless they say otherwise.
    fn lenient(&self, text: &str) -> String {
        let text = match self.asks_before && !text.contains("review =") {
            true => format!("{text}\n[effects]\nreview = \"before\"\n"),
            false => text.to_owned(),
        };
        if self.strict || text.contains("preset =") {
            return text;
        }
        match text.contains("[limits]\n") {
            true => {
                let limits = format!("[limits]\n{OWN_LIMITS}");
                format!("{LENIENT}{}", text.replace("[limits]\n", &limits))
            }
            false => format!("{LENIENT}{text}\n[limits]\n{OWN_LIMITS}"),
        }
    }

    /// What holds all of it.
    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// Where commands run.
    pub(crate) fn base(&self) -> PathBuf {
        self.dir.path().join("base").canonicalize().unwrap()
    }

    pub(crate) fn state(&self) -> PathBuf {
        match self.seen_at.get() {
            Some(path) => path.clone(),
            None => self.dir.path().join("state"),
        }
    }

    /// Gives the person who starts servers here a bash that reads this.
    pub(crate) fn write_profile(&self, text: &str) {
        self.put("home/.bash_profile", text);
    }

    /// What holds the base directory as `base` and the person's home directory
    /// as `home`.
    pub(crate) fn around(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// Writes a file there.
    pub(crate) fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.around().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The same for a program.
    pub(crate) fn put_program(&self, path: &str, text: &str) -> PathBuf {
        let path = self.put(path, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Changes the environment in which our binary is started from now on.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((name.to_owned(), value.into()));
    }

    /// Has the person live where most people do. Homes of tests are below `/tmp`,
    /// which then has no sockets in runs.
    pub(crate) fn live_elsewhere(mut self) -> Self {
        self.set("HOME", "/home/wl-ana");
        self
    }

    /// Our binary, as it would be started here.
    pub(crate) fn weighlock<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        self.weighlock_through(&[], args)
    }

    /// The same, started by another program.
    pub(crate) fn weighlock_through<S: AsRef<std::ffi::OsStr>>(
        &self,
        through: &[&str],
        args: &[S],
    ) -> Command {
        let ours = env!("CARGO_BIN_EXE_weighlock");
        let mut words = [through, &[ours]].concat().into_iter();
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path().join("home"))
            .env("XDG_CONFIG_HOME", self.dir.path().join("settings"))
            .env("WEIGHLOCK_STATE_DIR", self.state())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.base())
            .stdin(Stdio::null());
        command
    }

    /// Runs our binary to its end.
    pub(crate) fn call<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Done {
        let began = Instant::now();
        let done = self.weighlock(args).output().unwrap();
        Done::new(done, began)
    }

    /// Runs a command with options before it.
    pub(crate) fn run(&self, options: &[&str], command: &str) -> Done {
        let mark = format!("WL_MARK={}", self.mark);
        let mut args = vec!["run"];
        // A variable that nobody knows is something to ask about.
        if !self.strict {
            args.extend(["--env", &mark]);
        }
        args.extend(options);
        args.extend(["--", command]);
        self.call(&args)
    }

    /// Runs a command and returns the whole result.
    pub(crate) fn result(&self, options: &[&str], command: &str) -> Value {
        let options = [options, &["--json"]].concat();
        let done = self.run(&options, command);
        serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("no JSON: {done:?}"))
    }

    /// Shows a run.
    pub(crate) fn show(&self, id: &str) -> Value {
        let done = self.call(&["show", id, "--json"]);
        serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("no JSON: {done:?}"))
    }

    /// Starts a server in the foreground and waits until it serves.
    pub(crate) fn serve(&self, options: &[&str]) -> Server {
        self.try_serve(options)
            .unwrap_or_else(|done| panic!("no server: {done:?}"))
    }

    /// Starts a server with settings of its own.
    pub(crate) fn serve_with(&self, settings: &str) -> Server {
        self.serve(&["--config", &self.config(settings)])
    }

    /// Starts a server that may refuse to start.
    pub(crate) fn try_serve(&self, options: &[&str]) -> Result<Server, Done> {
        self.serve_in(&[], options)
    }

    /// Starts a server on a machine without namespaces, as far as it can see.
    pub(crate) fn serve_without_namespaces(&self) -> Server {
        self.serve_without_namespaces_with("[sandbox.default]\nminimum = \"landlock\"\n")
    }

    /// The same, with settings.
    pub(crate) fn serve_without_namespaces_with(&self, settings: &str) -> Server {
        let config = self.config(settings);
        let options = ["--config", config.as_str()];
        let server = if rustix::process::geteuid().is_root() {
            // Root that may only become somebody else, who owns the base.
            let nobody = Some(65534);
            std::os::unix::fs::chown(self.base(), nobody, nobody).unwrap();
            let hostile = "--bounding-set=-all,+setuid,+setgid,+chown,+kill,+dac_override";
            self.serve_in(&["setpriv", hostile, "--inh-caps=-all"], &options)
        } else {
            // A user namespace in which there are no others, and then no
            // capability to make any.
            let hostile = "echo 0 > /proc/sys/user/max_user_namespaces; \
                           exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
            self.serve_in(&["unshare", "-Ur", "sh", "-c", hostile, "sh"], &options)
        };
        server.unwrap_or_else(|done| panic!("no server: {done:?}"))
    }

    /// Starts a server with mounts of its own, which `setup` makes at
    /// `$WEIGHLOCK_STATE_DIR`. Ordinary users can do that too.
    pub(crate) fn try_serve_after(&self, setup: &str) -> Result<Server, Done> {
        let outside = self.state();
        fs::create_dir_all(&outside).unwrap();
        let script = format!("{setup} && exec \"$@\"");
        // Root can do without a user namespace, in which it would be nobody's
        // root and could become no one else.
        let flags = if rustix::process::geteuid().is_root() {
            "-m"
        } else {
            "-rm"
        };
        let server = self.serve_in(&["unshare", flags, "sh", "-c", &script, "sh"], &[])?;
        let root = format!("/proc/{}/root", server.child.id());
        let inside = outside.strip_prefix("/").expect("an absolute path");
        self.seen_at.get_or_init(|| Path::new(&root).join(inside));
        Ok(server)
    }

    /// Starts a server through another program.
    #[expect(clippy::zombie_processes, reason = "dropping the server waits")]
    pub(crate) fn serve_in(&self, through: &[&str], options: &[&str]) -> Result<Server, Done> {
        let began = Instant::now();
        let mut args = vec!["serve"];
        if !options.contains(&"--listen") {
            args.extend(["--listen", "off"]);
        }
        args.extend(options);
        let mut child = self
            .weighlock_through(through, &args)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        loop {
            let length = said.len();
            if lines.read_line(&mut said).unwrap() == 0 {
                let done = child.wait_with_output().unwrap();
                let mut done = Done::new(done, began);
                done.err = said;
                return Err(done);
            }
            if said[length..].starts_with("try it:") {
                // Keep reading, or the server would die of a full pipe.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return Ok(Server { child, said });
            }
        }
    }

    /// Who we are to the server.
    pub(crate) fn me(&self) -> String {
        let (status, me) = self.api("GET", "/me", &Value::Null);
        assert_eq!(status, 200, "{me}");
        me["principal_id"].as_str().expect("a name").to_owned()
    }

    /// Makes a token for somebody.
    #[track_caller]
    pub(crate) fn token(&self, name: &str) -> String {
        let path = format!("/people/{name}/tokens");
        let (status, made) = self.api("POST", &path, &Value::Null);
        assert_eq!(status, 201, "{made}");
        made["token"].as_str().expect("a secret").to_owned()
    }

    /// Asks the server over its socket.
    pub(crate) fn api(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let text = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let (status, bytes) = self.api_raw(method, path, text.as_bytes());
        (
            status,
            serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        )
    }

    /// The same with bytes.
    pub(crate) fn api_raw(&self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut socket = UnixStream::connect(self.state().join("weighlock.sock")).unwrap();
        let head = format!(
            "{method} /agent/terminal{path} HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes()).unwrap();
        // A server that refuses what it is sent need not read it all.
        let _ = socket.write_all(body);
        let mut answer = vec![];
        // It may also close with some of it unread; what it said counts.
        let read = socket.read_to_end(&mut answer);
        assert!(!answer.is_empty(), "no answer: {read:?}");
        parse(&answer)
    }

    /// Writes a configuration file and returns its path.
    pub(crate) fn config(&self, text: &str) -> String {
        let path = self.dir.path().join("config.toml");
        fs::write(&path, self.lenient(text)).unwrap();
        path.to_str().expect("temporary paths are plain").to_owned()
    }

    /// The lines of a file that commands write, in the base directory.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.base().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Asks for a command with more wishes, which are JSON too.
    pub(crate) fn ask(&self, command: &str, wishes: Value) -> (u16, Value) {
        self.api("POST", "/commands", &self.wish(command, wishes))
    }

    /// Starts a command in the background and returns its id.
    pub(crate) fn start(&self, command: &str, mut wishes: Value) -> String {
        wishes["background"] = true.into();
        let (status, run) = self.ask(command, wishes);
        assert_eq!(status, 202, "{run}");
        run["command_id"].as_str().expect("an id").to_owned()
    }

    /// The body of a request, with the mark of this home.
    pub(crate) fn wish(&self, command: &str, wishes: Value) -> Value {
        let mut body = json!({ "command": command, "cwd": self.base() });
        if !self.strict {
            body["env"] = json!({ "WL_MARK": self.mark });
        }
        for (name, wish) in wishes.as_object().into_iter().flatten() {
            body[name] = wish.clone();
        }
        body
    }

    /// A run as the server tells it.
    pub(crate) fn get(&self, id: &str) -> Value {
        let (status, run) = self.api("GET", &format!("/commands/{id}"), &Value::Null);
        assert_eq!(status, 200, "{run}");
        run
    }

    /// The run that was asked for last.
    pub(crate) fn newest(&self) -> Value {
        let (_, runs) = self.api("GET", "/commands?limit=1", &Value::Null);
        runs["commands"][0].clone()
    }

    /// A run once it has ended.
    pub(crate) fn ended(&self, id: &str) -> Value {
        let path = format!("/commands/{id}?wait_ms=60000");
        let (_, run) = self.api("GET", &path, &Value::Null);
        assert_ne!(run["state"], "running", "{run}");
        run
    }

    /// A run once nothing of it is left.
    pub(crate) fn closed(&self, id: &str) -> Value {
        eventually("the run is closed", || self.get(id)["open"] == false);
        self.get(id)
    }

    /// The exact bytes that are kept of a run's output.
    pub(crate) fn output(&self, id: &str) -> Vec<u8> {
        let (status, bytes) = self.api_raw("GET", &format!("/commands/{id}/output/raw"), b"");
        assert_eq!(status, 200);
        bytes
    }

    /// How many runs have a directory.
    pub(crate) fn run_dirs(&self) -> usize {
        let days = fs::read_dir(self.state().join("runs"))
            .into_iter()
            .flatten();
        days.flatten()
            .flat_map(|day| fs::read_dir(day.path()).into_iter().flatten())
            .count()
    }

    /// What the keeper of a run has written down.
    pub(crate) fn status_file(&self, id: &str) -> Option<PathBuf> {
        let days = fs::read_dir(self.state().join("runs")).ok()?;
        days.flatten()
            .map(|day| day.path().join(id).join("status.jsonl"))
            .find(|path| path.exists())
    }

    /// How many files there are of a run.
    pub(crate) fn files_of(&self, id: &str) -> usize {
        let days = fs::read_dir(self.state().join("runs"))
            .into_iter()
            .flatten();
        days.flatten()
            .flat_map(|day| fs::read_dir(day.path().join(id)).into_iter().flatten())
            .count()
    }

    /// The pid of the keeper of a run.
    pub(crate) fn keeper(&self, id: &str) -> u32 {
        let path = self.status_file(id).expect("a run under way");
        let text = fs::read_to_string(path).unwrap();
        let status: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        status["keeper"]["pid"].as_u64().expect("a pid") as u32
    }

    /// The keepers of all runs that are not over.
    fn keepers(&self) -> Vec<u32> {
        let days = fs::read_dir(self.state().join("runs"));
        let days = days.into_iter().flatten().flatten();
        let runs = days.flat_map(|day| fs::read_dir(day.path()).into_iter().flatten().flatten());
        let open = runs.filter_map(|run| {
            let text = fs::read_to_string(run.path().join("status.jsonl")).ok()?;
            let status: Value = serde_json::from_str(text.lines().last()?).ok()?;
            let pid = status["keeper"]["pid"].as_u64()? as u32;
            (status["closed"] == false && is_keeper(pid)).then_some(pid)
        });
        open.collect()
    }

    /// Host pids of the processes that commands of this home have now.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mark = format!("WL_MARK={}", self.mark);
        all_processes()
            .filter(|pid| {
                fs::read(format!("/proc/{pid}/environ"))
                    .unwrap_or_default()
                    .split(|&byte| byte == 0)
                    .any(|variable| variable == mark.as_bytes())
            })
            .collect()
    }

    /// Waits until no command of this home has a process any more.
    pub(crate) fn assert_gone(&self) {
        self.assert_gone_within(PATIENCE);
    }

    /// The same, and panics when that takes longer than it may.
    pub(crate) fn assert_gone_within(&self, time: Duration) {
        let deadline = Instant::now() + time;
        while !self.processes().is_empty() {
            assert!(
                Instant::now() < deadline,
                "still there: {:?}",
                self.processes()
            );
        }
    }

    /// The pid of the server that holds the state directory.
    pub(crate) fn server_pid(&self) -> u32 {
        let lock = fs::read_to_string(self.state().join("lock")).unwrap();
        lock.trim().parse().unwrap()
    }

    /// `weighlock audit verify` must find nothing wrong.
    pub(crate) fn assert_audit_verifies(&self) {
        if self.seen_at.get().is_some() {
            // SQLite resolves links, and would look on our side of the mount.
            let (_, found) = self.api("POST", "/audit/verify", &json!({}));
            assert_eq!(found["fault"], Value::Null, "{found}");
            assert!(found["entries"].as_u64() > Some(0), "{found}");
            return;
        }
        let done = self.call(&["audit", "verify"]);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A server that was started on demand is nobody's child.
        let lock = fs::read_to_string(self.state().join("lock")).unwrap_or_default();
        if let Ok(pid) = lock.trim().parse::<u32>()
            && is_ours(pid)
        {
            signal(pid, "KILL");
        }
        // A keeper goes on without a server; what it keeps goes with it.
        for pid in self.keepers().into_iter().chain(self.processes()) {
            signal(pid, "KILL");
        }
    }
}

/// A connection that is kept for many requests.
pub(crate) struct Talk<S = UnixStream>(pub(crate) BufReader<S>);

/// One answer on such a connection.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    /// Null when there is none.
    pub(crate) body: Value,
}

impl Talk {
    pub(crate) fn open(home: &Home) -> Self {
        let socket = UnixStream::connect(home.state().join("weighlock.sock")).unwrap();
        Self(BufReader::new(socket))
    }
}

impl<S: Read + Write> Talk<S> {
    /// Asks and waits for the answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, body);
        self.receive()
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &Value) {
        let body = body.to_string();
        let request = format!(
            "{method} /agent/terminal{path} HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
    }

    pub(crate) fn receive(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.0.read_line(&mut head).unwrap(), 0, "hung up: {head}");
        }
        let head = head.to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = match status {
            204 => 0,
            _ => length.expect("a length").parse().unwrap(),
        };
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        Answer {
            status,
            head,
            body: match length {
                0 => Value::Null,
                _ => serde_json::from_slice(&body).unwrap(),
            },
        }
    }
}

impl Server {
    /// Where it listens on TCP.
    pub(crate) fn address(&self) -> String {
        let mut lines = self.said.lines().map(str::trim);
        let line = lines.find_map(|line| line.strip_prefix("address  http://"));
        let address = line.expect("it listens on TCP").split('/').next();
        address.unwrap().to_owned()
    }

    /// The secret of the link that signs its owner in.
    pub(crate) fn code(&self) -> String {
        let mut words = self.said.split_whitespace();
        let code = words.find_map(|word| word.split_once("/signin#"));
        code.expect("a link").1.to_owned()
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it in order.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Done {
    fn new(output: Output, began: Instant) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            took: began.elapsed(),
        }
    }
}

/// Sends a signal by its name.
pub(crate) fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .stderr(Stdio::null())
        .status();
}

/// So long that only what hangs takes longer, on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds, and panics with `what` when it never does.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn all_processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The processes that one has started, dead ones that nobody has buried too.
pub(crate) fn children(parent: u32) -> Vec<(u32, char)> {
    all_processes()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let mut fields = stat.rsplit_once(") ")?.1.split(' ');
            let state = fields.next()?.chars().next()?;
            (fields.next()?.parse() == Ok(parent)).then_some((pid, state))
        })
        .collect()
}

/// Whether a process is there, dead ones not counted.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Says that the user who runs the tests has no Rust toolchain of their own.
/// Those in a home directory are what these tests are about.
pub(crate) fn no_toolchain(bin: &str) {
    let why = format!("there is no cargo in {bin}");
    match rustix::process::geteuid().is_root() {
        true => skip(&why),
        false => not_as_this_user(&why),
    }
}

/// Tells whether a pid is a server of ours, so that no other process is hit.
fn is_ours(pid: u32) -> bool {
    let line = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
    let line = line.unwrap_or_default();
    let mut words = line.split(|&byte| byte == 0);
    words
        .next()
        .is_some_and(|name| name.ends_with(b"weighlock"))
        && words.next() == Some(b"serve")
}

/// The same for a keeper.
fn is_keeper(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.starts_with(b"weighlock-keeper\0")
}

fn parse(answer: &[u8]) -> (u16, Vec<u8>) {
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = &answer[end + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return (status, body.to_vec());
    }
    let mut whole = vec![];
    loop {
        let line = body.iter().position(|&byte| byte == b'\r').unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return (status, whole);
        }
        whole.extend_from_slice(&body[line + 2..line + 2 + size]);
        body = &body[line + 2 + size + 2..];
    }
}
