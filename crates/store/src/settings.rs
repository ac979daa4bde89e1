//! What people have set for themselves.

use rusqlite::{OptionalExtension, params};

use crate::open::{Error, Store};

impl Store {
    /// Remembers somebody's settings, in place of those before. They change
    /// nothing for anybody else, and are not on record.
    pub async fn save_settings(&self, who: String, body: String, at: i64) -> Result<(), Error> {
        self.writer
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
    pub fn settings(&self, who: &str) -> Result<Option<String>, Error> {
        let sql = "SELECT body FROM settings WHERE principal_id = ?1";
        let reader = self.lock_reader();
        Ok(reader.query_row(sql, [who], |row| row.get(0)).optional()?)
    }
}
