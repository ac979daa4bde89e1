//! Clones where people put them: what `check` needs of each place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::not_as_this_user;

/// Copied, as somebody else would have it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("it is in a directory")).expect("makes it");
    fs::copy(from, to).expect("copies");
}

#[test]
fn an_ordinary_user_works_in_a_clone_that_only_root_can_enter() {
    if !rustix::process::geteuid().is_root() {
        return not_as_this_user("only root becomes somebody else");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let closed = tempfile::tempdir().expect("a directory");
    fs::set_permissions(closed.path(), PermissionsExt::from_mode(0o700)).expect("closes it");
    let closed = closed.path().canonicalize().expect("it is there");
    fs::write(closed.join("key"), "secret\n").expect("writes");
    let clone = closed.join("a clone");
    let way_in = clone.join(".config/as-ordinary-user");
    copy(&source.join(".config/as-ordinary-user"), &way_in);
    let ours = clone.join("target/debug/weighlock");
    copy(Path::new(env!("CARGO_BIN_EXE_weighlock")), &ours);
    let script = r#"
        id -u; pwd
        cat ../key 2>/dev/null && echo "saw more than the clone"
        export HOME=$(mktemp -d) && cd "$HOME" && mkdir project && cd project
        "$0" run --quiet -- 'echo from a run'; code=$?
        "$0" serve --stop 2>/dev/null
        rm -rf "$HOME"; exit $code
    "#;
    let done = Command::new(&way_in)
        .env_remove("CARGO_TARGET_DIR")
        .args(["sh", "-c", script])
        .arg(&ours)
        .current_dir(&clone)
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&done.stdout);
    let expected = format!("1\n{}\nfrom a run\n", clone.display());
    assert_eq!(said, expected, "{done:?}");
    assert!(done.status.success(), "{done:?}");
    // Nothing of it is to be seen outside.
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux tells");
    assert!(!mounts.contains(closed.to_str().expect("text")), "{mounts}");
}
