//! The first kind of rule: texts that no command may contain.
//!
//! The list is a safeguard against obvious accidents, not a wall: a substring
//! is easily written differently. What holds against that comes from the
//! kernel and from understanding the command.

use serde::{Deserialize, Serialize};

/// Texts that are common in destructive one-liners, in force until a person
/// saves a list of their own.
const DEFAULT: &[&str] = &[
    // Linux and macOS.
    "rm -rf /",
    "rm -rf /*",
    ":(){ :|:& };:",
    "mkfs.",
    "dd if=",
    ">/dev/sd",
    "chmod -R 777 /",
    "chown -R",
    "wget -O-",
    "curl | sh",
    // Windows.
    "format ",
    "del /s /q",
    "rd /s /q",
    "format c:",
    "format d:",
    "shutdown /",
    "reg delete",
    // Everywhere.
    "sudo ",
];

/// A list of substrings; a command that contains one of them is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blacklist {
    entries: Vec<String>,
    /// The same in lower case.
    lower: Vec<String>,
}

/// The shape of `.agents/terminal.json`. Keys that other programs keep in the
/// same file are ignored when reading.
#[derive(Serialize, Deserialize)]
struct BlacklistJson {
    #[serde(rename = "commandBlacklist")]
    entries: Vec<String>,
}

/// Why the text of a blacklist file could not be used.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidFile(String);

/// Why an entry was not taken into the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It has no visible character, so it would match nearly everything.
    Empty,
    /// It is in the list already.
    Duplicate,
}

impl Blacklist {
    /// Reads the text of `.agents/terminal.json`.
    pub fn from_json(text: &str) -> Result<Self, InvalidFile> {
        let file: BlacklistJson =
            serde_json::from_str(text).map_err(|error| InvalidFile(error.to_string()))?;
        let mut list = Self {
            entries: vec![],
            lower: vec![],
        };
        for entry in file.entries {
            match list.add(&entry) {
                // Said twice is as good as said once.
                Ok(()) | Err(Refused::Duplicate) => {}
                Err(Refused::Empty) => {
                    return Err(InvalidFile(
                        "an entry of commandBlacklist is empty and would match every command"
                            .into(),
                    ));
                }
            }
        }
        Ok(list)
    }

    /// Writes the text of `.agents/terminal.json`.
    pub fn to_json(&self) -> String {
        let file = BlacklistJson {
            entries: self.entries.clone(),
        };
        let mut text = serde_json::to_string_pretty(&file).expect("strings are always JSON");
        text.push('\n');
        text
    }

    /// Returns the entries in their order.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Returns whether a command contains one, whatever its case and spacing.
    pub fn blocks(&self, command: &str) -> bool {
        self.find(&normalise(command)).is_some()
    }

    /// Appends an entry, unless it is empty or there already.
    pub fn add(&mut self, entry: &str) -> Result<(), Refused> {
        if entry.trim().is_empty() {
            return Err(Refused::Empty);
        }
        if self.entries.iter().any(|known| known == entry) {
            return Err(Refused::Duplicate);
        }
        self.entries.push(entry.to_owned());
        self.lower.push(entry.to_lowercase());
        Ok(())
    }

    /// Takes an entry out; returns whether it was there.
    pub fn remove(&mut self, entry: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|known| known != entry);
        self.lower = self
            .entries
            .iter()
            .map(|entry| entry.to_lowercase())
            .collect();
        self.entries.len() < before
    }

    /// Returns the first entry that a normalised command contains, whatever
    /// its case.
    pub(crate) fn find(&self, normal: &str) -> Option<&str> {
        let at = self
            .lower
            .iter()
            .position(|entry| normal.contains(entry.as_str()))?;
        Some(&self.entries[at])
    }
}

impl Default for Blacklist {
    fn default() -> Self {
        Self {
            entries: DEFAULT.iter().map(|&entry| entry.to_owned()).collect(),
            lower: DEFAULT.iter().map(|entry| entry.to_lowercase()).collect(),
        }
    }
}

impl std::fmt::Display for InvalidFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidFile {}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Empty => "the entry is empty",
            Self::Duplicate => "the entry is in the list already",
        })
    }
}

/// Trims, makes every run of white space one space, and lowers the case.
pub(crate) fn normalise(command: &str) -> String {
    let mut normal = String::with_capacity(command.len());
    for word in command.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(word);
    }
    match normal.is_ascii() {
        true => normal.make_ascii_lowercase(),
        false => normal = normal.to_lowercase(),
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit<'l>(list: &'l Blacklist, command: &str) -> Option<&'l str> {
        list.find(&normalise(command))
    }

    #[track_caller]
    fn check(command: &str, expected: Option<&str>) {
        assert_eq!(
            hit(&Blacklist::default(), command),
            expected,
            "for {command:?}"
        );
    }

    #[test]
    fn every_default_entry_blocks_a_command_that_contains_it() {
        for entry in DEFAULT {
            let command = format!("echo x; {entry}y");
            assert!(hit(&Blacklist::default(), &command).is_some(), "{command}");
        }
    }

    #[test]
    fn case_and_spacing_do_not_matter() {
        check("rm -rf /", Some("rm -rf /"));
        check("  RM\t-RF   / ", Some("rm -rf /"));
        check("rm \n -rf \n /", Some("rm -rf /"));
        check("Sudo ls", Some("sudo "));
        check("REG  DELETE HKLM", Some("reg delete"));
    }

    #[test]
    fn entries_keep_their_own_spaces() {
        check("sudo", None);
        check("sudoku --help", None);
        check("git log --format=%h", None);
        check("format x", Some("format "));
    }

    #[test]
    fn everyday_commands_pass() {
        check("git status", None);
        check("rm -r build", None);
        check("", None);
    }

    #[test]
    fn a_file_replaces_the_default_list() {
        let list = Blacklist::from_json(r#"{"commandBlacklist": ["Deploy  Now"], "other": 1}"#)
            .expect("valid");
        assert_eq!(hit(&list, "rm -rf /"), None);
        // Only the command is normalised; an entry means what it says.
        assert_eq!(hit(&list, "deploy now"), None);
        let list = Blacklist::from_json(r#"{"commandBlacklist": ["Deploy Now"]}"#).expect("valid");
        assert_eq!(hit(&list, "please DEPLOY    now"), Some("Deploy Now"));
    }

    #[test]
    fn an_empty_file_list_blocks_nothing() {
        let list = Blacklist::from_json(r#"{"commandBlacklist": []}"#).expect("valid");
        assert_eq!(hit(&list, "rm -rf /"), None);
    }

    #[test]
    fn an_invalid_file_is_refused_as_a_whole() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"commandBlacklist": "rm"}"#,
            r#"{"commandBlacklist": [1]}"#,
            r#"{"commandBlacklist": ["rm", " "]}"#,
            "{\"commandBlacklist\": [\"rm\"",
        ] {
            assert!(Blacklist::from_json(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let list = Blacklist::default();
        assert_eq!(Blacklist::from_json(&list.to_json()), Ok(list));
    }

    #[test]
    fn empty_and_duplicate_entries_are_not_added() {
        let mut list = Blacklist::default();
        assert_eq!(list.add("  "), Err(Refused::Empty));
        assert_eq!(list.add("mkfs."), Err(Refused::Duplicate));
        assert_eq!(list.add("drop table"), Ok(()));
        assert!(list.remove("drop table"));
        assert!(!list.remove("drop table"));
        assert_eq!(list, Blacklist::default());
    }
}
