//! What the running kernel is.

use rustix::system::uname;

/// Tells whether it is this version or a later one. Only for what changed its
/// meaning without another way to see that; all else is found by trying.
pub(crate) fn is_at_least(major: u32, minor: u32) -> bool {
    let kernel = uname();
    let release = kernel.release().to_string_lossy();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    found >= (major, minor)
}
