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
        spans
            .all
            .extend(script.unknowns.iter().map(|unknown| unknown.span));
        spans
    }

    fn list(&mut self, list: &List) {
        for item in &list.items {
            self.all.push(item.pipeline.span);
            item.pipeline
                .stages
                .iter()
                .for_each(|stage| self.command(stage));
        }
    }

    fn command(&mut self, command: &Command) {
        self.all.push(command.span);
        for redirection in &command.redirections {
            self.all.push(redirection.span);
            self.word(&redirection.target);
            if redirection.op == Redirect::HereDocument {
                self.bodies.push(redirection.target.span);
            }
        }
        self.kind(&command.kind);
    }

    fn kind(&mut self, kind: &Kind) {
        match kind {
            Kind::Simple(simple) => {
                self.names.extend(simple.words.first().map(Word::literal));
                simple
                    .assignments
                    .iter()
                    .for_each(|assignment| self.assignment(assignment));
                self.words(&simple.words);
            }
            Kind::Group(body) | Kind::Subshell(body) => self.list(body),
            Kind::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    self.list(condition);
                    self.list(body);
                }
                otherwise.iter().for_each(|body| self.list(body));
            }
            Kind::While { condition, body } => {
                self.list(condition);
                self.list(body);
            }
            Kind::For { words, body, .. } => {
                words.iter().for_each(|words| self.words(words));
                self.list(body);
            }
            Kind::Count { expressions, body } => {
                self.words(expressions);
                self.list(body);
            }
            Kind::Case { word, arms } => {
                self.word(word);
                for arm in arms {
                    self.words(&arm.patterns);
                    self.list(&arm.body);
                }
            }
            Kind::Function { body, .. } | Kind::Coprocess { body, .. } => self.command(body),
            Kind::Test(words) => self.words(words),
            Kind::Arithmetic(word) => self.word(word),
            Kind::Unknown => {}
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        self.all.push(assignment.span);
        assignment.index.iter().for_each(|index| self.word(index));
        match &assignment.value {
            Value::Scalar(word) => self.word(word),
            Value::Array(words) => self.words(words),
        }
    }

    fn words(&mut self, words: &[Word]) {
        words.iter().for_each(|word| self.word(word));
    }

    fn word(&mut self, word: &Word) {
        self.all.push(word.span);
        for piece in &word.pieces {
            match piece {
                Piece::Parameter(parameter) => {
                    self.all.push(parameter.span);
                    parameter.index.iter().for_each(|index| self.word(index));
                    self.words(&parameter.operands);
                }
                Piece::Command(command) => {
                    self.all.push(command.span);
                    self.list(&command.body);
                }
                Piece::Process { body, span, .. } => {
                    self.all.push(*span);
                    self.list(body);
                }
                Piece::Arithmetic { expression, .. } => self.word(expression),
                Piece::Array(words) => self.words(words),
                Piece::Unknown(span) => self.all.push(*span),
                Piece::Text { .. } | Piece::Glob(_) | Piece::Tilde(_) => {}
            }
        }
    }
}
