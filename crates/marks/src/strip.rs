//! A terminal's bytes as people may see them.

use crate::mask::Mask;
use crate::nonce::Nonce;
use crate::scan::{Part, Scan};

/// Takes our marks out of bytes that are cut anywhere. Where the nonce itself
/// is shown (`set` in the shell), most of it becomes asterisks.
#[derive(Debug)]
pub struct Strip {
    scan: Scan,
    mask: Mask,
}

impl Strip {
    /// Starts at the beginning of a stream.
    pub fn new(nonce: &Nonce) -> Self {
        Self {
            scan: Scan::new(nonce, 0),
            mask: Mask::new(nonce),
        }
    }

    /// Returns what may be shown. What could be the beginning of a mark waits
    /// for the next bytes; any control character ends that wait.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        self.scan.feed(bytes, |part| {
            if let Part::Plain(bytes, _) = part {
                shown.extend_from_slice(bytes);
            }
        });
        self.mask.hide(&mut shown);
        shown
    }

    /// Returns what waited, as nothing more will come.
    pub fn finish(mut self) -> Vec<u8> {
        let mut shown = vec![];
        self.scan.finish(|part| {
            if let Part::Plain(bytes, _) = part {
                shown.extend_from_slice(bytes);
            }
        });
        self.mask.hide(&mut shown);
        shown
    }
}
