//! How fast weighlock is, beside what people would use instead.
//!
//! Everything is measured in one run on one machine, what is ours and what it
//! is held against by turns, so that load from elsewhere affects both alike.

mod crowd;
mod effects;
mod flood;
mod http;
mod inbox;
mod install;
mod judging;
mod live;
mod machine;
mod mcp;
mod one;
mod others;
mod programs;
mod say;
mod server;
mod table;
mod terminals;
mod walls;
mod web_socket;

use std::process::ExitCode;

use table::Row;

/// What goes wrong with ours ends the whole run: half a table misleads. What is
/// only held against it, and fails, is a row that says so.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Measures one group of rows.
type Group = fn(&Effort) -> Result<Vec<Row>>;

/// In the order of the table. What stands before a slash names several.
const GROUPS: [(&str, Group); 22] = [
    ("policy", judging::measure),
    ("one", one::measure),
    ("others", others::measure),
    ("walls", walls::measure),
    ("flood", flood::measure),
    ("live", live::measure),
    ("crowd", crowd::measure),
    ("inbox", inbox::measure),
    ("effects/build", effects::build),
    ("effects/trees", effects::trees),
    ("effects/small", effects::small),
    ("effects/many", effects::many),
    ("effects/large", effects::large),
    ("terminals/echo", terminals::echo),
    ("terminals/opening", terminals::opening),
    ("terminals/idle", terminals::idle),
    ("terminals/emulator", terminals::emulator),
    ("terminals/viewers", terminals::viewers),
    ("mcp/calls", mcp::calls),
    ("mcp/cold", mcp::cold),
    ("mcp/idle", mcp::idle),
    ("mcp/many", mcp::many),
];

const USAGE: &str = "\
examples:
  cargo run --release -p weighlock-bench                  the whole table, a quarter of an hour
  cargo run --release -p weighlock-bench -- --quick one   one group, measured less often
  cargo run --release -p weighlock-bench -- --json        for programs

usage: weighlock-bench [--quick] [--json] [GROUP]...
groups: policy one others walls flood live crowd inbox effects terminals mcp, and parts of \
one, such as effects/small";

/// How often things are measured.
pub(crate) struct Effort {
    /// Runs of one command after another.
    pub(crate) runs: usize,
    /// Times the whole flood is sent.
    pub(crate) floods: usize,
    /// First bytes waited for.
    pub(crate) bytes: usize,
    /// Times a crowd is let loose.
    pub(crate) crowds: usize,
    /// Runs of each connection in a crowd.
    pub(crate) each: usize,
    /// Terminals that are open at once.
    pub(crate) terminals: usize,
    /// Times a server is started for its first answer.
    pub(crate) starts: usize,
}

const FULL: Effort = Effort {
    runs: 300,
    floods: 5,
    bytes: 50,
    crowds: 7,
    each: 40,
    terminals: 200,
    starts: 10,
};

const QUICK: Effort = Effort {
    runs: 50,
    floods: 2,
    bytes: 10,
    crowds: 2,
    each: 10,
    terminals: 50,
    starts: 3,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, rest)) if first == say::VERB => say::say(rest),
        Some((first, rest)) if first == walls::VERB => walls::serve(rest),
        Some((first, _)) if first == judging::VERB => judging::serve(),
        Some((first, [number])) if first == judging::COSTLY_VERB => judging::serve_costly(number),
        _ => compare(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(args: &[String]) -> Result<()> {
    let (mut effort, mut json, mut only) = (&FULL, false, vec![]);
    for arg in args {
        match arg.as_str() {
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            "--quick" => effort = &QUICK,
            "--json" => json = true,
            name if GROUPS.iter().any(|(group, _)| is_in(group, name)) => only.push(name),
            _ => return Err(format!("`{arg}` is not understood\n{USAGE}").into()),
        }
    }
    server::build()?;
    // Before the load is our own.
    let mut facts = machine::facts();
    let mut rows = vec![];
    for (name, measure) in GROUPS {
        if only.is_empty() || only.iter().any(|wanted| is_in(name, wanted)) {
            eprintln!("measuring: {name}");
            let measured = measure(effort)?.into_iter();
            let all = measured.chain(table::rows_not_measured());
            rows.extend(all.map(|row| row.of(name)));
        }
    }
    facts.extend(machine::others());
    if json {
        println!("{:#}", table::json(&facts, &rows));
    } else {
        print!("{}", table::text(&facts, &rows));
    }
    Ok(())
}

/// Returns whether a group is the one of this name, or part of it.
fn is_in(group: &str, name: &str) -> bool {
    let rest = group.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
