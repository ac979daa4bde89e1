//! Who may call an address, said where the address is added.

use std::collections::HashMap;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::ApiMethodRouter;
use axum::extract::MatchedPath;
use axum::http::Method;
use axum::http::request::Parts;
use weighlock_engine::{Engine, Role};

use crate::pages::is_page;

/// What is below every address of the service.
pub(crate) const ROOT: &str = "/agent/terminal";

/// Who may call an address, beside what the engine says of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anyone who uses one of the server's own host names.
    Anyone,
    /// Known principals, processes inside of a run among them.
    Runs,
    /// As [`Access::Runs`]. It applies, discards or reverts changes if its caller
    /// may approve, and then not from inside of a run. Agents report there how a
    /// command of theirs has ended.
    Settles,
    /// Known principals. What changes something is refused to processes inside
    /// of a run, even to those of its owner.
    Outside,
}

impl Access {
    /// Returns whether a request is refused when it comes from inside of a run.
    pub(crate) fn is_outside_only(self, method: &Method, role: Role) -> bool {
        let closed = match self {
            Self::Anyone | Self::Runs => false,
            Self::Settles => role >= Role::Approver,
            Self::Outside => true,
        };
        closed && method != Method::GET
    }
}

/// The addresses whose access is not [`Access::Outside`], as the router names them.
#[derive(Debug, Default)]
pub(crate) struct AccessTable {
    paths: HashMap<String, Access>,
    /// Addresses with [`Access::Anyone`], each for one method alone.
    open: HashMap<String, Method>,
}

impl AccessTable {
    /// Lets anyone send requests with this method.
    pub(crate) fn open(&mut self, method: Method, path: &str) {
        self.open.insert(format!("{ROOT}{path}"), method);
    }

    /// Returns who may send this request. What no address has said is closed.
    pub(crate) fn find(&self, head: &Parts) -> Access {
        let Some(path) = head.extensions.get::<MatchedPath>() else {
            let is_page = is_page(&head.method, &head.uri);
            return if is_page {
                Access::Anyone
            } else {
                Access::Outside
            };
        };
        if self.open.get(path.as_str()) == Some(&head.method) {
            return Access::Anyone;
        }
        let said = self.paths.get(path.as_str());
        said.copied().unwrap_or(Access::Outside)
    }
}

/// All addresses, while they are added.
pub(crate) struct Routes {
    pub(crate) router: ApiRouter<Arc<Engine>>,
    pub(crate) access: AccessTable,
}

type Methods = ApiMethodRouter<Arc<Engine>>;

impl Routes {
    pub(crate) fn new() -> Self {
        Self {
            router: ApiRouter::new(),
            access: AccessTable::default(),
        }
    }

    /// Adds an address that is closed: see [`Access::Outside`].
    pub(crate) fn add(mut self, path: &str, methods: Methods) -> Self {
        self.router = self.router.api_route(path, methods);
        self
    }

    /// Adds an address with [`Access::Runs`].
    pub(crate) fn add_for_runs(self, path: &str, methods: Methods) -> Self {
        self.add_with(Access::Runs, path, methods)
    }

    /// Adds an address with [`Access::Settles`].
    pub(crate) fn add_settling(self, path: &str, methods: Methods) -> Self {
        self.add_with(Access::Settles, path, methods)
    }

    /// Adds an address that anyone may send this method to: see [`Access::Anyone`].
    pub(crate) fn add_for_anyone(mut self, method: Method, path: &str, methods: Methods) -> Self {
        self.access.open(method, path);
        self.add(path, methods)
    }

    fn add_with(mut self, access: Access, path: &str, methods: Methods) -> Self {
        self.access.paths.insert(format!("{ROOT}{path}"), access);
        self.add(path, methods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_says_nothing_is_closed_to_runs() {
        let refused = |access: Access, method, role| access.is_outside_only(&method, role);
        for role in [Role::Agent, Role::Approver, Role::Administrator] {
            assert!(refused(Access::Outside, Method::POST, role));
            assert!(refused(Access::Outside, Method::HEAD, role));
            assert!(!refused(Access::Outside, Method::GET, role));
            assert!(!refused(Access::Runs, Method::POST, role));
        }
        assert!(!refused(Access::Settles, Method::POST, Role::Agent));
        assert!(refused(Access::Settles, Method::POST, Role::Approver));
        assert!(!refused(Access::Settles, Method::GET, Role::Approver));
    }
}
