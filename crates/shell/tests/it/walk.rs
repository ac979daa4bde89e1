//! Collects every span of a tree.

use weighlock_shell::*;

#[derive(Default)]
pub(crate) struct Spans {
    pub(crate) all: Vec<Span>,
    /// Those that no pipeline is around: bodies of here-documents.
    pub(crate) bodies: Vec<Span>,
    /// What simple commands run; none if only running it tells.
    pub(crate) names: Vec<Option<String>>,
}

impl Spans {
    pub(crate) fn of(script: &Script) -> Spans {
        let mut spans = Spans::default();
        spans.list(&script.body);
        spans.all.extend(script.marks.iter().map(|(span, _)| *span));
        spans.all.extend(&script.bashisms);
        let unknowns = script.unknowns.iter();
        spans.all.extend(unknowns.map(|unknown| unknown.span));
        spans
    }
}

impl Visit for Spans {
    fn list(&mut self, list: &List) {
        let pipelines = list.items.iter().map(|item| item.pipeline.span);
        self.all.extend(pipelines);
        list.inside(self);
    }

    fn command(&mut self, command: &Command) {
        self.all.push(command.span);
        for redirection in &command.redirections {
            self.all.push(redirection.span);
            if redirection.op == Redirect::HereDocument {
                self.bodies.push(redirection.target.span);
            }
        }
        if let CommandKind::Simple(simple) = &command.kind {
            self.names.extend(simple.words.first().map(Word::literal));
            self.all
                .extend(simple.assignments.iter().map(|set| set.span));
        }
        command.inside(self);
    }

    fn word(&mut self, word: &Word) {
        self.all.push(word.span);
        word.inside(self);
    }

    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Parameter(parameter) => self.all.push(parameter.span),
            Piece::Command(command) => self.all.push(command.span),
            Piece::Process { span, .. } | Piece::Unknown(span) => self.all.push(*span),
            _ => {}
        }
        piece.inside(self);
    }
}
