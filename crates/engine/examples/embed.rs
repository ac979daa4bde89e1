//! weighlock as a library: judge, run and record one command in-process.
//!
//! ```sh
//! cargo run -p weighlock-engine --example embed -- 'echo hello; exit 3'
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use weighlock_engine::{
    Clock, Config, Decision, DecisionKind, Engine, Nursery, Outcome, Principal, Request, Run, Text,
};

/// The word by which this program starts itself as the nursery of keepers.
const NURSERY: &str = "--nursery";

fn main() -> Result<(), Box<dyn Error>> {
    let command = std::env::args().nth(1).unwrap_or("echo hello".into());
    if command == NURSERY {
        return Ok(weighlock_engine::serve_nursery()?);
    }
    let state = std::env::temp_dir().join(format!("weighlock-embed-{}", std::process::id()));
    // Before the runtime, which has threads: a process is only split safely
    // while it has none.
    let nursery = Nursery::new(std::env::current_exe()?, vec![NURSERY.into()])?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(run(command, state.clone(), nursery))?;
    std::fs::remove_dir_all(state)?;
    Ok(())
}

async fn run(command: String, state: PathBuf, nursery: Nursery) -> Result<(), Box<dyn Error>> {
    let config = Config::new(state, std::env::current_dir()?);
    let engine = Engine::open(config, Clock::system(), nursery).await?;
    let who = Principal::library("example");
    let mut outcome = engine.run(Request::new(who.clone(), command)).await?;
    if let Outcome::Waiting(run) = outcome {
        outcome = answer(&engine, run, &who).await?.into();
    }
    match outcome {
        Outcome::Refused(run) => println!("refused: {:?}", run.detail.reason),
        Outcome::Waiting(run) => println!("waits for a person: {:?}", run.detail.reason),
        Outcome::Running(run) => println!("{} goes on", run.short_id),
        Outcome::Ended(run) => {
            if let Text::Streams { stdout, stderr } = engine.outputs().excerpt(&run, None)?.text {
                print!("{stdout}");
                eprint!("{stderr}");
            }
            println!("{:?}, exit code {:?}", run.state, run.exit_code);
        }
    }
    println!(
        "{} entries in the audit",
        engine.audit().verify(&who).await?.entries
    );
    engine.close().await?;
    Ok(())
}

/// Answers the question that a run waits for, as the person at the terminal
/// says.
async fn answer(
    engine: &Arc<Engine>,
    run: Run,
    who: &Principal,
) -> Result<Run, weighlock_engine::Error> {
    let Some(approval) = &run.approval_id else {
        return Ok(run);
    };
    let card = engine.inbox().question(approval, who).await?;
    // What has run on a copy is applied; anything else runs now.
    let kind = match run.detail.changes {
        Some(_) => DecisionKind::ApplyEffect,
        None => DecisionKind::ApproveOnce,
    };
    if let Some(reason) = &run.detail.reason {
        println!("{}", reason.text);
    }
    println!("May it? [y/N]");
    let mut said = String::new();
    let _ = std::io::stdin().read_line(&mut said);
    let decision = Decision {
        // Names what was shown: should it be something else by now, this is
        // no answer to it.
        fingerprint: Some(card.fingerprint),
        ..Decision::new(match said.trim() {
            "y" => kind,
            _ => DecisionKind::Reject,
        })
    };
    engine.inbox().decide(approval, decision, who).await?;
    engine.runs().wait(&run, None).await
}
