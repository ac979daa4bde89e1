//! What maintainers run beside the tests: `cargo xtask soak`.

mod soak;

use std::process::ExitCode;

/// What could not be done, in words.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: cargo xtask soak [--seconds N] [--seed N] [--program PATH]";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let done = match words.next().as_deref() {
        Some("soak") => soak::main(words.collect()),
        _ => Err(USAGE.into()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
