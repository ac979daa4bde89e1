//! Writes changes as a patch that `git apply` understands.
//!
//! What has no place in such a patch is said in comments, so that nothing is
//! lost silently: empty directories, rights other than execution, owners, and
//! changes of git's own files, for which git would refuse all of it.

use std::io::{self, Write};

use crate::body::SideContent;
use crate::changes::{Change, Changes, Kind};
use crate::compare::{ComparedTexts, HunkRange};
use crate::content::OpenedFile;
use crate::diff::Side;
use crate::error::Error;
use crate::git::{Blob, NO_ID, quote};
use crate::node::{Node, NodeKind};
use crate::notes;

impl Changes {
    /// Writes all of it in git's format. Applied to what was there before, it
    /// gives what will be there. Secrets are not hidden.
    ///
    /// Paths are relative to their root; each root after the first has a
    /// section of its own, which begins with a comment that names it.
    pub fn patch(&self, to: &mut dyn Write) -> Result<(), Error> {
        for (number, root) in self.roots.iter().enumerate() {
            let entries: Vec<&Change> = self
                .entries
                .iter()
                .filter(|change| change.root == number)
                .collect();
            if number > 0 && !entries.is_empty() {
                let live = quote(root.live.as_os_str().as_encoded_bytes());
                line(to, &[b"# weighlock: below ", &live])?;
            }
            for note in notes::of(&entries) {
                line(to, &[b"# weighlock: ", &note])?;
            }
            for change in entries {
                if let Some(change) = notes::without_gits_own(change) {
                    self.write_one(&change, to)?;
                }
            }
        }
        Ok(())
    }

    fn write_one(&self, change: &Change, to: &mut dyn Write) -> Result<(), Error> {
        let names = PatchNames::of(change);
        match change.kind {
            Kind::Times => return Ok(()),
            Kind::Renamed | Kind::Mode => {
                let modes = (mode(change.before.as_ref()), mode(change.after.as_ref()));
                return match modes {
                    (Some(before), Some(after)) => names.write_unread(to, before, after),
                    _ => Ok(()),
                };
            }
            _ => {}
        }
        let before = side(change.before.as_ref(), || OpenedFile::before(self, change))?;
        let after = side(change.after.as_ref(), || OpenedFile::after(self, change))?;
        match (before, after) {
            // Git has no way to turn a file into a link.
            (Some(before), Some(after)) if before.is_link() != after.is_link() => {
                names.write(to, Some(before), None)?;
                names.write(to, None, Some(after))
            }
            (before, after) => names.write(to, before, after),
        }
    }
}

/// One side of a change, as git would keep it.
struct GitSide {
    mode: &'static str,
    blob: Blob,
}

impl GitSide {
    fn is_link(&self) -> bool {
        self.mode == LINK
    }
}

const LINK: &str = "120000";

/// Git's mode for something; `None` for what git does not keep.
fn mode(node: Option<&Node>) -> Option<&'static str> {
    let node = node?;
    match node.kind {
        NodeKind::File if node.mode & 0o100 != 0 => Some("100755"),
        NodeKind::File => Some("100644"),
        NodeKind::Link => Some(LINK),
        NodeKind::Directory | NodeKind::Special => None,
    }
}

fn side(
    node: Option<&Node>,
    open: impl FnOnce() -> Result<Option<OpenedFile>, Error>,
) -> Result<Option<GitSide>, Error> {
    let (Some(node), Some(mode)) = (node, mode(node)) else {
        return Ok(None);
    };
    let blob = match (&node.target, open()?) {
        (_, Some(content)) => match SideContent::of(&content)? {
            SideContent::Text(bytes) => Blob::Bytes(bytes),
            SideContent::Binary(_) | SideContent::TooLarge => Blob::File(content),
        },
        (Some(target), None) => Blob::Bytes(target.bytes().to_vec()),
        (None, None) => return Ok(None),
    };
    Ok(Some(GitSide { mode, blob }))
}

/// What a change is called on both sides, as it stands in the patch.
struct PatchNames {
    old: Vec<u8>,
    new: Vec<u8>,
    renamed: Option<[Vec<u8>; 2]>,
}

impl PatchNames {
    fn of(change: &Change) -> Self {
        let new = change.path.bytes();
        let old = change.from.as_ref().map_or(new, |from| from.bytes());
        let renamed = change.kind == Kind::Renamed;
        Self {
            old: quote(&[b"a/", old].concat()),
            new: quote(&[b"b/", new].concat()),
            renamed: renamed.then(|| [quote(old), quote(new)]),
        }
    }

    /// Writes a change that leaves the content as it is.
    fn write_unread(&self, to: &mut dyn Write, before: &str, after: &str) -> Result<(), Error> {
        if before == after && self.renamed.is_none() {
            return Ok(());
        }
        self.write_first(to)?;
        write_modes(to, before, after)?;
        let Some([old, new]) = &self.renamed else {
            return Ok(());
        };
        line(to, &[b"similarity index 100%"])?;
        line(to, &[b"rename from ", old])?;
        line(to, &[b"rename to ", new])
    }

    fn write(
        &self,
        to: &mut dyn Write,
        before: Option<GitSide>,
        after: Option<GitSide>,
    ) -> Result<(), Error> {
        let id = |kept: &Option<GitSide>| match kept {
            Some(kept) => kept.blob.id(),
            None => Ok(NO_ID.to_owned()),
        };
        let (old, new) = (id(&before)?, id(&after)?);
        let modes = (before.as_ref(), after.as_ref());
        let modes = (modes.0.map(|kept| kept.mode), modes.1.map(|kept| kept.mode));
        if old == new && modes.0 == modes.1 {
            return Ok(());
        }
        self.write_first(to)?;
        let mut suffix = String::new();
        match modes {
            (None, Some(mode)) => line(to, &[b"new file mode ", mode.as_bytes()])?,
            (Some(mode), None) => line(to, &[b"deleted file mode ", mode.as_bytes()])?,
            (Some(before), Some(after)) if before == after => suffix = format!(" {after}"),
            (Some(before), Some(after)) => write_modes(to, before, after)?,
            (None, None) => {}
        }
        if old == new {
            return Ok(());
        }
        line(to, &[format!("index {old}..{new}{suffix}").as_bytes()])?;
        self.write_content(to, before, after)
    }

    fn write_first(&self, to: &mut dyn Write) -> Result<(), Error> {
        line(to, &[b"diff --git ", &self.old, b" ", &self.new])
    }

    fn write_content(
        &self,
        to: &mut dyn Write,
        before: Option<GitSide>,
        after: Option<GitSide>,
    ) -> Result<(), Error> {
        let labels = (
            label(&self.old, before.is_some()),
            label(&self.new, after.is_some()),
        );
        let blob = |kept: Option<GitSide>| kept.map_or(Blob::Bytes(vec![]), |kept| kept.blob);
        match (blob(before), blob(after)) {
            (Blob::Bytes(before), Blob::Bytes(after)) if !has_nul(&before) && !has_nul(&after) => {
                write_text(to, labels, &ComparedTexts::new(&before, &after))
            }
            (before, after) => {
                line(to, &[b"GIT binary patch"])?;
                after.write_literal(to)?;
                // So that it can be taken back.
                before.write_literal(to)
            }
        }
    }
}

/// Text may hold one far from its beginning.
fn has_nul(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

/// A name above the hunks. Without the tab, git would take a name with a
/// space in it to end there.
fn label(name: &[u8], is_there: bool) -> Vec<u8> {
    match is_there {
        false => b"/dev/null".to_vec(),
        true if name.contains(&b' ') && name[0] != b'"' => [name, b"\t"].concat(),
        true => name.to_vec(),
    }
}

fn write_modes(to: &mut dyn Write, before: &str, after: &str) -> Result<(), Error> {
    if before == after {
        return Ok(());
    }
    line(to, &[b"old mode ", before.as_bytes()])?;
    line(to, &[b"new mode ", after.as_bytes()])
}

fn write_text(
    to: &mut dyn Write,
    (old, new): (Vec<u8>, Vec<u8>),
    compared: &ComparedTexts<'_>,
) -> Result<(), Error> {
    let spans = compared.spans();
    // A file that is empty has no hunks, and git wants no names then.
    if spans.is_empty() {
        return Ok(());
    }
    line(to, &[b"--- ", &old])?;
    line(to, &[b"+++ ", &new])?;
    for span in spans {
        write_hunk(to, compared, &span).map_err(Error::Write)?;
    }
    Ok(())
}

fn write_hunk(
    to: &mut dyn Write,
    compared: &ComparedTexts<'_>,
    span: &HunkRange,
) -> io::Result<()> {
    writeln!(to, "@@ -{} +{} @@", range(&span.before), range(&span.after))?;
    for step in compared.steps(span) {
        let (sign, text) = match (step.side, step.before, step.after) {
            (Side::Removed, Some(line), _) => (b"-", compared.before[line]),
            (Side::Added, _, Some(line)) => (b"+", compared.after[line]),
            (_, _, line) => (b" ", line.map_or(&b""[..], |line| compared.after[line])),
        };
        to.write_all(sign)?;
        to.write_all(text)?;
        if !text.ends_with(b"\n") {
            to.write_all(b"\n\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

fn range(lines: &std::ops::Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

fn line(to: &mut dyn Write, parts: &[&[u8]]) -> Result<(), Error> {
    let mut whole = parts.concat();
    whole.push(b'\n');
    to.write_all(&whole).map_err(Error::Write)
}
