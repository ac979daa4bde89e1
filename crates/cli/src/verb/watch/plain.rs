//! One line for each event, for logs and for screen readers.

use std::process::ExitCode;

use weighlock_api::{CommandView, Event};

use crate::client::{Client, Failure, escape};
use crate::events::EventFeed;
use crate::names::SandboxNames;
use crate::paths::Paths;
use crate::text::{command_line, one_line};
use crate::verb::runs;
use crate::when;

/// Tells everything from now on, until somebody stops it.
pub(super) async fn tell(paths: &Paths, json: bool) -> Result<ExitCode, Failure> {
    let mut news = EventFeed::open(paths).await?;
    loop {
        let event = news.next().await?;
        if json {
            println!("{}", serde_json::to_string(&event).expect("always JSON"));
        } else if event.event != "reset" {
            println!("{}", line(&event, paths).await);
        }
    }
}

/// `14:02:11  approval.asked  coder  webshop  ap_7f3kq2  rm -rf build/`
async fn line(event: &Event, paths: &Paths) -> String {
    let about = about(event, paths).await.unwrap_or_default();
    let line = format!(
        "{}  {:<18}  {:<12}  {about}",
        when::exact(&event.time),
        one_line(&event.kind, 24),
        one_line(&event.actor, 12),
    );
    line.trim_end().to_owned()
}

/// What it is about, if that can still be seen.
async fn about(event: &Event, paths: &Paths) -> Option<String> {
    let mut client = Client::open(paths).await.ok()?;
    let sandbox = sandbox(event, &mut client).await.unwrap_or_default();
    let approval = event.approval_id.as_deref().unwrap_or_default();
    let Some(id) = &event.command_id else {
        return Some(format!("{sandbox:<12}  {}", one_line(approval, 30)));
    };
    let path = format!("/commands/{}", escape(id));
    let run = client.get::<CommandView>(&path).await.ok()?.run;
    Some(format!(
        "{sandbox:<12}  {:<9}  {}  {}",
        run.short_id,
        command_line(&run.command, 100),
        runs::result(&run)
    ))
}

async fn sandbox(event: &Event, client: &mut Client) -> Option<String> {
    let id = event.sandbox_id.as_deref()?;
    let names = SandboxNames::fetch(client).await.ok()?;
    Some(one_line(names.of(id), 12))
}
