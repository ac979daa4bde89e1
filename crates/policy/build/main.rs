//! Checks `knowledge/*.toml` and packs it into one text of which a program is
//! quickly found and read: reading all of the TOML at every start would take
//! longer than many commands.

#[path = "../src/knowledge/model.rs"]
#[expect(unreachable_pub, reason = "the crate itself exports a part of it")]
mod model;
mod raw;

fn main() {
    println!("cargo::rerun-if-changed=knowledge");

    let mut files: Vec<_> = std::fs::read_dir("knowledge")
        .expect("the crate has a directory `knowledge`")
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
        .collect();
    files.sort();
    let mut programs: Vec<model::Program<String>> = vec![];
    let mut errors = vec![];
    for path in files {
        #[expect(clippy::disallowed_methods, reason = "building is not judging")]
        let text = std::fs::read_to_string(&path).expect("a file can be read");
        let read = raw::read(&text).unwrap_or_else(|wrong| {
            errors.extend(
                wrong
                    .iter()
                    .map(|error| format!("{}: {error}", path.display())),
            );
            vec![]
        });
        for name in read.iter().flat_map(|program| &program.names) {
            let known = programs.iter().any(|program| program.names.contains(name));
            if known {
                errors.push(format!("{}: {name} is there twice", path.display()));
            }
        }
        programs.extend(read);
    }
    assert!(
        errors.is_empty(),
        "knowledge has mistakes:\n{}",
        errors.join("\n")
    );
    // A line for each: its names, a tab, and what is known, as JSON.
    let mut packed = String::new();
    for program in &programs {
        let known = serde_json::to_string(program).expect("plain data is always JSON");
        packed.push_str(&format!("{}\t{known}\n", program.names.join(" ")));
    }
    // The judge borrows from it, which it could not do with escapes.
    assert!(
        !packed.contains('\\'),
        "knowledge needs no quotes or backslashes"
    );
    let out = std::env::var_os("OUT_DIR").expect("cargo says where to write");
    let out = std::path::Path::new(&out).join("knowledge.txt");
    #[expect(clippy::disallowed_methods, reason = "building is not judging")]
    std::fs::write(out, packed).expect("the build directory can be written");
}
