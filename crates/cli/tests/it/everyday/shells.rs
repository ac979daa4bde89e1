//! Shells, and the small tools that every script uses.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use super::{check, check_fails, check_with, desk};
use crate::support::have;

#[test]
fn shells_have_all_their_redirections() {
    let home = desk();
    let script = home.put(
        "base/script",
        "cat <<X\nhere $((1 + 1))\nX\ncat <<-'X'\n\traw $((1 + 1))\n\tX\n\
         echo in | cat /dev/stdin\n echo fd | cat /dev/fd/0\n\
         echo err 2>&1 > /dev/stderr\n { echo three >&3; } 3> /dev/stdout\n",
    );
    let more = home.put(
        "base/more",
        "cat <<< string; cat <(echo one) <(echo two); echo kept > >(cat > kept); wait\n\
         while read -r x; do echo \"$x\"; done < <(echo looped)\n",
    );
    let (script, more) = (script.display(), more.display());
    for shell in ["sh", "dash", "bash", "zsh"] {
        if have(&[shell]) {
            let said = "here 2\nraw $((1 + 1))\nin\nfd\nerr\nthree";
            check(&home, &[(&format!("{shell} {script} 2>&1"), said)]);
        }
    }
    for shell in ["bash", "zsh"] {
        if have(&[shell]) {
            let said = "string\none\ntwo\nlooped";
            check(&home, &[(&format!("{shell} {more}"), said)]);
        }
    }
}

#[test]
fn the_three_streams_have_names() {
    let home = desk();
    let done = home.run(&["-q"], "echo o > /dev/stdout; echo e > /dev/stderr");
    assert_eq!((done.out.as_str(), done.err.as_str()), ("o\n", "e\n"));
    let done = home.run(&["-q"], "echo o >> /proc/self/fd/1; cat /dev/stdin");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "o\n"), "{done:?}");
    let (_, given) = home.ask(
        "cat /dev/stdin; wc -c < /dev/stdin",
        json!({ "stdin": "abc\n" }),
    );
    assert_eq!(given["stdout"], "abc\n4\n", "{given}");
    let piped = home
        .weighlock_through(
            &["sh", "-c", "echo piped | \"$@\"", "sh"],
            &["run", "-q", "--"],
        )
        .arg("cat /dev/stdin")
        .stdout(Stdio::piped())
        .output();
    assert_eq!(piped.unwrap().stdout, b"piped\n");
}

#[test]
fn small_tools_find_what_they_expect() {
    let home = desk();
    let processors = std::thread::available_parallelism().unwrap().to_string();
    check(
        &home,
        &[
            ("ls -A /tmp /var/tmp /dev/shm | grep -c wl", "1"),
            (
                "echo x > /var/tmp/x && echo y > /dev/shm/y && cat /var/tmp/x /dev/shm/y",
                "x\ny",
            ),
            ("nproc", &processors),
            ("TZ=Asia/Tokyo date -d @0 +%H:%M%Z", "09:00JST"),
            ("LC_ALL=C.UTF-8 locale charmap", "UTF-8"),
            ("LC_ALL=C.UTF-8; x=äöü; echo ${#x}", "3"),
            ("cat /proc/[0-9]*/comm | sort -u | grep -c bash", "1"),
            ("whoami > /dev/null; id -un > /dev/null; echo $?", "0"),
            (
                "[ $(id -u) != 0 ] && echo $HOME",
                &home.around().join("home").to_string_lossy(),
            ),
            (
                "head -c 4 /dev/urandom | wc -c; echo x > /dev/null; head -c 2 /dev/zero | wc -c",
                "4\n2",
            ),
            ("seq 4 | xargs -P4 -n1 echo | sort | paste -sd,", "1,2,3,4"),
            (
                "mkdir t && echo 1 > t/1 && tar czf t.tgz t && rm -r t && tar xzf t.tgz && cat t/1",
                "1",
            ),
            ("gzip -k t/1 && zcat t/1.gz", "1"),
            (
                "find t -name '1*' -newermt 2020-01-01 -exec echo {} + | wc -w",
                "2",
            ),
            ("mkfifo p; echo fifo > p & cat p", "fifo"),
            (
                "flock l echo locked; timeout 5 echo timed; nohup echo on; setsid echo session; nice echo nice",
                "locked\ntimed\non\nsession\nnice",
            ),
            ("sleep 100 & kill $!; wait $! ; echo $?", "143"),
        ],
    );
    check_with(
        &home,
        &[
            (
                "script",
                "script -qec 'test -t 0 && echo terminal' /dev/null | tr -d '\\r'",
                "terminal",
            ),
            ("top", "top -b -n1 | grep -c PID", "1"),
            ("perl", "perl -e 'print 6*7'", "42"),
            ("ruby", "ruby -e 'puts 6*7'", "42"),
            ("jq", "echo '{\"a\":42}' | jq .a", "42"),
            ("zip", "zip -qr t.zip t && unzip -p t.zip t/1", "1"),
            ("rsync", "rsync -a t/ t2 && cat t2/1", "1"),
            (
                "parallel",
                "seq 3 | parallel -k echo 2> /dev/null | paste -sd,",
                "1,2,3",
            ),
            (
                "sqlite3",
                "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(42); select a from t'",
                "wal\n42",
            ),
            ("openssl", "echo x | openssl sha256 | grep -c =", "1"),
            (
                "gpg",
                "gpg --batch -q --list-keys 2> /dev/null; ls -d ~/.gnupg | wc -l",
                "1",
            ),
        ],
    );
}

#[test]
fn what_works_in_the_temporary_directory_works_there() {
    let home = desk().live_elsewhere();
    let command = "f=$(mktemp) && d=$(mktemp -d) && dirname $f $d";
    check(&home, &[(command, "/tmp\n/tmp")]);
    if have(&["tmux"]) {
        let command = "tmux new-session -d -x 80 -y 20 && tmux send-keys 'echo $((6*7))' Enter && \
                       for i in $(seq 100); do tmux capture-pane -p | grep -ow 42 && break; \
                       sleep 0.1; done; tmux kill-server";
        check(&home, &[(command, "42")]);
    }
}

#[test]
fn what_needs_another_user_or_a_network_fails_at_once() {
    let home = desk();
    for (program, command, said) in [
        ("su", "su -c id", "Authentication failure"),
        ("su", "su nobody -s /bin/sh -c id", "Authentication failure"),
        (
            "curl",
            "curl -sS http://example.org",
            "Could not resolve host",
        ),
        ("ssh", "ssh git@example.org", "Could not resolve hostname"),
        (
            "git",
            "git ls-remote https://example.org/x",
            "Could not resolve host",
        ),
        ("unshare", "unshare -r true", "Operation not permitted"),
        ("npm", "npm install left-pad", "getaddrinfo"),
        (
            "pip",
            "pip install --break-system-packages --retries 0 weighlock-has-no-such-package",
            "No matching distribution",
        ),
    ] {
        if have(&[program]) {
            check_fails(&home, &[(command, said)]);
        }
    }
    // By name, whether it is installed or not.
    let sudo = home.run(&["-q"], "x=do; su$x true");
    assert_ne!(sudo.code, Some(0), "{sudo:?}");
}

#[test]
fn files_are_made_moved_and_linked_as_usual() {
    let home = desk();
    home.put("base/old", "old");
    // The server that it starts has this mask.
    let masked = ["sh", "-c", "umask 027; exec \"$@\"", "sh"];
    let command = "umask; touch f; mkdir d e; echo new > old; mv f d/f; ln d/f g; mv d/f e/f; \
                   mv e d/; echo x > g; cat d/e/f old; rm -r d/e/f; chmod 751 g; cp -a d c; \
                   ln -s g s; cat s";
    let done = home
        .weighlock_through(&masked, &["run", "-q", "--", command])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        "0027\nx\nnew\nx\n",
        "{done:?}"
    );
    home.run(&["-q"], "touch later");
    let mode = |name: &str| {
        let meta = fs::metadata(home.base().join(name)).unwrap();
        meta.permissions().mode() & 0o777
    };
    let modes = ["g", "d", "later", "old"].map(mode);
    let before = fs::metadata(home.around().join("home/.gitconfig")).unwrap();
    let before = before.permissions().mode() & 0o777;
    assert_eq!(modes, [0o751, 0o750, 0o640, before]);
}
