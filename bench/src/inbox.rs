//! The doors under load, a store with a million runs, and from a person's yes
//! to the process.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::http::Client;
use crate::server::Server;
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result, crowd, say};

/// How many ask at once.
const ASKERS: usize = 8;

/// How many runs there are in a store that has been used for years.
const RUNS: u32 = 1_000_000;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start("")?;
    let mut rows = rates(&server, effort)?;
    rows.extend(answers(&server, effort)?);
    rows.extend(pages(server, effort)?);
    Ok(rows)
}

/// How many requests are answered in a second.
fn rates(server: &Server, effort: &Effort) -> Result<Vec<Row>> {
    let run = server.connect()?.run("true")?;
    let id = run["command_id"].as_str().ok_or("no id")?.to_owned();
    let one = format!("/commands/{id}");
    let explain = json!({ "command": "git status && rm -rf build/" });
    let calls: [(&str, &str, &Value); 3] = [
        ("GET", "/health", &Value::Null),
        ("GET", &one, &Value::Null),
        ("POST", "/policies/explain", &explain),
    ];
    let mut clients = crowd::connect(server, ASKERS)?;
    let each = effort.each * 25;
    let mut samples: [Samples; 3] = Default::default();
    for _ in 0..effort.crowds {
        for ((method, path, body), samples) in calls.iter().zip(&mut samples) {
            let began = Instant::now();
            crowd::all(&mut clients, |client| {
                (0..each).try_for_each(|_| client.call(method, path, body).map(drop))
            })?;
            samples.push((ASKERS * each) as f64 / began.elapsed().as_secs_f64());
        }
    }
    let [health, one, explain] = &samples;
    let row = |what, samples| {
        Row::new(what, Unit::RequestsPerSecond, samples).against("GET health", health)
    };
    Ok(vec![
        row("`GET health` on 8 connections", health),
        row("`GET commands/{id}`", one),
        row("`POST policies/explain`", explain),
    ])
}

/// From a person's yes until the process runs, and until the answer is there.
fn answers(server: &Server, effort: &Effort) -> Result<Vec<Row>> {
    let mut client = server.connect()?;
    let command = say::command("now")?;
    let (mut bare, mut started, mut answered) =
        (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..effort.bytes {
        let began = say::now();
        let said = std::process::Command::new("/bin/sh")
            .args(["-c", &command])
            .output()?;
        let there: u64 = String::from_utf8_lossy(&said.stdout).trim().parse()?;
        bare.push_millis(Duration::from_nanos(there - began));
        let (there, answer) = ask_and_answer(&mut client, &command)?;
        started.push_millis(there);
        answered.push_millis(answer);
    }
    let row = |what, samples| Row::new(what, Unit::Millis, samples).against("bare", &bare);
    Ok(vec![
        row("bare spawn until the process runs", &bare),
        row("a person's yes until the process runs", &started).goal(Goal::Under(50.0)),
        row("a person's yes until it is answered", &answered),
    ])
}

fn ask_and_answer(client: &mut Client, command: &str) -> Result<(Duration, Duration)> {
    let asked = json!({ "command": command, "review": "before" });
    let run = client.call("POST", "/commands", &asked)?;
    let approval = run["approval_id"].as_str().ok_or("nobody was asked")?;
    let path = format!("/approvals/{approval}");
    let question = client.call("GET", &path, &Value::Null)?;
    let yes = json!({ "kind": "approve_once", "fingerprint": question["fingerprint"] });
    let began = say::now();
    client.call("POST", &format!("{path}/decision"), &yes)?;
    let answered = Duration::from_nanos(say::now() - began);
    let id = run["command_id"].as_str().ok_or("no id")?;
    let run = client.call("GET", &format!("/commands/{id}?wait_ms=5000"), &Value::Null)?;
    let there: u64 = run["stdout"].as_str().unwrap_or_default().trim().parse()?;
    Ok((Duration::from_nanos(there - began), answered))
}

/// First pages of lists, in a new store and in one with a million runs.
fn pages(server: Server, effort: &Effort) -> Result<Vec<Row>> {
    let lists = [
        "/commands",
        "/commands?agent=coder",
        "/commands?state=failed",
        "/approvals",
    ];
    let few = lists.map(|path| time(&server, path, effort));
    let server = server.restart_after(fill)?;
    let mut rows = vec![];
    for (path, few) in lists.into_iter().zip(few) {
        let many = time(&server, path, effort)?;
        let what = format!("first page of `GET {}`, a million runs", &path[1..]);
        let row = Row::new(what, Unit::Millis, &many).against("few runs", &few?);
        rows.push(row.promise(Goal::Under(20.0)));
    }
    Ok(rows)
}

fn time(server: &Server, path: &str, effort: &Effort) -> Result<Samples> {
    let mut client = server.connect()?;
    let mut samples = Samples::default();
    for _ in 0..effort.bytes {
        let began = Instant::now();
        client.call("GET", path, &Value::Null)?;
        samples.push_millis(began.elapsed());
    }
    Ok(samples)
}

/// Makes a million runs from one that there is.
fn fill(database: &Path) -> Result<()> {
    let store = Connection::open(database)?;
    let columns: Vec<String> = store
        .prepare("SELECT name FROM pragma_table_info('terminal_commands')")?
        .query_map([], |row| row.get(0))?
        .collect::<std::result::Result<_, _>>()?;
    let values = columns.iter().map(|column| match column.as_str() {
        // Before the real ones, in the order of their numbers.
        "command_id" => "printf('r_0000%06d%010d', n, n)",
        "tail" => "printf('%010d', n)",
        "requested_by" => "CASE n % 3 WHEN 0 THEN 'coder' WHEN 1 THEN 'writer' ELSE 'ana' END",
        "state" => "CASE n % 100 WHEN 0 THEN 'failed' ELSE 'succeeded' END",
        "status" => "CASE n % 100 WHEN 0 THEN 'failed' ELSE 'executed' END",
        column => column,
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let columns = columns.join(", ");
    store.execute_batch(&format!(
        "PRAGMA synchronous = OFF; BEGIN;
         CREATE TEMP TABLE one AS SELECT * FROM terminal_commands
             WHERE state = 'succeeded' LIMIT 1;
         WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < {RUNS})
         INSERT INTO terminal_commands ({columns}) SELECT {values} FROM count, one;
         COMMIT;"
    ))?;
    Ok(())
}
