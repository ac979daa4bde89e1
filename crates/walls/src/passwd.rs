//! The system's list of users.

/// One user of this machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: String,
    pub(crate) shell: String,
}

impl Entry {
    /// Finds the first user who is wanted.
    pub(crate) fn find(wanted: impl Fn(&Self) -> bool) -> Option<Self> {
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        users.lines().filter_map(Self::parse).find(wanted)
    }

    /// Finds a user by name who is not root, nor of root's group.
    pub(crate) fn ordinary(name: &str) -> Option<Self> {
        let user = Self::find(|user| user.name == name);
        user.filter(|user| user.uid != 0 && user.gid != 0)
    }

    /// Whether somebody may sign in as this user.
    pub(crate) fn signs_in(&self) -> bool {
        !self.shell.ends_with("/nologin") && !self.shell.ends_with("/false")
    }

    fn parse(line: &str) -> Option<Self> {
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
    fn a_line_that_is_none_is_passed_over() {
        let ana = Entry::parse("ana:x:1000:1001:Ana,,:/home/ana:/bin/zsh").unwrap();
        assert_eq!((ana.name.as_str(), ana.uid, ana.gid), ("ana", 1000, 1001));
        assert_eq!(
            (ana.home.as_str(), ana.shell.as_str()),
            ("/home/ana", "/bin/zsh")
        );
        for line in ["", "# users", "ana:x:1000", "ana:x:a:1::/:/bin/sh"] {
            assert_eq!(Entry::parse(line), None, "{line}");
        }
    }
}
