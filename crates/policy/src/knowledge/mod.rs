//! What programs do, by name.

mod model;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

pub use model::Obeys;
pub(crate) use model::{
    Arity, Operand, OperandRole, OptionMode, OptionSpec, OptionSyntax, Program,
};

/// Everything that `knowledge/*.toml` says, as the build script packed it.
const PACKED: &str = include_str!(concat!(env!("OUT_DIR"), "/knowledge.txt"));

static KNOWLEDGE: LazyLock<Knowledge> = LazyLock::new(Knowledge::index);

struct Knowledge {
    exact: HashMap<&'static str, &'static LazyProgram>,
    /// Names that end in `*`, without it.
    prefixes: Vec<(&'static str, &'static LazyProgram)>,
}

/// One program, read when it is first asked for: a server meets a few dozen of
/// three thousand.
struct LazyProgram {
    packed: &'static str,
    program: OnceLock<Program>,
}

impl Knowledge {
    fn index() -> Self {
        let entries: Vec<(&str, LazyProgram)> = PACKED.lines().map(entry).collect();
        let mut all = Self {
            exact: HashMap::new(),
            prefixes: vec![],
        };
        for (names, entry) in Vec::leak(entries) {
            for name in names.split(' ') {
                match name.strip_suffix('*') {
                    Some(prefix) => all.prefixes.push((prefix, entry)),
                    None => drop(all.exact.insert(name, entry)),
                }
            }
        }
        all
    }
}

fn entry(line: &'static str) -> (&'static str, LazyProgram) {
    let (names, packed) = line.split_once('\t').expect("the build script wrote it");
    let entry = LazyProgram {
        packed,
        program: OnceLock::new(),
    };
    (names, entry)
}

impl LazyProgram {
    fn program(&self) -> &Program {
        let read = || serde_json::from_str(self.packed).expect("the build script wrote it");
        self.program.get_or_init(read)
    }
}

/// Returns what is known about a program.
pub(crate) fn program(name: &str) -> Option<&'static Program> {
    let known = &*KNOWLEDGE;
    let exact = known.exact.get(name).copied();
    let entry = exact.or_else(|| {
        let mut prefixes = known.prefixes.iter();
        let found = prefixes.find(|(prefix, _)| name.starts_with(prefix))?;
        Some(found.1)
    });
    entry.map(LazyProgram::program)
}

/// Finds out where everything is now rather than at the first command.
pub fn load() {
    LazyLock::force(&KNOWLEDGE);
}
