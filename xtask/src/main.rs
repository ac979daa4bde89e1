//! What maintainers run beside the tests: `cargo xtask soak`, and
//! `cargo xtask third-party` for packages.

mod soak;
mod third_party;

use std::process::ExitCode;

/// What could not be done, in words.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: cargo xtask soak [--seconds N] [--seed N] [--program PATH]
       cargo xtask third-party";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let done = match words.next().as_deref() {
        Some("soak") => soak::main(words.collect()),
        Some("third-party") => third_party::main(words.collect()),
        _ => Err(USAGE.into()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
