//! A stand-in for `understand` in tests: it splits at spaces and knows a few
//! programs.

use crate::{
    Access, Effect, Effects, Facts, Given, Link, Part, PartKind, Path, Place, PlaceKind,
    example_place,
};
use weighlock_shell::Span;

/// Options with a name of their own: all spellings, and whether they take a
/// value.
const OPTIONS: [(&[&str], bool); 8] = [
    (&["-r", "-R", "--recursive"], false),
    (&["-f", "--force"], false),
    (&["-C"], true),
    (&["-m", "--message"], true),
    (&["--output"], true),
    (&["-n", "--lines"], true),
    (&["-s", "--short"], false),
    (&["-i"], false),
];

/// Says what a text does, in the place of examples.
pub(crate) fn understand(text: &str) -> Facts {
    understand_in(text, &example_place())
}

pub(crate) fn understand_in(text: &str, place: &Place) -> Facts {
    let mut parts: Vec<Part> = vec![];
    let mut words: Vec<&str> = vec![];
    let mut link = Link::Then;
    let mut tokens = text.split_whitespace();
    loop {
        let token = tokens.next();
        match token {
            None | Some("&&" | "||" | "|" | ";") => {
                command(&words, link, place, &mut parts);
                words.clear();
                link = match token {
                    Some("&&") => Link::And,
                    Some("||") => Link::Or,
                    Some("|") => Link::Pipe,
                    Some(_) => Link::Then,
                    None => break,
                };
            }
            Some(">" | ">>") => parts.push(redirect(tokens.next().unwrap_or(""), place)),
            Some(word) if word.starts_with("2>") => parts.push(redirect(&word[2..], place)),
            Some(word) => words.push(word),
        }
    }
    Facts {
        parts,
        needs_bash: false,
    }
}

fn redirect(target: &str, place: &Place) -> Part {
    let path = path(target, Access::Write, false, place);
    let mut effects = Effects::READ;
    if path.place != PlaceKind::Sink {
        effects.add(Effect::Write);
    }
    Part {
        kind: PartKind::Redirection,
        effects,
        paths: vec![path],
        ..blank()
    }
}

fn command(words: &[&str], link: Link, place: &Place, parts: &mut Vec<Part>) {
    let Some((first, rest)) = words.split_first() else {
        return;
    };
    if let Some((name, _)) = first.split_once('=') {
        parts.push(Part {
            kind: PartKind::Assignment,
            program: String::new(),
            does: name.into(),
            ..blank()
        });
        return command(rest, link, place, parts);
    }
    let known = |word: &str| (!word.contains('$')).then(|| word.trim_matches('\'').to_owned());
    let program = known(first)
        .map(|name| name.rsplit('/').next().unwrap_or("").to_owned())
        .unwrap_or_default();
    let mut part = Part {
        kind: PartKind::Command,
        link,
        argv: words.iter().map(|word| known(word)).collect(),
        program: program.clone(),
        ..blank()
    };
    if !matches!(program.as_str(), "mytool" | "mytool-x" | "mytool-1" | "") {
        part.options = options(rest);
    }
    let plain: Vec<&str> = operands(rest);
    let deep = part.options.iter().any(|given| given.name == "--recursive");
    let mut touch = |effect, access| {
        if !plain.is_empty() {
            part.effects.add(effect);
        }
        part.paths
            .extend(plain.iter().map(|word| path(word, access, deep, place)));
    };
    match program.as_str() {
        "ls" | "cat" | "head" | "tail" | "stat" | "rg" => touch(Effect::Read, Access::Read),
        "pwd" | "echo" | "printf" | "wc" | "grep" | "true" => {}
        "rm" => {
            touch(Effect::Delete, Access::Delete);
            if deep && plain.contains(&"/") {
                part.tags.push("root-delete");
            }
        }
        "touch" | "mkdir" | "tee" => touch(Effect::Write, Access::Write),
        "cp" | "mv" => touch(Effect::Write, Access::Write),
        "chmod" => {
            touch(Effect::Write, Access::Write);
            if deep && plain.contains(&"/") {
                part.tags.push("root-change");
            }
        }
        "git" => git(&mut part, &plain),
        "curl" => {
            part.effects.add(Effect::Network);
            part.hosts = plain
                .iter()
                .map(|url| {
                    url.trim_start_matches("https://")
                        .split('/')
                        .next()
                        .unwrap_or("")
                        .to_owned()
                })
                .collect();
        }
        "sh" | "bash" => {
            part.effects.add(Effect::Execute);
            if link == Link::Pipe && parts.last().is_some_and(|part| part.program == "curl") {
                part.tags.push("pipe-to-shell");
            }
        }
        "sudo" => {
            part.effects.add(Effect::Privilege);
            parts.push(part);
            return command(rest, link, place, parts);
        }
        "apt" => part.tags.push("install"),
        "reboot" => part.tags.push("power"),
        name if name.starts_with("mkfs") => part.tags.push("disk"),
        "" => part.unknown = Some("the program is only known when it runs".into()),
        name => part.unknown = Some(format!("`{name}` is an unknown program")),
    }
    if part.unknown.is_none() && part.argv.iter().any(Option::is_none) {
        part.unknown = Some("an argument is only known when it runs".into());
    }
    parts.push(part);
}

fn git(part: &mut Part, plain: &[&str]) {
    part.subcommand = plain
        .first()
        .filter(|word| !word.contains('$'))
        .map(|word| (*word).to_owned())
        .into_iter()
        .collect();
    match plain.first().copied() {
        Some("status" | "log" | "diff" | "show") => {
            if part.options.iter().any(|given| given.name == "--output") {
                part.effects.add(Effect::Write);
            }
        }
        Some("push" | "fetch") => part.effects.add(Effect::Network),
        Some("commit") => part.effects.add(Effect::Write),
        Some("branch") if plain.len() > 1 => part.effects.add(Effect::Write),
        Some("branch") => {}
        Some(_) => part.unknown = Some("an unknown subcommand".into()),
        None => part.unknown = Some("no subcommand".into()),
    }
}

fn options(words: &[&str]) -> Vec<Given> {
    let mut given = vec![];
    for (n, word) in words.iter().enumerate().filter(|(_, word)| is_option(word)) {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*word, None),
        };
        let names: Vec<String> = match name.starts_with("--") {
            true => vec![name.to_owned()],
            false => name[1..]
                .chars()
                .map(|letter| format!("-{letter}"))
                .collect(),
        };
        for name in names {
            let (names, takes) = all_names(&name);
            let next = words.get(n + 1).copied();
            given.push(Given {
                name: names.last().copied().unwrap_or(""),
                names,
                value: if takes {
                    attached.or(next).map(str::to_owned)
                } else {
                    None
                },
                gloss: "",
            });
        }
    }
    given
}

fn all_names(name: &str) -> (&'static [&'static str], bool) {
    match OPTIONS.iter().find(|(names, _)| names.contains(&name)) {
        Some((names, takes)) => (names, *takes),
        None => {
            let name: &'static str = name.to_owned().leak();
            (Box::leak(vec![name].into_boxed_slice()), false)
        }
    }
}

fn operands<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let mut plain = vec![];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !is_option(word) {
            plain.push(word.trim_matches('\''));
        } else if !word.starts_with("--") && all_names(&format!("-{}", &word[word.len() - 1..])).1 {
            words.next();
        }
    }
    plain
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn path(written: &str, access: Access, deep: bool, place: &Place) -> Path {
    let full = match written.strip_prefix("~/") {
        Some(rest) => format!("{}/{rest}", place.home),
        None if written.starts_with('/') => written.to_owned(),
        None => format!("{}/{}", place.cwd, written.trim_start_matches("./")),
    };
    let full = match full.len() {
        1 => full,
        _ => full.trim_end_matches('/').to_owned(),
    };
    Path {
        place: match full.as_str() {
            "/dev/null" => PlaceKind::Sink,
            path if path.starts_with("/dev/") => PlaceKind::Device,
            path if path.contains("/.ssh") => PlaceKind::Secret,
            path if path.starts_with(&place.root) => PlaceKind::Sandbox,
            "/" => PlaceKind::Protected,
            _ => PlaceKind::Ordinary,
        },
        path: full,
        written: written.to_owned(),
        access,
        deep,
    }
}

/// A part that is nothing yet and only reads.
pub(crate) fn blank() -> Part {
    Part {
        kind: PartKind::Command,
        span: Span::default(),
        link: Link::Then,
        depth: 0,
        possible: false,
        program: String::new(),
        subcommand: vec![],
        argv: vec![],
        options: vec![],
        effects: Effects::READ,
        tags: vec![],
        paths: vec![],
        hosts: vec![],
        does: String::new(),
        unknown: None,
    }
}
