//! `weighlock` alone: how things are, and the next sensible step.

use std::process::ExitCode;

use weighlock_api::{CommandList, Health, Me};

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::text;

pub(crate) fn status(paths: &Paths) -> Result<ExitCode, Failure> {
    block_on(async {
        let Some(mut client) = Client::try_open(paths).await? else {
            println!("No server runs. It starts with the first command:");
            println!("  weighlock run -- git status");
            println!("See weighlock --help.");
            return Ok(ExitCode::SUCCESS);
        };
        let health: Health = client.get("/health").await?;
        println!(
            "weighlock {} · up {} · {} running · commands run below {}",
            health.version,
            text::duration(health.uptime_seconds * 1000.0),
            health.running,
            text::safe(&health.base)
        );
        let me: Me = client.get("/me").await?;
        for pause in &me.pauses {
            println!("{}", super::pause::in_words(pause));
        }
        if me.waiting > 0 {
            println!("{}", super::inbox::waiting(me.waiting));
        }
        let last: CommandList = client.get("/commands?limit=1").await?;
        match last.commands.first() {
            Some(run) => println!(
                "last: {}  {}  {}",
                run.short_id,
                text::command_line(&run.command, 50),
                super::show::ending(run)
            ),
            None => println!("Nothing was run yet: weighlock run -- git status"),
        }
        Ok(ExitCode::SUCCESS)
    })
}
