//! What a run may have failed for since it was on a copy.

use weighlock_api::{Health, Run};

use crate::client::Client;

/// How programs tell that something cannot be renamed from one file system to
/// another, as it cannot on a copy.
const CROSSED: &[u8] = b"cross-device link";

/// Returns whether a program says so.
pub(super) fn is_crossed(said: &[u8]) -> bool {
    said.windows(CROSSED.len())
        .any(|at| at.eq_ignore_ascii_case(CROSSED))
}

/// Returns what would help a failed run, if the copy may be the reason.
pub(super) async fn hint(client: &mut Client, run: &Run, crossed: bool) -> Option<String> {
    let sandbox = run.detail.sandbox.as_ref()?;
    if sandbox.files != "copy" || run.exit_code.is_none_or(|code| code == 0) {
        return None;
    }
    if crossed {
        return Some(
            "directories that were there cannot be renamed on a copy: weighlock run --review before"
                .into(),
        );
    }
    if sandbox.network != "off" {
        return None;
    }
    let health: Health = client.get("/health").await.ok()?;
    let mut known = health.sandboxes.iter();
    let known = known.find(|known| known.name == sandbox.name)?;
    (known.network != "off").then(|| {
        "the sandbox has network, this copy had none: weighlock run --review before".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_say_it_in_their_own_ways() {
        assert!(is_crossed(
            b"OSError: [Errno 18] Invalid cross-device link: 'a'"
        ));
        assert!(is_crossed(b"rename a b: Cross-device link"));
        assert!(!is_crossed(b"no such file"));
        assert!(!is_crossed(b""));
    }
}
