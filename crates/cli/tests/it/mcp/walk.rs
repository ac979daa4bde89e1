//! Walking through a document, line by line.

use std::path::Path;

/// What is made of a line here.
pub(crate) enum Here<World> {
    /// This shows that it holds.
    Holds(fn(&World)),
    /// A test elsewhere does: its file in the repository, and its name.
    Test(&'static str, &'static str),
    /// It is no matter of a tool's, for this reason.
    No(&'static str),
}

/// Goes through the lines in their order. A line is quoted as it stands in the
/// document, which is not in the repository.
pub(crate) fn walk<World>(world: &World, document: &[(&str, Here<World>)]) {
    for (quoted, here) in document {
        // The last one said is the one that does not hold.
        println!("{quoted}");
        match here {
            Here::Holds(holds) => holds(world),
            Here::Test(file, name) => assert!(has_test(file, name), "no test {name} in {file}"),
            Here::No(reason) => assert!(!reason.is_empty()),
        }
    }
}

/// Whether a test is where it is said to be.
fn has_test(file: &str, name: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
    match file.ends_with(".ts") {
        true => text.contains(&format!("\ntest('{name}', async (")),
        false => {
            text.contains(&format!("#[test]\nfn {name}()"))
                || text.contains(&format!("#[test]\n    fn {name}()"))
        }
    }
}
