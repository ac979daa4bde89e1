//! Closing a session, with what waits and runs in it.

use std::sync::Arc;
use std::time::Duration;

use weighlock_store::{Filter, State};

use super::Life;
use crate::config::OnClose;
use crate::error::Error;
use crate::principal::{Principal, Right};
use crate::session::SessionView;

/// How long runs of a closed session have to end in order.
const GRACE: Duration = Duration::from_secs(2);

impl Life {
    /// Closes a session: what waits in it is withdrawn, what runs is ended or
    /// goes on, and its grants are taken back.
    pub async fn close_session(
        self: &Arc<Self>,
        id: &str,
        on_close: Option<OnClose>,
        who: &Principal,
    ) -> Result<SessionView, Error> {
        let session = self.sessions.find(id, who)?;
        if session.principal_id != who.name() {
            who.check(Right::Operate)?;
        }
        let on_close = on_close.unwrap_or(self.core.config.on_close);
        self.sessions.close(&session, on_close, who).await?;
        // Whoever hangs up now has closed it nevertheless.
        let (life, whom, whose) = (Arc::clone(self), session.clone(), who.clone());
        let ended = tokio::spawn(async move { life.end_things_of(&whom, on_close, &whose).await });
        ended.await.expect("closing does not panic")?;
        self.sessions.find(&session.session_id, who)
    }

    async fn end_things_of(
        self: &Arc<Self>,
        session: &SessionView,
        on_close: OnClose,
        who: &Principal,
    ) -> Result<(), Error> {
        for state in [State::Waiting, State::Held, State::Running] {
            let filter = Filter {
                session: Some(session.session_id.clone()),
                state: Some(state),
                limit: usize::MAX >> 1,
                ..Filter::default()
            };
            for command in self.core.store.commands().list(&filter)? {
                if state != State::Running {
                    let _ = self.questions.withdraw_command(command, who).await?;
                } else if on_close == OnClose::Stop
                    && let Ok(run) = self.runs.find(&command.id, who)
                {
                    let _ = self.stop(&run, who, false, GRACE).await;
                }
            }
        }
        let id = &session.session_id;
        self.rules.remove_grants_of(id, who.name()).await
    }
}
