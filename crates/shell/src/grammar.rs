//! What commands are read with: the reader of words, and the code that words hold.

use std::ops::{Deref, DerefMut};

use crate::cursor::Result;
use crate::reader::{Grammar, WordReader};

/// Code in words is read as commands are.
pub(crate) const GRAMMAR: Grammar = Grammar {
    program: |words| CommandReader { words }.program(),
    substitution: |words| CommandReader { words }.substitution(),
};

/// Reads commands, which are made of words. It reads words like their reader itself.
pub(crate) struct CommandReader<'r, 'a> {
    pub(crate) words: &'r mut WordReader<'a>,
}

impl<'a> Deref for CommandReader<'_, 'a> {
    type Target = WordReader<'a>;

    #[inline]
    fn deref(&self) -> &WordReader<'a> {
        self.words
    }
}

impl DerefMut for CommandReader<'_, '_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.words
    }
}

impl CommandReader<'_, '_> {
    /// Goes one level deeper for as long as `read` takes.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.enter()?;
        let result = read(self)?;
        self.leave();
        Ok(result)
    }
}
