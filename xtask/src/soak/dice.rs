//! Choices that look random and are the same for the same seed.

/// Splitmix64: small, and good enough to choose by.
pub(super) struct Dice(u64);

impl Dice {
    /// One of many; each has choices of its own.
    pub(super) fn new(seed: u64, which: u64) -> Self {
        let mut dice = Self(seed ^ which.wrapping_mul(0xa076_1d64_78bd_642f));
        dice.next();
        dice
    }

    /// A number below another.
    pub(super) fn below(&mut self, sides: u64) -> u64 {
        self.next() % sides
    }

    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len().max(1) as u64) as usize)
    }

    pub(super) fn millis(&mut self, from: u64, to: u64) -> std::time::Duration {
        std::time::Duration::from_millis(from + self.below(to - from))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
