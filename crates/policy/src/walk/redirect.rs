//! Files: those that the shell itself opens, and what kind of place a path is.

use std::rc::Rc;

use weighlock_shell::{Fd, Redirect, Redirection, Span};

use super::Walk;
use super::feed::StdinFeed;
use crate::argument::{Arg, UNKNOWN};
use crate::effect::Effect;
use crate::part::{Access, Link, Part, PartKind, Path, PlaceKind};
use crate::paths;

impl Walk<'_> {
    pub(super) fn redirections(&mut self, redirections: &[Redirection]) {
        for redirection in redirections {
            if self.is_spent() {
                return;
            }
            self.redirection(redirection);
        }
    }

    fn redirection(&mut self, redirection: &Redirection) {
        let before = self.parts.len();
        self.substitutions(&redirection.target);
        let download = self.downloaded(before);
        if let Some(Fd::Variable(name)) = &redirection.fd {
            self.assign_unknown(name);
        }
        // Others take one digit, and the rest for an argument.
        self.needs_bash |= matches!(redirection.fd, Some(Fd::Number(fd)) if fd > 9);
        let feeds_input = matches!(redirection.fd, None | Some(Fd::Number(0)));
        if matches!(
            redirection.op,
            Redirect::HereDocument | Redirect::HereString
        ) {
            if feeds_input {
                self.state.stdin = StdinFeed {
                    text: self.plain_text(&redirection.target).map(Rc::from),
                    download,
                    paths: None,
                };
            }
            if self.joined(&redirection.target).secret {
                let mut part = self.part(PartKind::Redirection, redirection.span);
                part.link = Link::With;
                part.does = "hands over a variable that holds a secret".into();
                part.effects.add(Effect::Secret);
                self.push(part);
            }
            return;
        }
        let mut targets = self.expand(&redirection.target, None);
        let (Some(target), 0) = (targets.pop(), targets.len()) else {
            return self.unknown(
                redirection.span,
                "the target of a redirection is not clear".into(),
            );
        };
        let access = match redirection.op {
            Redirect::Read => Access::Read,
            Redirect::DuplicateInput | Redirect::DuplicateOutput => {
                if is_descriptor(&target) {
                    return;
                }
                Access::Write
            }
            _ => Access::Write,
        };
        if access == Access::Read && feeds_input {
            let net = ["/dev/tcp/", "/dev/udp/"];
            self.state.stdin = StdinFeed {
                text: target.prints.as_deref().map(Rc::from),
                download: download || net.iter().any(|start| target.shape.starts_with(start)),
                ..StdinFeed::default()
            };
        }
        self.file(&target, access, redirection.span);
        if target.text.is_none()
            && let Some(text) = self.plain_text(&redirection.target)
            && !self.state.possible
            && self.guess()
        {
            self.state.possible = true;
            self.file(
                &Arg::known(text, redirection.span),
                access,
                redirection.span,
            );
            self.state.possible = false;
        }
    }

    /// A file that the shell itself opens.
    fn file(&mut self, target: &Arg, access: Access, span: Span) {
        let path = self.path(target, access, false);
        if path.place == PlaceKind::Sink {
            return;
        }
        let mut part = self.part(PartKind::Redirection, span);
        part.link = Link::With;
        if path.path.starts_with("/dev/tcp/") || path.path.starts_with("/dev/udp/") {
            part.effects.add(Effect::Network);
            part.hosts.push(path.path[9..].to_owned());
            part.does = format!("connects to {}", &path.path[9..]);
            return self.push(part);
        }
        part.does = match access {
            Access::Read => format!("reads {}", path.written),
            _ => format!("writes {}", path.written),
        };
        if access == Access::Write {
            part.effects.add(Effect::Write);
        }
        if target.text.is_none() {
            part.unknown = (access == Access::Write)
                .then(|| format!("`{}` is only known when it runs", target.shown()));
        }
        self.touch(&mut part, path);
        self.push(part);
    }

    /// Makes a path of an argument and says what kind of place it is.
    pub(super) fn path(&self, arg: &Arg, access: Access, deep: bool) -> Path {
        let path = paths::clean(&arg.shape, self.state.cwd.as_deref());
        Path {
            place: paths::kind_if(&path, access, deep, self.place, || self.look_at(&path)),
            path: path.replace(UNKNOWN, "*"),
            written: arg.shown(),
            access,
            deep,
        }
    }

    /// Adds a path to a part, with what follows from where it is.
    pub(super) fn touch(&self, part: &mut Part, path: Path) {
        match (path.place, path.access) {
            (PlaceKind::Secret, Access::Read) => part.effects.add(Effect::Secret),
            (PlaceKind::Device, _) => part.effects.add(Effect::Device),
            (PlaceKind::Protected, Access::Delete) if path.deep => part.tags.push("root-delete"),
            (PlaceKind::Protected, Access::Write) => part.tags.push("root-change"),
            _ => {}
        }
        part.paths.push(path);
    }
}

fn is_descriptor(target: &Arg) -> bool {
    target.text.as_ref().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(text);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}
