//! Much, and far down.

use crate::world::{World, said};

#[test]
fn many_files_are_read() {
    let Some(mut world) = World::new("mkdir d; cd d; seq 5000 | xargs touch") else {
        return;
    };
    world.run("mkdir n; cd n; seq 20000 | xargs touch; rm -r ../d");
    let changes = world.scan();
    assert_eq!(changes.entries.len(), 20_001 + 5_001);
    assert_eq!(changes.conflicts().unwrap(), []);
}

#[test]
fn deep_trees_are_read_and_deleted() {
    let deep = "i=0; while [ $i -lt 1100 ]; do mkdir d; cd d; i=$((i+1)); done; echo 1 > f";
    let Some(mut world) = World::new(deep) else {
        return;
    };
    world.run(
        "rm -r d; mkdir n; cd n; i=0; while [ $i -lt 1100 ]; do mkdir d; cd d; i=$((i+1)); done",
    );
    let changes = world.scan();
    assert_eq!(changes.entries.len(), 1101 + 1101);
    assert_eq!(changes.refused, []);
    assert_eq!(changes.conflicts().unwrap(), []);
}

#[test]
fn what_is_too_deep_to_be_opened_is_refused() {
    let Some(mut world) = World::new("") else {
        return;
    };
    let name = "n".repeat(250);
    world.run(&format!(
        "i=0; while [ $i -lt 20 ]; do mkdir {name}; cd -P {name}; i=$((i+1)); done"
    ));
    let said = said(&world.scan());
    let refused: Vec<_> = said
        .iter()
        .filter(|line| line.starts_with("refused"))
        .collect();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].ends_with("has a path that is too long to be opened"));
}
