//! No test of any crate has a way of its own to skip, which `check` would not
//! count, and which would not fail where everything is installed.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_test_skips_by_this_crate() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = vec![];
    gather(&crates, &mut sources);
    assert!(sources.len() > 500, "{} sources", sources.len());
    let prints = [
        "println!(\"SKIPPED",
        "println!(\"skipped",
        "println!(\"NOT AS",
    ];
    for source in sources {
        let text = fs::read_to_string(&source).expect("sources are text");
        let own_way = prints.iter().find(|print| text.contains(*print));
        assert_eq!(own_way, None, "{}", source.display());
    }
}

/// Finds all Rust files of all crates but this one.
fn gather(dir: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "testing" {
            gather(&path, sources);
        } else if path.extension().is_some_and(|end| end == "rs") {
            sources.push(path);
        }
    }
}
