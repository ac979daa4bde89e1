//! Reads the walks through the seeds from the source of their tests.
//!
//! A walk is a table, `DOCUMENT`, or tests that quote with `says(…)` what they
//! try next. Both are read as a compiler would see their words, so that what is
//! written down elsewhere is what the tests quote, and not a copy of it.

use std::collections::HashMap;

use self::Token::{Comment, Sign, Text, Word};

/// Some lines of a seed that are proved, or not, at one place.
#[derive(Debug, PartialEq)]
pub(super) struct Item {
    /// As they stand in the document.
    pub(super) quoted: String,
    pub(super) proof: Proof,
    /// What the walk remarks there.
    pub(super) notes: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Proof {
    /// The test of the walk itself, by its name.
    Here(String),
    /// A test elsewhere: its file, and its name.
    Test(String, String),
    /// The tests that the notes name.
    Named,
    /// There is none, for this reason.
    No(String),
}

/// Reads a walk.
pub(super) fn items(source: &str) -> Vec<Item> {
    let tokens = tokens(source);
    match position(&tokens, "DOCUMENT") {
        Some(at) => table(&tokens, at),
        None => tests(&tokens),
    }
}

/// Words that try something, whatever the test around them is.
const TRIES: [&str; 5] = ["eventually", "heard", "hears", "refused", "typed"];

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Text(String),
    Comment(String),
    Word(String),
    Sign(char),
}

fn position(tokens: &[Token], word: &str) -> Option<usize> {
    tokens.iter().position(|token| is(token, word))
}

fn is(token: &Token, word: &str) -> bool {
    matches!(token, Word(one) if one == word)
}

/// Reads `DOCUMENT: … = &[("line", Holds(…)), …]`.
fn table(tokens: &[Token], at: usize) -> Vec<Item> {
    let texts = texts(tokens);
    let test = name_after(&tokens[at..], "fn").expect("a walk has a test");
    let begin = at
        + tokens[at..]
            .iter()
            .position(|one| *one == Sign('='))
            .unwrap();
    let mut items = vec![];
    for entry in groups(&tokens[begin..]) {
        let spoken: Vec<&Token> = entry.iter().filter(|one| !is_comment(one)).collect();
        let [Text(quoted), Sign(','), Word(kind), rest @ ..] = spoken.as_slice() else {
            panic!("an entry that is not understood: {entry:?}");
        };
        let given = rest.iter().filter_map(|token| match token {
            Text(text) => Some(text.clone()),
            Word(name) => texts.get(name).cloned(),
            _ => None,
        });
        let given: Vec<String> = given.collect();
        let proof = match (kind.as_str(), given.as_slice()) {
            ("Holds", _) => Proof::Here(test.clone()),
            ("Test", [file, name]) => Proof::Test(file.clone(), name.clone()),
            ("No", [reason]) => Proof::No(reason.clone()),
            _ => panic!("a proof that is not understood: {entry:?}"),
        };
        items.push(Item {
            quoted: quoted.clone(),
            proof,
            notes: notes(&entry),
        });
    }
    items
}

/// Reads tests that quote line by line. What is tried between two quotations
/// proves what was quoted before it.
fn tests(tokens: &[Token]) -> Vec<Item> {
    let texts = texts(tokens);
    let mut items: Vec<Item> = vec![];
    for (test, body) in bodies(tokens) {
        let first = items.len();
        let mut quoted: Vec<String> = vec![];
        let mut rest = body;
        while let Some(at) = position(rest, "says") {
            let between = &rest[..at];
            settle(&mut items, &test, &mut quoted, between);
            let Sign('(') = rest[at + 1] else {
                panic!("says what?")
            };
            match &rest[at + 2] {
                Text(text) => quoted.push(text.clone()),
                Word(name) => match texts.get(name) {
                    Some(text) => quoted.push(text.clone()),
                    None => quoted.extend(each(between, name)),
                },
                other => panic!("says {other:?}"),
            }
            rest = &rest[at + 3..];
        }
        settle(&mut items, &test, &mut quoted, rest);
        // What closes a test, such as a bracket, goes with what is before it.
        if let (true, Some(last)) = (items.len() > first, items.last_mut()) {
            for line in quoted.drain(..) {
                last.quoted.push('\n');
                last.quoted.push_str(&line);
            }
        }
        assert!(quoted.is_empty(), "nothing is tried in {test}");
    }
    items
}

/// Ends what was quoted so far, if something was tried or said about it.
fn settle(items: &mut Vec<Item>, test: &str, quoted: &mut Vec<String>, between: &[Token]) {
    let tried = between.iter().any(|token| match token {
        Word(word) => word.starts_with("assert") || TRIES.contains(&word.as_str()),
        _ => false,
    });
    let mut notes = notes(between);
    if quoted.is_empty() || (!tried && notes.is_empty()) {
        return;
    }
    let proof = match (tried, unproved(&notes)) {
        (true, _) => Proof::Here(test.to_owned()),
        (false, None) => Proof::Named,
        (false, Some(reason)) => {
            notes.clear();
            Proof::No(reason)
        }
    };
    items.push(Item {
        quoted: std::mem::take(quoted).join("\n"),
        proof,
        notes,
    });
}

/// Why nothing is proved, if that is what is remarked.
fn unproved(notes: &[String]) -> Option<String> {
    let note = notes.first()?;
    let reason = ["Not proved: ", "Claims nothing: "]
        .iter()
        .find_map(|begin| note.strip_prefix(begin))?;
    Some(reason.trim_end_matches('.').to_owned())
}

/// The first text of each entry of `for (name, …) in [(…), …]`.
fn each(tokens: &[Token], name: &str) -> Vec<String> {
    let at = tokens
        .windows(3)
        .rposition(|three| is(&three[0], "for") && three[1] == Sign('(') && is(&three[2], name));
    let at = at.unwrap_or_else(|| panic!("what is `{name}`?"));
    let begin = at + position(&tokens[at..], "in").unwrap();
    let entries = groups(&tokens[begin..]).into_iter();
    entries
        .filter_map(|entry| match entry.first() {
            Some(Text(text)) => Some(text.clone()),
            _ => None,
        })
        .collect()
}

/// What is in each pair of round brackets directly inside the next square ones.
fn groups(tokens: &[Token]) -> Vec<Vec<Token>> {
    let begin = tokens.iter().position(|one| *one == Sign('[')).unwrap();
    let mut depth = 0;
    let mut groups: Vec<Vec<Token>> = vec![];
    for token in &tokens[begin..] {
        let closes = matches!(token, Sign(')' | ']' | '}'));
        if closes {
            depth -= 1;
        }
        match depth {
            0 if closes => break,
            1 if *token == Sign('(') => groups.push(vec![]),
            2.. => groups
                .last_mut()
                .into_iter()
                .for_each(|one| one.push(token.clone())),
            _ => {}
        }
        if matches!(token, Sign('(' | '[' | '{')) {
            depth += 1;
        }
    }
    groups
}

/// Texts that have a name: `const NAME: &str = "…"` and `let name = "…"`.
fn texts(tokens: &[Token]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        if !is(token, "const") && !is(token, "let") {
            continue;
        }
        let Some(Word(name)) = tokens.get(at + 1) else {
            continue;
        };
        let rest = &tokens[at + 2..];
        let Some(given) = rest
            .iter()
            .position(|one| *one == Sign('='))
            .filter(|at| *at < 5)
        else {
            continue;
        };
        if let (Some(Text(text)), Some(Sign(';'))) = (rest.get(given + 1), rest.get(given + 2)) {
            found.insert(name.clone(), text.clone());
        }
    }
    found
}

/// The tests with what is in them.
fn bodies(tokens: &[Token]) -> Vec<(String, &[Token])> {
    let mut starts = vec![];
    for (at, four) in tokens.windows(4).enumerate() {
        if four[0] == Sign('#') && is(&four[2], "test") && four[3] == Sign(']') {
            starts.push(at);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
    let mut bodies = vec![];
    for (begin, end) in starts.iter().zip(ends) {
        let body = &tokens[*begin..end];
        bodies.push((name_after(body, "fn").unwrap(), body));
    }
    bodies
}

fn name_after(tokens: &[Token], word: &str) -> Option<String> {
    match tokens.get(position(tokens, word)? + 1)? {
        Word(name) => Some(name.clone()),
        _ => None,
    }
}

fn is_comment(token: &Token) -> bool {
    matches!(token, Comment(_))
}

/// The comments as sentences; lines that follow each other are one.
fn notes(tokens: &[Token]) -> Vec<String> {
    let mut notes: Vec<String> = vec![];
    let mut goes_on = false;
    for token in tokens {
        match token {
            // What is said about a test as a whole is not about a line.
            Comment(text) if text.starts_with('/') => {}
            Comment(text) if goes_on => {
                let last = notes.last_mut().expect("it goes on");
                last.push(' ');
                last.push_str(text.trim());
            }
            Comment(text) => notes.push(text.trim().to_owned()),
            _ => {}
        }
        goes_on = is_comment(token) && !notes.is_empty();
    }
    notes
}

fn tokens(source: &str) -> Vec<Token> {
    let mut rest = source;
    let mut tokens = vec![];
    while let Some(first) = rest.chars().next() {
        let (token, length) = if let Some(comment) = rest.strip_prefix("//") {
            let text = comment.lines().next().unwrap_or_default();
            (Some(Comment(text.to_owned())), 2 + text.len())
        } else if first == '"' {
            let (text, length) = plain(&rest[1..]);
            (Some(Text(text)), 1 + length)
        } else if let Some((text, length)) = raw(rest) {
            (Some(Text(text)), length)
        } else if first == '\'' {
            (None, character(rest))
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let word = &rest[..end.unwrap_or(rest.len())];
            (Some(Word(word.to_owned())), word.len())
        } else if first.is_whitespace() {
            (None, first.len_utf8())
        } else {
            (Some(Sign(first)), first.len_utf8())
        };
        tokens.extend(token);
        rest = &rest[length..];
    }
    tokens
}

/// Reads what follows a quotation mark: the text, and how long it was.
fn plain(source: &str) -> (String, usize) {
    let mut text = String::new();
    let mut chars = source.char_indices().peekable();
    while let Some((at, one)) = chars.next() {
        match one {
            '"' => return (text, at + 1),
            '\\' => match chars.next().expect("a text ends").1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                '0' => text.push('\0'),
                '\n' => while chars.next_if(|(_, one)| one.is_whitespace()).is_some() {},
                'u' => {
                    let digits: String = { &mut chars }
                        .map(|(_, one)| one)
                        .take_while(|one| *one != '}')
                        .filter(|one| *one != '{')
                        .collect();
                    let code = u32::from_str_radix(&digits, 16).unwrap();
                    text.push(char::from_u32(code).unwrap());
                }
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
    panic!("a text without an end");
}

/// Reads `r"…"` and `r#"…"#`.
fn raw(source: &str) -> Option<(String, usize)> {
    let marked = source.strip_prefix('r')?;
    let inner = marked.trim_start_matches('#');
    let marks = "#".repeat(marked.len() - inner.len());
    let inner = inner.strip_prefix('"')?;
    let end = inner.find(&format!("\"{marks}"))?;
    Some((inner[..end].to_owned(), 1 + 2 * marks.len() + 2 + end))
}

/// How long a character or a lifetime is.
fn character(source: &str) -> usize {
    let mut chars = source.char_indices().skip(1);
    match (chars.next(), chars.next(), chars.next()) {
        (Some((_, '\\')), _, Some((at, '\''))) => at + 1,
        (Some((_, one)), Some((at, '\'')), _) if one != '\\' => at + 1,
        _ => 1,
    }
}
