//! The rules: which are in force, what they say about a command, and how
//! people change them.

mod blacklist;
mod compare;
mod explain;
mod files;
mod judge;
mod listed;
mod memory;
mod past;
mod save;

pub use self::blacklist::BlacklistFile;
pub use self::compare::{Compared, ComparedCommand};
pub use self::explain::{
    Explanation, GrantView, OptionView, PartView, PolicyView, ReasonView, RuleInForce, RuleView,
    TokenView,
};
pub(crate) use self::explain::{reason_view, written};
pub(crate) use self::files::tag;
pub use self::files::{PolicyText, RuleEdit, RuleEdited, RuleInfo, RulesChecked, VersionView};
pub use self::judge::{Judge, check_rules};
pub(crate) use self::judge::{Judged, Where, clean};
pub use self::listed::Listed;
pub(crate) use self::memory::Freed;
pub(crate) use self::past::Past;
pub use self::past::PastCommand;
pub use self::save::Save;
