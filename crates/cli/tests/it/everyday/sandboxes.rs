//! Sandboxes as a person sets them up.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::desk;
use crate::support::{Done, Home, have, not_as_this_user};

#[test]
fn each_sandbox_shows_what_it_says() {
    let home = desk();
    let here = home.around();
    for name in ["one", "two"] {
        fs::create_dir(here.join(name)).unwrap();
    }
    home.put("home/readable/f", "r");
    home.put("home/writable/f", "w");
    home.put("outside/f", "o");
    let outside = here.join("outside");
    let settings = format!(
        "[sandbox.one]\ndirectory = {:?}\nread = [\"~/readable\", {outside:?}]\n\
         write = [\"~/writable\"]\n[sandbox.two]\ndirectory = {:?}\n",
        here.join("one"),
        here.join("two"),
    );
    let _server = home.serve_with(&settings);
    let outside = outside.display();
    for (sandbox, command, said) in [
        ("one", "basename $PWD", "one"),
        ("two", "basename $PWD", "two"),
        (
            "one",
            &*format!("cat ~/readable/f ~/writable/f {outside}/f"),
            "rwo",
        ),
        (
            "two",
            &*format!("cat ~/readable/f ~/writable/f {outside}/f ../one/x 2> /dev/null; echo none"),
            "none",
        ),
        ("one", "echo new > ~/writable/new; echo x > x; cat x", "x"),
        (
            "one",
            &*format!(
                "for d in ~/readable {outside}; do echo x > $d/f; rm $d/f; done 2> /dev/null; cat ~/readable/f"
            ),
            "r",
        ),
    ] {
        let done = run(&home, sandbox, command);
        assert_eq!(
            (done.code, done.out.trim()),
            (Some(0), said),
            "{command}: {done:?}"
        );
    }
    assert_eq!(
        fs::read_to_string(here.join("home/writable/new")).unwrap(),
        "new\n"
    );
    assert!(!here.join("two/x").exists());
    let unknown = run(&home, "three", "touch x");
    assert_eq!(unknown.code, Some(125), "{unknown:?}");
    assert!(unknown.err.contains("default, one, two"), "{unknown:?}");
}

#[test]
fn a_look_changes_nothing_and_runs_nothing() {
    let home = desk();
    if !have(&["git"]) {
        return;
    }
    let base = home.base();
    home.put("base/file", "x");
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(&base).output();
        assert!(done.unwrap().status.success(), "{args:?}");
    };
    let ran = "#!/bin/sh\necho ran >> /tmp/ran; echo ran >&2\n";
    git(&["init", "-q"]);
    let monitor = home.put_program("base/monitor", ran);
    for hook in ["post-index-change", "pre-commit"] {
        home.put_program(&format!("base/.git/hooks/{hook}"), ran);
    }
    git(&["add", "file"]);
    git(&["config", "core.fsmonitor", monitor.to_str().unwrap()]);
    let _server = home.serve_with("[sandbox.default]\nfiles = \"read\"\n");
    let look = home.run(&["-q"], "git status --porcelain; cat file; cat /tmp/ran");
    assert!(look.out.starts_with("A  file\n?? monitor\nx"), "{look:?}");
    assert!(
        !look.out.contains("ran") && !look.err.contains("ran\n"),
        "{look:?}"
    );
    for command in [
        "touch new",
        "echo y > file",
        "rm file",
        "mv file g",
        "mkdir d",
        "chmod 777 file",
        "git commit -m x",
        "git add monitor",
        "ln file g",
    ] {
        let done = home.run(&["-q"], command);
        assert_ne!(done.code, Some(0), "{command}: {done:?}");
        assert!(done.err.contains("Read-only"), "{command}: {done:?}");
    }
    // It still has a home and somewhere for temporary files.
    let done = home.run(
        &["-q"],
        "f=$(mktemp) && echo t > $f && cp $f ~/kept && cat ~/kept",
    );
    assert_eq!(done.out, "t\n", "{done:?}");
    assert_eq!(fs::read_to_string(base.join("file")).unwrap(), "x");
}

#[test]
fn the_network_is_the_hosts_only_where_it_is_on() {
    let home = desk();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let base = home.base();
    let _server = home.serve_with(&format!(
        "[sandbox.open]\ndirectory = {base:?}\nnetwork = \"on\"\n"
    ));
    let command = format!("exec 3<> /dev/tcp/127.0.0.1/{port} && echo reached");
    let knock = |sandbox| {
        let options = ["-q", "--shell", "bash", "--sandbox", sandbox];
        home.run(&options, &command)
    };
    let open = knock("open");
    assert_eq!(open.out, "reached\n", "{open:?}");
    let shut = knock("default");
    assert_ne!(shut.code, Some(0), "{shut:?}");
    assert!(shut.err.contains("refused"), "{shut:?}");
}

/// As systemd and others have it.
#[test]
fn names_are_looked_up_where_the_host_does() {
    if !rustix::process::geteuid().is_root() {
        return not_as_this_user("only root can put another /etc in its place");
    }
    let home = desk();
    let base = home.base();
    let config = home.config(&format!(
        "[sandbox.open]\ndirectory = {base:?}\nnetwork = \"on\"\n"
    ));
    // Ours, in which the file is a link.
    let etc = home.around().join("etc");
    let setup = format!(
        "cp -a /etc {0} 2> /dev/null; ln -sf ../run/names/resolv.conf {0}/resolv.conf && \
         mount --bind {0} /etc && mount -t tmpfs none /run && mkdir /run/names && \
         echo 'nameserver 192.0.2.1' > /run/names/resolv.conf && touch /run/secret && exec \"$@\"",
        etc.display()
    );
    let through = ["unshare", "-m", "sh", "-c", &setup, "sh"];
    let server = home.serve_in(&through, &["--config", &config]);
    let _server = server.unwrap_or_else(|done| panic!("no server: {done:?}"));
    let open = run(&home, "open", "cat /etc/resolv.conf; ls /run");
    assert_eq!(open.out, "nameserver 192.0.2.1\nnames\n", "{open:?}");
    let shut = run(&home, "default", "cat /etc/resolv.conf; ls /run");
    assert_eq!(shut.out, "", "{shut:?}");
}

/// In a user namespace without maps everybody is user 65534, as whom tests
/// are run most often: another user shows whether the maps are right.
#[test]
fn every_user_is_known_inside() {
    if !rustix::process::geteuid().is_root() {
        return not_as_this_user("only root can be several users");
    }
    let said = "1234\n1234 1234 1\nmine\n";
    let command = "id -u; echo $(cat /proc/self/uid_map); echo mine > f && cat f";
    // Root works for the owner; and the owner for itself.
    for (through, whole) in [
        (&[][..], false),
        (
            &["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups"],
            true,
        ),
    ] {
        let home = desk();
        let given = if whole { home.around() } else { home.base() };
        let done = Command::new("chown")
            .args(["-R", "1234:1234"])
            .arg(given)
            .status();
        assert!(done.unwrap().success());
        let done = home
            .weighlock_through(through, &["run", "-q", "--", command])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout), said, "{done:?}");
        assert_eq!(fs::metadata(home.base().join("f")).unwrap().uid(), 1234);
    }
}

fn run(home: &Home, sandbox: &str, command: &str) -> Done {
    home.run(&["-q", "--sandbox", sandbox], command)
}
