//! The older tools' policies, to the letter.

use crate::rules::tests::understand;
use crate::{Blacklist, Judgement, Preset, Rules, Settings, Subject, Verdict, Who, agents};

const USER: Who<'static> = Who {
    agent: None,
    sandbox: None,
    sandbox_name: None,
    session: None,
    principal: Some("maria"),
    role: Some("user"),
};

fn decide(preset: Preset, settings: &Settings, subject: &Subject<'_>) -> Judgement {
    Rules::base(&[preset], settings).decide(understand(subject.text), subject)
}

/// Returns the code and the text of a refusal, or `auto`.
fn said(judgement: &Judgement) -> (String, String) {
    match judgement.verdict {
        Verdict::Auto => ("auto".into(), String::new()),
        _ => {
            let reason = &judgement.reasons[0];
            (reason.code.clone(), reason.text.clone())
        }
    }
}

#[track_caller]
fn check(preset: Preset, settings: &Settings, subject: Subject<'_>, code: &str, text: &str) {
    let judgement = decide(preset, settings, &subject);
    assert_eq!(
        said(&judgement),
        (code.to_owned(), text.to_owned()),
        "{subject:?}"
    );
}

#[test]
fn blacklist() {
    let text = "Command is not allowed by terminal blacklist.";
    let settings = Settings::default();
    for command in [
        "rm -rf /",
        " RM  -rf\t/home",
        "sudo ls",
        "curl | sh",
        "echo x; dd if=y",
    ] {
        let subject = Subject {
            text: command,
            ..Subject::default()
        };
        check(Preset::Blacklist, &settings, subject, "blacklist", text);
    }
    for command in ["git push", "xyz $x", "rm -r build", ""] {
        let subject = Subject {
            text: command,
            ..Subject::default()
        };
        check(Preset::Blacklist, &settings, subject, "auto", "");
    }
    let own = Settings {
        blacklist: Some(Blacklist::from_json(r#"{"commandBlacklist": ["Deploy Now"]}"#).unwrap()),
        ..Settings::default()
    };
    let subject = |text| Subject {
        text,
        ..Subject::default()
    };
    check(Preset::Blacklist, &own, subject("sudo ls"), "auto", "");
    check(
        Preset::Blacklist,
        &own,
        subject("deploy   NOW"),
        "blacklist",
        text,
    );
    // A list that a person saved holds with every preset.
    check(Preset::Bash, &own, subject("deploy now"), "blacklist", text);
    check(Preset::Bash, &settings, subject("sudo ls"), "auto", "");
    let judgement = decide(Preset::Blacklist, &own, &subject("deploy now"));
    assert_eq!(
        (
            judgement.reasons[0].rule.as_str(),
            judgement.reasons[0].layer.as_str()
        ),
        ("Deploy Now", "blacklist")
    );
}

#[test]
fn multi_user_for_users() {
    let settings = Settings {
        user_allowed_commands: ["ls", "cat", "it's"].map(str::to_owned).to_vec(),
        ..Settings::default()
    };
    let dangerous = "Blocked: Command contains disallowed patterns for non-admin users.";
    let run = |text| Subject {
        text,
        who: USER,
        ..Subject::default()
    };
    let open = |text| Subject {
        terminal: true,
        ..run(text)
    };
    for (subject, code, text) in [
        (run("ls -la"), "auto", ""),
        (run("cat x | head"), "auto", ""),
        (run("  "), "empty_command", "Empty command."),
        (open(""), "empty_command", "Missing 'command' for open."),
        (run("ls; curl x"), "dangerous_command", dangerous),
        (run("cat Eval"), "dangerous_command", dangerous),
        (run("python x -c 'y'"), "dangerous_command", dangerous),
        (
            run("ls 'a"),
            "No closing quotation",
            "Invalid command syntax: No closing quotation",
        ),
        (
            run("ls a\\"),
            "No escaped character",
            "Invalid command syntax: No escaped character",
        ),
        (
            run("rm x"),
            "not_allowed",
            "Command 'rm' is not in the allowed list for non-admin users. Allowed: ['ls', 'cat', \"it's\"].",
        ),
        (
            open("rm x"),
            "not_allowed",
            "Command 'rm' not allowed for non-admin users. Allowed: ['ls', 'cat', \"it's\"].",
        ),
        (
            run("'rm' x"),
            "not_allowed",
            "Command 'rm' is not in the allowed list for non-admin users. Allowed: ['ls', 'cat', \"it's\"].",
        ),
        (
            run("''"),
            "not_allowed",
            "Command '' is not in the allowed list for non-admin users. Allowed: ['ls', 'cat', \"it's\"].",
        ),
    ] {
        check(Preset::MultiUser, &settings, subject, code, text);
    }
    // One command has a shell; a terminal that stays has none.
    assert_eq!(
        decide(Preset::MultiUser, &settings, &run("ls 'a b'")).argv(),
        None
    );
    let judgement = decide(Preset::MultiUser, &settings, &open("ls 'a b'"));
    assert_eq!(judgement.argv().unwrap(), ["ls", "a b"]);
}

#[test]
fn multi_user_for_administrators() {
    let open = Settings::default();
    let closed = Settings {
        allowed_commands: " ls, git ,".into(),
        ..Settings::default()
    };
    let admin = Who {
        role: Some("admin"),
        ..USER
    };
    for who in [Who::default(), admin] {
        let run = |text| Subject {
            text,
            who,
            ..Subject::default()
        };
        check(Preset::MultiUser, &open, run("curl x | cat"), "auto", "");
        check(Preset::MultiUser, &closed, run("ls"), "auto", "");
        check(
            Preset::MultiUser,
            &closed,
            run("curl x"),
            "not_allowed",
            "Command 'curl' is not in the allowed list. Allowed: ['ls', 'git']. Set TERMINAL_ALLOWED_COMMANDS=* to allow all.",
        );
        check(
            Preset::MultiUser,
            &closed,
            Subject {
                terminal: true,
                ..run("curl x")
            },
            "not_allowed",
            "Command 'curl' not allowed. Allowed: ['ls', 'git'].",
        );
        check(
            Preset::MultiUser,
            &closed,
            run("ls \"x"),
            "No closing quotation",
            "Invalid command syntax: No closing quotation",
        );
        check(Preset::MultiUser, &open, run("ls \"x"), "auto", "");
        check(
            Preset::MultiUser,
            &open,
            run(" "),
            "empty_command",
            "Empty command.",
        );
        assert_eq!(decide(Preset::MultiUser, &open, &run("ls")).argv(), None);
        let mut judgement = decide(Preset::MultiUser, &closed, &run("ls ; rm"));
        match judgement.settle() {
            crate::Settled::Allowed(permit) => {
                assert_eq!(permit.argv().unwrap(), ["ls", ";", "rm"])
            }
            other => panic!("{other:?}"),
        }
    }
    // A user without a role is no administrator.
    let nobody = Who { role: None, ..USER };
    let subject = Subject {
        text: "sudo ls",
        who: nobody,
        ..Subject::default()
    };
    assert_eq!(
        decide(Preset::MultiUser, &open, &subject).verdict,
        Verdict::Reject
    );
}

#[test]
fn agents_preset() {
    let settings = Settings::default();
    for (text, verdict) in [
        ("sudo ls", Verdict::Reject),
        ("ls && kill 1", Verdict::Reject),
        ("ls | apt-get x", Verdict::Reject),
        ("/sbin/reboot", Verdict::Reject),
        ("echo sudo", Verdict::Auto),
        ("curl x", Verdict::Auto),
        ("xyz", Verdict::Auto),
    ] {
        let subject = Subject {
            text,
            ..Subject::default()
        };
        assert_eq!(
            decide(Preset::Agents, &settings, &subject).verdict,
            verdict,
            "{text}"
        );
    }
}

const DEFAULTS: &str = "
# config/defaults.yaml
tools:
  # Shell tools - command execution (src/tools/shell/)
  shell:
    - run_command
  web: [search]
llm: { model: x }
";

const WRITER: &str = "
tools:
  shell:
    - run_command
shell:
  # Only these commands are allowed (if set, acts as whitelist)
  allow:
    - wc
    - cat
    - ls
  deny: []
  default_timeout: 300
";

#[test]
fn agents_have_lists_of_their_own() {
    let agents = agents::read(
        DEFAULTS,
        &[
            ("writer", WRITER),
            (
                "coder",
                "tools:\n  coding: [run_command]\nshell:\n  deny: [git]\n",
            ),
            ("talker", "tools:\n  shell: []\n"),
            ("empty", "# nothing\n"),
        ],
    )
    .expect("valid");
    for (agent, text, expected) in [
        ("writer", "ls | wc", ""),
        (
            "writer",
            "pandoc x",
            "Command not allowed: 'pandoc'. Allowed: cat, ls, wc",
        ),
        (
            "writer",
            "ls && git status",
            "Command not allowed: 'git'. Allowed: cat, ls, wc",
        ),
        (
            "writer",
            "./ls",
            "Command not allowed: './ls'. Allowed: cat, ls, wc",
        ),
        (
            "writer",
            "",
            "Command not allowed: ''. Allowed: cat, ls, wc",
        ),
        (
            "writer",
            "sudo ls",
            "`sudo` is on the list of blocked commands",
        ),
        ("coder", "xyz", ""),
        (
            "coder",
            "ls && git status",
            "`git status` is denied to this agent",
        ),
        (
            "coder",
            "kill 1",
            "`kill` is on the list of blocked commands",
        ),
        (
            "talker",
            "ls",
            "Agent 'talker' may not run commands: run_command is not among its tools.",
        ),
        ("empty", "xyz", ""),
        ("somebody", "xyz", ""),
    ] {
        let mut rules = Rules::base(&[Preset::Agents], &Settings::default());
        rules.add(agents.layer(agent));
        let judgement = rules.decide(
            understand(text),
            &Subject {
                text,
                ..Subject::default()
            },
        );
        let said = judgement
            .reasons
            .first()
            .map_or("", |reason| reason.text.as_str());
        assert_eq!(said, expected, "{agent}: {text}");
        assert_eq!(judgement.verdict == Verdict::Auto, expected.is_empty());
    }
    let seconds = |agent| {
        agents
            .get(agent)
            .default_timeout
            .map(|timeout| timeout.as_secs())
    };
    assert_eq!((seconds("writer"), seconds("coder")), (Some(300), None));
    assert_eq!(
        agents.names().collect::<Vec<_>>(),
        ["coder", "empty", "talker", "writer"]
    );
}

#[test]
fn agents_inherit_the_defaults() {
    let defaults = "shell: { allow: [ls], deny: [cat], default_timeout: 60 }\ntools: { coding: [run_command] }";
    let agents = agents::read(
        defaults,
        &[
            ("a", "shell: { deny: [rm] }"),
            ("b", "shell: { allow: [git], default_timeout: 5 }\nname: b"),
            ("c", "tools: { web: [search] }"),
        ],
    )
    .expect("valid");
    assert_eq!(agents.get("a").deny, ["cat", "rm"]);
    assert_eq!(
        agents.get("a").allow.as_deref(),
        Some(&["ls".to_owned()][..])
    );
    assert_eq!(
        agents.get("b").allow.as_deref(),
        Some(&["git".to_owned()][..])
    );
    assert_eq!(agents.get("b").default_timeout.unwrap().as_secs(), 5);
    assert!(["a", "b", "c"].iter().all(|name| agents.get(name).may_run));
    assert!(!agents::read("", &[]).unwrap().get("x").may_run);
}

#[test]
fn wrong_agent_files_are_refused_with_their_lines() {
    for (text, line, column) in [
        ("tools:\n  shell: run_command\n", 2, 10),
        ("shell:\n  allow:\n    - ls\n    - [a]\n", 4, 7),
        ("shell:\n  default_timeout: soon\n", 2, 20),
        ("shell:\n  default_timeout: -1\n", 2, 20),
        ("shell:\n  allow: [a\nx: y\n", 3, 2),
        ("tools: 3\n", 1, 8),
    ] {
        let errors = agents::read(DEFAULTS, &[("x", text), ("y", "shell: 1")]).expect_err(text);
        assert_eq!(errors.len(), 2, "{errors:?}");
        let error = &errors[0];
        assert_eq!(
            (error.file.as_str(), error.line, error.column),
            ("x/config.yaml", line, column),
            "{text}{error}"
        );
        assert!(!error.message.contains('\n') && !error.message.is_empty());
    }
}

#[test]
fn approval() {
    for (text, verdict) in [
        ("ls", Verdict::Auto),
        ("cat x | head", Verdict::Auto),
        ("cat x > y", Verdict::Ask),
        ("cat $x", Verdict::Auto),
        ("mkdir $x", Verdict::Ask),
        ("git status", Verdict::Ask),
        ("rm x", Verdict::Ask),
        ("xyz", Verdict::Ask),
        ("sudo ls", Verdict::Reject),
        ("curl https://x.y/z | sh", Verdict::Reject),
        ("apt install x", Verdict::Reject),
        ("rm -rf /", Verdict::Reject),
    ] {
        let subject = Subject {
            text,
            ..Subject::default()
        };
        assert_eq!(
            decide(Preset::Approval, &Settings::default(), &subject).verdict,
            verdict,
            "{text}"
        );
    }
}

#[test]
fn bash() {
    let settings = Settings::default();
    let run = |text| Subject {
        text,
        ..Subject::default()
    };
    for (command, text) in [
        ("rm -rf /", "Command contains blocked pattern: rm -rf /"),
        ("mkfs.ext4 x", "Command contains blocked pattern: mkfs"),
        (
            "dd if=/dev/zero of=x",
            "Command contains blocked pattern: dd if=/dev/zero",
        ),
        (
            ":(){:|:&};:",
            "Command contains blocked pattern: :(){:|:&};:",
        ),
        ("rm  -rf  /", "Recursive delete from root"),
        ("echo x >/dev/sda", "Writing to block device"),
        ("chmod -R 777 .", "Insecure permissions"),
        ("dd if=x of=/dev/y", "Writing to device"),
        ("echo x > /etc/passwd", "Writing to system configuration"),
        ("curl x | bash", "Pipe to shell"),
    ] {
        check(Preset::Bash, &settings, run(command), "blocked", text);
    }
    for command in ["npm run build", "sudo ls", "RM -RF /", "rm -rf build"] {
        check(Preset::Bash, &settings, run(command), "auto", "");
    }
    let own = Settings {
        blocked_commands: Some(vec!["npm publish".into()]),
        require_description: true,
        ..Settings::default()
    };
    let required = "A description of what the command does is required.";
    check(
        Preset::Bash,
        &own,
        run("ls"),
        "description_required",
        required,
    );
    let said = |text| Subject {
        description: Some("x"),
        ..run(text)
    };
    check(Preset::Bash, &own, said("ls"), "auto", "");
    check(
        Preset::Bash,
        &own,
        said("npm publish"),
        "blocked",
        "Command contains blocked pattern: npm publish",
    );
    check(
        Preset::Bash,
        &own,
        said("rm -rf /"),
        "blocked",
        "Recursive delete from root",
    );
}

#[test]
fn names_of_presets_can_be_read() {
    for preset in Preset::ALL {
        let name = serde_json::to_value(preset).unwrap();
        assert_eq!(name, preset.name());
        assert_eq!(serde_json::from_value::<Preset>(name).unwrap(), preset);
    }
    assert_eq!(
        serde_json::from_str::<Preset>("\"weighlock\"").unwrap(),
        Preset::Strict
    );
}
