//! Toolchains and settings in a home directory that a run may look at.
//!
//! Everything else there is hidden: keys, tokens, histories, mail, browsers,
//! other projects. A list of what to hide would always miss something.

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
    // Likewise.
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

/// Downloaded packages. While a sandbox has none of its own, the person's are
/// lent, so that what was once built can be built without a network. With one,
/// others are to be had, and what is lent could not take them.
const STORES: &[&str] = &[".cargo/registry", ".cargo/git"];

/// Variables that say where a toolchain is when it is elsewhere.
pub(crate) const VARIABLES: &[&str] = &[
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

/// Git's settings, which say who commits. Shown at the second place where git
/// looks, so that the first one can be written.
const GIT: [(&str, &str); 2] = [
    (".config/git/config", ".config/git/config"),
    (".gitconfig", ".config/git/config"),
];

/// What such settings name most often: files that no commit should take in.
const GIT_NAMED: &[&str] = &[
    ".config/git/attributes",
    ".config/git/ignore",
    ".gitignore",
    ".gitignore_global",
];

/// Where the names of other machines are looked up. Most often a link into
/// `/run`, of which nothing else is shown.
const RESOLVER: &str = "/etc/resolv.conf";

/// What the programs of a toolchain need, beside the `bin` that PATH names. All
/// beside it would be too much: that of `~/.local/bin` holds keyrings.
const BESIDE_BIN: &[&str] = &["lib", "lib64", "libexec", "pyvenv.cfg"];

/// Lists what is to be seen of a home directory, and what PATH and variables
/// name elsewhere.
pub(super) fn find(
    home: &Path,
    layer: &Path,
    path: &str,
    env: &[(String, String)],
    network: Network,
) -> Vec<Mount> {
    let mut found = vec![];
    for name in TOOLCHAINS.iter().chain(GIT_NAMED) {
        found.extend(read(&home.join(name), home.join(name)));
    }
    if network == Network::On {
        found.extend(resolver());
    }
    for name in STORES {
        if network == Network::Off && is_empty(&layer.join(name)) {
            found.extend(read(&home.join(name), home.join(name)));
        }
    }
    for (from, at) in GIT {
        found.extend(read(&home.join(from), home.join(at)));
    }
    let named = env
        .iter()
        .filter(|(name, _)| VARIABLES.contains(&name.as_str()))
        .map(|(_, value)| value.as_str());
    // Roots first: what PATH names is below one as a rule, and seen with it.
    for dir in named.chain(path.split(':')) {
        let dir = Path::new(dir);
        if dir.is_absolute() && !is_seen(dir, &found) && !home.starts_with(dir) {
            found.extend(read(dir, dir.to_owned()));
            found.extend(beside(dir, home));
        }
    }
    found
}

fn resolver() -> Option<Mount> {
    let leads_to = Path::new(RESOLVER).canonicalize().ok()?;
    let hidden = leads_to.starts_with("/run");
    hidden.then(|| read(&leads_to, leads_to.clone())).flatten()
}

fn beside(bin: &Path, home: &Path) -> Vec<Mount> {
    let root = bin.parent().filter(|_| bin.ends_with("bin"));
    let Some(root) = root.filter(|root| !home.starts_with(root)) else {
        return vec![];
    };
    let parts = BESIDE_BIN.iter().map(|name| root.join(name));
    parts.filter_map(|part| read(&part, part.clone())).collect()
}

fn is_seen(dir: &Path, found: &[Mount]) -> bool {
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

/// Shows what is there; a link, as what it leads to.
pub(super) fn read(from: &Path, at: PathBuf) -> Option<Mount> {
    let from = from.canonicalize().ok()?;
    // What is not text could not be told to a keeper.
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
