//! Parses the error lines of everyday tools: what failed, and on which object.
//!
//! Nothing here knows the walls. The text comes from the command, so it may be
//! anything: every pattern takes linear time, and long lines are cut.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// What went wrong, according to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// A name was not resolved, or there was no way to an address.
    Unreachable,
    /// A connection or a socket was not permitted.
    Unconnected,
    /// The mode of a file could not be changed.
    Mode,
    /// A program that needs privileges had none.
    Privilege,
    Processes,
    Memory,
    OpenFiles,
    FileSize,
    NoSpace,
    ReadOnly,
    Busy,
    Denied,
    Missing,
}

/// What the failed program wanted to do with the file, if the line shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileIntent {
    Write,
    /// To rename a finished file over another.
    Replace,
    /// A shell names only the file: a redirection of either kind, or a program.
    Shell,
    Unknown,
}

impl FileIntent {
    pub(super) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Replace)
    }
}

/// One error line.
#[derive(Debug)]
pub(super) struct ErrorLine {
    pub(super) kind: FailureKind,
    /// The paths, the hosts or the programs that the line names; the last of two
    /// paths is the destination.
    pub(super) objects: Vec<String>,
    pub(super) intent: FileIntent,
    /// The line names an address of this machine itself.
    pub(super) local: bool,
}

/// Returns the error lines of a text, in their order.
pub(super) fn find_error_lines(text: &str) -> impl Iterator<Item = ErrorLine> {
    let mut before = VecDeque::with_capacity(NEARBY + 1);
    // Progress bars end with a carriage return, and errors follow them.
    text.split(['\n', '\r']).filter_map(move |line| {
        let line = last_part(line.trim());
        let parsed = parse_line(line, &before);
        before.push_back(line);
        if before.len() > NEARBY {
            before.pop_front();
        }
        parsed
    })
}

/// Removes escape sequences for colours, which would separate words.
pub(super) fn strip_colour(text: &str) -> std::borrow::Cow<'_, str> {
    COLOUR.replace_all(text, "")
}

/// Bytes at the end of a line that are parsed. A path has at most 4096, and
/// tools put the cause at the end.
const LINE_BYTES: usize = 6 * 1024;

/// Quotations in a line that are parsed; ordinary lines have two or three.
const QUOTATIONS: usize = 8;

/// Lines before an error of a Rust program that may name its file: cargo prints
/// two or three causes in between.
const NEARBY: usize = 6;

/// The first pattern that matches decides, so the more specific ones come first.
static KINDS: LazyLock<Vec<(FailureKind, Regex)>> = LazyLock::new(|| {
    [
        (
            FailureKind::Unreachable,
            r"could ?n[o']t resolve (?:host|proxy)|resolve host address|temporary failure (?:in name resolution|resolving)|name or service not known|no address associated with hostname|nodename nor servname|\bEAI_AGAIN\b|\bENOTFOUND\b|UnknownHostException|could not translate host name|failed to lookup address|failed to resolve '|dial (?:tcp|udp)\d?: lookup|no matching distribution found for|network is unreachable|\bENETUNREACH\b|failed to connect to \S+ (?:\S+ )?port \d+",
        ),
        (
            FailureKind::Unconnected,
            r"(?:\bconnect|\bsocket)\b.*(?:\bEACCES\b|\bEPERM\b|permission denied|operation not permitted)",
        ),
        (
            FailureKind::Mode,
            r"(?:chmod: changing|install: cannot change) permissions of .*: operation not permitted|cannot change mode to \S*s\S*: operation not permitted",
        ),
        (
            FailureKind::Privilege,
            r"^(?:\S+: (?:line )?(?:\d+: )?)?(?:\S*/)?(?:u?mount|unshare|nsenter|dmesg|insmod|rmmod|modprobe|chroot|pivot_root|bwrap|ping): .*(?:operation not permitted|must be superuser|only root|lacks? privilege|no permissions to create)|^(?:\S*/)?(?:mount|nsenter): .*permission denied",
        ),
        (
            FailureKind::Processes,
            r"\bfork: retry|(?:\bfork|\bclone|\bspawn|\bvfork|process|thread).*(?:resource temporarily unavailable|\bEAGAIN\b)|resource temporarily unavailable.*(?:fork|thread|spawn)|cannot fork|can't start new thread|unable to create (?:new )?native thread",
        ),
        (
            FailureKind::Memory,
            r"cannot allocate memory|\bMemoryError\b|\bout of memory\b|\bENOMEM\b|memory exhausted|\bbad_alloc\b|memory allocation of \d+ bytes failed",
        ),
        (FailureKind::OpenFiles, r"too many open files|\bEMFILE\b"),
        (
            FailureKind::FileSize,
            r"file size limit exceeded|file too large|\bEFBIG\b",
        ),
        (FailureKind::NoSpace, r"no space left on device"),
        (FailureKind::ReadOnly, r"read-only file ?system|\bEROFS\b"),
        (FailureKind::Busy, r"(?:device or )?resource busy|\bEBUSY\b"),
        (
            FailureKind::Denied,
            r"permission denied|\bEACCES\b|AccessDeniedException",
        ),
        (
            FailureKind::Missing,
            r"no such file(?: or directory)?|\bENOENT\b|NoSuchFileException|cannot find module|can't cd to|directory nonexistent|: not found$",
        ),
    ]
    .map(|(kind, pattern)| (kind, insensitive(pattern)))
    .into()
});

/// Lines that look like a limit of ours and are not: V8 and Java limit their own
/// heaps, file watches and the file table belong to the host, a refused
/// connection did reach its target, and `code: 'EROFS'` repeats an earlier line.
static NOT_OURS: LazyLock<Regex> = LazyLock::new(|| {
    insensitive(
        r"heap out of memory|java heap space|inotify|file watchers|, watch\b|too many open files in system|connection refused|\bECONNREFUSED\b|\bunix\b.*\bconnect\b|\bconnect\b.*\bunix\b|\b(?:code|errno):? '?E[A-Z]+'?,?$",
    )
});

/// Lines in which the path is neither quoted nor just before the cause.
static PATHS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"can't cd to (.+)$",
        r"(?:NoSuchFile|AccessDenied)Exception: (.+)$",
        r"@ \w+ - (.+) \(Errno::",
        r"^zsh:\S* [a-z -]+: (.+)$",
    ]
    .map(insensitive)
    .into()
});

/// Lines that name a host; the first pattern that matches decides.
static HOSTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"resolve host: HOST",
        r#"resolve host(?:name| address)? ["'‘]?HOST"#,
        r"(?:EAI_AGAIN|ENOTFOUND) HOST",
        r"(?:ENETUNREACH|EACCES|EPERM) (\S+):\d+",
        r"UnknownHostException: HOST",
        r"dial \w+: lookup HOST",
        r"dial \w+ HOST",
        r"connect to (?:host )?HOST (?:\S+ )?port",
        r"look up HOST \(port",
        r"resolving '?HOST",
        r"connecting to HOST",
        r#"host name "HOST""#,
        r"failed to resolve '?HOST",
        r"host='HOST'",
        r": HOST: (?:temporary failure in name|name or service not|no address assoc)",
        r"/dev/(?:tcp|udp)/HOST/",
        r#"://(?:[^/\s@'"]*@)?HOST"#,
    ]
    .map(|pattern| insensitive(&pattern.replace("HOST", r"([\w.:%\[\]-]+)")))
    .into()
});

static LOCAL: LazyLock<Regex> =
    LazyLock::new(|| insensitive(r"\blocalhost\b|\b127\.\d+\.\d+\.\d+\b|::1\b"));

static WRITES: LazyLock<Regex> = LazyLock::new(|| {
    insensitive(
        r"\b(?:touch|creat\w*|mkdir|mkfifo|mknod|mkstemp|mktemp|temp(?:orary)? \w+|remov\w*|rm|delet\w*|unlink|rmdir|move|writ\w*|lock|truncate|tee|chmod|chown|changing|link|symlink|overwrit\w*|copyfile|output|append|install|save|directory nonexistent)\b",
    )
});

static RENAMES: LazyLock<Regex> = LazyLock::new(|| insensitive(r"\brenam"));

static SHELL: LazyLock<Regex> = LazyLock::new(|| insensitive(r"^\S*sh: (?:line )?\d+: |^zsh:"));

/// A quotation. The quote must not be inside a word, as in `can't`.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    insensitive(r#"(?:^|[\s(\[=:,])b?(?:'([^']+)'|‘([^’]+)’|"([^"]+)"|`([^`']+)[`'])"#)
});

/// A path that is recognizable by its beginning, to the end of the text.
static ROOTED: LazyLock<Regex> =
    LazyLock::new(|| insensitive(r"(?:^|[\s(=])((?:/|\.{1,2}/)[^\s].*)$"));

static ATTEMPT: LazyLock<Regex> = LazyLock::new(|| {
    insensitive(r"^(?:cannot|can't|could not|failed to|unable to) \w+ (?:\w+ )*(\S+)$")
});

static COLOUR: LazyLock<Regex> =
    LazyLock::new(|| insensitive(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"));

fn insensitive(pattern: &str) -> Regex {
    Regex::new(&format!("(?i){pattern}")).expect("the table is tested")
}

fn parse_line(line: &str, before: &VecDeque<&str>) -> Option<ErrorLine> {
    let (kind, cause) = KINDS
        .iter()
        .find_map(|(kind, pattern)| Some((*kind, pattern.find(line)?.range())))?;
    if NOT_OURS.is_match(line) {
        return None;
    }
    let objects = match kind {
        FailureKind::Unreachable | FailureKind::Unconnected => {
            find_host(line).into_iter().collect()
        }
        FailureKind::Privilege => find_program(line).into_iter().collect(),
        _ => find_paths(line, cause, before),
    };
    Some(ErrorLine {
        kind,
        intent: find_intent(line, &objects),
        objects: objects.into_iter().map(str::to_owned).collect(),
        local: LOCAL.is_match(line),
    })
}

fn find_host(line: &str) -> Option<&str> {
    let found = HOSTS.iter().find_map(|pattern| pattern.captures(line))?;
    let host = found.get(1)?.as_str().trim_end_matches(['.', ':', '-']);
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next()?,
        // More than one colon: an IPv6 address.
        None if host.matches(':').count() == 1 => host.split(':').next()?,
        None => host,
    };
    host.contains(char::is_alphanumeric).then_some(host)
}

/// Returns the program that complained: the last word before the first colon
/// that is neither a shell nor its line.
fn find_program(line: &str) -> Option<&str> {
    line.split(": ")
        .find(|part| {
            !part.ends_with("sh") && !part.starts_with("line ") && part.parse::<u32>().is_err()
        })
        .and_then(|part| part.rsplit('/').next())
}

fn find_paths<'a>(line: &'a str, cause: Range<usize>, before: &VecDeque<&'a str>) -> Vec<&'a str> {
    if let Some(found) = PATHS.iter().find_map(|pattern| pattern.captures(line)) {
        return found.get(1).map(|path| path.as_str()).into_iter().collect();
    }
    // `message: "Read-only file system"` quotes the cause itself.
    let other = |path: &Range<usize>| cause.start < path.start || path.end < cause.end;
    let mut found: Vec<&str> = quoted_ranges(line)
        .filter(|path| other(path))
        .take(QUOTATIONS)
        .map(|path| &line[path])
        .collect();
    // `failed to open 'a/b' of package 'c'`: a name beside a path is no path.
    if found.iter().any(|path| path.contains('/')) {
        found.retain(|path| path.contains('/'));
    }
    if found.is_empty() {
        found.extend(unquoted_path(&line[..cause.start]));
    }
    if found.is_empty() && line.contains("(os error ") {
        found.extend(path_above(before));
    }
    found
}

/// Returns the ranges of quotations that may be paths.
fn quoted_ranges(line: &str) -> impl Iterator<Item = Range<usize>> {
    QUOTED
        .captures_iter(line)
        .filter_map(|found| found.iter().skip(1).flatten().next().map(|m| m.range()))
        .filter(|range| !line[range.clone()].contains("://"))
}

/// Finds the path in `program: cannot open PATH: ` and its like.
fn unquoted_path(before: &str) -> Option<&str> {
    let before = before.trim_end().trim_end_matches(['[', '(', ':', ' ']);
    let (program, rest) = before.split_once(": ").unwrap_or((before, ""));
    let parts = || rest.rsplit(": ").map(str::trim);
    parts()
        .find_map(rooted_path)
        .or_else(|| parts().find_map(relative_path))
        // Go names no program: `open PATH: `. A path at the very beginning is
        // the program's own.
        .or_else(|| rooted_path(program).filter(|path| path.len() < program.len()))
}

/// Finds a relative path, which looks like any word.
fn relative_path(part: &str) -> Option<&str> {
    if let Some(found) = ATTEMPT.captures(part) {
        return found.get(1).map(|path| path.as_str());
    }
    let (rest, last) = part.rsplit_once(' ').unwrap_or(("", part));
    let named = last.contains(char::is_alphanumeric) && last.parse::<u64>().is_err();
    (named && (rest.is_empty() || last.contains(['.', '/']))).then_some(last)
}

fn rooted_path(part: &str) -> Option<&str> {
    let path = ROOTED.captures(part)?.get(1)?.as_str();
    let path = path
        .strip_suffix(" for writing")
        .or_else(|| path.strip_suffix(" for reading"))
        .unwrap_or(path);
    Some(path.trim_end_matches(')'))
}

/// Finds the path of an error of a Rust program in the lines above it.
fn path_above<'a>(before: &VecDeque<&'a str>) -> Option<&'a str> {
    before.iter().rev().find_map(|line| {
        quoted_ranges(line)
            .map(|range| &line[range])
            .filter(|path| path.contains('/'))
            .last()
    })
}

fn find_intent(line: &str, objects: &[&str]) -> FileIntent {
    // A path may have such words in it.
    let words = objects
        .iter()
        .fold(line.to_owned(), |line, path| line.replace(path, ""));
    if RENAMES.is_match(&words) {
        FileIntent::Replace
    } else if WRITES.is_match(&words) {
        FileIntent::Write
    } else if SHELL.is_match(line) {
        FileIntent::Shell
    } else {
        FileIntent::Unknown
    }
}

fn last_part(line: &str) -> &str {
    let mut from = line.len().saturating_sub(LINE_BYTES);
    while !line.is_char_boundary(from) {
        from += 1;
    }
    &line[from..]
}
