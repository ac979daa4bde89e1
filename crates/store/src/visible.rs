//! Whose things a reader may see.

/// Whose things a reader may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Visible {
    /// Everybody's.
    #[default]
    All,
    /// This principal's own.
    Own(String),
    /// Own ones, and all in these sandboxes.
    Within {
        /// The principal.
        name: String,
        /// The sandboxes' ids.
        sandboxes: Vec<String>,
    },
}

/// A part of the visible rows that one index finds. A list is merged from the
/// first few of each, so that a reader who may see little does not read over
/// all the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lane<'a> {
    pub(crate) who: Option<&'a str>,
    pub(crate) sandbox: Option<&'a str>,
}

impl Visible {
    /// Returns whether a reader may see something of an owner in a sandbox.
    /// Something without an owner is the server's own, for those who see all.
    pub fn includes(&self, owner: Option<&str>, sandbox: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Own(name) => owner == Some(name),
            Self::Within { name, sandboxes } => {
                let within = |id: &str| sandboxes.iter().any(|one| one == id);
                owner.is_some_and(|owner| owner == name || sandbox.is_some_and(within))
            }
        }
    }

    /// Returns the requested parts that may be seen.
    pub(crate) fn lanes<'a>(&'a self, asked: Lane<'a>) -> Vec<Lane<'a>> {
        match self {
            Self::All => vec![asked],
            Self::Own(name) => asked.of(name).into_iter().collect(),
            Self::Within { name, sandboxes } => {
                let within = sandboxes.iter().filter_map(|id| asked.within(id));
                let mut lanes: Vec<Lane<'_>> = vec![];
                for lane in asked.of(name).into_iter().chain(within) {
                    if !lanes.iter().any(|wider| wider.covers(lane)) {
                        lanes.push(lane);
                    }
                }
                lanes
            }
        }
    }
}

impl<'a> Lane<'a> {
    fn of(self, name: &'a str) -> Option<Self> {
        let who = Some(name);
        (self.who.is_none() || self.who == who).then_some(Self { who, ..self })
    }

    fn within(self, id: &'a str) -> Option<Self> {
        let sandbox = Some(id);
        (self.sandbox.is_none() || self.sandbox == sandbox).then_some(Self { sandbox, ..self })
    }

    fn covers(self, other: Self) -> bool {
        (self.who.is_none() || self.who == other.who)
            && (self.sandbox.is_none() || self.sandbox == other.sandbox)
    }
}
