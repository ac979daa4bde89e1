//! Ids as people see and type them.

/// Characters of an id that are its time of creation.
pub const ID_TIME: usize = 10;

/// Characters of chance in a short id.
const SHORT: usize = 6;

/// Returns the short form that people see and type; one in a billion ids shares it.
pub fn short_id(id: &str) -> String {
    let (what, rest) = id.split_once('_').unwrap_or(("r", id));
    let tail = rest.get(ID_TIME..).unwrap_or(rest);
    format!("{what}_{}", &tail[..tail.len().min(SHORT)])
}
