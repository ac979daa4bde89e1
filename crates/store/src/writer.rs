//! The one thread that writes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{broadcast, oneshot};

use crate::bound;
use crate::chain::Chain;
use crate::entry::Entry;
use crate::entry::Recorded;
use crate::error::Error;
use crate::head::ChainHead;
use crate::histogram::Histogram;

/// At most this many writes share a transaction, so that the first does not
/// wait for an endless row of others.
const BATCH: usize = 256;

/// How often what was written is pushed to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// How many events a subscriber may be behind before it must read them from
/// the audit: a few seconds of a busy server.
const EVENTS: usize = 1024;

/// What a caller wants done; gives the entries that must go along.
type Deed = Box<dyn FnOnce(&Connection) -> Result<Vec<Entry>, Error> + Send>;

struct WriteRequest {
    deed: Deed,
    answer: oneshot::Sender<Result<(), Error>>,
}

/// A handle to the writing thread.
pub(crate) struct Writer {
    pub(crate) dir: PathBuf,
    pub(crate) events: Events,
    pub(crate) commits: Arc<Histogram>,
    wishes: Option<mpsc::Sender<WriteRequest>>,
    thread: Option<JoinHandle<()>>,
}

/// The channel on which appended entries are published.
type Events = broadcast::Sender<Arc<Recorded>>;

impl Writer {
    pub(crate) fn start(connection: Connection, head: ChainHead, dir: &Path) -> Self {
        let (wishes, inbox) = mpsc::channel();
        let log = PathBuf::from(format!("{}-wal", connection.path().unwrap_or_default()));
        let events = broadcast::Sender::new(EVENTS);
        let commits = Arc::<Histogram>::default();
        let scribe = Scribe {
            connection,
            head,
            events: events.clone(),
            commits: Arc::clone(&commits),
        };
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || scribe.serve(&inbox, log))
            .expect("a thread can be started at start-up");
        Self {
            dir: dir.to_owned(),
            events,
            commits,
            wishes: Some(wishes),
            thread: Some(thread),
        }
    }

    /// A writer that refuses.
    pub(crate) fn none(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            events: broadcast::Sender::new(1),
            commits: Arc::default(),
            wishes: None,
            thread: None,
        }
    }

    /// Waits until everything is written and the database is closed.
    pub(crate) fn close(self) {
        drop(self.wishes);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }

    /// Does the deed and appends its entries, both or neither. What the deed
    /// gives comes back once that is certain.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        deed: impl FnOnce(&Connection) -> Result<(T, Vec<Entry>), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (give, take) = oneshot::channel();
        let (answer, done) = oneshot::channel();
        let deed = Box::new(move |to: &Connection| {
            let (value, entries) = deed(to)?;
            // A caller that went away does not need it.
            let _ = give.send(value);
            Ok(entries)
        });
        let wishes = self.wishes.as_ref().ok_or(Error::Closed)?;
        wishes
            .send(WriteRequest { deed, answer })
            .map_err(|_| Error::Closed)?;
        done.await.map_err(|_| Error::Closed)??;
        take.await.map_err(|_| Error::Closed)
    }

    /// Does what needs no entry.
    pub(crate) async fn execute(
        &self,
        sql: &'static str,
        values: impl rusqlite::Params + Send + 'static,
    ) -> Result<(), Error> {
        self.write(move |to| {
            to.prepare_cached(sql)?.execute(values)?;
            Ok(((), vec![]))
        })
        .await
    }
}

/// Pairs what a deed did with its entries, which are left out when it did
/// nothing.
pub(crate) fn only_if(done: bool, entries: Vec<Entry>) -> (bool, Vec<Entry>) {
    (done, if done { entries } else { vec![] })
}

/// What the writing thread owns.
struct Scribe {
    connection: Connection,
    head: ChainHead,
    events: Events,
    commits: Arc<Histogram>,
}

type Answers = Vec<(oneshot::Sender<Result<(), Error>>, Result<(), Error>)>;

impl Scribe {
    fn serve(mut self, inbox: &mpsc::Receiver<WriteRequest>, log: PathBuf) {
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
            self.commit(batch);
            let _ = dirty.send(());
        }
    }

    /// Writes a batch in one transaction. A wish that cannot be granted does
    /// not spoil the others.
    fn commit(&mut self, batch: Vec<WriteRequest>) {
        let mut answers = vec![];
        let began = Instant::now();
        let written = self.attempt(batch, &mut answers);
        self.commits.observe(began.elapsed());
        for (answer, result) in answers {
            // A caller that went away does not need to know.
            let _ = answer.send(match &written {
                Ok(()) => result,
                Err(error) => Err(error.again()),
            });
        }
    }

    fn attempt(&mut self, batch: Vec<WriteRequest>, answers: &mut Answers) -> Result<(), Error> {
        let begun = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate);
        let mut transaction = match begun {
            Ok(transaction) => transaction,
            Err(error) => {
                answers.extend(batch.into_iter().map(|wish| (wish.answer, Ok(()))));
                return Err(error.into());
            }
        };
        let mut chain = self.head.chain();
        let mut appended = vec![];
        let alone = batch.len() == 1;
        for wish in batch {
            let mut grown = chain.clone();
            // With nobody beside it, all of the transaction can be taken back.
            let result = match alone {
                true => write(&transaction, &mut grown, wish.deed),
                false => grant(&mut transaction, &mut grown, wish.deed),
            };
            let failed = result.is_err();
            if !failed {
                chain = grown;
            }
            answers.push((wish.answer, result.map(|new| appended.extend(new))));
            if alone && failed {
                // Dropped, it takes back what the database has not already.
                return Ok(());
            }
        }
        transaction.commit()?;
        self.head.advance(chain);
        // Before the callers hear of it, so that whoever has an answer finds
        // its events told. Nobody may be listening.
        for recorded in appended {
            let _ = self.events.send(Arc::new(recorded));
        }
        Ok(())
    }
}

/// Does what others in the same transaction do not depend on.
fn grant(
    transaction: &mut Transaction<'_>,
    chain: &mut Chain,
    deed: Deed,
) -> Result<Vec<Recorded>, Error> {
    // Dropped without commit, a savepoint takes back what was done since.
    let mut savepoint = transaction.savepoint()?;
    savepoint.set_drop_behavior(rusqlite::DropBehavior::Rollback);
    let appended = write(&savepoint, chain, deed)?;
    savepoint.commit()?;
    Ok(appended)
}

fn write(to: &Connection, chain: &mut Chain, deed: Deed) -> Result<Vec<Recorded>, Error> {
    let entries = deed(to)?;
    let rows = bound::touched(to)?;
    bound::append(to, chain, entries, rows)
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
