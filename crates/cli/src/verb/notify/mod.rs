//! `weighlock notify`: sends notifications elsewhere when something waits.

mod print;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use weighlock_engine::{
    QuietHours, Topic, WebhookFormat, WebhookPatch, WebhookView, WebhookWithSecret,
};
use weighlock_server::{NoticeList, Tested, WebhookList};

use crate::client::{Client, Failure, block_on, escape};
use crate::names::SandboxNames;
use crate::ourselves;
use crate::paths::Paths;
use crate::text::{self, print_json, safe};

/// Send notifications when something waits for a person: by webhook, ntfy or
/// chat
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock notify add https://ntfy.sh/my-secret-topic --format ntfy
  weighlock notify add https://hooks.example.com/w --quiet 22:00-07:00
  weighlock notify test wh_7f3kq2
  weighlock notify list
  weighlock notify edit wh_7f3kq2 --delay 2m --topic approval.waiting --topic run.failed
  weighlock notify remove wh_7f3kq2

Nothing is decided by what is sent: it has a link to the page that asks.")]
pub(crate) struct Args {
    #[command(subcommand)]
    deed: Option<NotifyCommand>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum NotifyCommand {
    /// List your webhooks and their state
    List,
    /// Add a webhook: send notifications to this address from now on
    #[command(before_help = "Examples:
  weighlock notify add https://hooks.example.com/w --label 'on call'
  weighlock notify add https://ntfy.sh/my-secret-topic --format ntfy --quiet 22:00-07:00
  weighlock notify add https://chat.example.com/hooks/x --format chat --server")]
    Add(AddWebhook),
    /// Show a webhook and its latest notifications
    Show { id: String },
    /// Change only the given options; a list replaces the old one
    #[command(before_help = "Examples:
  weighlock notify edit wh_7f3kq2 --delay 2m
  weighlock notify edit wh_7f3kq2 --off")]
    Edit(EditWebhook),
    /// Send a test message
    Test { id: String },
    /// Replace the signing secret, and print the new one
    Secret { id: String },
    /// Delete this webhook
    Remove { id: String },
}

#[derive(clap::Args)]
struct AddWebhook {
    /// The URL: https://…, or http://… on this machine
    url: String,
    /// For the whole server, not only for you; needs administrator
    #[arg(long)]
    server: bool,
    #[command(flatten)]
    options: WebhookOptions,
}

#[derive(clap::Args)]
struct EditWebhook {
    id: String,
    /// The new URL
    #[arg(long)]
    url: Option<String>,
    /// Switch it off
    #[arg(long, conflicts_with = "on")]
    off: bool,
    /// Switch it on again, from now on
    #[arg(long)]
    on: bool,
    /// No quiet hours
    #[arg(long, conflicts_with = "quiet")]
    never_quiet: bool,
    /// For all sandboxes
    #[arg(long, conflicts_with = "sandboxes")]
    everywhere: bool,
    #[command(flatten)]
    options: WebhookOptions,
}

#[derive(clap::Args)]
struct WebhookOptions {
    /// What it is for
    #[arg(long)]
    label: Option<String>,
    /// `json` with a signature, `ntfy` or `chat` [default: json]
    #[arg(long, value_parser = word::<WebhookFormat>)]
    format: Option<WebhookFormat>,
    /// How long a question waits before a notification is sent [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = text::parse_patience)]
    delay: Option<Duration>,
    /// Whether high-risk questions are sent at once [default: true]
    #[arg(long, value_name = "BOOL")]
    high_risk_at_once: Option<bool>,
    /// Hours without notifications, as 22:00-07:00
    #[arg(long, value_name = "FROM-TO")]
    quiet: Option<String>,
    /// The time zone of these hours, as Europe/Vienna [default: the server's]
    #[arg(long, requires = "quiet")]
    zone: Option<String>,
    /// Only for this sandbox; may be given several times
    #[arg(short, long = "sandbox", value_name = "NAME")]
    sandboxes: Vec<String>,
    /// The events to notify about: approval.waiting, run.failed, run.finished,
    /// agent.paused, audit.failed; may be given several times
    #[arg(long = "topic", value_name = "TOPIC", value_parser = word::<Topic>)]
    topics: Vec<Topic>,
    /// Notify about the end of a run only if it took this long [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = text::parse_patience)]
    long: Option<Duration>,
    /// A file with the secret, or `-`: the signing key, or the access token of
    /// ntfy
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

fn word<T: serde::de::DeserializeOwned>(word: &str) -> Result<T, String> {
    serde_json::from_value(word.into()).map_err(|_| "see `weighlock notify add --help`".into())
}

pub(crate) fn notify(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let json = args.json;
    let deed = args.deed.unwrap_or(NotifyCommand::List);
    if !matches!(deed, NotifyCommand::List | NotifyCommand::Show { .. }) {
        ourselves::may_decide()?;
    }
    block_on(async {
        let mut client = Client::open(paths).await?;
        match deed {
            NotifyCommand::List => list(&mut client, json).await?,
            NotifyCommand::Add(add) => self::add(&mut client, add, json).await?,
            NotifyCommand::Show { id } => show(&mut client, &id, json).await?,
            NotifyCommand::Edit(edit) => self::edit(&mut client, edit, json).await?,
            NotifyCommand::Secret { id } => {
                let path = format!("{}/secret", address(&id));
                secret(&client.post(&path, &json!({})).await?, json);
            }
            NotifyCommand::Test { id } => return test(&mut client, &id, json).await,
            NotifyCommand::Remove { id } => {
                client.remove(&address(&id)).await?;
                eprintln!("Removed: {}. It is told no more.", safe(&id));
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn list(client: &mut Client, json: bool) -> Result<(), Failure> {
    let list: WebhookList = client.get("/webhooks").await?;
    match json {
        true => print_json(&list),
        false => print::table(&list.webhooks),
    }
    Ok(())
}

async fn add(client: &mut Client, add: AddWebhook, json: bool) -> Result<(), Failure> {
    let patch = WebhookPatch {
        url: Some(add.url),
        server: add.server.then_some(true),
        ..add.options.patch()?
    };
    let made: WebhookWithSecret = client.post("/webhooks", &patch).await?;
    secret(&made, json);
    if !json {
        let id = weighlock_engine::short_id(&made.webhook.webhook_id);
        eprintln!("Added {id}. See whether it arrives: weighlock notify test {id}");
    }
    Ok(())
}

async fn edit(client: &mut Client, edit: EditWebhook, json: bool) -> Result<(), Failure> {
    let patch = WebhookPatch {
        url: edit.url,
        is_active: (edit.on || edit.off).then_some(edit.on),
        never_quiet: edit.never_quiet.then_some(true),
        everywhere: edit.everywhere.then_some(true),
        ..edit.options.patch()?
    };
    let there: WebhookView = client.get(&address(&edit.id)).await?;
    let changed: WebhookView = client
        .patch(&address(&edit.id), there.version, &patch)
        .await?;
    match json {
        true => print_json(&changed),
        false => print::whole(&changed, &[], &SandboxNames::fetch(client).await?),
    }
    Ok(())
}

async fn show(client: &mut Client, id: &str, json: bool) -> Result<(), Failure> {
    let one: WebhookView = client.get(&address(id)).await?;
    let told: NoticeList = client.get(&format!("{}/notices", address(id))).await?;
    match json {
        true => print_json(&json!({ "webhook": one, "notices": told.notices })),
        false => print::whole(&one, &told.notices, &SandboxNames::fetch(client).await?),
    }
    Ok(())
}

async fn test(client: &mut Client, id: &str, json: bool) -> Result<ExitCode, Failure> {
    let path = format!("{}/test", address(id));
    let tested: Tested = client.post(&path, &json!({})).await?;
    match (&tested.trouble, json) {
        (_, true) => print_json(&tested),
        (None, false) => println!("The receiver has taken it."),
        (Some(why), false) => eprintln!("It was not taken: {}", safe(why)),
    }
    Ok(match tested.delivered {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The secret alone is the result; what is said about it is not.
fn secret(made: &WebhookWithSecret, json: bool) {
    match (&made.secret, json) {
        (_, true) => print_json(made),
        (Some(secret), false) => {
            println!("{secret}");
            eprintln!("It signs what is sent. You will not see it again.");
        }
        (None, false) => {}
    }
}

fn address(id: &str) -> String {
    format!("/webhooks/{}", escape(id))
}

impl WebhookOptions {
    fn patch(self) -> Result<WebhookPatch, Failure> {
        Ok(WebhookPatch {
            label: self.label,
            format: self.format,
            delay_seconds: self.delay.map(|time| whole(time, 1)),
            high_risk_at_once: self.high_risk_at_once,
            quiet: { self.quiet }
                .map(|hours| quiet(&hours, self.zone))
                .transpose()?,
            sandboxes: Some(self.sandboxes).filter(|named| !named.is_empty()),
            topics: Some(self.topics).filter(|topics| !topics.is_empty()),
            long_minutes: self.long.map(|time| whole(time, 60)),
            secret: { self.secret_file.as_deref() }
                .map(read_secret)
                .transpose()?,
            ..WebhookPatch::default()
        })
    }
}

/// A time in whole units.
fn whole(time: Duration, unit: u64) -> u32 {
    u32::try_from(time.as_secs().div_ceil(unit)).unwrap_or(u32::MAX)
}

fn quiet(hours: &str, zone: Option<String>) -> Result<QuietHours, Failure> {
    let Some((from, to)) = hours.split_once('-') else {
        let said = format!("`{}` are no hours; nothing was changed", safe(hours));
        return Err(Failure::new(said, "write --quiet 22:00-07:00"));
    };
    Ok(QuietHours {
        from: from.trim().into(),
        to: to.trim().into(),
        zone,
    })
}

/// Not from the command line, which every process of this machine can read.
fn read_secret(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text),
        false => std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(|error| {
        let said = format!("cannot read {}: {error}", file.display());
        Failure::new(said, "give a file that holds the secret and nothing else")
    })?;
    Ok(text.trim().to_owned())
}
