//! What the pages about the seeds look like.

use std::fmt::Write;

use super::scan::{Item, Proof};
use super::{Seed, TESTS};

/// Reasons for which nothing is proved because nothing is claimed.
const CLAIMS_NOTHING: [&str; 6] = [
    "a heading",
    "a date",
    "a status",
    "a summary of what follows",
    "each of them is below",
    "how it is called there",
];

/// The page that says how far all of them have come.
pub(super) fn overview(seeds: &[Seed]) -> String {
    let mut page = String::from(OVERVIEW);
    for seed in seeds {
        let (number, title, here) = (seed.number, seed.title, seed.here);
        let items = seed.items();
        let tried = count(&items, |proof| matches!(proof, Proof::Here(_)));
        let elsewhere = count(&items, |proof| {
            matches!(proof, Proof::Test(..) | Proof::Named)
        });
        writeln!(
            page,
            "| [{number}](seeds/{number}.md) | {title} | {here} | {tried} | {elsewhere} | {} |",
            items.iter().filter(|item| is_open(item)).count()
        )
        .unwrap();
    }
    page.push_str("\n## Not done, or not ours to do\n");
    for seed in seeds {
        writeln!(page, "\n[{}](seeds/{0}.md), {}:\n", seed.number, seed.title).unwrap();
        let items = seed.items();
        // Each reason once, with all that it is given for.
        let mut reasons: Vec<(String, Vec<String>)> = vec![];
        for (reason, begins) in items.iter().filter_map(open) {
            match reasons.iter_mut().find(|(one, _)| *one == reason) {
                Some((_, all)) if all.contains(&begins) => {}
                Some((_, all)) => all.push(begins),
                None => reasons.push((reason, vec![begins])),
            }
        }
        if reasons.is_empty() {
            page.push_str("- nothing\n");
        }
        for (reason, all) in reasons {
            writeln!(page, "- {}: {reason}", all.join("; ")).unwrap();
        }
    }
    page.push_str("\n## Otherwise than they say\n\nWhere weighlock is stricter or answers differently, the walk remarks on it:\n");
    for seed in seeds {
        let items = seed.items();
        let remarks = items
            .iter()
            .flat_map(|item| item.notes.iter().map(move |note| (item, note)));
        let remarks: Vec<_> = remarks.filter(|(_, note)| is_otherwise(note)).collect();
        if !remarks.is_empty() {
            writeln!(page, "\n[{}](seeds/{0}.md):\n", seed.number).unwrap();
        }
        for (item, note) in remarks {
            writeln!(page, "- {}: {note}", begins(item)).unwrap();
        }
    }
    page
}

/// The page that walks through one of them.
pub(super) fn seed(seed: &Seed) -> String {
    let mut page = format!(
        "# {}: {}\n\n{MADE}\n\nWhat came of it: {}. [The walk](../../{}) quotes the document in its order. \
         ✓ is tried there, against the real binary; ✓ with a file is a test elsewhere; → names \
         tests; ○ is not done, or not ours, with the reason.\n",
        seed.number,
        seed.title,
        seed.here,
        seed.file()
    );
    let mut code = seed.program;
    for item in seed.items() {
        quote(&mut page, &item.quoted, &mut code);
        proof(&mut page, seed, &item);
    }
    page
}

const MADE: &str = "<!-- Made from the tests: WEIGHLOCK_BLESS=1 cargo nextest run -p weighlock -E 'test(/^seeds::/)' -->";

const OVERVIEW: &str = "# The five documents weighlock grew from

<!-- Made from the tests: WEIGHLOCK_BLESS=1 cargo nextest run -p weighlock -E 'test(/^seeds::/)' -->

weighlock grew from five documents about shells for agents: designs, proposals and the source of
one. What they ask for is owed in full. Each has a page that quotes it from the first sentence
to the last, and says after each passage which test proves it.

The pages are made from those tests. A test holds that no sentence is missing (it knows the hash
of each document), and another that the pages are what the tests say.

| document | calls itself | what came of it | passages tried in its walk | proved elsewhere | open |
|---|---|---|---|---|---|
";

fn count(items: &[Item], is: impl Fn(&Proof) -> bool) -> usize {
    items.iter().filter(|item| is(&item.proof)).count()
}

fn is_open(item: &Item) -> bool {
    open(item).is_some()
}

/// Why this is not done, and how it begins.
fn open(item: &Item) -> Option<(String, String)> {
    let reason = match &item.proof {
        Proof::No(reason) if CLAIMS_NOTHING.iter().any(|one| reason.starts_with(one)) => {
            return None;
        }
        Proof::No(reason) => reason,
        _ => return None,
    };
    Some((reason.clone(), begins(item)))
}

/// How what is quoted begins, but for headings.
fn begins(item: &Item) -> String {
    let mut lines = item
        .quoted
        .lines()
        .filter(|line| !line.starts_with(['#', '`']));
    let quoted = lines.next().unwrap_or(&item.quoted);
    let plain = quoted.chars().filter(|one| !"`*|".contains(*one));
    let begins: String = plain.take(70).collect();
    let begins = begins.trim_start_matches(['-', ' ']).trim_end();
    format!("*{begins}…*")
}

/// Whether a remark is about a difference.
fn is_otherwise(note: &str) -> bool {
    let told = [
        "Stricter",
        "Theirs",
        "Not where",
        "is not an error here",
        "beside the database",
        "not by its first word",
        "not units of UTF-16",
        "has `cwd` instead",
        "Only where the sandbox",
    ];
    told.iter().any(|words| note.contains(words))
}

/// Quotes lines as what they are: headings, code, or text. `code` is whether
/// they begin within code, and then whether they end there.
fn quote(page: &mut String, quoted: &str, code: &mut bool) {
    let mut kind = Kind::None;
    for line in quoted.trim_end().lines() {
        if line.starts_with("```") {
            *code = !*code;
            continue;
        }
        let next = match line {
            _ if *code => Kind::Code,
            line if line.starts_with('#') => Kind::Heading,
            _ => Kind::Text,
        };
        if next != kind {
            kind.end(page);
            page.push_str(if next == Kind::Code {
                "\n```text\n"
            } else {
                "\n"
            });
        }
        kind = next;
        match kind {
            Kind::Text if line.is_empty() => page.push_str(">\n"),
            Kind::Text => writeln!(page, "> {line}").unwrap(),
            Kind::Heading => writeln!(page, "#{line}").unwrap(),
            _ => writeln!(page, "{line}").unwrap(),
        }
    }
    kind.end(page);
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    None,
    Heading,
    Text,
    Code,
}

impl Kind {
    fn end(self, page: &mut String) {
        if self == Self::Code {
            page.push_str("```\n");
        }
    }
}

fn proof(page: &mut String, seed: &Seed, item: &Item) {
    let notes = item.notes.join(" ");
    let line = match &item.proof {
        Proof::Here(test) => format!("✓ `{}` {notes}", seed.test(test)),
        Proof::Test(file, name) => {
            let shown = file.trim_start_matches(TESTS).trim_start_matches('/');
            format!("✓ [{shown}](../../{file}): `{name}` {notes}")
        }
        Proof::Named => format!("→ {notes}"),
        Proof::No(reason) if reason == "a heading" => return,
        Proof::No(reason) => format!("○ {reason}. {notes}"),
    };
    writeln!(page, "\n{}", line.trim_end()).unwrap();
}
