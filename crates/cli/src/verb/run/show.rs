//! What `run` prints of its own.

use std::cell::{Cell, RefCell};
use std::io::{IsTerminal, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use weighlock_api::{CommandView, Run, State};
use weighlock_engine::DEFAULT_SANDBOX;

use super::RunOptions;
use crate::effect;
use crate::term::say;
use crate::text::{self, print_json};
use crate::verb::approve::result;
use crate::verb::show::ending;

/// What stands at the right end of a line ends here.
pub(super) const WIDTH: usize = 72;

/// After so long without output, a line says that the command still runs.
const QUIET: Duration = Duration::from_secs(1);

/// What we print: the command's output as it is, and a few lines of our own on
/// standard error.
#[derive(Clone)]
pub(super) struct Show {
    pub(super) json: bool,
    pub(super) quiet: bool,
    pub(super) terminal: bool,
    began: Instant,
    screen: Rc<Cell<ScreenState>>,
    /// How many warnings were said.
    warned: Rc<Cell<usize>>,
    /// What it is was said when a person was asked.
    pub(super) introduced: Rc<Cell<bool>>,
    /// The person at this terminal has decided.
    pub(super) decided: Rc<Cell<bool>>,
    /// The question that the person at this terminal postponed.
    pub(super) left: Rc<RefCell<Option<String>>>,
    /// It said that something cannot be renamed between file systems.
    pub(super) crossed: Rc<Cell<bool>>,
    /// What would help, where it failed for what a copy cannot do.
    pub(super) hint: Option<String>,
}

/// What is on the terminal: our status lines and the command's output.
#[derive(Clone, Copy)]
struct ScreenState {
    last_output: Instant,
    last_status: Option<Instant>,
    at_line_start: bool,
}

impl Show {
    pub(super) fn new(args: &RunOptions) -> Self {
        let now = Instant::now();
        Self {
            json: args.json,
            quiet: args.quiet || args.json,
            terminal: std::io::stderr().is_terminal(),
            began: now,
            warned: Rc::default(),
            introduced: Rc::default(),
            decided: Rc::default(),
            left: Rc::default(),
            crossed: Rc::default(),
            hint: None,
            screen: Rc::new(Cell::new(ScreenState {
                last_output: now,
                last_status: None,
                at_line_start: true,
            })),
        }
    }

    /// Said even when we are to be quiet: it changes what the output means.
    pub(super) fn warn(&mut self, what: &str) {
        if !self.json {
            self.hide_status();
            say!("warning: {}", text::safe(what));
        }
    }

    pub(super) fn say(&mut self, line: &str) {
        if !self.quiet {
            self.hide_status();
            say!("{line}");
        }
    }

    /// One line with something at its right end.
    fn aligned(&mut self, left: &str, right: &str) {
        self.say(&text::aligned(left, right, WIDTH));
    }

    fn title(run: &Run) -> String {
        match &run.detail.description {
            Some(description) => text::one_line(description, 50),
            None => text::command_line(&run.command, 50),
        }
    }

    /// Says the warnings that were not said before.
    pub(super) fn warnings(&mut self, run: &Run) {
        let all = &run.detail.warnings;
        let applied = effect::applied_note(run);
        for warning in all.iter().skip(self.warned.replace(all.len())) {
            // That is no warning, and was said.
            if Some(warning) != applied {
                self.warn(warning);
            }
        }
    }

    pub(super) fn begun(&mut self, run: &Run) {
        // A person may have thought about it for a while.
        self.began = Instant::now();
        self.screen.set(ScreenState {
            last_output: self.began,
            ..self.screen.get()
        });
        if self.introduced.get() {
            return;
        }
        let place = std::path::Path::new(&run.cwd);
        let place = place
            .file_name()
            .map_or("/".into(), |name| name.to_string_lossy());
        let sandbox = run.detail.sandbox.as_ref();
        let place = match sandbox {
            Some(sandbox) if sandbox.name != DEFAULT_SANDBOX => sandbox.name.as_str().into(),
            _ => place,
        };
        let network = sandbox.map_or("unknown", |sandbox| &sandbox.network);
        self.aligned(
            &format!("● {}", Self::title(run)),
            &format!("{} · network {network}", text::one_line(&place, 20)),
        );
    }

    pub(super) fn in_background(&mut self, begun: &CommandView) {
        if self.json {
            return print_json(begun);
        }
        let (title, id) = (Self::title(&begun.run), &begun.run.short_id);
        self.aligned(&format!("● {title} — in the background"), id);
        self.say(&format!(
            "  weighlock output {id} --follow    weighlock stop {id}"
        ));
        if let Some(file) = &begun.run.detail.output_file {
            self.say(&format!("  output: {}", text::safe(file)));
        }
        if self.quiet {
            let _ = writeln!(std::io::stdout(), "{id}");
        }
    }

    pub(super) fn heard(&mut self, bytes: &[u8]) {
        self.screen.set(ScreenState {
            last_output: Instant::now(),
            at_line_start: bytes.ends_with(b"\n"),
            ..self.screen.get()
        });
    }

    pub(super) fn wants_status(&self) -> bool {
        let screen = self.screen.get();
        let silent = screen.at_line_start && screen.last_output.elapsed() >= QUIET;
        self.terminal && !self.quiet && self.is_due() && silent
    }

    /// Whether the line that says so is old.
    pub(super) fn is_due(&self) -> bool {
        let last = self.screen.get().last_status;
        last.is_none_or(|last| last.elapsed() >= QUIET)
    }

    pub(super) fn status(&mut self, now: &CommandView) {
        let mut line = text::duration(self.began.elapsed().as_millis() as f64);
        if let Some(load) = &now.load {
            let plural = if load.processes == 1 { "" } else { "es" };
            line.push_str(&format!(
                " · {} process{plural} · {}",
                load.processes,
                text::size(load.memory_bytes)
            ));
        }
        self.turn(&line);
    }

    /// Says that we wait, in a line that goes away.
    pub(super) fn turn(&mut self, line: &str) {
        const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
        let seconds = self.began.elapsed().as_secs();
        let spinner = SPINNER[seconds as usize % SPINNER.len()];
        let _ = write!(std::io::stderr(), "\r\x1b[K{spinner} {line}");
        self.screen.set(ScreenState {
            last_status: Some(Instant::now()),
            ..self.screen.get()
        });
    }

    pub(super) fn hide_status(&mut self) {
        let mut screen = self.screen.get();
        if screen.last_status.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            self.screen.set(screen);
        }
    }

    /// Ends the command's last line, if it did not.
    pub(super) fn begin_line(&mut self) {
        let screen = self.screen.get();
        if !screen.at_line_start && !self.json {
            say!("");
            self.screen.set(ScreenState {
                at_line_start: true,
                ..screen
            });
        }
    }

    /// Says what would help, once.
    pub(super) fn give_hint(&mut self) {
        if let Some(hint) = self.hint.take() {
            self.say(&format!("hint: {hint}"));
        }
    }

    /// Formats how the run ended and what happened to its changes.
    fn outcome(&self, run: &Run) -> String {
        let changes = run.detail.changes.as_ref();
        let applied = changes.filter(|changes| changes.state == "applied" && changes.count() > 0);
        match applied {
            Some(_) if self.decided.get() => format!("✓ applied · {}", result(run)),
            Some(changes) if changes.applied_by.as_deref() == Some("policy") => {
                format!("{} · {} changed", ending(run), effect::files(changes))
            }
            _ => ending(run),
        }
    }

    pub(super) fn ended(&mut self, view: &CommandView) {
        if self.json {
            return print_json(view);
        }
        let run = &view.run;
        if !self.quiet {
            self.begin_line();
        }
        self.aligned(&self.outcome(run), &run.short_id);
        if run.state == State::Failed
            && run.exit_code == Some(0)
            && let Some(reason) = &run.detail.reason
        {
            self.say(&format!("  {}", text::safe(&reason.text)));
            let remedy = reason.remedy.as_deref();
            { remedy.iter() }.for_each(|remedy| self.say(&format!("  {}", text::safe(remedy))));
        }
        for denial in &run.detail.denials {
            self.say(&format!("  {}", text::safe(&denial.text)));
            self.say(&format!("    {}", text::safe(&denial.remedy)));
        }
        self.give_hint();
        self.warnings(run);
        for left in &run.detail.left_running {
            let fate = if left.fate == "kept" {
                "goes on"
            } else {
                "was ended"
            };
            self.say(&format!(
                "  left running, {fate}: {} (pid {})",
                text::command_line(&left.command, 60),
                left.pid
            ));
        }
        if run.state == State::Running {
            let id = &run.short_id;
            self.say(&format!(
                "  weighlock output {id} --follow    weighlock stop {id}"
            ));
        }
        if let Some(because) = &run.detail.output.lost_because {
            self.say(&format!(
                "  {} bytes of output could not be stored: {}",
                run.detail.output.lost_bytes,
                text::safe(because)
            ));
        }
    }
}
