//! The commands that `xargs` runs with what it reads.

use weighlock_shell::Span;

use super::Walk;
use super::find::fill;
use super::known::ProgramAction;
use crate::argument::Arg;
use crate::part::Part;
use crate::program::Reading;

/// What is handed over by `echo` is short.
const MAX_ECHO: usize = 4 * 1024;

impl Walk<'_> {
    /// Returns what a command does that runs another.
    pub(super) fn handed_on(
        &self,
        part: &Part,
        reading: &Reading,
        args: &[Arg],
    ) -> Vec<ProgramAction> {
        let commands = match part.program.as_str() {
            "xargs" | "parallel" => self.fed(reading, args),
            _ => vec![args.to_vec()],
        };
        let mut deeds: Vec<ProgramAction> = commands.into_iter().map(ProgramAction::Argv).collect();
        if let (Some(text), "xargs") = (&self.state.stdin.text, part.program.as_str())
            && text.len() <= MAX_ECHO
        {
            let span = args.first().map_or_else(Span::default, |arg| arg.span);
            let words = text.split_whitespace();
            let words = words.map(|word| Arg::known(word, span));
            let argv = args.iter().cloned().chain(words);
            deeds.push(ProgramAction::Possible(argv.collect()));
        }
        deeds
    }

    /// Returns the commands that are run with what is read.
    fn fed(&self, reading: &Reading, args: &[Arg]) -> Vec<Vec<Arg>> {
        let options = || reading.options.iter();
        // The last one counts.
        let place = options()
            .rfind(|option| matches!(option.name, "-I" | "-i" | "--replace"))
            .map(|option| option.value.clone().unwrap_or_else(|| "{}".into()));
        // Of this and that the later wins, and then the input goes to the end.
        let batches = ["-n", "--max-args", "-L", "-l", "--max-lines"];
        let batched = options().any(|option| batches.contains(&option.name));
        let inputs = self.inputs(reading, args);
        let Some(place) = place else {
            return vec![args.iter().cloned().chain(inputs).collect()];
        };
        let filled = inputs.iter().map(|input| {
            let mut argv = args.to_vec();
            let one = Arg {
                many: false,
                ..input.clone()
            };
            fill(&mut argv, &place, &one);
            argv.extend(batched.then(|| input.clone()));
            argv
        });
        filled.collect()
    }

    /// Returns what is read, as far as it is known.
    fn inputs(&self, reading: &Reading, args: &[Arg]) -> Vec<Arg> {
        let span = args.first().map_or_else(Span::default, |arg| arg.span);
        let mut words = reading.uses.iter().flat_map(|used| &used.args);
        let mut input = Arg::anything(span);
        input.download = self.state.stdin.download || words.any(|arg| arg.download);
        let Some(paths) = &self.state.stdin.paths else {
            return vec![input];
        };
        let like = |path: &String| Arg {
            shape: path.clone(),
            ..input.clone()
        };
        paths.iter().map(like).collect()
    }
}
