//! Watching a run: its output, our input, and Ctrl C.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncReadExt;
use weighlock_api::{CommandView, Frame, State, StopRequest};

use super::ask::Asking;
use super::show::Show;
use super::{InputSource, RunOptions, lacked, wait};
use crate::client::{Client, Failure};
use crate::frames::FrameDecoder;
use crate::paths::Paths;
use crate::signals::Signals;

/// A pipe on standard input that says nothing for so long is one that somebody
/// forgot to close; waiting for it would hang the command.
const SILENT_PIPE: Duration = Duration::from_millis(100);

/// How long the last output of a command that was stopped may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a command that is asked to stop has to end in order.
const GRACE_MS: u64 = 2000;

/// A run that we watch.
pub(super) struct Attending<'a> {
    pub(super) client: Client,
    pub(super) paths: &'a Paths,
    pub(super) id: String,
    pub(super) asked_to_stop: u32,
    pub(super) signals: Signals,
    pub(super) show: Show,
    /// What the result should say besides what the server knows.
    pub(super) notes: Vec<String>,
}

impl Attending<'_> {
    /// Passes everything on until the command has ended or we waited enough.
    pub(super) async fn attend(
        &mut self,
        input: InputSource,
        wait: Option<Duration>,
        begun: CommandView,
    ) -> Result<CommandView, Failure> {
        let present = wait::attend(self.paths.clone(), self.id.clone());
        let ended = self.pass_all(input, wait, begun).await;
        if ended.is_err() {
            // As the failure says. If the server is gone, nobody ends the run.
            let _ = wait::go_on(self.paths, &self.id).await;
        }
        // Only now: the server ends a run whose client hangs up.
        drop(present);
        ended
    }

    async fn pass_all(
        &mut self,
        input: InputSource,
        wait: Option<Duration>,
        begun: CommandView,
    ) -> Result<CommandView, Failure> {
        let mut following = Client::open(self.paths).await?;
        let address = format!("/commands/{}/output/raw?frames=true&follow=ended", self.id);
        let frames = FrameDecoder::new(following.stream(&address).await?);
        let passing = pass_on(frames, self.show.clone());
        let feeding = feed(self.paths.clone(), self.id.clone(), input);
        tokio::pin!(passing, feeding);
        let (mut fed, mut unread) = (input == InputSource::None, false);
        let mut deadline = wait.map(|wait| tokio::time::Instant::now() + wait);
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        let (tell_stopped, mut stopped) = tokio::sync::mpsc::channel(1);
        loop {
            tokio::select! {
                done = &mut passing, if !unread => match done.map_err(|failure| self.goes_on(failure))? {
                    Passed::All => break,
                    // As if the command itself had met the broken pipe.
                    Passed::NobodyReads => {
                        unread = true;
                        self.stop(false, tell_stopped.clone());
                    }
                },
                note = &mut feeding, if !fed => {
                    fed = true;
                    if let Some(note) = note? {
                        self.show.warn(&note);
                        self.notes.push(note);
                    }
                }
                interrupt = self.signals.next() => {
                    // From now on its end is what we wait for.
                    deadline = None;
                    self.stop(interrupt, tell_stopped.clone());
                }
                // What was stopped has a moment to hand over its last output.
                Some(()) = stopped.recv() => {
                    if unread {
                        break;
                    }
                    deadline = Some(tokio::time::Instant::now() + LAST_WORDS);
                }
                () = until(deadline) => break,
                _ = tick.tick() => self.show_patience().await,
            }
        }
        self.show.hide_status();
        if begun.run.state != State::Running {
            return Ok(begun);
        }
        let late = deadline.is_some_and(|deadline| tokio::time::Instant::now() >= deadline);
        let mut ended = match late {
            true => wait::go_on(self.paths, &self.id).await?,
            // The output has ended; the record follows at once.
            false => wait::until_ended(self.paths, &self.id).await?,
        };
        ended.run.detail.warnings.extend(self.notes.iter().cloned());
        Ok(ended)
    }

    /// Asks about what it has changed on a copy.
    pub(super) async fn ask(
        &mut self,
        ended: CommandView,
        args: &RunOptions,
        deadline: Option<tokio::time::Instant>,
    ) -> Result<CommandView, Failure> {
        self.show.begin_line();
        self.show.give_hint();
        let mut asking = Asking {
            paths: self.paths,
            signals: &mut self.signals,
            show: &mut self.show,
            at_once: args.no_wait || args.bg,
            leaves: args.no_wait,
            patience: args.wait,
        };
        let mut settled = asking.changes(&mut self.client, ended, deadline).await?;
        settled
            .run
            .detail
            .warnings
            .extend(self.notes.iter().cloned());
        Ok(settled)
    }

    fn goes_on(&self, failure: Failure) -> Failure {
        let hint = format!("the run continues: weighlock output {} --follow", self.id);
        Failure { hint, ..failure }
    }

    /// Asks the run to end: the first time politely.
    fn stop(&mut self, interrupt: bool, tell: tokio::sync::mpsc::Sender<()>) {
        self.asked_to_stop += 1;
        let how = StopRequest {
            interrupt,
            grace_ms: Some(if self.asked_to_stop == 1 { GRACE_MS } else { 0 }),
        };
        let (paths, id) = (self.paths.clone(), self.id.clone());
        tokio::spawn(async move {
            let mut client = Client::open(&paths).await?;
            let path = format!("/commands/{id}/stop");
            let stopped = client.post::<CommandView>(&path, &how).await;
            let _ = tell.send(()).await;
            stopped
        });
    }

    async fn show_patience(&mut self) {
        if !self.show.wants_status() {
            return;
        }
        let path = format!("/commands/{}", self.id);
        if let Ok(now) = self.client.get::<CommandView>(&path).await {
            self.show.status(&now);
        }
    }
}

const SILENT_NOTE: &str = "standard input is a pipe that said nothing and was closed for the \
                           command; use --stdin to wait for it";

/// Hands over our input; returns what should be said about it.
async fn feed(paths: Paths, id: String, input: InputSource) -> Result<Option<String>, Failure> {
    if input == InputSource::None {
        return Ok(None);
    }
    let mut client = Client::open(&paths).await?;
    let mut stdin = tokio::io::stdin();
    let mut buffer = vec![0; 64 * 1024];
    let mut first = true;
    loop {
        let read = stdin.read(&mut buffer);
        let read = if first && input == InputSource::Pipe {
            tokio::time::timeout(SILENT_PIPE, read).await
        } else {
            Ok(read.await)
        };
        first = false;
        let (bytes, last, note) = match read {
            Ok(Ok(0)) => (Bytes::new(), true, None),
            Ok(Ok(read)) => (Bytes::copy_from_slice(&buffer[..read]), false, None),
            Ok(Err(error)) => (Bytes::new(), true, Some(error.to_string())),
            Err(_) => (Bytes::new(), true, Some(SILENT_NOTE.into())),
        };
        let path = format!("/commands/{id}/stdin?last={last}");
        let wanted = client.feed(&path, bytes).await?;
        if last || !wanted {
            return Ok(note);
        }
    }
}

/// Prints the command's output as it comes. Printing has a thread of its own:
/// a reader that does not read must not keep us from hearing Ctrl C.
async fn pass_on(mut frames: FrameDecoder, mut show: Show) -> Result<Passed, Failure> {
    while let Some((kind, bytes)) = frames.next().await? {
        show.heard(&bytes);
        if matches!(kind, Frame::Stderr) && lacked::is_crossed(&bytes) {
            show.crossed.set(true);
        }
        if show.json {
            continue;
        }
        show.hide_status();
        let printed = tokio::task::spawn_blocking(move || print(kind, &bytes)).await;
        if printed.is_ok_and(|done| is_broken_pipe(&done)) {
            return Ok(Passed::NobodyReads);
        }
    }
    Ok(Passed::All)
}

/// How passing on the output ended.
enum Passed {
    All,
    NobodyReads,
}

fn is_broken_pipe(done: &std::io::Result<()>) -> bool {
    done.as_ref()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn print(kind: Frame, bytes: &[u8]) -> std::io::Result<()> {
    match kind {
        Frame::Stdout => flushed(&mut std::io::stdout().lock(), bytes),
        Frame::Stderr => flushed(&mut std::io::stderr().lock(), bytes),
        Frame::Gap => {
            let missing = bytes.try_into().map_or(0, u64::from_be_bytes);
            let note = format!("… {missing} bytes of output came too fast and are not kept …\n");
            flushed(&mut std::io::stderr().lock(), note.as_bytes())
        }
    }
}

fn flushed(to: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// Waits for a time that may never come.
pub(super) async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
