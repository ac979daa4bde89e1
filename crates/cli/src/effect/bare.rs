//! The diff of a path whose content does not change, or that has none: nobody
//! has to be asked for it.

use serde_json::json;
use weighlock_api::ChangeInfo;
use weighlock_engine::FileDiff;

/// Returns the diff, as the server would tell it; none where it has to.
pub(super) fn diff(change: &ChangeInfo) -> Option<FileDiff> {
    let shape = match (change.is.as_str(), change.kind.as_str()) {
        ("directory", _) => "directory",
        ("file", "mode" | "times" | "renamed") => "nothing",
        ("file", "created") if change.size_after == Some(0) => "text",
        ("file", "deleted") if change.size_before == Some(0) => "text",
        _ => return None,
    };
    let path = change.path.trim_end_matches('/');
    let from = change.from.as_deref();
    // Of what is elsewhere, or no text, only the server knows the name.
    let is_plain = |path: &str| !path.starts_with('/') && !path.contains('\u{fffd}');
    if !is_plain(path) || !from.is_none_or(is_plain) {
        return None;
    }
    let mut diff = json!({
        "path": path, "kind": change.kind, "shape": shape, "added": 0, "removed": 0, "hunks": [],
    });
    if let Some(from) = from {
        diff["from"] = from.into();
    }
    Some(FileDiff {
        change: ChangeInfo {
            added: None,
            removed: None,
            mark: None,
            ..change.clone()
        },
        diff: serde_json::from_value(diff).ok()?,
    })
}
