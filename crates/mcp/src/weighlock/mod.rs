//! Our own tools: few, and each says when it is the right one.

mod list;
mod read;
mod run;
mod send;
mod stop;
mod told;
mod wait;

pub(crate) use told::word;
pub(crate) use wait::tool as wait;

use crate::api::Failure;
use crate::call::Call;
use crate::options::Toolset;
use crate::tool::Tool;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        run::tool(),
        read::tool(),
        send::tool(),
        wait::tool(),
        list::tool(),
        stop::tool(),
    ]
}

/// What is not there is looked for with a tool of ours, for who has that.
fn looked_for(call: &Call, failure: Failure) -> Failure {
    let chosen = &call.desk.options.toolsets;
    let lists = chosen.is_empty() || chosen.contains(&Toolset::Weighlock);
    match failure.code.as_str() {
        "no_such_run" | "not_found" if lists => Failure {
            hint: "`list` shows them all.".into(),
            ..failure
        },
        _ => failure,
    }
}
