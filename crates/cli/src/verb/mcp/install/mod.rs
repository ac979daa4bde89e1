//! `weighlock mcp install`: writes into a client's settings what it has to
//! start.

mod client;
mod edit;
mod file;

use std::process::ExitCode;

use self::client::{AgentClient, ClientSettings, ServerEntry, SettingsScope};
use self::edit::{SettingsFormat, Trouble};
use self::file::SettingsFile;
use super::ToolArgs;
use crate::client::{Failure, TOKEN, block_on};
use crate::effect::{Paint, unified_texts};
use crate::keys::Keys;
use crate::paths::Paths;
use crate::signals::Signals;
use crate::term::{self, say};
use crate::text::one_line;
use crate::{ourselves, question};

/// Set up a client so that its agents get weighlock's tools
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock mcp install claude-code               shows what changes, and asks
  weighlock mcp install cursor --scope project    for everybody in this repository
  weighlock mcp install codex --agent coder --session webshop --yes
  weighlock mcp install zed --print               only shows what to write
  weighlock mcp install codex --remove            takes it out again")]
pub(super) struct Args {
    /// Which client
    #[arg(value_enum, ignore_case = true)]
    client: AgentClient,
    #[command(flatten)]
    choice: ToolArgs,
    /// Whose settings to change: yours, or the project's
    #[arg(long, value_enum, default_value = "user")]
    scope: SettingsScope,
    /// The name of the server in the client
    #[arg(long, value_name = "NAME", default_value = "weighlock", value_parser = name)]
    name: String,
    /// Write the token from WEIGHLOCK_TOKEN into the file, too; anybody who can
    /// read the file then has it
    #[arg(long, conflicts_with = "remove")]
    with_token: bool,
    /// Only print the settings to add
    #[arg(long, conflicts_with_all = ["yes", "remove"])]
    print: bool,
    /// Write without confirmation
    #[arg(long)]
    yes: bool,
    /// Remove weighlock from the client
    #[arg(long)]
    remove: bool,
}

/// Clients make names of tools from it.
fn name(text: &str) -> Result<String, String> {
    let is_in = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    match text.starts_with(|sign: char| sign.is_ascii_alphabetic()) && text.chars().all(is_in) {
        true => Ok(text.to_owned()),
        false => Err("write a letter, and then letters, digits, `-` or `_`".into()),
    }
}

pub(super) fn install(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let settings = args.client.settings(args.scope)?;
    if args.print {
        print!("{}", alone(args, paths, &settings, "")?);
        say!("goes into {}", settings.file.display());
        return Ok(ExitCode::SUCCESS);
    }
    ourselves::may_decide()?;
    settings.check_home()?;
    let found = SettingsFile::read(&settings)?;
    let text = changed(args, paths, &settings, &found.text)?;
    let label = args.client.label();
    let file = settings.file.display();
    if !args.remove {
        say_what_stays(args, &settings, &text);
    }
    if text == found.text {
        match args.remove {
            true => say!("Nothing changes: there is no `{}` in {file}.", args.name),
            false => say!("Nothing changes: {label} is set up in {file}."),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.with_token && found.is_open() {
        say!("warning: others may read {file}, and the token in it; `chmod 600` keeps it yours");
    }
    let is_over = args.remove && settings.format.is_empty(&text);
    show(&settings, &found, (!is_over).then_some(&text));
    if !args.yes && !agreed(is_over)? {
        say!("Nothing was written.");
        return Ok(ExitCode::FAILURE);
    }
    match is_over {
        true => found.remove(&text)?,
        false => found.write(&text, args.with_token)?,
    }
    match args.remove {
        true => say!("✓ {label} has no `{}` any more; restart it", args.name),
        false => {
            say!("✓ {label} is set up; restart it, and its agents have the tools");
            say_own_shell(args.client);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what an entry that was there hands on besides: it is the person's, and
/// may be from somebody else.
fn say_what_stays(args: &Args, settings: &ClientSettings, text: &str) {
    let mut place = args.client.place(&args.name, settings, text);
    place.push(args.client.environment());
    let mut names = settings.format.names(text, &place);
    names.retain(|name| !(args.with_token && name == TOKEN));
    if !names.is_empty() {
        let names: Vec<String> = names.iter().map(|name| one_line(name, 40)).collect();
        say!(
            "note: the entry keeps the variables that it sets: {}",
            names.join(", ")
        );
    }
}

/// What a file says afterwards.
fn changed(
    args: &Args,
    paths: &Paths,
    settings: &ClientSettings,
    text: &str,
) -> Result<String, Failure> {
    let place = args.client.place(&args.name, settings, text);
    let fields = match args.remove {
        true => vec![],
        false => args.client.fields(&entry(args, paths)?),
    };
    let changed = match args.remove {
        true => settings.format.remove(text, &place),
        false => settings.format.set(text, &place, &fields),
    };
    changed.map_err(|trouble| {
        let file = settings.file.display();
        let (what, hint) = match trouble {
            Trouble::Broken { line, why } => (format!("{file}, line {line}: {why}"), "mend it"),
            Trouble::Unfit => (by_hand(settings), by_hand_hint(args, paths, settings, text)),
        };
        Failure::new(format!("{what}; nothing was written"), hint)
    })
}

fn by_hand(settings: &ClientSettings) -> String {
    let file = settings.file.display();
    match settings.format {
        SettingsFormat::Yaml => format!("{file} is YAML, which weighlock does not edit"),
        _ => format!("{file} is not written in a way that is changed here"),
    }
}

/// Prints what a person has to add, and says so.
fn by_hand_hint(args: &Args, paths: &Paths, settings: &ClientSettings, text: &str) -> &'static str {
    if args.remove {
        return "take the entry out by hand";
    }
    match alone(args, paths, settings, text) {
        Ok(alone) => {
            print!("{alone}");
            say_own_shell(args.client);
            "change it by hand: what it has to say is above"
        }
        Err(_) => "change it by hand",
    }
}

fn say_own_shell(client: AgentClient) {
    if let Some(how) = client.own_shell() {
        say!("  its own shell is still there, and agents use either: {how}");
    }
}

/// What a file says that has the entry alone, at the place where `text` has them.
fn alone(
    args: &Args,
    paths: &Paths,
    settings: &ClientSettings,
    text: &str,
) -> Result<String, Failure> {
    let place = args.client.place(&args.name, settings, text);
    let fields = args.client.fields(&entry(args, paths)?);
    let alone = settings.format.alone(&place, &fields);
    alone.map_err(|_| Failure::new("the entry cannot be written down", "choose another --name"))
}

/// What the client is to start: us, for the same server.
fn entry(args: &Args, paths: &Paths) -> Result<ServerEntry, Failure> {
    let ours = std::env::current_exe().ok().filter(|path| path.exists());
    let ours = ours.ok_or_else(|| {
        Failure::new(
            "the program cannot be found that runs here; nothing was written",
            "start it again: it was replaced",
        )
    })?;
    let mut words = vec!["mcp".to_owned()];
    for (flag, path) in paths.unusual() {
        words.extend([flag.to_owned(), plain(&path)?]);
    }
    words.extend(args.choice.words()?);
    Ok(ServerEntry {
        name: args.name.clone(),
        command: plain(&ours)?,
        args: words,
        token: token(args)?,
    })
}

fn plain(path: &std::path::Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::new(
            format!("{} is not valid UTF-8; nothing was written", path.display()),
            "settings can only say paths that are",
        )
    })
}

/// A secret is written only if that was asked for, and never where others read
/// along.
fn token(args: &Args) -> Result<Option<String>, Failure> {
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    match (args.with_token, token) {
        (false, None) => Ok(None),
        (false, Some(_)) => {
            say!("{TOKEN} is set here and is not written down: the client needs it, too");
            Ok(None)
        }
        (true, _) if args.scope == SettingsScope::Project => Err(Failure::new(
            "the settings of a project are for everybody in it; nothing was written",
            "leave --with-token out, and give the client WEIGHLOCK_TOKEN in its environment",
        )),
        (true, Some(token)) => Ok(Some(token)),
        (true, None) => Err(Failure::new(
            format!("{TOKEN} is not set; nothing was written"),
            "weighlock people token NAME makes one",
        )),
    }
}

fn show(settings: &ClientSettings, found: &SettingsFile, after: Option<&String>) {
    let before = found.exists().then_some(found.text.as_str());
    let paint = Paint::on(&std::io::stderr());
    let name = settings.file.to_string_lossy();
    for (style, line) in unified_texts(&name, before, after.map(String::as_str)) {
        say!("{}", paint.line(style, &line));
    }
}

/// Asks where somebody can be asked.
fn agreed(is_over: bool) -> Result<bool, Failure> {
    if !term::is_there() {
        return Err(Failure::new(
            "nobody can be asked here; nothing was written",
            "--yes writes it, --print shows what to write",
        ));
    }
    let what = match is_over {
        true => "remove the file?",
        false => "write this?",
    };
    block_on(async {
        let mut signals = Signals::new()?;
        let mut keys = Keys::new(&mut signals)?;
        Ok(question::agreed(&mut keys, what).await)
    })
}
