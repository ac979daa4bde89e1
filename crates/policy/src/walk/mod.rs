//! Walks through a script and finds out what it does.
//!
//! One walk for two purposes. What it can prove, it says: the program, its
//! words, its effects. Where something is only known when it runs, it says
//! that too, and then tries what it could be: such *possible* parts count for
//! refusing and never for allowing.

mod arithmetic;
mod assign;
mod budget;
mod builtin;
mod code;
mod count;
mod feed;
mod fields;
mod find;
mod git;
mod known;
mod redirect;
mod rough;
mod run;
mod scan;
mod shells;
mod word;
mod xargs;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use weighlock_shell::{
    Command, CommandKind, Dialect, Joint, List, Pipeline, Script, Span, TOO_COMPLEX, Word, parse,
};

use crate::argument::Arg;
use crate::effect::{Effect, Effects};
use crate::part::{Facts, Link, Part, PartKind, Place};
use crate::variables;
use budget::{Budget, COMMAND, PART};
use feed::StdinFeed;

/// How deep the walk goes, over all texts in texts; the parser's own bound
/// holds for each.
const MAX_LEVEL: usize = 120;

/// Bytes of a part's own text that are kept. What is inside of others is in the
/// text of each of them, and whole copies would be as long as their square.
const MAX_OWN_TEXT: usize = 1000;

/// How deep texts may be nested in texts (`sh -c "sh -c …"`).
const MAX_NESTING: usize = 24;

/// What reads a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reader {
    /// `sh` where any shell reads it alike, and bash otherwise.
    #[default]
    Either,
    /// `/bin/sh`, whichever shell that is.
    Sh,
    /// bash.
    Bash,
    /// Windows PowerShell.
    PowerShell,
    /// `cmd.exe`.
    Cmd,
}

/// Finds out what a text does when it runs somewhere with these variables
/// added to the environment.
pub fn understand(text: &str, reader: Reader, env: &[(String, String)], place: &Place) -> Facts {
    let dialect = match reader {
        Reader::Either | Reader::Sh => Dialect::Posix,
        Reader::Bash => Dialect::Bash,
        Reader::PowerShell => Dialect::PowerShell,
        Reader::Cmd => Dialect::Cmd,
    };
    let script = parse(text, dialect);
    let mut walk = Walk::new(text, place);
    walk.alone = is_alone(&script);
    walk.environment(env);
    walk.script(&script, text);
    if walk.needs_bash && reader == Reader::Sh {
        let span = script.bashisms.first().copied().unwrap_or_default();
        walk.unknown(span, "it means something else to `sh` than to bash".into());
    }
    Facts {
        parts: walk.parts,
        needs_bash: walk.needs_bash,
    }
}

/// Returns whether a script is one simple command, with nothing in it that runs
/// another.
fn is_alone(script: &Script) -> bool {
    let [item] = script.body.items.as_slice() else {
        return false;
    };
    let [stage] = item.pipeline.stages.as_slice() else {
        return false;
    };
    matches!(&stage.kind, CommandKind::Simple(simple) if simple.words.iter().all(|word| word.literal().is_some()))
}

struct Walk<'p> {
    text: &'p str,
    place: &'p Place,
    parts: Vec<Part>,
    variables: HashMap<String, Variable>,
    functions: HashMap<String, Function>,
    /// Names that are a function's somewhere, perhaps only later.
    redefined: HashSet<String>,
    /// What `set --` said last.
    set_args: Option<Rc<[Arg]>>,
    /// Text that is run could set any variable.
    wild: bool,
    /// Files that something from the network was written to.
    downloads: HashSet<String>,
    budget: Budget,
    nesting: usize,
    level: usize,
    /// Another `sh` would read it differently.
    needs_bash: bool,
    /// It is for Windows.
    windows: bool,
    /// The text that comes next is read by such a `sh`.
    posix: bool,
    /// The whole text is one simple command.
    alone: bool,
    /// What the paths are like that the last `find` prints.
    found: Option<Vec<String>>,
    state: WalkState,
}

/// What changes on the way and is put back after a subshell.
#[derive(Clone)]
struct WalkState {
    /// The working directory, as far as it is known.
    cwd: Option<String>,
    /// `$1` and so on, where they are known.
    positional: Option<Rc<[Arg]>>,
    /// What standard input brings.
    stdin: StdinFeed,
    /// What comes now is sure to happen, in this shell, once.
    certain: bool,
    possible: bool,
    depth: usize,
    link: Link,
    /// Everything here comes out of this place of the text.
    within: Option<Span>,
    /// The text that is read, where it is not the whole one.
    inner: Option<Rc<str>>,
    /// The words of the command that another command was given to run.
    words: Option<Rc<str>>,
    /// Functions being tried, innermost last.
    calls: Vec<String>,
    /// All places where a command may begin among these words are tried
    /// already.
    placed: bool,
    /// Variables were taken away, perhaps those that keep programs from running
    /// what a project names.
    stripped: bool,
}

/// A function that was defined.
#[derive(Clone)]
struct Function {
    body: Rc<Command>,
    /// The text that it was defined in, as in [`WalkState`].
    inner: Option<Rc<str>>,
    /// It is there for sure, in this shell, from here on.
    certain: bool,
}

/// What is known about a variable.
#[derive(Debug, Clone, Default)]
struct Variable {
    /// At how many places the text sets it.
    sites: usize,
    /// What it is, once the only place that sets it was passed.
    value: Option<Arg>,
    /// Texts that it may be.
    guesses: Vec<String>,
    /// Only numbers are ever put into it.
    number: bool,
    /// What a network brought is in it.
    download: bool,
}

impl<'p> Walk<'p> {
    fn new(text: &'p str, place: &'p Place) -> Self {
        Self {
            text,
            place,
            parts: vec![],
            variables: HashMap::new(),
            functions: HashMap::new(),
            redefined: HashSet::new(),
            set_args: None,
            wild: false,
            downloads: HashSet::new(),
            budget: Budget::new(),
            nesting: 0,
            level: 0,
            needs_bash: false,
            posix: false,
            windows: false,
            alone: false,
            found: None,
            state: WalkState {
                cwd: Some(place.cwd.clone()),
                positional: None,
                stdin: StdinFeed::default(),
                certain: true,
                possible: false,
                depth: 0,
                link: Link::Then,
                within: None,
                inner: None,
                words: None,
                calls: vec![],
                placed: false,
                stripped: false,
            },
        }
    }

    /// Takes the variables that the request sets.
    fn environment(&mut self, env: &[(String, String)]) {
        for (name, value) in env {
            self.variables.entry(name.clone()).or_default().sites += 2;
            self.exported(
                name,
                &Arg::known(value.clone(), Span::default()),
                Span::default(),
            );
        }
    }

    fn script(&mut self, script: &Script, text: &str) {
        let before = self.is_too_complex();
        self.redefined.extend(scan::functions(&script.body));
        for (name, number) in scan::assignments(&script.body, &self.redefined) {
            let variable = self.variables.entry(name).or_default();
            variable.number = number && (variable.sites == 0 || variable.number);
            variable.sites += 1;
        }
        self.wild |= scan::is_wild(&script.body);
        if scan::shifts(&script.body) {
            self.set_args = self.state.positional.take().or(self.set_args.take());
        }
        if let Some((at, odd)) = text.char_indices().find(|(_, c)| is_hidden(*c)) {
            let span = Span {
                start: at,
                end: at + odd.len_utf8(),
            };
            self.unknown(
                span,
                format!("U+{:04X} is in it, which people cannot see", odd as u32),
            );
        }
        for unknown in &script.unknowns {
            if unknown.why == TOO_COMPLEX {
                self.too_complex();
                continue;
            }
            self.unknown(unknown.span, format!("{} is not understood", unknown.why));
            self.rough(text, unknown.span);
        }
        self.needs_bash |= !script.bashisms.is_empty();
        if matches!(script.dialect, Dialect::PowerShell | Dialect::Cmd) {
            self.windows = true;
            let span = Span {
                start: 0,
                end: text.len(),
            };
            self.unknown(
                span,
                "commands for Windows are never fully understood".into(),
            );
        }
        self.list(&script.body);
        if self.is_too_complex() && !before {
            self.last_look(text);
        }
    }

    /// Looks for commands in text that could not be parsed, word by word.
    fn rough(&mut self, text: &str, span: Span) {
        let Some(text) = text.get(span.start..span.end) else {
            return;
        };
        let saved = self.state.clone();
        self.state.possible = true;
        // What is not understood may be inside of something else that is not.
        if self.spend(4 * text.len()) {
            rough::commands(text, |words| {
                let argv = words.into_iter().map(|word| Arg::known(word, span));
                if !self.is_spent() {
                    self.command(argv.collect(), span);
                }
            });
        }
        self.state = saved;
    }

    fn list(&mut self, list: &List) {
        let outer = self.state.certain;
        for item in &list.items {
            if self.is_spent() {
                break;
            }
            self.state.link = match item.joint {
                Joint::Sequence => Link::Then,
                Joint::And => Link::And,
                Joint::Or => Link::Or,
            };
            self.state.certain = outer && item.joint == Joint::Sequence && !item.background;
            self.pipeline(&item.pipeline);
        }
        self.state.certain = outer;
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        // Others have a program of that name.
        self.needs_bash |= pipeline.timed;
        if let [only] = pipeline.stages.as_slice() {
            return self.compound(only);
        }
        let saved = self.state.clone();
        let mut feed = saved.stdin.clone();
        for (index, stage) in pipeline.stages.iter().enumerate() {
            if index > 0 {
                self.state.link = Link::Pipe;
            }
            self.state.certain = false;
            self.state.stdin = feed.clone();
            let before = self.parts.len();
            self.compound(stage);
            let text = self.output(stage, feed.text.as_deref());
            feed = StdinFeed {
                text: text.map(Rc::from),
                download: feed.download || self.downloaded(before),
                paths: self.found.take().or(feed.paths),
            };
            self.state = WalkState {
                link: self.state.link,
                ..saved.clone()
            };
        }
        self.state = saved;
    }

    /// Returns whether something since a part has come from the network.
    fn downloaded(&self, since: usize) -> bool {
        // Many programs can use the network and print something of their own
        // all the same; one that is told where to go brings what is there.
        self.parts[since..].iter().any(|part| {
            part.tags.contains(&"download")
                || (part.effects.has(Effect::Network) && !part.hosts.is_empty())
        })
    }

    /// Walks through something that happens in a shell of its own, or not for
    /// sure, or more than once.
    fn aside(&mut self, walk: impl FnOnce(&mut Self)) {
        let saved = self.state.clone();
        self.state.certain = false;
        self.state.depth += 1;
        walk(self);
        self.state = saved;
    }

    fn compound(&mut self, command: &Command) {
        if self.level >= MAX_LEVEL {
            return self.unknown(command.span, "it is nested too deep".into());
        }
        if !self.spend(COMMAND) {
            return;
        }
        self.level += 1;
        self.inside_compound(command);
        self.level -= 1;
    }

    fn inside_compound(&mut self, command: &Command) {
        if let CommandKind::Simple(simple) = &command.kind {
            return self.simple(simple, &command.redirections, command.span);
        }
        let saved = self.state.stdin.clone();
        self.redirections(&command.redirections);
        match &command.kind {
            CommandKind::Simple(_) => unreachable!("handled above"),
            CommandKind::Group(list) => self.list(list),
            CommandKind::Subshell(list) => self.aside(|walk| walk.list(list)),
            CommandKind::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    self.aside(|walk| walk.list(condition));
                    self.aside(|walk| walk.list(body));
                }
                if let Some(body) = otherwise {
                    self.aside(|walk| walk.list(body));
                }
                self.moved(command);
            }
            CommandKind::While { condition, body } => {
                if scan::floods(condition, body) {
                    self.breeds(command.span, "starts processes without end".into());
                }
                self.moved(command);
                self.aside(|walk| walk.list(condition));
                self.aside(|walk| walk.list(body));
            }
            CommandKind::For { name, words, body } => {
                self.for_loop(name, words.as_deref(), body, command)
            }
            CommandKind::Count { expressions, body } => {
                for expression in expressions {
                    self.arithmetic(expression);
                }
                self.moved(command);
                self.aside(|walk| walk.list(body));
            }
            CommandKind::Case { word, arms } => {
                self.substitutions(word);
                for arm in arms {
                    arm.patterns.iter().for_each(|word| {
                        self.substitutions(word);
                    });
                    self.aside(|walk| walk.list(&arm.body));
                }
                self.moved(command);
            }
            CommandKind::Function { name, body } => self.function(name, body, command.span),
            CommandKind::Test(words) => {
                self.own(command.span, "compares");
                self.test(words);
            }
            CommandKind::Arithmetic(expression) => {
                self.own(command.span, "calculates");
                self.arithmetic(expression);
            }
            CommandKind::Coprocess { body, .. } => self.aside(|walk| walk.compound(body)),
            // Why is said for the whole script already.
            CommandKind::Unknown => {}
        }
        self.state.stdin = saved;
    }

    /// After something that may or may not have happened, the directory is
    /// only known if nothing in there changes it.
    fn moved(&mut self, command: &Command) {
        // Looking takes time in the length of it, once for each level.
        if !self.spend(4 * length(command.span)) || scan::moves(command) {
            self.state.cwd = None;
        }
    }

    fn for_loop(&mut self, name: &str, words: Option<&[Word]>, body: &List, command: &Command) {
        let mut values = vec![];
        for word in words.unwrap_or_default() {
            if self.is_spent() {
                return;
            }
            let download = self.substitutions(word);
            for mut arg in self.expand(word, None) {
                arg.download |= download;
                values.push(arg);
            }
        }
        self.loud(name, None, command.span);
        if values.iter().any(|value| value.secret) {
            // `select` prints them.
            let mut part = self.part(PartKind::Command, command.span);
            part.does = "goes through a variable that holds a secret".into();
            part.effects.add(Effect::Secret);
            self.push(part);
        }
        let texts: Vec<String> = values.iter().filter_map(|arg| arg.text.clone()).collect();
        let value = values.into_iter().reduce(|all, arg| all.join(&arg));
        let variable = self.variables.entry(name.to_owned()).or_default();
        variable.guesses.extend(texts);
        variable.download |= value.as_ref().is_some_and(|value| value.download);
        if variable.sites == 1 {
            // One word at a time, whatever it came from.
            variable.value = value.map(|value| Arg {
                many: false,
                ..value
            });
        }
        self.moved(command);
        self.aside(|walk| walk.list(body));
    }

    fn function(&mut self, name: &str, body: &Command, span: Span) {
        if !self.spend(8 * length(span)) {
            return;
        }
        if scan::breeds(name, body) {
            self.breeds(
                span,
                format!("defines `{name}`, which starts itself over and over"),
            );
        }
        let function = Function {
            body: Rc::new(body.clone()),
            inner: self.state.inner.clone(),
            certain: self.state.certain,
        };
        self.functions.insert(name.to_owned(), function);
        self.aside(|walk| {
            walk.state.positional = None;
            walk.state.cwd = None;
            walk.compound(body);
        });
    }

    /// Something that the shell does by itself, and harmlessly.
    fn own(&mut self, span: Span, does: &str) {
        let mut part = self.part(PartKind::Command, span);
        part.does = does.into();
        self.push(part);
    }

    fn breeds(&mut self, span: Span, does: String) {
        let mut part = self.part(PartKind::Command, span);
        part.does = does;
        part.tags.push("fork-bomb");
        part.effects.add(Effect::Execute);
        self.push(part);
    }

    fn unknown(&mut self, span: Span, why: String) {
        let mut part = self.part(PartKind::Unknown, span);
        part.does = "cannot be analysed".into();
        part.unknown = Some(why);
        self.push(part);
    }

    /// Makes a part for what is here.
    fn part(&self, kind: PartKind, span: Span) -> Part {
        Part {
            kind,
            span: self.state.within.unwrap_or(span),
            text: self.own_text(span),
            link: self.state.link,
            depth: self.state.depth,
            possible: self.state.possible,
            program: String::new(),
            subcommand: vec![],
            argv: vec![],
            options: vec![],
            effects: Effects::READ,
            tags: vec![],
            paths: vec![],
            hosts: vec![],
            does: String::new(),
            obeys: vec![],
            unknown: None,
        }
    }

    /// Returns the part's own text, if it differs from the text at its span.
    fn own_text(&self, span: Span) -> Option<String> {
        if let Some(words) = &self.state.words {
            return Some(words.to_string());
        }
        let text = match (&self.state.inner, self.state.within) {
            (Some(inner), _) => inner,
            // A function from outside is called in a nested text.
            (None, Some(_)) => self.text,
            (None, None) => return None,
        };
        let text = text.get(span.start..span.end)?;
        let kept = &text[..text.floor_char_boundary(MAX_OWN_TEXT)];
        match kept.len() < text.len() {
            true => Some(format!("{kept} …")),
            false => Some(kept.to_owned()),
        }
    }

    fn push(&mut self, part: Part) {
        // A redirection comes before its command, which still follows as it did.
        if part.link != Link::With {
            self.state.link = Link::Then;
        }
        if !self.is_spent() {
            let text = part.text.as_ref().map_or(0, String::len);
            self.parts.push(part);
            self.spend(PART + text);
        }
    }

    /// Judges a variable that programs will see.
    fn exported(&mut self, name: &str, value: &Arg, span: Span) {
        let mut part = self.part(PartKind::Assignment, span);
        part.program = name.to_owned();
        part.does = format!("sets {name} for the programs that follow");
        if variables::is_loud(name) && !variables::is_quiet(name, value.text.as_deref()) {
            part.effects.add(Effect::Execute);
            part.unknown = Some(format!("{name} can make programs run other code"));
            self.push(part);
            return self.perhaps_run(value, span);
        } else if !variables::is_quiet(name, value.text.as_deref()) {
            part.unknown = Some(format!("what {name} does to the program is not known"));
        }
        self.push(part);
    }
}

fn length(span: Span) -> usize {
    span.end.saturating_sub(span.start)
}

/// Returns whether a character shows as nothing, or moves others about: what
/// a person reads is then not what runs.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}'
        | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
