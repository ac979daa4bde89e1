//! What `watch` knows.

use weighlock_api::{
    ApprovalList, ApprovalView, CommandList, CommandView, Load, Me, PeopleList, Role, Run, State,
};

use crate::client::{Client, Failure};
use crate::names::SandboxNames;
use crate::paths::Paths;

/// More rows than any terminal has.
const ROWS: usize = 100;

/// Of so many runs it is known what they take up; more are not on the screen.
const MEASURED: usize = 20;

/// Everything on the screen.
pub(super) struct Model {
    pub(super) me: Me,
    /// The server was there when it was last looked for.
    pub(super) connected: bool,
    /// How many agents there are, if this person may know.
    pub(super) agents: Option<usize>,
    pub(super) waiting: Vec<ApprovalView>,
    pub(super) running: Vec<Run>,
    pub(super) loads: Vec<(String, Load)>,
    pub(super) recent: Vec<Run>,
    pub(super) held: usize,
    names: SandboxNames,
}

/// One thing that can be selected.
pub(super) enum WatchRow<'a> {
    Waiting(&'a ApprovalView),
    Running(&'a Run),
    Recent(&'a Run),
}

impl WatchRow<'_> {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Waiting(approval) => &approval.approval_id,
            Self::Running(run) | Self::Recent(run) => &run.command_id,
        }
    }
}

impl Model {
    pub(super) async fn fetch(paths: &Paths) -> Result<Self, Failure> {
        let mut client = Client::open(paths).await?;
        let me: Me = client.get("/me").await?;
        let people = match me.role {
            Role::Agent => None,
            _ => client.get::<PeopleList>("/people").await.ok(),
        };
        let agents = |list: PeopleList| {
            { list.people.iter() }
                .filter(|one| one.role == Role::Agent)
                .count()
        };
        let waiting: ApprovalList = client.get(&format!("/approvals?limit={ROWS}")).await?;
        let open: CommandList = client
            .get(&format!("/commands?open=true&limit={ROWS}"))
            .await?;
        let held: CommandList = client.get("/commands?state=held&limit=500").await?;
        let mut recent: CommandList = client.get(&format!("/commands?limit={ROWS}")).await?;
        let under_way = [State::Running, State::Waiting, State::Held];
        recent
            .commands
            .retain(|run| !under_way.contains(&run.state));
        Ok(Self {
            me,
            connected: true,
            agents: people.map(agents),
            waiting: waiting.approvals,
            running: open.commands,
            loads: vec![],
            recent: recent.commands,
            held: held.commands.len(),
            names: SandboxNames::fetch(&mut client).await?,
        })
    }

    /// Looks at everything again. What cannot be reached stays as it was.
    pub(super) async fn refresh(&mut self, paths: &Paths) {
        match Self::fetch(paths).await {
            Ok(now) => {
                let loads = std::mem::take(&mut self.loads);
                *self = Self { loads, ..now };
            }
            Err(_) => self.connected = false,
        }
    }

    /// Looks at what runs take up now.
    pub(super) async fn measure(&mut self, paths: &Paths) {
        if self.running.is_empty() {
            return;
        }
        let Ok(mut client) = Client::open(paths).await else {
            self.connected = false;
            return;
        };
        let mut loads = vec![];
        for run in self.running.iter().take(MEASURED) {
            let id = &run.command_id;
            let view = client.get::<CommandView>(&format!("/commands/{id}")).await;
            if let Some(load) = view.ok().and_then(|view| view.load) {
                loads.push((id.clone(), load));
            }
        }
        self.loads = loads;
    }

    /// What can be selected, from the top of the screen to its end.
    pub(super) fn rows(&self) -> Vec<WatchRow<'_>> {
        let waiting = self.waiting.iter().map(WatchRow::Waiting);
        let running = self.running.iter().map(WatchRow::Running);
        waiting
            .chain(running)
            .chain(self.recent.iter().map(WatchRow::Recent))
            .collect()
    }

    pub(super) fn load(&self, run: &Run) -> Option<&Load> {
        let mut loads = self.loads.iter();
        loads
            .find(|(id, _)| *id == run.command_id)
            .map(|(_, load)| load)
    }

    pub(super) fn sandbox<'a>(&'a self, run: &'a Run) -> &'a str {
        self.names.of(run.sandbox_id.as_deref().unwrap_or_default())
    }

    /// Everything is paused, not only one agent.
    pub(super) fn is_paused(&self) -> bool {
        self.me.pauses.iter().any(|pause| pause.principal.is_none())
    }
}
