//! Opening the database, and refusing one that cannot be trusted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::approval::ApprovalTable;
use crate::audit::AuditLog;
use crate::bound;
use crate::changes::ChangesTable;
use crate::command::CommandTable;
use crate::database::{Database, FILE};
use crate::error::Error;
use crate::grant::GrantTable;
use crate::head::ChainHead;
use crate::histogram::Histogram;
use crate::login::LoginTable;
use crate::outbox::Outbox;
use crate::pause::PauseTable;
use crate::pending::PendingTable;
use crate::principal::PrincipalTable;
use crate::rules::RulesTable;
use crate::sandbox::SandboxTable;
use crate::schema::{MIGRATIONS, version};
use crate::session::SessionTable;
use crate::settings::SettingsTable;
use crate::sql::{connect, read_only};
use crate::token::TokenTable;
use crate::webhook::WebhookTable;
use crate::writer::Writer;

/// A database up to this size is checked at every start, which takes well
/// under a second; larger ones by `doctor`.
const CHECK_UP_TO_BYTES: u64 = 64 * 1024 * 1024;

/// What a crash may cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing is lost when processes die; a loss of power may cost about the
    /// last second.
    #[default]
    Process,
    /// Every answer waits for the disk.
    Power,
}

/// The open database, table by table.
pub struct Store {
    pub(crate) database: Database,
}

impl Store {
    /// Opens the database in a state directory, making it when there is none.
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, Error> {
        let path = dir.join(FILE);
        let head = ChainHead::open(dir)?;
        if is_empty(&path) && head.seq() > 0 {
            return Err(Error::Vanished {
                path,
                entries: head.seq(),
            });
        }
        let mut connection = connect(&path, OpenFlags::default())?;
        let head = prepare(&mut connection, &path, durability)
            .and_then(|()| migrate(&mut connection, head, &path))
            .map_err(|error| error.at(&path))?;
        bound::watch(&connection)?;
        checkpoint_on_close(&connection, true)?;
        let reader = Mutex::new(connect(&path, read_only())?);
        let writer = Writer::start(connection, head, dir);
        Ok(Self {
            database: Database {
                path,
                writer,
                reader,
            },
        })
    }

    /// Opens the database in a state directory for reading, without a server.
    pub fn open_read_only(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE);
        if !path.exists() {
            return Err(Error::Missing { path });
        }
        let connection = connect(&path, read_only())?;
        if version(&connection)? < MIGRATIONS.len() {
            return Err(Error::Older { path });
        }
        Ok(Self::of_reader(dir, connection))
    }

    pub(crate) fn of_reader(dir: &Path, reader: Connection) -> Self {
        Self {
            database: Database {
                path: dir.join(FILE),
                writer: Writer::none(dir),
                reader: Mutex::new(reader),
            },
        }
    }

    /// Closes it, and returns once all of it is in the one file.
    pub fn close(self) {
        self.database.close();
    }

    /// Moves a damaged database aside, so that the next start makes a new one.
    /// Returns where it went.
    pub fn set_aside(dir: &Path, stamp: &str) -> Result<PathBuf, Error> {
        let aside = dir.join(format!("{FILE}.broken-{stamp}"));
        for suffix in ["", "-wal", "-shm"] {
            let from = dir.join(format!("{FILE}{suffix}"));
            let to = PathBuf::from(format!("{}{suffix}", aside.display()));
            match std::fs::rename(&from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::File {
                        path: from,
                        source: error,
                    });
                }
                _ => {}
            }
        }
        ChainHead::set_aside(dir, stamp)?;
        Ok(aside)
    }

    /// Returns the database's size on disk and what an integrity check says.
    pub fn check(&self) -> Result<(u64, Option<String>), Error> {
        let log = PathBuf::from(format!("{}-wal", self.database.path.display()));
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let size = size(&self.database.path) + size(&log);
        let reader = self.database.lock_reader();
        Ok((size, quick_check(&reader)?))
    }

    /// Returns how long commits take.
    pub fn commits(&self) -> &Histogram {
        &self.database.writer.commits
    }

    /// Returns questions and the answers to them.
    pub fn approvals(&self) -> ApprovalTable<'_> {
        let database = &self.database;
        ApprovalTable { database }
    }

    /// Returns the chain of entries.
    pub fn audit(&self) -> AuditLog<'_> {
        let database = &self.database;
        AuditLog { database }
    }

    /// Returns what runs changed on a copy.
    pub fn changes(&self) -> ChangesTable<'_> {
        let database = &self.database;
        ChangesTable { database }
    }

    /// Returns commands.
    pub fn commands(&self) -> CommandTable<'_> {
        let database = &self.database;
        CommandTable { database }
    }

    /// Returns what people have allowed beforehand.
    pub fn grants(&self) -> GrantTable<'_> {
        let database = &self.database;
        GrantTable { database }
    }

    /// Returns logins of people in a browser.
    pub fn logins(&self) -> LoginTable<'_> {
        let database = &self.database;
        LoginTable { database }
    }

    /// Returns the notices of webhooks.
    pub fn outbox(&self) -> Outbox<'_> {
        let database = &self.database;
        Outbox { database }
    }

    /// Returns pauses.
    pub fn pauses(&self) -> PauseTable<'_> {
        let database = &self.database;
        PauseTable { database }
    }

    /// Returns commands that have not begun.
    pub fn pending(&self) -> PendingTable<'_> {
        let database = &self.database;
        PendingTable { database }
    }

    /// Returns people and agents.
    pub fn principals(&self) -> PrincipalTable<'_> {
        let database = &self.database;
        PrincipalTable { database }
    }

    /// Returns the texts of rule files.
    pub fn rules(&self) -> RulesTable<'_> {
        let database = &self.database;
        RulesTable { database }
    }

    /// Returns sandboxes.
    pub fn sandboxes(&self) -> SandboxTable<'_> {
        let database = &self.database;
        SandboxTable { database }
    }

    /// Returns sessions.
    pub fn sessions(&self) -> SessionTable<'_> {
        let database = &self.database;
        SessionTable { database }
    }

    /// Returns what people have set for themselves.
    pub fn settings(&self) -> SettingsTable<'_> {
        let database = &self.database;
        SettingsTable { database }
    }

    /// Returns tokens.
    pub fn tokens(&self) -> TokenTable<'_> {
        let database = &self.database;
        TokenTable { database }
    }

    /// Returns webhooks.
    pub fn webhooks(&self) -> WebhookTable<'_> {
        let database = &self.database;
        WebhookTable { database }
    }
}

fn prepare(connection: &mut Connection, path: &Path, durability: Durability) -> Result<(), Error> {
    let synchronous = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    // A database that is refused stays as it is: what its log still has
    // beyond a damaged place would be gone with a checkpoint.
    checkpoint_on_close(connection, false)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // What takes a statement back would otherwise be a file when it is large.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    let small = std::fs::metadata(path).is_ok_and(|file| file.len() <= CHECK_UP_TO_BYTES);
    if small && let Some(what) = quick_check(connection)? {
        return Err(Error::Corrupt {
            path: path.to_owned(),
            what,
        });
    }
    if version(connection)? > MIGRATIONS.len() {
        return Err(Error::Newer {
            path: path.to_owned(),
        });
    }
    Ok(())
}

fn checkpoint_on_close(connection: &Connection, wanted: bool) -> Result<(), Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !wanted)?;
    Ok(())
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |file| file.len() == 0)
}

fn quick_check(connection: &Connection) -> Result<Option<String>, Error> {
    let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((answer != "ok").then_some(answer))
}

/// Brings the schema up to date. Nothing is written before the audit's head was
/// compared.
fn migrate(connection: &mut Connection, head: ChainHead, path: &Path) -> Result<ChainHead, Error> {
    let version = version(connection)?;
    let mut head = match version {
        // Without tables there is nothing to compare yet.
        0 => head,
        _ => head.agrees(connection, path)?,
    };
    if version == MIGRATIONS.len() {
        return Ok(head);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in &MIGRATIONS[version..] {
        transaction.execute_batch(migration)?;
    }
    let mut chain = head.chain();
    if (1..bound::SINCE).contains(&version) {
        bound::adopt(&transaction, &mut chain)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    transaction.commit()?;
    if version > 0 {
        head.advance(chain);
    }
    head.agrees(connection, path)
}
