//! `weighlock tasks`: what goes on while nobody waits for it.

use std::process::ExitCode;
use std::time::Duration;

use weighlock_engine::{ProcessView, TaskOutput, TaskView};
use weighlock_server::TaskList;

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::term::{self, say};
use crate::text::{
    self, columns, command_line, duration, print_json, safe, safe_command, safe_prose,
};
use crate::verb::show::resolve;
use crate::when;

/// List background tasks, running and recently ended
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock tasks                        list them
  weighlock tasks show r_7f3k            one of them, with its processes
  weighlock tasks output r_7f3k          what it wrote since you asked last
  weighlock tasks output r_7f3k --block --timeout 2m
  weighlock stop r_7f3k                  end one")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<TasksCommand>,
    /// Only running tasks
    #[arg(long)]
    running: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum TasksCommand {
    /// Show one, with its processes
    Show {
        /// The task, by its id or its run's
        id: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print a task's output since you last asked
    Output {
        /// The task, by its id or its run's
        id: String,
        /// Wait until it has ended
        #[arg(long)]
        block: bool,
        /// How long to wait at most
        #[arg(long, value_name = "TIME", value_parser = text::parse_patience, requires = "block")]
        timeout: Option<Duration>,
        /// Start at this byte offset instead
        #[arg(long, value_name = "BYTE")]
        from: Option<u64>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn tasks(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    block_on(async {
        let mut client = Client::open(paths).await?;
        match args.what {
            None => list(&mut client, args.running, args.json).await?,
            Some(TasksCommand::Show { id, json }) => {
                let id = resolve(&mut client, &id).await?;
                let task: TaskView = client.get(&format!("/tasks/{id}")).await?;
                match json {
                    true => print_json(&task),
                    false => show(&task),
                }
            }
            Some(TasksCommand::Output {
                id,
                block,
                timeout,
                from,
                json,
            }) => {
                let id = resolve(&mut client, &id).await?;
                let mut path = format!("/tasks/{id}/output?block={block}");
                if let Some(timeout) = timeout {
                    path.push_str(&format!("&timeout_ms={}", timeout.as_millis()));
                }
                if let Some(from) = from {
                    path.push_str(&format!("&from={from}"));
                }
                let output: TaskOutput = client.get(&path).await?;
                match json {
                    true => print_json(&output),
                    false => print(&output),
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn list(client: &mut Client, running: bool, json: bool) -> Result<(), Failure> {
    let mut list: TaskList = client.get("/tasks").await?;
    list.tasks
        .retain(|task| !running || task.status == "running");
    if json {
        print_json(&list);
        return Ok(());
    }
    if list.tasks.is_empty() {
        println!("Nothing goes on in the background. `weighlock run --bg -- COMMAND` starts it.");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = list.tasks.iter().map(row).collect();
    for line in columns(&rows) {
        println!("{line}");
    }
    Ok(())
}

fn row(task: &TaskView) -> Vec<String> {
    vec![
        task.task_id.clone(),
        sign(task),
        age(task),
        safe(&task.requested_by),
        match task.status.as_str() {
            "running" => weighlock_engine::size(task.memory_bytes),
            _ => String::new(),
        },
        ports(&task.ports),
        command_line(&task.command, term::size().1 / 2),
    ]
}

fn sign(task: &TaskView) -> String {
    let sign = match task.status.as_str() {
        "running" => "●",
        "waiting" => "◔",
        "completed" => "✓",
        _ => "✗",
    };
    match (task.adopted, task.exit_code) {
        (true, _) => format!("{sign} left running"),
        (false, Some(code)) if task.status == "failed" => format!("{sign} exit {code}"),
        _ => format!("{sign} {}", task.status),
    }
}

fn age(task: &TaskView) -> String {
    let since = task.started_at.as_deref().map(when::seconds_since);
    let ended = task
        .ended_at
        .as_deref()
        .filter(|_| task.status != "running");
    let over = ended.map_or(0, when::seconds_since);
    since.map_or(String::new(), |seconds| {
        duration(seconds.saturating_sub(over) as f64 * 1000.0)
    })
}

fn ports(ports: &[u16]) -> String {
    let named: Vec<String> = ports.iter().map(|port| format!(":{port}")).collect();
    named.join(" ")
}

fn show(task: &TaskView) {
    println!("{}  {}", task.task_id, sign(task));
    if let Some(description) = &task.description {
        println!("  for       {}", safe_prose(description));
    }
    println!("  command   {}", safe_command(&task.command));
    println!("  owner     {}", safe(&task.requested_by));
    if let Some(file) = &task.output_file {
        println!("  output    {}", safe(file));
    }
    if let Some(until) = &task.until {
        println!("  ends by   {}", when::minute(until));
    }
    if let Some(idle) = task.idle_ms {
        println!("  silent for {} at the most", duration(idle as f64));
    }
    if !task.ports.is_empty() {
        println!("  listens   {}", ports(&task.ports));
    }
    if !task.processes.is_empty() {
        println!(
            "  uses      {} of memory, {} of processor time",
            weighlock_engine::size(task.memory_bytes),
            duration(task.cpu_ms as f64)
        );
        tree(&task.processes, None, 1);
    }
}

/// Prints processes below those that started them.
fn tree(processes: &[ProcessView], parent: Option<u32>, depth: usize) {
    for process in processes.iter().filter(|process| process.parent == parent) {
        println!(
            "{:indent$}{} {}",
            "",
            process.pid,
            command_line(&process.command, term::size().1.saturating_sub(12)),
            indent = 2 * depth
        );
        tree(processes, Some(process.pid), depth + 1);
    }
}

fn print(output: &TaskOutput) {
    print!("{}", safe_prose(&output.output));
    if output.lost_bytes > 0 {
        let lost = weighlock_engine::size(output.lost_bytes);
        say!("{lost} of it are not kept.");
    }
    if output.more {
        say!("There is more: ask again.");
    }
    say!("{}", sign(&output.task));
}
