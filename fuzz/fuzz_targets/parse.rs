//! Any text gives a tree, the same each time, that points into the text.

#![no_main]

mod spans;

use libfuzzer_sys::fuzz_target;
use weighlock_shell::{Dialect, parse};

fuzz_target!(|text: &str| {
    for dialect in [
        Dialect::Bash,
        Dialect::Posix,
        Dialect::PowerShell,
        Dialect::Cmd,
    ] {
        let script = parse(text, dialect);
        spans::check(&script, text);
        assert_eq!(script, parse(text, dialect), "the same text, another tree");
    }
});
