//! Knowledge as it is written in `knowledge/*.toml`, and what it means. A
//! mistake in one of the files is a compiler error.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use crate::model::{Arity, Obeys, Operand, OperandRole, OptionSyntax};

type Program = crate::model::Program<String>;
type OptionSpec = crate::model::OptionSpec<String>;
type OptionMode = crate::model::OptionMode<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: Vec<RawProgram>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProgram {
    names: Vec<String>,
    does: String,
    #[serde(default)]
    effects: String,
    #[serde(default)]
    tags: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    operands: Vec<String>,
    style: Option<String>,
    #[serde(default)]
    mode: BTreeMap<String, RawMode>,
    #[serde(default)]
    sub: Vec<RawProgram>,
    #[serde(default)]
    global: bool,
    bare: Option<String>,
    #[serde(default)]
    runs: Vec<String>,
    help: Option<String>,
    #[serde(default)]
    obeys: Vec<Obeys>,
    #[serde(default)]
    asks: Vec<String>,
    #[serde(default)]
    code: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMode {
    does: Option<String>,
    effects: Option<String>,
    operands: Option<Vec<String>>,
    #[serde(default)]
    tags: String,
}

const EFFECTS: [&str; 10] = [
    "read",
    "write",
    "delete",
    "execute",
    "network",
    "privilege",
    "device",
    "secret",
    "process",
    "shell",
];

/// Reads one file; each error names a program and what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Vec<Program>, Vec<String>> {
    let file: File = toml::from_str(text).map_err(|error| vec![error.to_string()])?;
    let (programs, errors): (Vec<_>, Vec<_>) = file
        .program
        .into_iter()
        .map(program)
        .partition(Result::is_ok);
    match errors.is_empty() {
        true => Ok(programs.into_iter().flatten().map(with_places).collect()),
        false => Err(errors.into_iter().filter_map(Result::err).collect()),
    }
}

/// Adds the places of commands that follow from its operands, and from those
/// of its subcommands.
fn with_places(mut program: Program) -> Program {
    let mut found = vec![];
    places(&program, "", &mut found);
    program.runs.extend(found);
    program
}

fn places(program: &Program, before: &str, found: &mut Vec<String>) {
    let mut all = vec![program.operands.as_slice()];
    all.extend(
        program
            .modes
            .iter()
            .filter_map(|mode| mode.operands.as_deref()),
    );
    for operands in all {
        if let Some(at) = operands
            .iter()
            .position(|one| one.role == OperandRole::Argv)
        {
            let first = operands[..at].iter();
            let needed = first.filter(|one| one.count == Arity::One).count();
            found.push(format!("{before}{}", "* ".repeat(needed)));
        }
    }
    for sub in &program.subs {
        places(sub, &format!("{before}{} ", sub.names.join("|")), found);
    }
}

fn program(raw: RawProgram) -> Result<Program, String> {
    let name = raw.names.first().cloned().ok_or("a program without name")?;
    understand(raw).map_err(|error| format!("{name}: {error}"))
}

fn understand(raw: RawProgram) -> Result<Program, String> {
    let operands = operands(&raw.operands)?;
    let style = match raw.style.as_deref() {
        Some("gnu") => OptionSyntax::Gnu,
        None if operands
            .iter()
            .any(|operand| operand.role == OperandRole::Argv) =>
        {
            OptionSyntax::Posix
        }
        None => OptionSyntax::Gnu,
        Some("posix") => OptionSyntax::Posix,
        Some("exact") => OptionSyntax::Exact,
        Some("find") => OptionSyntax::Find,
        Some("keyed") => OptionSyntax::Keyed,
        Some("none") => OptionSyntax::None,
        Some(other) => return Err(format!("there is no style {other:?}")),
    };
    let mut options = vec![];
    for text in &raw.options {
        options.push(choice(text).map_err(|error| format!("option {text:?}: {error}"))?);
    }
    let modes: Vec<OptionMode> = raw
        .mode
        .into_iter()
        .map(|(name, raw)| mode(name, raw))
        .collect::<Result<_, _>>()?;
    for option in &options {
        if let Some(name) = &option.mode
            && !modes.iter().any(|mode| mode.name == *name)
        {
            return Err(format!("there is no mode {name:?}"));
        }
    }
    let mut seen = vec![];
    for name in options.iter().flat_map(|option| &option.names) {
        if seen.contains(&name) {
            return Err(format!("option {name} is there twice"));
        }
        seen.push(name);
    }
    if raw.does.is_empty() || raw.does.ends_with('.') || raw.does.starts_with(char::is_uppercase) {
        return Err("`does` is a sentence in lower case without a full stop".into());
    }
    if { raw.sub.iter() }.any(|sub| !sub.runs.is_empty() || !sub.asks.is_empty()) {
        return Err("`runs` and `asks` are for the program, and name its subcommands".into());
    }
    if { raw.code.iter() }.any(|word| word.trim_matches('*').len() + 1 != word.len()) {
        return Err("a word of `code` has one `*`, at its start or its end".into());
    }
    let subs: Vec<Program> = raw.sub.into_iter().map(program).collect::<Result<_, _>>()?;
    let mut program = Program {
        effects: effects(raw.effects.split_whitespace())?,
        bare: raw
            .bare
            .map(|text| effects(text.split_whitespace()))
            .transpose()?,
        help: raw
            .help
            .map(|text| effects(text.split_whitespace()))
            .transpose()?,
        obeys: raw.obeys,
        names: raw.names,
        does: raw.does,
        tags: words(&raw.tags),
        options,
        operands,
        style,
        modes,
        subs,
        global: raw.global,
        harmless: false,
        runs: raw.runs,
        asks: raw.asks,
        code: raw.code,
    };
    program.harmless = harmless(&program);
    Ok(program)
}

fn harmless(program: &Program) -> bool {
    let mild = |operands: &[Operand]| {
        operands
            .iter()
            .all(|operand| is_mild(operand.role) && operand.effects <= 1)
    };
    program.subs.is_empty()
        && program.obeys.is_empty()
        && program.code.is_empty()
        && !program.tags.iter().any(|tag| tag == "response")
        && program.effects <= 1
        && mild(&program.operands)
        && program
            .options
            .iter()
            .all(|option| option.effects <= 1 && option.values.iter().all(|role| is_mild(*role)))
        && program
            .modes
            .iter()
            .all(|mode| mode.effects.unwrap_or(0) <= 1 && mode.operands.as_deref().is_none_or(mild))
}

/// Returns whether a word in this role can only be read or ignored.
fn is_mild(role: OperandRole) -> bool {
    matches!(
        role,
        OperandRole::Text
            | OperandRole::Number
            | OperandRole::Revision
            | OperandRole::File
            | OperandRole::List
            | OperandRole::Directory
            | OperandRole::Glob
            | OperandRole::Any
    )
}

fn mode(name: String, raw: RawMode) -> Result<OptionMode, String> {
    Ok(OptionMode {
        name,
        does: raw.does,
        effects: raw
            .effects
            .map(|text| effects(text.split_whitespace()))
            .transpose()?,
        operands: raw.operands.map(|list| operands(&list)).transpose()?,
        tags: words(&raw.tags),
    })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn effects<'a>(names: impl Iterator<Item = &'a str>) -> Result<u16, String> {
    let mut set = 0;
    for name in names {
        let bit = EFFECTS
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| format!("there is no effect {name:?}"))?;
        set |= 1 << bit;
    }
    Ok(set)
}

fn role(name: &str) -> Result<OperandRole, String> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    OperandRole::deserialize(name).map_err(|_| "there is no such role".to_owned())
}

fn operands(list: &[String]) -> Result<Vec<Operand>, String> {
    let list: Vec<Operand> = list
        .iter()
        .map(|text| operand(text).map_err(|error| format!("operand {text:?}: {error}")))
        .collect::<Result<_, _>>()?;
    let many = list.iter().filter(|operand| operand.count == Arity::Any);
    if many.count() > 1 && !list.iter().any(|operand| operand.role == OperandRole::Env) {
        return Err("only one operand can be any number of words".into());
    }
    Ok(list)
}

fn operand(text: &str) -> Result<Operand, String> {
    let mut words = text.split_whitespace();
    let first = words.next().ok_or("an empty operand")?;
    let (name, count) = match (first.strip_suffix("..."), first.strip_suffix('?')) {
        (Some(name), _) => (name, Arity::Any),
        (_, Some(name)) => (name, Arity::Maybe),
        _ => (first, Arity::One),
    };
    let mut marks = vec![];
    for word in words {
        marks.push(word.strip_prefix('!').ok_or("only effects can follow")?);
    }
    Ok(Operand {
        role: role(name)?,
        count,
        effects: effects(marks.into_iter())?,
    })
}

fn choice(text: &str) -> Result<OptionSpec, String> {
    let (spec, gloss) = match text.split_once(" : ") {
        Some((spec, gloss)) => (spec, gloss.trim().to_owned()),
        None => (text, String::new()),
    };
    let mut words = spec.split_whitespace();
    let mut option = OptionSpec {
        names: names(words.next().ok_or("it has no name")?)?,
        values: vec![],
        attached: false,
        effects: 0,
        tags: vec![],
        mode: None,
        gloss,
    };
    for word in words {
        if let Some(effect) = word.strip_prefix('!') {
            option.effects |= effects([effect].into_iter())?;
        } else if let Some(tag) = word.strip_prefix('#') {
            option.tags.push(tag.into());
        } else if let Some(mode) = word.strip_prefix('@') {
            option.mode = Some(mode.into());
        } else if let Some(name) = word.strip_prefix('[').and_then(|w| w.strip_suffix(']')) {
            option.attached = true;
            option.values.push(role(name)?);
        } else {
            option.values.push(role(word)?);
        }
    }
    if option.attached && option.values.len() > 1 {
        return Err("only one value can be attached".into());
    }
    Ok(option)
}

fn names(text: &str) -> Result<Vec<String>, String> {
    let mut names = vec![];
    for name in text.split(',') {
        if let Some(rest) = name.strip_prefix("--[no-]") {
            names.push(format!("--{rest}"));
            names.push(format!("--no-{rest}"));
        } else if name.is_empty() || name.contains(['[', ']']) {
            return Err(format!("{name:?} is no name of an option"));
        } else {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
