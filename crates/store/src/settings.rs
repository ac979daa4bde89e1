//! What people have set for themselves.

use rusqlite::{OptionalExtension, params};

use crate::database::Database;
use crate::error::Error;

/// What people have set for themselves.
#[derive(Clone, Copy)]
pub struct SettingsTable<'a> {
    pub(crate) database: &'a Database,
}

impl SettingsTable<'_> {
    /// Remembers somebody's settings, in place of those before. They change
    /// nothing for anybody else, and are not on record.
    pub async fn save(self, who: String, body: String, at: i64) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                to.execute(
                    "INSERT INTO settings (principal_id, body, updated_at) VALUES (?1, ?2, ?3) \
                     ON CONFLICT (principal_id) DO UPDATE SET body = ?2, updated_at = ?3",
                    params![who, body, at],
                )?;
                Ok(((), vec![]))
            })
            .await
    }

    /// Returns somebody's settings.
    pub fn of(self, who: &str) -> Result<Option<String>, Error> {
        let sql = "SELECT body FROM settings WHERE principal_id = ?1";
        let reader = self.database.lock_reader();
        Ok(reader.query_row(sql, [who], |row| row.get(0)).optional()?)
    }
}
