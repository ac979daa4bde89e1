//! A backup that is made, verified and restored, without a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use weighlock_backup::{Archiver, Destination, Error, Restore, verify_backup};
use weighlock_store::{Clock, Durability, Entry, Store};

/// A state directory with one audit entry and one file of a task.
async fn state(dir: &Path) -> Arc<Archiver> {
    let state_dir = dir.join("state");
    fs::create_dir_all(state_dir.join("tasks")).expect("a temporary directory can be written");
    fs::create_dir(state_dir.join("backups")).expect("a temporary directory can be written");
    fs::write(state_dir.join("tasks/one.out"), "output")
        .expect("a temporary directory can be written");
    let store =
        Store::open(&state_dir, Durability::Process).expect("a temporary directory can be written");
    let entry = Entry {
        kind: "server.started",
        actor: "weighlock".into(),
        ..Entry::default()
    };
    let recorded = store.audit().record(vec![entry]).await;
    recorded.expect("the entry is stored");
    Archiver::new(state_dir, Arc::new(store), Clock::system(), vec![])
}

fn code_of(error: Error) -> &'static str {
    match error {
        Error::Invalid { code, .. } => code,
        error => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_restored_as_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let archiver = state(dir.path()).await;
    assert_eq!(archiver.last_made().unwrap(), None);
    let made = archiver.create(None, "ann").await.unwrap();
    assert!(archiver.last_made().unwrap().is_some());
    let from = PathBuf::from(&made.directory);
    let verified = verify_backup(&from, Some(&made.sha256)).unwrap();
    assert_eq!((verified.entries, verified.files), (1, 1));

    let to = dir.path().join("restored");
    fs::create_dir(&to).unwrap();
    let restore = Restore::prepare(&from, &to, Some(&made.sha256)).unwrap();
    let report = restore.run("ann", json!({})).await.unwrap();
    assert_eq!(report.backup, verified);
    assert_eq!(fs::read(to.join("tasks/one.out")).unwrap(), b"output");
    let again = Restore::prepare(&from, &to, None).map(|_| ());
    assert_eq!(code_of(again.unwrap_err()), "not_empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_backup_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let archiver = state(dir.path()).await;
    let made = archiver.create(None, "ann").await.unwrap();
    let from = PathBuf::from(&made.directory);
    let other = verify_backup(&from, Some(&"0".repeat(64))).unwrap_err();
    assert_eq!(code_of(other), "backup_damaged");
    fs::write(from.join("files/tasks/one.out"), "forged").unwrap();
    let changed = verify_backup(&from, None).unwrap_err();
    assert!(changed.to_string().contains("one.out was changed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_must_be_new_hidden_and_outside_the_state_directory() {
    let dir = tempfile::tempdir().unwrap();
    let archiver = state(dir.path()).await;
    let accept = |path: &str, is_visible| {
        let path = dir.path().join(path);
        let destination = Destination::resolve(&path)?;
        archiver.accept(destination, is_visible)
    };
    accept("new", false).unwrap();
    accept("state/backups/monday", false).unwrap();
    for (path, is_visible) in [
        ("new", true),
        ("no/parent", false),
        ("state", false),
        ("state/tasks/x", false),
    ] {
        let refused = accept(path, is_visible).unwrap_err();
        assert_eq!(code_of(refused), "bad_backup_place", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_backup_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let archiver = state(dir.path()).await;
    archiver.cancel().await;
    archiver.create(None, "ann").await.unwrap_err();
    let left = fs::read_dir(archiver.default_dir()).unwrap().count();
    assert_eq!(left, 0);
}
