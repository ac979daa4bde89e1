//! No text takes long to be judged, whatever it repeats.
//!
//! The input is what is written before, what is repeated, and what is written
//! after, with a newline between them: so that a short input is a long text.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};
use weighlock_policy::{
    Place, Preset, Reader, Rules, Settings, Subject, example_place, tokens, understand,
};

static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::base(&[Preset::Strict], &Settings::default()));
static PLACE: LazyLock<Place> = LazyLock::new(example_place);

/// The longest command that a server takes.
const LONGEST: usize = 128 * 1024 - 1;

/// A release build may take 100 ms. This one is slower: it is hardly optimised,
/// counts what is reached and checks its arithmetic.
const LIMIT: Duration = Duration::from_millis(3_000);

/// Parts of any text.
const MOST_PARTS: usize = 25_000;

fuzz_target!(|input: &str| {
    let mut pieces = input.splitn(3, '\n');
    let (before, unit, after) = (
        pieces.next().unwrap_or_default(),
        pieces.next().unwrap_or_default(),
        pieces.next().unwrap_or_default(),
    );
    let room = LONGEST.saturating_sub(before.len() + after.len());
    let text = format!("{before}{}{after}", unit.repeat(room / unit.len().max(1)));
    let began = busy();
    let facts = understand(&text, Reader::Either, &[], &PLACE);
    let parts = facts.parts.len();
    let subject = Subject {
        text: &text,
        place: Some(&PLACE),
        ..Subject::default()
    };
    RULES.decide(facts, &subject);
    tokens(&text);
    let took = busy().saturating_sub(began);
    assert!(took < LIMIT, "{took:?} for {before:?} {unit:?} {after:?}");
    assert!(
        parts < MOST_PARTS,
        "{parts} parts of {before:?} {unit:?} {after:?}"
    );
});

/// Returns the time that this thread was on a processor, which others who want
/// it too do not lengthen.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}
