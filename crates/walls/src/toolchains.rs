//! Finds the toolchains and settings in a home directory that a run may read.
//!
//! Everything else there is hidden: keys, tokens, histories, mail, browsers,
//! other projects. A list of paths to hide would always be incomplete.

use std::path::{Path, PathBuf};

use weighlock_confine::{Access, Mount, Network};

/// Where people's toolchains live, below their home directory.
const TOOLCHAINS: &[&str] = &[
    ".asdf",
    // Without its cache, which it writes to.
    ".bun/bin",
    ".cargo/bin",
    ".deno",
    ".dotnet",
    ".fnm",
    ".ghcup",
    ".goenv",
    ".jenv",
    ".juliaup",
    ".linuxbrew",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/rtx",
    ".local/share/uv",
    ".n",
    ".nix-profile",
    ".nodenv",
    ".npm-global",
    ".nvm",
    ".opam",
    ".phpenv",
    ".poetry",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    // Without the package store, which it writes to.
    ".stack/programs",
    ".swiftly",
    ".volta",
    ".yarn/bin",
    "anaconda3",
    "go/bin",
    "miniconda3",
    "miniforge3",
    "sdk",
];

/// Downloaded packages. While a sandbox has none of its own, it sees the
/// person's read-only, so that a project builds again without a network. With a
/// network, the package manager needs a directory that it can write to.
const PACKAGE_STORES: &[&str] = &[".cargo/registry", ".cargo/git"];

/// Variables that name the directory of a toolchain which is not in its usual
/// place.
pub const TOOLCHAIN_VARIABLES: &[&str] = &[
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "VOLTA_HOME",
];

/// Git's settings, which name the author of commits. Shown at the second path
/// that git reads, so that the first one stays writable.
const GIT_CONFIGS: [(&str, &str); 2] = [
    (".config/git/config", ".config/git/config"),
    (".gitconfig", ".config/git/config"),
];

/// Files that git's settings often name: ignore lists and attributes.
const GIT_FILES: &[&str] = &[
    ".config/git/attributes",
    ".config/git/ignore",
    ".gitignore",
    ".gitignore_global",
];

/// The configuration of name resolution. Usually a link into `/run`, of which a
/// run sees nothing else.
const RESOLVER: &str = "/etc/resolv.conf";

/// What the programs of a toolchain need beside the `bin` that PATH names.
/// Showing every sibling would be too much: those of `~/.local/bin` include
/// keyrings.
const BESIDE_BIN: &[&str] = &["lib", "lib64", "libexec", "pyvenv.cfg"];

/// Where to look for toolchains.
pub(crate) struct ToolSearch<'a> {
    /// The home directory that the run sees.
    pub(crate) home: &'a Path,
    /// The sandbox's own home directory on the host.
    pub(crate) layer: &'a Path,
    /// PATH.
    pub(crate) path: &'a str,
    /// The server's environment.
    pub(crate) server: &'a [(String, String)],
    pub(crate) network: Network,
}

impl ToolSearch<'_> {
    /// Returns read-only mounts for what a run sees of the home directory, and
    /// for directories elsewhere that PATH and variables name.
    pub(crate) fn find_mounts(&self) -> Vec<Mount> {
        let mut found = self.in_home();
        if self.network == Network::On {
            found.extend(resolver());
        }
        // Roots first: a directory of PATH is usually below one, and shown with
        // it.
        for dir in self.roots().chain(self.path.split(':')) {
            let dir = Path::new(dir);
            if dir.is_absolute() && !is_shown(dir, &found) && !self.home.starts_with(dir) {
                found.extend(show_read_only(dir, dir.to_owned()));
                found.extend(beside_bin(dir, self.home));
            }
        }
        found
    }

    fn in_home(&self) -> Vec<Mount> {
        let show = |from: &str, at: &str| show_read_only(&self.home.join(from), self.home.join(at));
        let named = TOOLCHAINS.iter().chain(GIT_FILES);
        let stores = PACKAGE_STORES.iter().filter(|name| self.lends_store(name));
        let same = named.chain(stores).filter_map(|name| show(name, name));
        let configs = GIT_CONFIGS.iter().filter_map(|(from, at)| show(from, at));
        same.chain(configs).collect()
    }

    fn lends_store(&self, name: &str) -> bool {
        self.network == Network::Off && is_empty(&self.layer.join(name))
    }

    fn roots(&self) -> impl Iterator<Item = &str> {
        let is_root = |name: &str| TOOLCHAIN_VARIABLES.contains(&name);
        let named = self.server.iter().filter(move |(name, _)| is_root(name));
        named.map(|(_, value)| value.as_str())
    }
}

fn resolver() -> Option<Mount> {
    let leads_to = Path::new(RESOLVER).canonicalize().ok()?;
    let hidden = leads_to.starts_with("/run");
    hidden
        .then(|| show_read_only(&leads_to, leads_to.clone()))
        .flatten()
}

fn beside_bin(bin: &Path, home: &Path) -> Vec<Mount> {
    let root = bin.parent().filter(|_| bin.ends_with("bin"));
    let Some(root) = root.filter(|root| !home.starts_with(root)) else {
        return vec![];
    };
    let parts = BESIDE_BIN.iter().map(|name| root.join(name));
    parts
        .filter_map(|part| show_read_only(&part, part.clone()))
        .collect()
}

fn is_shown(dir: &Path, found: &[Mount]) -> bool {
    weighlock_confine::SYSTEM
        .iter()
        .any(|part| dir.starts_with(part))
        || found.iter().any(|mount| match mount {
            Mount::Show { at, .. } => dir.starts_with(at),
            _ => false,
        })
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none())
}

/// Returns a read-only mount of `from` at `at`; `None` if it does not exist. A
/// link is shown as its target.
pub(crate) fn show_read_only(from: &Path, at: PathBuf) -> Option<Mount> {
    let from = from.canonicalize().ok()?;
    // The order to a keeper is JSON, which holds no other names.
    from.to_str()?;
    Some(Mount::Show {
        from,
        at,
        access: Access::Read,
        is: None,
        lent: false,
        required: false,
    })
}
