//! What `run` prints of its own.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use weighlock_engine::{DEFAULT_SANDBOX, Run, State};
use weighlock_server::CommandView;

use super::Args;
use crate::judged;
use crate::text::{self, print_json};
use crate::verb::show::ending;

/// Prints a line of our own. That nobody reads it does not matter.
macro_rules! say {
    ($($word:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($word)*)));
    }};
}
pub(super) use say;

/// After so long without output, a line says that the command still runs.
const QUIET: Duration = Duration::from_secs(1);

/// What we print: the command's output as it is, and a few lines of our own on
/// standard error.
#[derive(Clone)]
pub(super) struct Show {
    pub(super) json: bool,
    quiet: bool,
    terminal: bool,
    began: Instant,
    screen: Rc<Cell<Screen>>,
    /// How many warnings were said.
    warned: Rc<Cell<usize>>,
}

/// What is on the terminal, whoever put it there.
#[derive(Clone, Copy)]
struct Screen {
    last_output: Instant,
    last_status: Option<Instant>,
    at_line_start: bool,
}

impl Show {
    pub(super) fn new(args: &Args) -> Self {
        let now = Instant::now();
        Self {
            json: args.json,
            quiet: args.quiet || args.json,
            terminal: std::io::stderr().is_terminal(),
            began: now,
            warned: Rc::default(),
            screen: Rc::new(Cell::new(Screen {
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
        let pad = 72_usize.saturating_sub(left.chars().count() + right.chars().count());
        self.say(&format!("{left}{}{right}", " ".repeat(pad.max(2))));
    }

    fn title(run: &Run) -> String {
        let title = run.detail.description.as_ref().unwrap_or(&run.command);
        text::one_line(title, 50)
    }

    /// Says the warnings that were not said before.
    pub(super) fn warnings(&mut self, run: &Run) {
        let all = &run.detail.warnings;
        for warning in all.iter().skip(self.warned.replace(all.len())) {
            self.warn(warning);
        }
    }

    pub(super) fn begun(&mut self, run: &Run) {
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
        if self.quiet {
            let _ = writeln!(std::io::stdout(), "{id}");
        }
    }

    pub(super) fn blocked(&mut self, view: &CommandView) {
        if self.json {
            return print_json(view);
        }
        // Said even when asked to be quiet: nothing else tells what happened.
        let reason = view.run.detail.reason.as_ref();
        if view.run.state == State::Rejected {
            say!("⊘ Rejected — nothing was run");
            if let Some(reason) = reason {
                say!("   {}", text::safe(&reason.text));
            }
            return;
        }
        say!("⛔ Blocked — nothing was run");
        let Some(reason) = reason else { return };
        let part = reason.part.as_ref().unwrap_or(&view.run.command);
        let rule = reason.rule.as_deref().unwrap_or("default");
        let layer = reason.layer.as_deref().unwrap_or("built-in");
        let what = format!(
            "   {}   {}",
            text::one_line(part, 60),
            text::safe(&reason.text)
        );
        let rule = format!("rule {} ({})", text::safe(rule), text::safe(layer));
        say!("{}", judged::aligned(&what, &rule, 72));
        if let Some(remedy) = &reason.remedy {
            say!("   {}", text::safe(remedy));
        }
    }

    pub(super) fn heard(&mut self, bytes: &[u8]) {
        self.screen.set(Screen {
            last_output: Instant::now(),
            at_line_start: bytes.ends_with(b"\n"),
            ..self.screen.get()
        });
    }

    pub(super) fn wants_status(&self) -> bool {
        let screen = self.screen.get();
        let due = screen
            .last_status
            .is_none_or(|last| last.elapsed() >= QUIET);
        let silent = screen.at_line_start && screen.last_output.elapsed() >= QUIET;
        self.terminal && !self.quiet && due && silent
    }

    pub(super) fn status(&mut self, now: &CommandView) {
        const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
        let seconds = self.began.elapsed().as_secs();
        let spinner = SPINNER[seconds as usize % SPINNER.len()];
        let mut line = format!(
            "{spinner} {}",
            text::duration(self.began.elapsed().as_millis() as f64)
        );
        if let Some(load) = &now.load {
            let plural = if load.processes == 1 { "" } else { "es" };
            line.push_str(&format!(
                " · {} process{plural} · {}",
                load.processes,
                text::size(load.memory_bytes)
            ));
        }
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        self.screen.set(Screen {
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

    pub(super) fn ended(&mut self, view: &CommandView) {
        if self.json {
            return print_json(view);
        }
        let run = &view.run;
        if !self.screen.get().at_line_start {
            self.say("");
        }
        self.aligned(&ending(run), &run.short_id);
        for denial in &run.detail.denials {
            self.say(&format!("  {}", text::safe(&denial.text)));
            self.say(&format!("    {}", text::safe(&denial.remedy)));
        }
        self.warnings(run);
        for left in &run.detail.left_running {
            let fate = if left.fate == "kept" {
                "goes on"
            } else {
                "was ended"
            };
            self.say(&format!(
                "  left running, {fate}: {} (pid {})",
                text::one_line(&left.command, 60),
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
