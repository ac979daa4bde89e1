//! weighlock as a library: judge, run and record one command in-process.
//!
//! ```sh
//! cargo run -p weighlock-engine --example embed -- 'echo hello; exit 3'
//! ```

use std::error::Error;

use weighlock_engine::{Clock, Config, Engine, Nursery, Outcome, Principal, Request, Text};

/// The word by which this program starts itself as the nursery of keepers.
const NURSERY: &str = "--nursery";

fn main() -> Result<(), Box<dyn Error>> {
    let command = std::env::args().nth(1).unwrap_or("echo hello".into());
    if command == NURSERY {
        return Ok(weighlock_engine::serve_nursery()?);
    }
    let here = std::env::current_dir()?;
    let state = std::env::temp_dir().join(format!("weighlock-embed-{}", std::process::id()));
    let nursery = Nursery::new(std::env::current_exe()?, vec![NURSERY.into()])?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let engine =
            Engine::open(Config::new(state.clone(), here), Clock::system(), nursery).await?;
        let who = Principal::library("example");
        let request = Request::new(who.clone(), command);
        match engine.run(request).await? {
            Outcome::Refused(run) => println!("refused: {:?}", run.detail.reason),
            Outcome::Waiting(run) => {
                println!("waits for a person: {:?}", run.detail.reason);
            }
            Outcome::Running(run) => println!("{} goes on", run.short_id),
            Outcome::Ended(run) => {
                if let Text::Streams { stdout, .. } = engine.excerpt(&run, None)?.text {
                    print!("{stdout}");
                }
                println!("{:?}, exit code {:?}", run.state, run.exit_code);
            }
        }
        println!(
            "{} entries in the audit",
            engine.verify(&who).await?.entries
        );
        Ok::<_, weighlock_engine::Error>(())
    })?;
    std::fs::remove_dir_all(state)?;
    Ok(())
}
