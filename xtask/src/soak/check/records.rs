//! The record against what clients know and what really happened.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use serde_json::Value;

use crate::Result;
use crate::soak::client::Client;
use crate::soak::ledger::{Kind, Ledger, Order, Told};
use crate::soak::load::CLIENTS;
use crate::soak::world::World;

/// A shell that seems to wait for the rest of a command is interrupted. On a
/// busy machine one may seem to that is only slow; it is counted, not a fault.
const INTERRUPTED: i64 = 130;

/// All that is known afterwards.
pub(crate) struct Records<'a> {
    world: &'a World,
    ledger: &'a Ledger,
    /// By mark.
    rows: HashMap<String, Vec<Value>>,
    /// How often each mark was left.
    ran: HashMap<String, usize>,
    pub(crate) all: Vec<Value>,
}

/// Recalls every run that is on record.
pub(crate) fn rows(owner: &Client) -> Result<Vec<Value>> {
    let (mut all, mut path) = (vec![], "/commands?limit=500".to_owned());
    loop {
        let page = owner.get(&path).only(200).ok_or("no list of runs")?;
        all.extend(page["commands"].as_array().cloned().unwrap_or_default());
        match page["cursor"].as_str() {
            Some(next) => path = format!("/commands?limit=500&cursor={next}"),
            None => return Ok(all),
        }
    }
}

impl<'a> Records<'a> {
    pub(crate) fn read(world: &'a World, ledger: &'a Ledger) -> Result<Self> {
        let all = rows(&world.owner())?;
        let mut by_mark: HashMap<String, Vec<Value>> = HashMap::new();
        for row in &all {
            if let Some(mark) = mark_of(row) {
                by_mark.entry(mark).or_default().push(row.clone());
            }
        }
        let mut ran = HashMap::new();
        for line in fs::read_to_string(world.base().join("ran"))?.lines() {
            *ran.entry(line.to_owned()).or_default() += 1;
        }
        Ok(Self {
            world,
            ledger,
            rows: by_mark,
            ran,
            all,
        })
    }

    /// Checks every command, and returns how many there were.
    pub(crate) fn check(&self) -> usize {
        let orders = self.ledger.orders();
        for order in &orders {
            if let Err(why) = self.check_one(order) {
                let row = self.rows.get(&order.mark).and_then(|rows| rows.first());
                let row = row.map_or(String::new(), brief);
                self.ledger.fault(format!("{}: {why}{row}", order.mark));
            }
        }
        for mark in self.ran.keys() {
            if !orders.iter().any(|order| order.mark == *mark) {
                self.ledger
                    .fault(format!("{mark}: ran, and nobody asked for it"));
            }
        }
        orders.len()
    }

    fn check_one(&self, order: &Order) -> std::result::Result<(), String> {
        let rows = self.rows.get(&order.mark).map_or(&[][..], Vec::as_slice);
        let ran = self.ran.get(&order.mark).copied().unwrap_or(0);
        let held = matches!(order.kind, Kind::Copied | Kind::Applied);
        must(ran <= 1, || format!("ran {ran} times"))?;
        must(rows.len() <= 1, || {
            format!("is on record {} times", rows.len())
        })?;
        let Some(row) = rows.first() else {
            must(ran == 0, || "ran, and is not on record".into())?;
            let promised = matches!(&order.told, Told::Run(_));
            must(!promised, || "was accepted, and is not on record".into())?;
            return match held {
                true => self.check_tree(order, false),
                false => Ok(()),
            };
        };
        must(row["open"] == false, || "is still open".into())?;
        self.check_told(order, row)?;
        match order.kind {
            Kind::Copied | Kind::Applied => self.check_effect(order, row),
            Kind::Asked => {
                self.check_answer(order, row, ran)?;
                check_end(order, row, ran)
            }
            Kind::Typed if row["exit_code"] == INTERRUPTED => {
                self.ledger.count("typed commands recorded as interrupted");
                Ok(())
            }
            Kind::Plain | Kind::Agent | Kind::Typed => check_end(order, row, ran),
        }
    }

    /// What a requester was told as the end is the end.
    fn check_told(&self, order: &Order, row: &Value) -> std::result::Result<(), String> {
        if let Told::Refused(status) = order.told {
            let never = row["exit_code"].is_null();
            must(never, || format!("was refused with {status}, and ran"))?;
        }
        let Told::Run(told) = &order.told else {
            return Ok(());
        };
        let ended = ["succeeded", "failed"].contains(&told["state"].as_str().unwrap_or(""));
        // What is undone or thrown away later was told before.
        let same = ["state", "exit_code"]
            .iter()
            .all(|name| told[*name] == row[*name]);
        must(!ended || same, || format!("was told as {}", brief(told)))
    }

    fn check_answer(
        &self,
        order: &Order,
        row: &Value,
        ran: usize,
    ) -> std::result::Result<(), String> {
        let decisions = self.ledger.decisions(&order.mark);
        let taken = |yes: bool| {
            let of = decisions.iter().filter(|one| one.yes == yes);
            of.filter(|one| one.taken == Some(true)).count()
        };
        let (yes, no) = (taken(true), taken(false));
        must(yes + no <= 1, || format!("was decided {} times", yes + no))?;
        let state = row["state"].as_str().unwrap_or_default();
        if yes == 1 {
            // A full disk or somebody who kills may come between: that is said.
            let told = state == "failed" && row["reason"]["text"].is_string();
            let done = ran == 1 || state == "lost" || told || is_killed(row);
            must(done, || "was approved, and not done".into())?;
        }
        if no == 1 || ["rejected", "expired", "withdrawn"].contains(&state) {
            must(ran == 0, || "was not allowed, and ran".into())?;
        }
        let perhaps = decisions
            .iter()
            .any(|one| one.yes && one.taken != Some(false));
        must(ran == 0 || perhaps, || "ran, and nobody allowed it".into())
    }

    fn check_effect(&self, order: &Order, row: &Value) -> std::result::Result<(), String> {
        let applied = row["changes"]["state"] == "applied";
        let decisions = self.ledger.decisions(&order.mark);
        let taken = |yes| {
            decisions
                .iter()
                .any(|one| one.yes == yes && one.taken == Some(true))
        };
        let undone = row["changes"]["state"] == "undone";
        // Where there was no room, that is said, and they are still held.
        let told = row["state"] == "failed" && row["reason"]["text"].is_string();
        must(!taken(true) || applied || undone || told, || {
            "was to be applied, and is not".into()
        })?;
        must(!taken(false) || !applied, || {
            "was not to be applied, and is".into()
        })?;
        let ended = row["changes"]["ended_as"]
            .as_str()
            .or(row["state"].as_str());
        let cut_off = ["killed", "timed_out"].contains(&ended.unwrap_or(""));
        // Copies are on the disk that fills; then a command itself fails.
        let no_room = self.ledger.counted("disks filled") > 0
            && row["exit_code"]
                .as_i64()
                .is_some_and(|exit| exit != order.exit);
        if applied && no_room {
            self.ledger.count("commands on a copy that had no room");
        }
        match applied && (cut_off || no_room) {
            true => self.check_part(order, &row["changes"]["paths"]),
            false => self.check_tree(order, applied),
        }
    }

    /// All of it is there, or nothing.
    fn check_tree(&self, order: &Order, applied: bool) -> std::result::Result<(), String> {
        let (found, dir) = self.found(order);
        let wanted = match applied {
            true => (1, 3, true),
            false => (0, 0, false),
        };
        must(found == wanted && dir == applied, || {
            format!("should be {wanted:?}, and is {found:?} (lines, new files, removed)")
        })
    }

    /// What a command had done when it was ended from outside is there, as a
    /// shell would leave it, and is what was seen of it.
    fn check_part(&self, order: &Order, seen: &Value) -> std::result::Result<(), String> {
        let (mark, place) = (&order.mark, place(order.kind));
        let paths: Vec<&str> = { seen.as_array().into_iter().flatten() }
            .filter_map(Value::as_str)
            .collect();
        let lists = |how: &str, name: &str| paths.contains(&&*format!("{how} {place}/{name}"));
        let slot = mark.split('-').next().unwrap_or_default();
        let listed = (
            usize::from(lists("M", slot) || lists("A", slot)),
            (1..=3)
                .filter(|n| lists("A", &format!("{mark}/{n}")))
                .count(),
            lists("D", &format!("{mark}-gone")),
        );
        let (found, dir) = self.found(order);
        // A file may have been made, and not yet written.
        let same = (found.0, found.2) == (listed.0, listed.2) && found.1 <= listed.1;
        must(same && dir == lists("A", &format!("{mark}/")), || {
            format!("is {found:?} (lines, new files, removed), and was seen as {paths:?}")
        })
    }

    /// What there is of an effect: lines, new files, whether what it removes is
    /// gone; and its directory.
    fn found(&self, order: &Order) -> ((usize, usize, bool), bool) {
        let mark = &order.mark;
        let place = self.world.copies().join(place(order.kind));
        let read = |name: String| fs::read_to_string(place.join(name)).unwrap_or_default();
        let slot = mark.split('-').next().unwrap_or_default();
        let lines = read(slot.to_owned());
        let lines = lines.lines().filter(|line| line == mark).count();
        let made = (1..=3).filter(|n| read(format!("{mark}/{n}")) == format!("{mark}\n"));
        let found = (lines, made.count(), read(format!("{mark}-gone")).is_empty());
        (found, place.join(mark).exists())
    }

    /// Says how everything ended. What is lost or killed, somebody has killed.
    pub(crate) fn check_states(&self) {
        let mut states: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut never_began, mut lost, mut killed) = (0, 0, 0);
        for row in &self.all {
            let state = row["state"].as_str().unwrap_or_default();
            *states.entry(state).or_default() += 1;
            match row["reason"]["code"].as_str() {
                _ if is_killed(row) => killed += 1,
                _ if state != "lost" => {}
                Some("never_began") => never_began += 1,
                _ => lost += 1,
            }
        }
        let states: Vec<_> = { states.iter() }
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        println!("{:>8}  on record: {}", self.all.len(), states.join(", "));
        println!("{lost:>8}  lost with their keepers, {never_began} that never began");
        println!("{killed:>8}  killed from outside");
        let counted = |what| self.ledger.counted(what);
        // With a keeper go its run and, if that is a terminal, what is typed there.
        let keepers = 2 * counted("keepers killed");
        if lost + killed > keepers {
            self.ledger.fault(format!(
                "{lost} runs are lost and {killed} killed; kills explain {keepers}"
            ));
        }
        // Between the record of a start and the start, each client has one at most.
        let ends = counted("servers killed") + counted("servers replaced");
        let begun = CLIENTS as u64 * ends;
        if never_began > begun {
            self.ledger.fault(format!(
                "{never_began} runs never began; servers that ended explain {begun}"
            ));
        }
    }

    /// Recordings are made of what is kept when somebody asks; some are, so that
    /// there is something to be left behind.
    pub(crate) fn check_recordings(&self) {
        let kept = self
            .all
            .iter()
            .filter(|row| row["output"]["kept_bytes"].as_u64() > Some(0));
        for row in kept.take(5) {
            let id = row["command_id"].as_str().unwrap_or_default();
            let path = format!("/commands/{id}/recording/index");
            if self.world.owner().get(&path).only(200).is_none() {
                self.ledger.fault(format!("{id} has no recording"));
            }
        }
    }

    /// Nothing but what was asked for is in the directories.
    pub(crate) fn check_names(&self) {
        let orders = self.ledger.orders();
        for place in ["asked", "free"] {
            let dir = fs::read_dir(self.world.copies().join(place));
            for name in dir.into_iter().flatten().flatten() {
                let name = name.file_name().to_string_lossy().into_owned();
                let mark = name.trim_end_matches("-gone");
                let known = mark.starts_with("eff") && !mark.contains('-')
                    || orders.iter().any(|order| order.mark == mark);
                if !known {
                    self.ledger.fault(format!("{place}/{name} was left behind"));
                }
            }
        }
    }
}

/// Whether somebody else has killed it. Whoever stops a run or sets a limit to it
/// is named.
fn is_killed(row: &Value) -> bool {
    row["state"] == "killed" && row["reason"].is_null()
}

/// Where copies of a kind are of.
fn place(kind: Kind) -> &'static str {
    match kind {
        Kind::Copied => "asked",
        _ => "free",
    }
}

/// How a command that ran must have ended.
fn check_end(order: &Order, row: &Value, ran: usize) -> std::result::Result<(), String> {
    let exit = row["exit_code"].as_i64();
    match row["state"].as_str().unwrap_or_default() {
        // The terminal knows how it ended, and the server that typed it is gone.
        "failed" if order.kind == Kind::Typed && exit == Some(-1) => Ok(()),
        "succeeded" | "failed" if exit.is_some() => {
            must(ran == 1, || "ended, and did not run".into())?;
            must(exit == Some(order.exit), || {
                format!("should have ended with {}", order.exit)
            })
        }
        "failed" => must(ran == 0, || "ran, and the record says it did not".into()),
        "lost" => {
            let why = row["reason"]["code"].as_str().unwrap_or_default();
            must(!why.is_empty(), || "is lost without a reason".into())?;
            must(why != "never_began" || ran == 0, || {
                "ran, and the record says it never began".into()
            })
        }
        "blocked" | "rejected" | "expired" | "withdrawn" => {
            must(ran == 0, || "ran, and was not to".into())
        }
        "killed" | "timed_out" => Ok(()),
        state => Err(format!("is {state}, which is no end")),
    }
}

fn must(holds: bool, why: impl FnOnce() -> String) -> std::result::Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The mark in a command's text.
fn mark_of(row: &Value) -> Option<String> {
    let text = row["command"].as_str()?;
    let (_, from) = text.split_once("echo ")?;
    Some(from.split_once(" >> ")?.0.to_owned())
}

fn brief(row: &Value) -> String {
    format!(
        "\n    {} {} exit {} {} changes {} because {}",
        row["command_id"],
        row["state"],
        row["exit_code"],
        row["command"],
        row["changes"]["state"],
        row["reason"]["text"]
    )
}
