//! A terminal, asked for: what every tool that opens one does.

use serde::Deserialize;
use weighlock_api::{CommandView, NewTerminal, TerminalView};

use crate::api::{self, Failure};
use crate::call::Call;

/// What became of a terminal that was to be opened.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Opened {
    /// It is open, or waits for a person.
    Terminal(Box<TerminalView>),
    /// It was refused, or has ended already.
    Run(Box<CommandView>),
}

impl Call {
    /// Opens a terminal where the client is.
    pub(crate) async fn open(&self, new: NewTerminal) -> Result<Opened, Failure> {
        self.check_agent().await?;
        let desk = &self.desk;
        let new = NewTerminal {
            session_id: Some(desk.session.clone()),
            sandbox_id: desk.options.sandbox.clone(),
            cwd: desk.cwd(new.cwd),
            agent: desk.options.agent.clone(),
            ..new
        };
        let opened: Opened = api::post(desk.api(), "/terminals".into(), &new).await?;
        desk.learn(match &opened {
            Opened::Terminal(terminal) => terminal.session_id.as_deref(),
            Opened::Run(view) => view.run.session_id.as_deref(),
        });
        Ok(opened)
    }
}
