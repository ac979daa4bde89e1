//! What a command may do beyond reading, by class.

use serde::{Deserialize, Serialize};

/// One class of effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u16)]
pub enum Effect {
    /// Reads files or state; everything does.
    Read = 1,
    /// Creates or changes files.
    Write = 1 << 1,
    /// Deletes files.
    Delete = 1 << 2,
    /// Runs code that is not judged here.
    Execute = 1 << 3,
    /// Talks to other machines.
    Network = 1 << 4,
    /// Acts as another user, or gains rights.
    Privilege = 1 << 5,
    /// Touches hardware or the kernel's state.
    Device = 1 << 6,
    /// Shows keys, passwords or the like.
    Secret = 1 << 7,
    /// Signals or alters other processes.
    Process = 1 << 8,
    /// Changes what later commands of the same shell mean.
    Shell = 1 << 9,
}

/// A set of effects.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects(u16);

impl Effect {
    /// All classes, mildest first.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::Execute,
        Self::Network,
        Self::Privilege,
        Self::Device,
        Self::Secret,
        Self::Process,
        Self::Shell,
    ];

    /// Returns the word for it in files and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Execute => "execute",
            Self::Network => "network",
            Self::Privilege => "privilege",
            Self::Device => "device",
            Self::Secret => "secret",
            Self::Process => "process",
            Self::Shell => "shell",
        }
    }
}

impl Effects {
    /// Nothing but reading.
    pub const READ: Self = Self(Effect::Read as u16);

    /// Makes a set from the bits that packed knowledge holds.
    pub(crate) fn of(bits: u16) -> Self {
        Self(bits)
    }

    /// Adds a class.
    pub fn add(&mut self, effect: Effect) {
        self.0 |= effect as u16;
    }

    /// Adds all classes of another set.
    pub fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns whether a class is in the set.
    pub fn has(self, effect: Effect) -> bool {
        self.0 & effect as u16 != 0
    }

    /// Returns whether nothing happens but reading.
    pub fn only_read(self) -> bool {
        self.0 & !(Effect::Read as u16) == 0
    }

    /// Returns whether every class, reading aside, is also in another set.
    pub fn within(self, other: Self) -> bool {
        self.0 & !other.0 & !(Effect::Read as u16) == 0
    }

    /// Returns the classes, mildest first.
    pub fn iter(self) -> impl Iterator<Item = Effect> {
        Effect::ALL
            .into_iter()
            .filter(move |effect| self.has(*effect))
    }
}

impl FromIterator<Effect> for Effects {
    fn from_iter<I: IntoIterator<Item = Effect>>(effects: I) -> Self {
        let mut set = Self::default();
        effects.into_iter().for_each(|effect| set.add(effect));
        set
    }
}

impl std::fmt::Debug for Effects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for Effects {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Effects {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Effect>::deserialize(deserializer).map(Self::from_iter)
    }
}
