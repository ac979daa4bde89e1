//! The one thread that writes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::audit::{Chain, Entry, Head};
use crate::open::Error;

/// At most this many writes share a transaction, so that the first does not
/// wait for an endless row of others.
const BATCH: usize = 256;

/// How often what was written is pushed to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// What a caller wants done, with the entries that must go along.
type Deed = Box<dyn FnOnce(&Connection) -> Result<(), rusqlite::Error> + Send>;

struct Wish {
    deed: Deed,
    entries: Vec<Entry>,
    answer: oneshot::Sender<Result<(), Error>>,
}

/// A handle to the writing thread.
pub(crate) struct Writer {
    pub(crate) dir: PathBuf,
    wishes: Option<mpsc::Sender<Wish>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, head: Head, dir: &Path) -> Self {
        let (wishes, inbox) = mpsc::channel();
        let log = PathBuf::from(format!("{}-wal", connection.path().unwrap_or_default()));
        std::thread::Builder::new()
            .name("store".into())
            .spawn(move || serve(connection, head, &inbox, log))
            .expect("a thread can be started at start-up");
        Self {
            dir: dir.to_owned(),
            wishes: Some(wishes),
        }
    }

    /// A writer that refuses.
    pub(crate) fn none(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            wishes: None,
        }
    }

    /// Does the deed and appends the entries, both or neither.
    pub(crate) async fn write(
        &self,
        entries: Vec<Entry>,
        deed: impl FnOnce(&Connection) -> Result<(), rusqlite::Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (answer, done) = oneshot::channel();
        let wish = Wish {
            deed: Box::new(deed),
            entries,
            answer,
        };
        let wishes = self.wishes.as_ref().ok_or(Error::Closed)?;
        wishes.send(wish).map_err(|_| Error::Closed)?;
        done.await.map_err(|_| Error::Closed)?
    }
}

fn serve(mut connection: Connection, mut head: Head, inbox: &mpsc::Receiver<Wish>, log: PathBuf) {
    let (dirty, syncs) = mpsc::channel();
    let _ = std::thread::Builder::new()
        .name("store-sync".into())
        .spawn(move || sync(&syncs, &log));
    while let Ok(first) = inbox.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(next) = inbox.try_recv()
        {
            batch.push(next);
        }
        commit(&mut connection, &mut head, batch);
        let _ = dirty.send(());
    }
}

/// Writes a batch in one transaction. A wish that cannot be granted does not
/// spoil the others.
fn commit(connection: &mut Connection, head: &mut Head, batch: Vec<Wish>) {
    let mut answers = vec![];
    let written = attempt(connection, head, batch, &mut answers);
    for (answer, result) in answers {
        // A caller that went away does not need to know.
        let _ = answer.send(match &written {
            Ok(()) => result,
            Err(error) => Err(again(error)),
        });
    }
}

type Answers = Vec<(oneshot::Sender<Result<(), Error>>, Result<(), Error>)>;

fn attempt(
    connection: &mut Connection,
    head: &mut Head,
    batch: Vec<Wish>,
    answers: &mut Answers,
) -> Result<(), Error> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let mut transaction = match begun {
        Ok(transaction) => transaction,
        Err(error) => {
            answers.extend(batch.into_iter().map(|wish| (wish.answer, Ok(()))));
            return Err(error.into());
        }
    };
    let mut chain = head.chain();
    for wish in batch {
        let mut grown = chain.clone();
        let result = grant(&mut transaction, &mut grown, wish.deed, wish.entries);
        if result.is_ok() {
            chain = grown;
        }
        answers.push((wish.answer, result));
    }
    transaction.commit()?;
    head.advance(chain);
    Ok(())
}

fn grant(
    transaction: &mut Transaction<'_>,
    chain: &mut Chain,
    deed: Deed,
    entries: Vec<Entry>,
) -> Result<(), Error> {
    // Dropped without commit, a savepoint takes back what was done since.
    let mut savepoint = transaction.savepoint()?;
    savepoint.set_drop_behavior(rusqlite::DropBehavior::Rollback);
    deed(&savepoint)?;
    for entry in entries {
        chain.append(&savepoint, entry)?;
    }
    Ok(savepoint.commit()?)
}

/// The same failure for each caller of a batch.
fn again(error: &Error) -> Error {
    match error {
        Error::Full => Error::Full,
        Error::Busy => Error::Busy,
        Error::Corrupt { path, what } => Error::Corrupt {
            path: path.clone(),
            what: what.clone(),
        },
        Error::Database(error) => Error::Database(error.clone()),
        _ => Error::Closed,
    }
}

/// Pushes the write-ahead log to the disk, at most once a second.
fn sync(dirty: &mpsc::Receiver<()>, log: &Path) {
    while dirty.recv().is_ok() {
        let until = Instant::now() + SYNC_EVERY;
        while dirty
            .recv_timeout(until.saturating_duration_since(Instant::now()))
            .is_ok()
        {}
        if let Ok(file) = File::open(log) {
            let _ = file.sync_data();
        }
    }
}
