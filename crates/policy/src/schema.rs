//! What editors need to help with rule files.

use crate::rules::raw::RawRules;

/// Returns the JSON schema of rule files.
pub fn rules_schema() -> serde_json::Value {
    schemars::schema_for!(RawRules).to_value()
}

#[cfg(test)]
mod tests {
    /// To renew the file: `WEIGHLOCK_BLESS=1 cargo test -p weighlock-policy schema`.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the test compares with a file of the repository"
    )]
    fn the_committed_schema_is_the_schema() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.schema.json");
        let mut schema = serde_json::to_string_pretty(&super::rules_schema()).unwrap();
        schema.push('\n');
        if std::env::var("WEIGHLOCK_BLESS").is_ok() {
            std::fs::write(path, &schema).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), schema);
    }
}
