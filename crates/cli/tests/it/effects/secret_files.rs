//! Files that hold secrets are a wall: only what somebody has allowed reads
//! them, however a command is written.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use super::Place;
use crate::crew::text;
use crate::support::{Home, have};

/// What must not be seen, in whatever is told of a run.
const SECRET: &str = "hunter2-correct-horse";

/// A project with secrets in it.
fn fill(place: &Place) {
    place.write(".env", &format!("TOKEN={SECRET}\n"));
    place.write(".env.example", "TOKEN=fill-me-in\n");
    place.write("deploy/tls.key", &format!("-----{SECRET}-----\n"));
    place.write("deploy/notes.txt", "how to deploy\n");
    place.write("tests/fixtures/tls.key", "a fixture\n");
    place.write(".ssh/config", &format!("# {SECRET}\n"));
    // A second name, which says nothing.
    let base = place.home.base();
    fs::hard_link(base.join(".env"), base.join("deploy/second.txt")).unwrap();
    // The owner of the directory owns what is in it.
    let owner = base.metadata().unwrap();
    for path in [".env", "deploy/tls.key", ".ssh", ".ssh/config"] {
        let _ = std::os::unix::fs::chown(base.join(path), Some(owner.uid()), Some(owner.gid()));
    }
}

fn project() -> Place {
    let place = Place::new();
    fill(&place);
    place
}

/// All that is told of a run, with its whole output.
fn told(place: &Place, run: &Value) -> String {
    let id = text(run, "command_id");
    let path = format!("/agent/terminal/commands/{id}/output/raw");
    let output = place.owner().send("GET", &path, b"");
    format!("{run}\n{}", String::from_utf8_lossy(&output.bytes))
}

/// The codes and objects of what a run was denied.
fn denied(run: &Value) -> Vec<(String, String)> {
    let denials = run["denials"].as_array().cloned().unwrap_or_default();
    let one = |denial: &Value| {
        let object = denial["object"].as_str().unwrap_or("").to_owned();
        (text(denial, "code"), object)
    };
    denials.iter().map(one).collect()
}

#[test]
fn no_command_that_nobody_has_allowed_reads_a_secret_file() {
    let place = project();
    let scripts = [
        "print(open('.env').read())",
        "import os; print(open('/proc/self/root' + os.getcwd() + '/.env').read())",
        "import mmap; f = open('.env'); print(mmap.mmap(f.fileno(), 0, prot=1)[:])",
        "import os; os.chmod('.env', 0o777); print(open('.env').read())",
        "import shutil; shutil.copytree('.', '/tmp/all', ignore_dangling_symlinks=True)",
        "import os; print(os.listdir('.ssh'))",
    ];
    let python = scripts.map(|script| format!("python3 -c \"{script}\"; cat /tmp/all/.[e-]??"));
    let lines = [
        "grep -r . .",
        "grep -rh TOKEN . 2>&1 | head",
        "rg -uuu .",
        "ls -A | xargs cat",
        "find . -type f -exec cat {} +",
        "find . -name '*.txt' | xargs tail -n +1",
        "cat deploy/*",
        "tail -n +1 .??*",
        "cat deploy/second.txt",
        "cp .env x; cat x",
        "ln .env x; cat x",
        "ln -s .env x; cat x",
        "mv .env x; cat x",
        "mv deploy moved; cat moved/*",
        "mv .ssh x; cat x/*",
        "rm .env; ls -A",
        "tar cf - . | cat -A",
        "dd if=.env",
        "sh -c 'read line < .env; echo $line'",
        "exec 3< .env; cat <&3",
        "cp -r . /tmp/all; grep -r . /tmp/all",
        "git diff --no-index /dev/null .env",
        "git init -q; git add -f .env; git show :.env; git hash-object .env | git cat-file --batch",
        "chmod 644 .env deploy/tls.key; cat .en[v] deploy/*",
        "awk 1 .env; sed -n p .env; od -c .env; base64 .env; perl -pe 1 .env",
        "touch made; bash -c 'echo $(<.env)'",
    ];
    for line in lines.iter().map(|&line| line.to_owned()).chain(python) {
        let run = place.ask(&line, Value::Null).json();
        assert!(!told(&place, &run).contains(SECRET), "{line}: {run}");
        assert!(place.read(".env").contains(SECRET), "{line}");
    }
    // In the background, and with its errors out of sight.
    let wish = json!({ "background": true });
    let run = place
        .ask("grep -r . . 2>/dev/null; touch made", wish)
        .json();
    let ended = place.owner();
    let ended = ended.get(&format!(
        "/commands/{}?wait_ms=60000",
        text(&run, "command_id")
    ));
    assert!(!told(&place, &ended.json()).contains(SECRET));
}

#[test]
fn the_result_names_the_file_and_who_can_allow_it() {
    let place = project();
    let run = place.unasked("grep -r TOKEN .", Value::Null);
    assert!(text(&run, "stdout").contains("fill-me-in"), "{run}");
    let secret = |object: &str| ("fs.secret".to_owned(), object.to_owned());
    assert!(denied(&run).contains(&secret(".env")), "{run}");
    let remedy = run["denials"][0]["remedy"].as_str().unwrap();
    for words in ["once", "--review before", "always", "secret_files"] {
        assert!(remedy.contains(words), "{remedy}");
    }
    // Whatever becomes of the status and the streams.
    let run = place.unasked("cat deploy/* 2>&1 | head", Value::Null);
    assert_eq!(run["exit_code"], 0, "{run}");
    assert!(denied(&run).contains(&secret("deploy/tls.key")), "{run}");
    // What has nothing to do with them hears nothing of them.
    let run = place.unasked("cat deploy/notes.txt; false", Value::Null);
    assert_eq!(denied(&run), [], "{run}");
    let layers = run["sandbox"]["layers"].as_array().unwrap();
    let layer = layers.iter().find(|layer| layer["name"] == "secret files");
    assert_eq!(layer.unwrap()["holds"], "whole", "{run}");
}

#[test]
fn what_is_no_secret_stays_readable() {
    let place = project();
    let read = "grep -h . .env.example tests/fixtures/* deploy/notes.txt";
    let run = place.unasked(read, Value::Null);
    let said = "TOKEN=fill-me-in\na fixture\nhow to deploy\n";
    assert_eq!(run["stdout"], said, "{run}");
    // What needs no secret works: here it is the sandbox's own.
    let session = json!({ "session_id": "build" });
    let made = place.held(
        "cp .env.example web.conf; mkdir web; cp .env.example web/.env",
        session,
    );
    let session = json!({ "session_id": "build" });
    let run = place.unasked("grep -rh TOKEN web", session);
    assert_eq!(run["stdout"], "TOKEN=fill-me-in\n", "{run}");
    // Nothing of the covers is among the changes.
    let changes = place.changes(&made);
    let paths = changes["changes"].as_array().unwrap().iter();
    let mut paths: Vec<String> = paths
        .map(|change| text(change, "path").trim_end_matches('/').to_owned())
        .collect();
    paths.sort();
    assert_eq!(paths, ["web", "web.conf", "web/.env"]);
    let before = place.home.base().join(".env").metadata().unwrap();
    place.apply(&made);
    // It is the same when it is applied, until somebody writes to it.
    let run = place.unasked("grep -rh TOKEN web", Value::Null);
    assert_eq!(run["stdout"], "TOKEN=fill-me-in\n", "{run}");
    place.write("web/.env", &format!("TOKEN={SECRET}\n"));
    let run = place.unasked("grep -rh TOKEN web", Value::Null);
    assert!(!told(&place, &run).contains(SECRET), "{run}");
    let after = place.home.base().join(".env").metadata().unwrap();
    assert_eq!((before.mode(), before.ino()), (after.mode(), after.ino()));
    assert!(place.read(".env").contains(SECRET));
}

#[test]
fn what_appears_is_closed_for_the_next_run() {
    let place = project();
    place.unasked("grep -r . .", Value::Null);
    place.write("new/deep/.env.local", SECRET);
    let run = place.unasked("grep -r . new", Value::Null);
    assert!(!told(&place, &run).contains(SECRET), "{run}");
    let base = place.home.base();
    fs::rename(base.join("new"), base.join("newer")).unwrap();
    fs::hard_link(base.join(".env"), base.join("newer/x.txt")).unwrap();
    let run = place.unasked("grep -r . newer", Value::Null);
    assert!(!told(&place, &run).contains(SECRET), "{run}");
}

#[test]
fn other_names_and_other_letters_do_not_open_them() {
    let place = project();
    let base = place.home.base();
    for name in [".ENV.local", "certs/Server.PEM", "keys/ID_RSA"] {
        place.write(name, SECRET);
    }
    // A file of a secret directory, and what a secret link leads to.
    fs::hard_link(base.join(".ssh/config"), base.join("deploy/third.txt")).unwrap();
    place.write("conf/real.txt", SECRET);
    fs::hard_link(base.join("conf/real.txt"), base.join("conf/second.txt")).unwrap();
    std::os::unix::fs::symlink("conf/real.txt", base.join(".env.prod")).unwrap();
    let run = place.unasked("grep -r . . 2>&1", Value::Null);
    assert!(!told(&place, &run).contains(SECRET), "{run}");
    // What is proposed helps.
    for (command, exception) in [
        ("find . -name x", "`!.ssh/`"),
        ("cat deploy/third.txt", "an exception for its other name"),
    ] {
        let run = place.unasked(command, Value::Null);
        let remedy = text(&run["denials"][0], "remedy");
        assert!(remedy.contains(exception), "{command}: {remedy}");
    }
}

#[test]
fn no_directory_takes_a_secret_to_where_it_is_none() {
    let place = Place::with("preset = \"bash\"\n[sandbox.default]\nreview = \"before\"\n");
    fill(&place);
    place.write("app/deep/.docker/config.json", SECRET);
    place.write("app/notes.txt", "notes\n");
    // It writes directly, and is asked nothing.
    for to in ["node_modules/x", "tests/x", ".git/x"] {
        place.ask(
            &format!("mkdir -p {to}; mv deploy app app/deep/.docker {to}; mv deploy {to}/y"),
            Value::Null,
        );
    }
    let run = place.ask("touch made; grep -rh . . 2>&1", Value::Null);
    let run = run.json();
    assert!(text(&run, "stdout").contains("how to deploy"), "{run}");
    assert!(!told(&place, &run).contains(SECRET), "{run}");
    assert!(place.read("deploy/tls.key").contains(SECRET));
    assert!(place.read("app/deep/.docker/config.json").contains(SECRET));
}

#[test]
fn what_a_person_has_allowed_reads_them() {
    let place = project();
    // Also what is only read is asked about where that makes a difference.
    for (command, found) in [("grep -rh TOKEN .", "TOKEN="), ("cat deploy/*", "-----")] {
        let run = place
            .ask(command, json!({ "review": "before" }))
            .expect(202);
        assert_eq!(run["state"], "waiting", "{run}");
        let card = place.card(&run);
        place.decide(&card, "approve_once").expect(200);
        let run = place.until(&run, "succeeded");
        let said = text(&run, "stdout");
        assert!(said.contains(&format!("{found}{SECRET}")), "{run}");
        assert_eq!(denied(&run), [], "{run}");
    }
    // A question about the file itself is there as before.
    let run = place.ask("cat .env", Value::Null).expect(202);
    let card = place.card(&run);
    place.decide(&card, "approve_once").expect(200);
    let run = place.until(&run, "succeeded");
    assert_eq!(run["stdout"], format!("TOKEN={SECRET}\n"), "{run}");
    // Once is once.
    let run = place.unasked("grep -rh TOKEN .", Value::Null);
    assert!(!told(&place, &run).contains(SECRET), "{run}");
}

#[test]
fn what_a_rule_allows_reads_them_and_nothing_beside_it_does() {
    let rules = "[[rule]]\nauto = \"sh show.sh\"\nbecause = \"the build needs it\"\n\
                 [[rule]]\nauto = \"grep -c *\"\nbecause = \"counts\"\n";
    let place = Place::ruled("strict", rules);
    fill(&place);
    place.write("show.sh", "cat .env\n");
    for allowed in ["sh show.sh", "cd . && sh show.sh 2>&1 | tail -3"] {
        let run = place.unasked(allowed, Value::Null);
        assert!(text(&run, "stdout").contains(SECRET), "{run}");
    }
    // A rule for what is proved to read counts, too.
    let run = place.unasked("grep -c hunter2 -r .", Value::Null);
    assert!(text(&run, "stdout").contains("./.env:1\n"), "{run}");
    for more in ["sh show.sh; grep -r . .", "grep -r . . | sh show.sh"] {
        let run = place.unasked(more, Value::Null);
        assert!(!told(&place, &run).contains(SECRET), "{run}");
    }
    // A rule is about what people have seen.
    let session = || json!({ "session_id": "own" });
    place.held("echo 'cat .env; : more' > show.sh", session());
    let run = place.ask("sh show.sh", session()).json();
    assert!(!told(&place, &run).contains(SECRET), "{run}");
}

#[test]
fn what_an_allowed_run_has_moved_stays_closed() {
    let rules = "[[rule]]\nauto = \"sh move.sh\"\nbecause = \"moves\"\n";
    let place = Place::ruled("strict", rules);
    fill(&place);
    // With something that is asked about in any case, so that all of it is held.
    place.write(
        "move.sh",
        "mkdir moved; cp deploy/tls.key deploy/notes.txt moved; echo x > lefthook.yml\n",
    );
    let session = || json!({ "session_id": "own" });
    place.ask("sh move.sh", session()).expect(202);
    let run = place.unasked("grep -r . moved", session());
    assert!(text(&run, "stdout").contains("how to deploy"), "{run}");
    assert!(!told(&place, &run).contains(SECRET), "{run}");
}

#[test]
fn a_sandbox_says_which_files_are_secret() {
    let place = project();
    place.write("config/prod.yml", &format!("password: {SECRET}\n"));
    place.write("deploy/tls.key", "no secret any more\n");
    let wish = json!({ "label": "own", "path": place.home.base(),
                       "guard": { "secret_files": ["config/*.yml", "!*.key"] } });
    place.owner().post("/sandboxes", &wish).expect(201);
    let sandbox = json!({ "command": "grep -r . .", "sandbox_id": "own" });
    let run = place.owner().post("/commands", &sandbox).expect(200);
    assert!(text(&run, "stdout").contains("no secret any more"), "{run}");
    assert!(!told(&place, &run).contains(SECRET), "{run}");
    let wrong = json!({ "label": "wrong", "path": place.home.base(),
                        "guard": { "secret_files": ["/etc/shadow"] } });
    let said = place.owner().post("/sandboxes", &wrong).expect(400);
    assert_eq!(said["code"], "bad_sandbox", "{said}");
}

#[test]
fn a_server_says_which_files_are_secret_everywhere() {
    let place = Place::with("secret_files = [\"!**\", \"*.txt\"]\n");
    fill(&place);
    let run = place.unasked("grep -rh . deploy", Value::Null);
    assert_eq!(
        text(&run, "stdout"),
        format!("-----{SECRET}-----\n"),
        "{run}"
    );
    let home = Home::untouched();
    let config = home.config("secret_files = [\"~/x\"]\n");
    let refused = home.try_serve(&["--config", &config]).err().unwrap();
    assert!(refused.err.contains("secret_files"), "{refused:?}");
}

#[test]
fn without_mounts_it_is_said_that_they_can_be_read() {
    if !have(&["setpriv"]) {
        return;
    }
    let home = Home::strict();
    home.put("base/.env", SECRET);
    let _server = home.serve_without_namespaces();
    let run = home.result(&[], "grep -r . .");
    let layers = run["sandbox"]["layers"].as_array().unwrap();
    let layer = layers.iter().find(|layer| layer["name"] == "secret files");
    assert_eq!(layer.unwrap()["holds"], "not", "{run}");
}
