//! Any text gets a verdict, and company never makes it milder.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use weighlock_policy::{
    Facts, Place, Preset, Reader, Rules, Settings, Subject, Verdict, example_place, understand,
};
use weighlock_shell::{Dialect, Script, parse};

static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::base(&[Preset::Strict], &Settings::default()));
static PLACE: LazyLock<Place> = LazyLock::new(example_place);

const SUDO: &str = "sudo id";

fuzz_target!(|text: &str| {
    for reader in [Reader::Sh, Reader::Bash, Reader::PowerShell, Reader::Cmd] {
        verdict(text, reader);
    }
    let alone = verdict(text, Reader::Either);
    // A text that says what `sudo` is to mean may well change that.
    if text.contains("sudo") {
        return;
    }
    let after = format!("{SUDO}; {text}");
    assert_eq!(verdict(&after, Reader::Either), Verdict::Reject, "{after}");
    let before = format!("{text}; {SUDO}");
    if adds_a_command(text, &before) {
        assert_eq!(
            verdict(&before, Reader::Either),
            Verdict::Reject,
            "{before}"
        );
    }
    // A text that does nothing at all is a question of its own.
    if !facts(text, Reader::Either).parts.is_empty() {
        let led = format!("true; {text}");
        let led_verdict = verdict(&led, Reader::Either);
        assert!(
            led_verdict >= alone,
            "{alone:?} becomes {led_verdict:?}: {led}"
        );
    }
});

fn facts(text: &str, reader: Reader) -> Facts {
    understand(text, reader, &[], &PLACE)
}

fn verdict(text: &str, reader: Reader) -> Verdict {
    let facts = facts(text, reader);
    let subject = Subject {
        text,
        place: Some(&PLACE),
        ..Subject::default()
    };
    RULES.decide(facts, &subject).verdict
}

/// Returns whether what was added stands by itself, and not inside of a quote,
/// a comment or a here-document that the text left open.
fn adds_a_command(text: &str, more: &str) -> bool {
    let is_clear = |script: &Script| script.unknowns.is_empty();
    let (old, new) = (parse(text, Dialect::Posix), parse(more, Dialect::Posix));
    is_clear(&old) && is_clear(&new) && new.body.items.len() == old.body.items.len() + 1
}
