//! Layers over layers whose changes were not applied yet.

use crate::world::{World, said};

fn second(setup: &str, first: &str, second: &str, expected: &[&str]) {
    let Some(mut world) = World::new(setup) else {
        return;
    };
    world.run(first);
    world.run(second);
    let changes = world.scan();
    let said: Vec<String> = said(&changes)
        .into_iter()
        .zip(&changes.entries)
        .map(|(line, change)| match change.built_on {
            Some(layer) => format!("{line} on {layer}"),
            None => line,
        })
        .collect();
    assert_eq!(
        said, expected,
        "after `{first}`, then `{second}` on `{setup}`"
    );
    assert!(changes.entries.iter().all(|change| !change.overtaken));
}

#[test]
fn an_earlier_layer_is_what_stood_there_before() {
    second("", "echo 1 > f", "echo 2 > f", &["modified f on 0"]);
    second(
        "echo 0 > f",
        "echo 1 > f",
        "echo 0 > f",
        &["modified f on 0"],
    );
    second("echo 0 > f", "echo 1 > g", "echo 1 > f", &["modified f"]);
    second("", "echo 1 > f", "rm f", &["deleted f on 0"]);
    second(
        "echo 0 > f",
        "echo 1 > f",
        "mv f g",
        &["renamed f -> g on 0"],
    );
    second("", "mkdir d", "touch d/f", &["created d/f"]);
}

#[test]
fn what_an_earlier_layer_deleted_is_not_there() {
    second("echo 0 > f", "rm f", "echo 1 > f", &["created f"]);
    second(
        "mkdir d; echo 0 > d/f",
        "rm -r d",
        "mkdir d; touch d/g",
        &["created d", "created d/g"],
    );
    second(
        "mkdir d; echo 0 > d/f",
        "rm -r d; mkdir d; echo 1 > d/g",
        "rm -r d",
        &["deleted d on 0", "deleted d/g on 0"],
    );
    second(
        "mkdir d; echo 0 > d/f",
        "rm -r d; echo 1 > d",
        "rm d",
        &["deleted d on 0"],
    );
}

#[test]
fn a_deleted_directory_is_that_of_all_layers() {
    second(
        "mkdir d; echo 0 > d/a; echo 0 > d/b; echo 0 > d/c",
        "rm d/a; echo 1 > d/b; echo 1 > d/n",
        "rm -r d",
        &[
            "deleted d on 0",
            "deleted d/b on 0",
            "deleted d/c",
            "deleted d/n on 0",
        ],
    );
}

#[test]
fn three_layers_are_looked_through() {
    let Some(mut world) = World::new("echo 0 > a; echo 0 > b") else {
        return;
    };
    world.run("echo 1 > a; echo 1 > c");
    world.run("echo 2 > b; rm c");
    world.run("rm a b; echo 3 > c");
    let changes = world.scan();
    let built: Vec<_> = changes
        .entries
        .iter()
        .map(|change| change.built_on)
        .collect();
    assert_eq!(said(&changes), ["deleted a", "deleted b", "created c"]);
    assert_eq!(built, [Some(1), Some(0), None]);
}
