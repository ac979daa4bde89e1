//! Minds the whole machine for runs in which nothing happens.
//!
//! Each keeper could look at its run by itself. But hundreds that wake up every
//! few seconds take a noticeable part of a processor, and one who reads what
//! the kernel counts can tell for all of them that there is nothing to see.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::WeakSender;
use tokio::sync::mpsc::error::TrySendError;
use weighlock_confine::{Alarm, Machine};

use crate::protocol::{KeeperOrder, Message};

/// How often the counts are read. What a sleeper that wakes up can do in that
/// time is bounded by how fast disks and memory are.
const EVERY: Duration = Duration::from_secs(4);

/// All that rest, of all servers in this process: the machine is the same.
static ALL: Mutex<All> = Mutex::new(All {
    resting: BTreeMap::new(),
    next: 0,
    minded: false,
});

struct All {
    resting: BTreeMap<u64, Resting>,
    /// The number of the next one.
    next: u64,
    /// There is a thread that reads the counts; only while somebody rests.
    minded: bool,
}

struct Resting {
    alarm: Alarm,
    /// To its keeper.
    orders: WeakSender<Vec<u8>>,
}

/// The alarm of one run: one at a time.
pub(crate) struct AlarmSlot {
    number: u64,
    orders: WeakSender<Vec<u8>>,
}

impl AlarmSlot {
    pub(crate) fn new(orders: WeakSender<Vec<u8>>) -> Self {
        let mut all = all();
        all.next += 1;
        let number = all.next;
        Self { number, orders }
    }

    /// Has the keeper look when this is due.
    pub(crate) fn set(&self, alarm: Alarm) {
        let mut all = all();
        let orders = self.orders.clone();
        all.resting.insert(self.number, Resting { alarm, orders });
        if !all.minded {
            let thread = thread::Builder::new().name("alarms".into());
            // Without one, the keeper still looks now and then.
            all.minded = thread.spawn(mind).is_ok();
        }
    }
}

impl Drop for AlarmSlot {
    fn drop(&mut self) {
        all().resting.remove(&self.number);
    }
}

fn mind() {
    loop {
        thread::sleep(EVERY);
        let mut all = all();
        if all.resting.is_empty() {
            all.minded = false;
            return;
        }
        let now = Machine::now();
        all.resting.retain(|_, resting| {
            // Who cannot tell had better say so.
            let is_due = now.is_none_or(|now| resting.alarm.is_due(&now));
            !is_due || !resting.wake()
        });
    }
}

impl Resting {
    /// Returns whether the keeper was told, or is nobody's any more.
    fn wake(&self) -> bool {
        let Some(orders) = self.orders.upgrade() else {
            return true;
        };
        let sent = orders.try_send(KeeperOrder::Look.encode());
        !matches!(sent, Err(TrySendError::Full(_)))
    }
}

fn all() -> MutexGuard<'static, All> {
    ALL.lock().unwrap_or_else(|lock| lock.into_inner())
}
