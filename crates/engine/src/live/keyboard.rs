//! Who types at a terminal: one at a time. A person takes the keyboard at
//! once; what others type meanwhile is held until it is given back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
pub use weighlock_api::ControlView;
use weighlock_exec::Size;

use crate::error::Error;
use crate::principal::Principal;
use crate::time;
use crate::view::Run;

/// Ctrl C: the kernel throws away what was typed and not read, and a shell
/// what is on its line, whatever keys were before.
pub(crate) const INTERRUPT: u8 = 0x03;

/// Bytes that are typed at once, at the most.
pub(crate) const MOST: usize = 64 * 1024;

/// Keys, in the order that they are pressed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed {
    /// Literal text; a line end is the Enter key.
    pub text: Option<String>,
    /// Text as from a clipboard: programs that can tell take it as one.
    pub paste: Option<String>,
    /// Keys by name, such as `C-c`, `Up` or `F5`.
    pub keys: Vec<String>,
    /// And then Enter.
    pub submit: bool,
    /// And then the key that ends the input of programs which read lines.
    pub eof: bool,
}

/// What became of something that was typed.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// It is with the program. What became of earlier input that was held, and
    /// what was said when the keyboard was given back, is told with it.
    Typed(Option<String>),
    /// Somebody else has the keyboard; it is typed when that is given back.
    Held(String),
    /// It is a command that a person is asked about; it is typed when they
    /// agree.
    Asked(Box<Run>),
}

/// Warns the keyboard's holder this long before it is released.
pub(crate) const WARNING: Duration = Duration::from_secs(60);

/// The most messages that are kept for one who does not read them.
const MOST_NEWS: usize = 8;

/// What is known about who types.
#[derive(Default)]
pub(crate) struct Keyboard(watch::Sender<Turn>);

/// Whose turn it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    /// How often it was taken; tells one time from another.
    times: u64,
    holder: Option<Holder>,
    /// What was said when it was given back.
    said: Option<String>,
    /// What others have typed since.
    held: VecDeque<Held>,
    /// It was given back, and what others have typed is being typed.
    catching_up: bool,
    /// How often what was held was dropped.
    dropped: u64,
    /// Who has typed since, or wants something run, and is to be told how it
    /// went on.
    curious: BTreeSet<String>,
    /// What they have not been told yet.
    untold: BTreeMap<String, Vec<String>>,
}

/// What somebody has typed while another had the keyboard.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) typed: Typed,
    pub(crate) who: Principal,
    pub(crate) bytes: Vec<u8>,
    /// How often something was dropped before.
    round: u64,
}

impl Held {
    pub(crate) fn new(typed: &Typed, who: &Principal, bytes: &[u8]) -> Self {
        Self {
            typed: typed.clone(),
            who: who.clone(),
            bytes: bytes.to_vec(),
            round: 0,
        }
    }
}

/// The person who has taken it.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) name: String,
    pub(crate) since: i64,
    /// The size to be restored.
    pub(crate) before: Size,
    /// It is given back then, if nothing happens.
    pub(crate) until: Instant,
    /// It is being given back.
    pub(crate) leaving: bool,
}

impl Keyboard {
    /// Returns who types, as doors show it.
    pub(crate) fn view(&self) -> ControlView {
        self.0.borrow().view()
    }

    /// Tells whenever that changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Turn> {
        self.0.subscribe()
    }

    /// Returns whether nobody has taken it, and nothing waits to be typed.
    pub(crate) fn is_free(&self) -> bool {
        self.0.borrow().is_free()
    }

    /// Waits until that is so.
    pub(crate) async fn free(&self) {
        let mut changes = self.0.subscribe();
        let _ = changes.wait_for(Turn::is_free).await;
    }

    /// Takes it for somebody. Returns the number of that time, or who has it.
    pub(crate) fn take(&self, mut holder: Holder) -> Result<u64, String> {
        let mut times = Err(String::new());
        self.0.send_if_modified(|state| {
            if let Some(other) = &state.holder
                && other.name != holder.name
            {
                times = Err(other.name.clone());
                return false;
            }
            state.times += 1;
            times = Ok(state.times);
            // Whoever takes it again had the terminal at their size before.
            if let Some(before) = state.holder.take() {
                holder.before = before.before;
            }
            state.holder = Some(holder.clone());
            true
        });
        times
    }

    /// Returns who has taken it, if it is still the same time.
    pub(crate) fn holder(&self, times: u64) -> Option<Holder> {
        let state = self.0.borrow();
        let holder = state.holder.as_ref().filter(|_| state.times == times);
        holder.cloned()
    }

    /// Tells those who watch how it is, again.
    pub(crate) fn remind(&self) {
        self.0.send_modify(|_| {});
    }

    /// Leaves a message for the next one who types.
    pub(crate) fn say(&self, text: String) {
        self.0.send_modify(|state| state.said = Some(text));
    }

    /// Refuses what cannot be held.
    pub(crate) fn check_free(&self) -> Result<(), Error> {
        match &self.0.borrow().holder {
            Some(holder) => Err(Error::KeyboardTaken {
                by: holder.name.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Keeps what somebody types while another has the keyboard, or while what
    /// was kept is being typed. Returns what became of it, unless it can be
    /// typed now.
    ///
    /// Holds input until the keyboard is given back. An interrupt key drops the
    /// input held before it, because the program would not read that.
    pub(crate) fn hold(&self, mut held: Held) -> Result<Option<Sent>, Error> {
        let mut sent = None;
        let mut full = false;
        self.0.send_if_modified(|state| {
            if state.is_free() {
                return false;
            }
            if state.holder.is_none() && is_signal(&held.bytes) {
                state.held.clear();
                state.dropped += 1;
                return true;
            }
            held.round = state.dropped;
            full = state.held_bytes() + held.bytes.len() > MOST;
            if !full {
                state.held.push_back(held.clone());
                state.curious.insert(held.who.name().to_owned());
                sent = Some(match state.catching_up {
                    true => Sent::Typed(None),
                    false => Sent::Held(state.view().text.unwrap_or_default()),
                });
            }
            !full
        });
        match full {
            true => Err(Error::invalid(
                "too_much_input",
                "too much input is held already; this was not sent".into(),
                "wait until the keyboard is given back",
            )),
            false => Ok(sent),
        }
    }

    /// Has somebody told how it goes on who waits for their turn, if another
    /// has the keyboard.
    pub(crate) fn await_news(&self, who: &str) {
        self.0.send_if_modified(|state| {
            if state.holder.is_some() {
                state.curious.insert(who.to_owned());
            }
            false
        });
    }

    /// Keeps something for somebody, until they are answered next.
    pub(crate) fn tell_later(&self, who: &str, text: String) {
        self.0.send_if_modified(|state| {
            state.tell(who.to_owned(), text.clone());
            false
        });
    }

    /// Returns what somebody has not been told yet, once.
    pub(crate) fn news(&self, who: &str) -> Option<String> {
        let mut news = None;
        self.0.send_if_modified(|state| {
            news = state.untold.remove(who);
            false
        });
        news.map(|news| news.join("\n"))
    }

    pub(crate) fn touch(&self, idle: Duration) {
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut();
            holder.is_some_and(|holder| {
                let warned = holder.is_near();
                holder.until = Instant::now() + idle;
                warned
            })
        });
    }

    /// Gives it back early, unless its holder has reconnected.
    pub(crate) fn lose(&self, times: u64, after: Duration) {
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut().filter(|_| state.times == times);
            let lost = Instant::now() + after;
            holder.is_some_and(|holder| {
                holder.until = holder.until.min(lost);
                true
            })
        });
    }

    /// Begins to give it back. Returns who had it, for one who may do so.
    pub(crate) fn leave(&self, times: u64) -> Option<Holder> {
        let mut left = None;
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut().filter(|_| state.times == times);
            if let Some(holder) = holder.filter(|holder| !holder.leaving) {
                holder.leaving = true;
                left = Some(holder.clone());
            }
            false
        });
        left
    }

    /// It could not be given back after all.
    pub(crate) fn stay(&self, times: u64) {
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut().filter(|_| state.times == times);
            holder.is_some_and(|holder| std::mem::take(&mut holder.leaving))
        });
    }

    /// Is nobody's from now on. What others have typed is typed next, or
    /// dropped.
    pub(crate) fn let_go(&self, times: u64, said: String, drop_held: bool) {
        self.0.send_if_modified(|state| {
            let given = state.holder.take_if(|_| state.times == times).is_some();
            if given {
                for who in std::mem::take(&mut state.curious) {
                    state.tell(who, said.clone());
                }
                state.said = Some(said.clone());
                if drop_held {
                    state.drop_held();
                }
                state.catching_up = !state.held.is_empty();
            }
            given
        });
    }

    /// Waits until something that was held is dropped.
    pub(crate) async fn drops(&self, held: &Held) {
        let mut changes = self.0.subscribe();
        let _ = changes.wait_for(|state| state.has_dropped(held)).await;
    }

    /// Returns whether it was.
    pub(crate) fn has_dropped(&self, held: &Held) -> bool {
        self.0.borrow().has_dropped(held)
    }

    /// Returns the next held input to type.
    pub(crate) fn catch_up(&self) -> Option<Held> {
        let mut held = None;
        self.0.send_if_modified(|state| {
            if state.holder.is_none() {
                held = state.held.pop_front();
            }
            // Who takes it meanwhile holds up the rest.
            state.catching_up &= held.is_some();
            true
        });
        held
    }
}

impl Turn {
    fn is_free(&self) -> bool {
        self.holder.is_none() && !self.catching_up
    }

    fn has_dropped(&self, held: &Held) -> bool {
        self.dropped != held.round
    }

    fn tell(&mut self, who: String, text: String) {
        let news = self.untold.entry(who).or_default();
        if news.len() == MOST_NEWS {
            news.remove(0);
        }
        news.push(text);
    }

    fn drop_held(&mut self) {
        let typists: BTreeSet<String> = { self.held.drain(..) }
            .map(|held| held.who.name().to_owned())
            .collect();
        for who in typists {
            self.tell(who, "What you typed meanwhile was dropped.".into());
        }
    }

    fn held_bytes(&self) -> usize {
        self.held.iter().map(|held| held.bytes.len()).sum()
    }

    fn view(&self) -> ControlView {
        let holder = self.holder.as_ref();
        let typing = holder.map(|holder| {
            format!(
                "{} is typing in this terminal. Your input is held.",
                holder.name
            )
        });
        ControlView {
            taken_by: holder.map(|holder| holder.name.clone()),
            since: holder.map(|holder| time(holder.since)),
            held_bytes: self.held_bytes(),
            text: typing.or_else(|| self.said.clone()),
            seconds_left: holder.filter(|holder| holder.is_near()).map(Holder::left),
        }
    }
}

impl Holder {
    fn left(&self) -> u64 {
        let left = self.until.saturating_duration_since(Instant::now());
        left.as_secs_f64().ceil() as u64
    }

    fn is_near(&self) -> bool {
        self.until.saturating_duration_since(Instant::now()) <= WARNING
    }
}

/// Whether it is one key at which the kernel signals what runs, as Ctrl C, and
/// of which nothing is left.
pub(crate) fn is_signal(bytes: &[u8]) -> bool {
    matches!(bytes, [INTERRUPT | 0x1A | 0x1C])
}
