//! Nothing points nowhere.

use std::path::Path;

use super::pages;
use crate::generated::{read, root};

#[test]
fn every_link_to_a_file_leads_to_one() {
    let more = [
        "ARCHITECTURE.md",
        "SECURITY.md",
        "bench/README.md",
        "fuzz/README.md",
    ];
    for page in pages().into_iter().chain(more.map(str::to_owned)) {
        let beside = root().join(Path::new(&page).parent().unwrap());
        let text = read(&page);
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            let (file, _) = link.split_once('#').unwrap_or((link, ""));
            let elsewhere = link.contains("://") || link.contains(' ');
            assert!(
                elsewhere || file.is_empty() || beside.join(file).exists(),
                "{page}: {link}"
            );
        }
    }
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
