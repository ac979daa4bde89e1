//! The system's list of users.

/// One user of this machine, as `/etc/passwd` has them.
#[derive(Debug, PartialEq, Eq)]
pub struct PasswdEntry {
    /// The user's name.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The number of the user's first group.
    pub gid: u32,
    /// The home directory, as written there.
    pub home: String,
    /// The login shell, as written there.
    pub shell: String,
}

impl PasswdEntry {
    /// Returns the first user that `is_wanted` accepts.
    pub fn find_user(is_wanted: impl Fn(&Self) -> bool) -> Option<Self> {
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        users.lines().filter_map(Self::parse_line).find(is_wanted)
    }

    /// Returns the user with this name, unless it is root or in root's group.
    pub fn find_ordinary(name: &str) -> Option<Self> {
        let user = Self::find_user(|user| user.name == name);
        user.filter(|user| user.uid != 0 && user.gid != 0)
    }

    /// Returns whether a person can sign in as this user.
    pub fn can_sign_in(&self) -> bool {
        !self.shell.ends_with("/nologin") && !self.shell.ends_with("/false")
    }

    fn parse_line(line: &str) -> Option<Self> {
        let fields: Vec<_> = line.split(':').collect();
        let [name, _, uid, gid, _, home, shell] = fields[..] else {
            return None;
        };
        Some(Self {
            name: name.to_owned(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
            home: home.to_owned(),
            shell: shell.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_entries_are_skipped() {
        let ana = PasswdEntry::parse_line("ana:x:1000:1001:Ana,,:/home/ana:/bin/zsh").unwrap();
        assert_eq!((ana.name.as_str(), ana.uid, ana.gid), ("ana", 1000, 1001));
        assert_eq!(
            (ana.home.as_str(), ana.shell.as_str()),
            ("/home/ana", "/bin/zsh")
        );
        for line in ["", "# users", "ana:x:1000", "ana:x:a:1::/:/bin/sh"] {
            assert_eq!(PasswdEntry::parse_line(line), None, "{line}");
        }
    }
}
