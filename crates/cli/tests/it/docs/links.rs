//! Nothing points nowhere.

use std::path::Path;

use super::{BESIDE, pages};
use crate::generated::{read, root};

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let more = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned);
    for page in pages()
        .into_iter()
        .chain(BESIDE.map(str::to_owned))
        .chain(more)
    {
        let here = Path::new(&page);
        for link in read(&page).split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = match file {
                "" => here.to_owned(),
                file => here.parent().unwrap().join(file),
            };
            assert!(root().join(&file).exists(), "{page}: {link}");
            let found = anchor.is_empty() || anchors(&file).iter().any(|one| one == anchor);
            assert!(found, "{page}: {link}: no such heading");
        }
    }
}

/// The headings of a page as links name them: in small letters, with dashes for
/// blanks, and without all other signs.
fn anchors(page: &Path) -> Vec<String> {
    let text = read(page.to_str().unwrap());
    let mut code = false;
    let mut anchors = vec![];
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#').strip_prefix(' ');
        if let (false, true, Some(heading)) = (code, line.starts_with('#'), heading) {
            let letters = heading.to_lowercase().replace(' ', "-");
            let keep = |one: &char| one.is_alphanumeric() || "-_".contains(*one);
            anchors.push(letters.chars().filter(keep).collect());
        }
    }
    anchors
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = read("docs/README.md");
    for page in pages() {
        let Some(name) = page.strip_prefix("docs/") else {
            continue;
        };
        let below = name.starts_with("seeds/") || name == "README.md";
        assert!(below || contents.contains(&format!("({name})")), "{page}");
    }
}
