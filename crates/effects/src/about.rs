//! Says what changes of a path beside its content.

use std::collections::BTreeMap;

use crate::changes::{Change, Changes, Kind};
use crate::content::OpenedFile;
use crate::node::{Node, NodeKind};
use crate::secret::mask;

/// Characters shown of an attribute's value.
const MOST_CHARACTERS: usize = 200;

impl Changes {
    /// Returns what changes of a path beside content, name and permission bits,
    /// a line for each: owner and extended attributes. Values are what the run
    /// wrote; likely secrets are hidden.
    pub fn about(&self, index: usize) -> Vec<String> {
        let Some(change) = self.entries.get(index) else {
            return vec![];
        };
        let mut lines = vec![];
        if let (Some(before), Some(after)) = (&change.before, &change.after)
            && (before.uid, before.gid) != (after.uid, after.gid)
        {
            let owner = |node: &Node| format!("{}:{}", node.uid, node.gid);
            lines.push(format!("owner {} → {}", owner(before), owner(after)));
        }
        lines.extend(self.attributes(change));
        lines
    }

    fn attributes(&self, change: &Change) -> Vec<String> {
        let hash = |node: &Option<Node>| node.as_ref().map(|node| node.attributes.clone());
        let (before, after) = (hash(&change.before), hash(&change.after));
        if change.kind == Kind::Deleted || before.unwrap_or_default() == after.unwrap_or_default() {
            return vec![];
        }
        let read = |content: Result<Option<OpenedFile>, _>| -> Option<BTreeMap<_, _>> {
            match content.ok()? {
                Some(content) => Some(content.attributes().ok()?.of_file.into_iter().collect()),
                None => Some(BTreeMap::new()),
            }
        };
        // Of directories and links no more is known than that they differ.
        let is_file =
            |node: &Option<Node>| node.as_ref().is_none_or(|node| node.kind == NodeKind::File);
        let unknown = || vec!["other extended attributes".to_owned()];
        if !is_file(&change.before) || !is_file(&change.after) {
            return unknown();
        }
        let sides = (
            read(OpenedFile::before(self, change)),
            read(OpenedFile::after(self, change)),
        );
        let (Some(before), Some(after)) = sides else {
            return unknown();
        };
        let name = |name: &std::ffi::CString| name.to_string_lossy().into_owned();
        let gone = { before.keys() }
            .filter(|one| !after.contains_key(*one))
            .map(|one| format!("attribute {} is removed", name(one)));
        let set = { after.iter() }
            .filter(|(one, value)| before.get(*one) != Some(value))
            .map(|(one, value)| format!("attribute {} = {}", name(one), shown(value)));
        let lines: Vec<String> = gone.chain(set).collect();
        if lines.is_empty() {
            // They are not what they were when they were looked at.
            unknown()
        } else {
            lines
        }
    }
}

fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let text = mask(&text).unwrap_or_else(|| text.into_owned());
    match text.char_indices().nth(MOST_CHARACTERS) {
        None => text,
        Some((at, _)) => format!("{} … {} bytes in all", &text[..at], value.len()),
    }
}
