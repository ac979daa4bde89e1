//! An inbox in this process, with people around it: the real engine, database
//! and keepers, and a record in which everything must agree.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;
use weighlock_api::{ApprovalView, DecisionKind, NewPerson, Role, Run, State};
use weighlock_engine::{
    Approvals, Clock, Config, Decision, Engine, Error, InboxFilter, Nursery, Outcome, Principal,
    Request, Store,
};

/// Everybody whom a test may need.
const PEOPLE: &[(&str, Role)] = &[
    ("coder", Role::Agent),
    ("linter", Role::Agent),
    ("ana", Role::Approver),
    ("ben", Role::Approver),
    ("olga", Role::Operator),
];

/// A place where engines are opened, one after the other.
pub(crate) struct Office {
    _dir: TempDir,
    pub(crate) config: Config,
    /// How wrong the wall clock is, in seconds.
    pub(crate) jump: Arc<AtomicI64>,
    /// Everybody's token, by name.
    tokens: Mutex<HashMap<&'static str, String>>,
}

/// An engine that is open.
pub(crate) struct Desk {
    pub(crate) engine: Arc<Engine>,
    people: HashMap<&'static str, Principal>,
    state: PathBuf,
}

impl Office {
    pub(crate) fn new() -> Self {
        Self::with(Approvals::default())
    }

    /// An office with rules of its own about asking.
    pub(crate) fn with(approvals: Approvals) -> Self {
        let dir = tempfile::Builder::new().prefix("wl").tempdir().unwrap();
        let base = dir.path().join("base");
        std::fs::create_dir(&base).unwrap();
        let mut config = Config::new(dir.path().join("state"), base.canonicalize().unwrap());
        config.approvals = approvals;
        config.login_path = false;
        // Before they run: what these are about is the inbox.
        config.effects.review = Some(weighlock_api::Review::Before);
        Self {
            _dir: dir,
            config,
            jump: Arc::default(),
            tokens: Mutex::default(),
        }
    }

    /// Where commands run.
    pub(crate) fn base(&self) -> PathBuf {
        self.config.base.clone()
    }

    /// Opens an engine for a test and then ends it as a crash would: whatever
    /// was under way stops where it is.
    pub(crate) fn open<T>(&self, test: impl AsyncFnOnce(Desk) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { test(self.desk().await).await })
    }

    async fn desk(&self) -> Desk {
        let jump = Arc::clone(&self.jump);
        let clock = Clock::new(move || {
            let now = Timestamp::now().as_microsecond();
            let jump = jump.load(Ordering::Relaxed) * 1_000_000;
            Timestamp::from_microsecond(now + jump).unwrap()
        });
        let program = env!("CARGO_BIN_EXE_weighlock").into();
        let nursery = Nursery::new(program, vec!["__nursery".into()]).unwrap();
        let engine = Engine::open(self.config.clone(), clock, nursery)
            .await
            .unwrap();
        let mut people = HashMap::new();
        for &(name, role) in PEOPLE {
            let token = self.token(&engine, name, role).await;
            let somebody = engine.people().find_bearer(&token).await.unwrap();
            people.insert(name, somebody.expect("a token that counts"));
        }
        Desk {
            engine,
            people,
            state: self.config.state_dir.clone(),
        }
    }

    async fn token(&self, engine: &Engine, name: &'static str, role: Role) -> String {
        let known = self.tokens.lock().unwrap().get(name).cloned();
        if let Some(token) = known {
            return token;
        }
        let owner = Principal::library(engine.people().owner_name());
        let person = NewPerson {
            principal_id: name.into(),
            role,
            uid: None,
            sandboxes: None,
            default_sandbox: Some("default".into()),
        };
        engine.people().add(person, &owner).await.unwrap();
        let new = engine
            .people()
            .add_token(name, "", None, &owner)
            .await
            .unwrap();
        self.tokens.lock().unwrap().insert(name, new.token.clone());
        new.token
    }
}

impl Desk {
    /// Somebody, as their token shows them.
    pub(crate) fn who(&self, name: &str) -> &Principal {
        &self.people[name]
    }

    /// The server's owner.
    pub(crate) fn owner(&self) -> Principal {
        Principal::library(self.engine.people().owner_name())
    }

    /// A request of somebody who does not wait for the answer.
    pub(crate) fn request(&self, who: &str, command: &str) -> Request {
        Request::new(self.who(who).clone(), command)
    }

    /// The same for a command that the requester runs itself.
    pub(crate) fn external(&self, who: &str, command: &str) -> Request {
        Request {
            external: true,
            ..self.request(who, command)
        }
    }

    /// Asks for something that a person must allow.
    pub(crate) async fn ask(&self, request: Request) -> Run {
        match self.engine.run(request).await.unwrap() {
            Outcome::Waiting(run) => run,
            other => panic!("does not wait: {other:?}"),
        }
    }

    /// The same where a moment's delay is enough for it to have expired.
    pub(crate) async fn ask_briefly(&self, request: Request) -> Run {
        match self.engine.run(request).await.unwrap() {
            Outcome::Waiting(run) => run,
            Outcome::Refused(run) if run.state == State::Expired => run,
            other => panic!("neither waits nor has expired: {other:?}"),
        }
    }

    /// Asks a person, and returns the run with its question.
    pub(crate) async fn question(&self, request: Request) -> (Run, ApprovalView) {
        let run = self.ask(request).await;
        let card = self
            .card(run.approval_id.as_deref().expect("a question"))
            .await;
        (run, card)
    }

    /// A question as it is now.
    pub(crate) async fn card(&self, id: &str) -> ApprovalView {
        self.engine
            .inbox()
            .question(id, &self.owner())
            .await
            .unwrap()
    }

    /// A run as it is now.
    pub(crate) fn run(&self, id: &str) -> Run {
        self.engine.runs().find(id, &self.owner()).unwrap()
    }

    /// A run once it has ended.
    pub(crate) async fn ended(&self, id: &str) -> Run {
        self.engine.runs().wait(&self.run(id), None).await.unwrap()
    }

    /// Everything that waits.
    pub(crate) fn inbox(&self) -> Vec<ApprovalView> {
        let filter = InboxFilter {
            state: Some(weighlock_api::ApprovalState::Pending),
            limit: 1000,
            ..InboxFilter::default()
        };
        self.engine.inbox().list(filter, &self.owner()).unwrap().0
    }

    /// Decides as somebody. An error is its code.
    pub(crate) async fn decide(
        &self,
        who: &str,
        card: &ApprovalView,
        kind: DecisionKind,
    ) -> Result<ApprovalView, &'static str> {
        let decided = self.try_decide(who, card, kind).await;
        decided.map_err(|error| error.problem().code)
    }

    pub(crate) async fn try_decide(
        &self,
        who: &str,
        card: &ApprovalView,
        kind: DecisionKind,
    ) -> Result<ApprovalView, Error> {
        let decision = decision(kind, card);
        self.engine
            .inbox()
            .decide(&card.approval_id, decision, self.who(who))
            .await
    }

    pub(crate) async fn approve(
        &self,
        who: &str,
        card: &ApprovalView,
    ) -> Result<ApprovalView, &'static str> {
        self.decide(who, card, DecisionKind::ApproveOnce).await
    }

    /// What the audit says became of a run, in order.
    pub(crate) fn told(&self, id: &str) -> Vec<String> {
        let entries = self.engine.audit().entries_of(&self.run(id)).unwrap();
        let kind = |entry: &Value| entry["kind"].as_str().expect("a kind").to_owned();
        let kinds = entries.iter().map(kind);
        kinds.filter(|kind| kind.starts_with("run.")).collect()
    }

    /// Everything agrees, and nobody has tampered with it.
    pub(crate) fn assert_agrees(&self) {
        Records::read(&self.state).check();
        let store = Store::open_read_only(&self.state).unwrap();
        let verified = store.audit().verify().unwrap();
        assert_eq!(verified.fault, None);
    }
}

/// A decision about what was shown.
pub(crate) fn decision(kind: DecisionKind, card: &ApprovalView) -> Decision {
    Decision {
        fingerprint: Some(card.fingerprint.clone()),
        ..Decision::new(kind)
    }
}

/// The states in which something may be that has begun.
pub(crate) const BEGUN: &[State] = &[
    State::Running,
    State::Succeeded,
    State::Failed,
    State::TimedOut,
    State::Killed,
    State::Lost,
];

/// Everything on record about questions and commands, as it is in the
/// database.
pub(crate) struct Records {
    pub(crate) approvals: BTreeMap<String, ApprovalRow>,
    pub(crate) commands: BTreeMap<String, CommandRow>,
    /// What the audit says of each run, and of each question.
    runs: HashMap<String, Vec<(String, String)>>,
    questions: HashMap<String, Vec<(String, String)>>,
}

#[derive(Debug)]
pub(crate) struct ApprovalRow {
    pub(crate) state: String,
    pub(crate) decided_by: Option<String>,
    pub(crate) count: u64,
    pub(crate) needed: u64,
    /// Who said yes to what is asked now.
    pub(crate) yeses: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct CommandRow {
    pub(crate) state: String,
    pub(crate) approval: Option<String>,
    pub(crate) approved_by: Option<String>,
    /// Its request is kept, to be started from.
    pub(crate) kept: bool,
}

impl Records {
    pub(crate) fn read(state_dir: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = Connection::open_with_flags(state_dir.join("weighlock.db"), flags).unwrap();
        // One moment, whatever is written meanwhile.
        database.execute_batch("BEGIN").unwrap();
        let mut yeses: HashMap<String, Vec<String>> = HashMap::new();
        let mut query = database
            .prepare("SELECT approval_id, by FROM answers WHERE approve = 1 ORDER BY at, by")
            .unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        for (id, by) in rows.unwrap().map(Result::unwrap) {
            yeses.entry(id).or_default().push(by);
        }
        let mut query = database
            .prepare("SELECT approval_id, state, decided_by, count, needed FROM approvals")
            .unwrap();
        let approvals = query.query_map([], |row| {
            let id: String = row.get(0)?;
            let yeses = yeses.get(&id).cloned().unwrap_or_default();
            Ok((
                id,
                ApprovalRow {
                    state: row.get(1)?,
                    decided_by: row.get(2)?,
                    count: row.get(3)?,
                    needed: row.get(4)?,
                    yeses,
                },
            ))
        });
        let approvals = approvals.unwrap().map(Result::unwrap).collect();
        let mut query = database
            .prepare(
                "SELECT command_id, state, approval_id, approved_by, body IS NOT NULL \
                 FROM terminal_commands LEFT JOIN pending_requests USING (command_id)",
            )
            .unwrap();
        let commands = query.query_map([], |row| {
            Ok((
                row.get(0)?,
                CommandRow {
                    state: row.get(1)?,
                    approval: row.get(2)?,
                    approved_by: row.get(3)?,
                    kept: row.get(4)?,
                },
            ))
        });
        let commands = commands.unwrap().map(Result::unwrap).collect();
        let (runs, questions) = audit(&database);
        Self {
            approvals,
            commands,
            runs,
            questions,
        }
    }

    /// Panics where two of them do not agree.
    pub(crate) fn check(&self) {
        let mut shared: HashMap<&str, Vec<(&String, &CommandRow)>> = HashMap::new();
        for (id, command) in &self.commands {
            let question = command.approval.as_deref().unwrap_or_default();
            shared.entry(question).or_default().push((id, command));
        }
        for (id, approval) in &self.approvals {
            let commands = shared.get(id.as_str()).map_or(&[][..], Vec::as_slice);
            self.check_question(id, approval, commands);
        }
        for (id, command) in &self.commands {
            self.check_command(id, command);
        }
    }

    fn check_question(
        &self,
        id: &str,
        approval: &ApprovalRow,
        commands: &[(&String, &CommandRow)],
    ) {
        let told = self.questions.get(id).map_or(&[][..], Vec::as_slice);
        let what = || format!("{id}: {approval:?}, {commands:?}, {told:?}");
        let closings = ["approved", "rejected", "expired", "withdrawn", "blocked"];
        let is_closing = |kind: &str| closings.contains(&kind.trim_start_matches("approval."));
        let closed: Vec<_> = { told.iter().filter(|(kind, _)| is_closing(kind)) }.collect();
        let expected = match approval.state.as_str() {
            "pending" => vec![],
            state => vec![(
                format!("approval.{state}"),
                approval.decided_by.clone().expect("whoever closed it"),
            )],
        };
        assert_eq!(closed, expected.iter().collect::<Vec<_>>(), "{}", what());
        for (_, command) in commands {
            if command.state == "withdrawn" {
                continue;
            }
            let fits = match approval.state.as_str() {
                "pending" => command.state == "waiting" && command.approved_by.is_none(),
                "approved" => {
                    command.approved_by == approval.decided_by
                        && (is_begun(&command.state) || command.state == "blocked")
                }
                ended => command.state == ended && command.approved_by.is_none(),
            };
            assert!(fits, "{}", what());
        }
        if approval.state == "pending" {
            let waiting = commands
                .iter()
                .filter(|(_, command)| command.state == "waiting");
            assert_eq!(approval.count, waiting.count() as u64, "{}", what());
        }
        if approval.state == "approved" {
            assert_eq!(approval.yeses.len() as u64, approval.needed, "{}", what());
            let by = approval.decided_by.as_ref();
            assert!(
                by.is_some_and(|by| approval.yeses.contains(by)),
                "{}",
                what()
            );
        }
    }

    fn check_command(&self, id: &str, command: &CommandRow) {
        let told = self.runs.get(id).map_or(&[][..], Vec::as_slice);
        let count = |wanted: &[&str]| {
            let kinds = told.iter().map(|(kind, _)| kind.trim_start_matches("run."));
            kinds.filter(|kind| wanted.contains(kind)).count()
        };
        let what = format!("{id}: {command:?}, {told:?}");
        let waits = ["waiting", "held"].contains(&command.state.as_str());
        assert_eq!(command.kept, waits, "{what}");
        assert!(count(&["started"]) <= 1, "{what}");
        let over = !waits && command.state != "running";
        let ends = ["ended", "blocked", "rejected", "expired", "withdrawn"];
        assert_eq!(count(&ends), usize::from(over), "{what}");
        let approvals = usize::from(command.approved_by.is_some());
        assert_eq!(count(&["approved"]), approvals, "{what}");
        match command.state.as_str() {
            "running" | "succeeded" | "timed_out" | "killed" | "lost" => {
                assert_eq!(count(&["started"]), 1, "{what}");
            }
            // What could not begin has failed too.
            "failed" => assert_eq!(count(&["ended"]), 1, "{what}"),
            state => {
                assert_eq!(count(&["started"]), 0, "{what}");
                assert_eq!(count(&[state]), 1, "{what}");
            }
        }
    }
}

fn is_begun(state: &str) -> bool {
    BEGUN.iter().any(|begun| begun.word() == state)
}

type Told = HashMap<String, Vec<(String, String)>>;

/// Returns what was told of each run and of each question: what, and who did
/// it.
fn audit(database: &Connection) -> (Told, Told) {
    let mut query = database
        .prepare("SELECT run, kind, actor, body ->> '$.detail.approval' FROM audit ORDER BY seq")
        .unwrap();
    let rows = query.query_map([], |row| {
        let (run, about): (Option<String>, Option<String>) = (row.get(0)?, row.get(3)?);
        let (kind, actor): (String, String) = (row.get(1)?, row.get(2)?);
        Ok((run, about, kind, actor))
    });
    let (mut runs, mut questions) = (Told::new(), Told::new());
    for (run, about, kind, actor) in rows.unwrap().map(Result::unwrap) {
        match (run, about) {
            (_, Some(about)) if kind.starts_with("approval.") => {
                questions.entry(about).or_default().push((kind, actor));
            }
            (Some(run), _) if kind.starts_with("run.") => {
                runs.entry(run).or_default().push((kind, actor));
            }
            _ => {}
        }
    }
    (runs, questions)
}

/// How often each race is run: WL_RACES, or as often as a minute on a busy
/// machine allows.
pub(crate) fn races(usual: usize) -> usize {
    let asked = std::env::var("WL_RACES").ok();
    asked.map_or(usual, |asked| asked.parse().expect("WL_RACES is a number"))
}
