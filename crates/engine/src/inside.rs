//! Whether a process was started by a command that is run here: what is run
//! does not decide what may run.

use weighlock_walls::RUN_VARIABLE;

/// Returns by what we know that a process is inside a run, if it is. `word` is
/// what keepers have in their command line. The environment alone could be
/// emptied, and who leaves its parents is a child of the run's keeper or init.
pub fn inside_a_run(pid: u32, word: &str) -> Option<String> {
    std::iter::once(pid).chain(ancestors(pid)).find_map(|pid| {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let parts = |text: &[u8]| -> Vec<Vec<u8>> {
            text.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
        };
        if parts(&read("cmdline"))
            .get(1)
            .is_some_and(|arg| arg == word.as_bytes())
        {
            return Some(format!("process {pid} is a keeper"));
        }
        let tag = format!("{RUN_VARIABLE}=");
        let tagged = |entry: &Vec<u8>| entry.starts_with(tag.as_bytes());
        let found = parts(&read("environ")).into_iter().find(tagged)?;
        Some(String::from_utf8_lossy(&found).into_owned())
    })
}

/// The processes that one descends from, the nearest first.
pub fn ancestors(pid: u32) -> impl Iterator<Item = u32> {
    let parent = |pid: u32| u32::try_from(stat(pid, 1)?).ok().filter(|&pid| pid > 0);
    std::iter::successors(parent(pid), move |&pid| parent(pid))
}

/// Reads a number that the kernel has about a process, counted from its state.
fn stat(pid: u32, field: usize) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    fields.nth(field)?.parse().ok()
}

/// A process, told from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    /// In clock ticks since the machine was started.
    began: u64,
}

impl Process {
    /// Returns the process that has a number now.
    pub fn now(pid: u32) -> Option<Self> {
        const BEGAN: usize = 19;
        let began = stat(pid, BEGAN)?;
        Some(Self { pid, began })
    }

    /// Returns its number.
    pub fn pid(self) -> u32 {
        self.pid
    }
}

/// Returns whether a process may be inside a run, whose keepers have `word` in
/// their command line. One that is gone may have handed its connection to a
/// child in there, and so may one that nobody can see from here.
pub(crate) fn may_be_inside(process: Option<Process>, word: Option<&str>) -> bool {
    let Some(process) = process.filter(|it| Process::now(it.pid) == Some(*it)) else {
        return true;
    };
    word.is_some_and(|word| inside_a_run(process.pid, word).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_is_no_other() {
        let own = Process::now(std::process::id()).expect("we are there");
        assert_eq!(Process::now(own.pid()), Some(own));
        let earlier = Process {
            began: own.began - 1,
            ..own
        };
        assert_ne!(Process::now(own.pid()), Some(earlier));
        assert_eq!(Process::now(u32::MAX), None);
    }
}
