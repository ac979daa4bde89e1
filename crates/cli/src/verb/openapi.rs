//! `weighlock openapi`: the description of the REST door.

use std::process::ExitCode;

/// Print the OpenAPI description of the REST API
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn openapi() -> ExitCode {
    crate::text::print_json(&weighlock_server::openapi());
    ExitCode::SUCCESS
}
