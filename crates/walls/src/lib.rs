//! From a sandbox and a directory to the walls around one run.
//!
//! [`Walls::build`] takes a [`Sandbox`] and an open [`WorkDir`] and returns a
//! [`Profile`](weighlock_confine::Profile) for `confine` to enforce, with
//! warnings for people: which directories the run sees, as which OS user, with
//! which toolchains, what is protected and what is hidden. After the run,
//! [`GuardedDir`] finds traps that it left, and [`Walls::explain_failure`] names
//! the walls that it met.
//!
//! The crate knows nothing of requests, approvals, the store or HTTP. It starts
//! one program, the person's login shell, and that through `exec`.
//!
//! ```no_run
//! use weighlock_walls::{
//!     CopyLayers, Error, Sandbox, WallRequest, WallSettings, Walls, WorkDir,
//! };
//!
//! # async fn build() -> Result<(), Error> {
//! let walls = Walls::new(WallSettings {
//!     base: "/srv/shop".into(),
//!     state_dir: "/var/lib/weighlock".into(),
//!     home: "/home/ana".into(),
//!     ..WallSettings::default()
//! });
//! let sandbox = Sandbox::new("shop");
//! let work_dir = WorkDir::open(walls.directory_of(&sandbox), Some("src"))?;
//! let request = WallRequest {
//!     sandbox: &sandbox,
//!     work_dir: &work_dir,
//!     path: &walls.search_path().await,
//!     other_dirs: &[],
//! };
//! let built = walls.build(&request, &mut CopyLayers::direct(true))?;
//! println!("{} mounts, {:?}", built.profile.files.len(), built.warnings);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod blacklist;
mod blame;
mod build_caches;
mod denial;
mod environment;
mod error;
mod guarded_dir;
mod home;
mod layers;
mod lock;
mod login_shell;
mod machine;
mod passwd;
mod profile;
mod protect;
mod repositories;
mod run_user;
mod sandbox;
mod search_path;
mod secret_files;
mod settings;
mod state;
mod timed_cache;
mod toolchains;
mod visibility;
mod walls;
mod work_dir;

pub use blacklist::{
    BlacklistGuard, SuspectRun, blacklist_path, remove_blacklist, write_blacklist,
};
pub use blame::FailedRun;
pub use denial::{ClosedNames, Denial, find_secret_denials, format_bytes};
pub use environment::{
    EnvironmentParts, PASSED_VARIABLES, RUN_VARIABLE, build_environment, inherit_variables,
    is_variable_name,
};
pub use error::Error;
pub use guarded_dir::GuardedDir;
pub use home::{HomeLeftovers, path_hash};
pub use layers::{CopyLayers, LowerCopy};
pub use login_shell::LoginPath;
pub use machine::{MachineFinding, Severity, explain_machine};
pub use passwd::PasswdEntry;
pub use profile::{FileAccess, RunWalls, WallRequest};
pub use protect::{GitSetting, join_lexically, parse_git_config, read_small_file};
pub use run_user::resolve_home;
pub use sandbox::{
    DEFAULT_HIDDEN, DEFAULT_SANDBOX, Review, Sandbox, SandboxSource, is_complete_path,
    is_sandbox_name, is_too_wide,
};
pub use settings::WallSettings;
pub use toolchains::TOOLCHAIN_VARIABLES;
pub use walls::Walls;
pub use work_dir::WorkDir;
