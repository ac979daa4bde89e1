//! Changes in a file, and the hash that names them.

use std::fs;

use weighlock_effects::{Changes, Kind, Time};

use crate::world::World;

fn some() -> Option<World> {
    let mut world = World::new("echo 1 > f; echo 2 > old; ln -s a l; mkdir d")?;
    world.run(
        "echo 2 > f; mv old new; ln -sfn b l; rmdir d; mkfifo p; touch \"$(printf 'x\\377')\"; \
         seq 400000 > large",
    );
    Some(world)
}

#[test]
fn changes_are_loaded_as_they_were_saved() {
    let Some(world) = some() else {
        return;
    };
    let (changes, file) = (world.scan(), world.path("saved"));
    changes.save(&file, true).unwrap();
    changes.save(&file, false).unwrap();
    assert_eq!(Changes::load(&file).unwrap(), changes);
    assert_eq!(Changes::load(&file).unwrap().hash(), changes.hash());
}

#[test]
fn a_file_that_was_cut_is_not_loaded() {
    let Some(world) = some() else {
        return;
    };
    let file = world.path("saved");
    world.scan().save(&file, false).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let cut = text.trim_end().rfind('\n').unwrap();
    fs::write(&file, &text[..=cut]).unwrap();
    assert!(Changes::load(&file).is_err());
}

#[test]
fn the_hash_does_not_depend_on_the_live_tree() {
    let Some(world) = some() else {
        return;
    };
    let changes = world.scan();
    assert_eq!(changes.hash().len(), 24);
    let overtaken = world.scan_since(Time::default());
    assert!(overtaken.entries.iter().any(|change| change.overtaken));
    assert_eq!(overtaken.hash(), changes.hash());
}

#[test]
fn the_hash_names_all_that_is_applied() {
    let Some(world) = some() else {
        return;
    };
    let changes = world.scan();
    let alterations: [fn(&mut Changes); 8] = [
        |changes| changes.roots[0].live.push("x"),
        |changes| changes.entries.truncate(1),
        |changes| changes.entries[0].kind = Kind::Times,
        |changes| changes.entries[0].path.0.push("x"),
        |changes| after(changes).mode ^= 1,
        |changes| after(changes).mtime.nanos ^= 1,
        |changes| after(changes).attributes.push('x'),
        |changes| after(changes).content = Some("x".into()),
    ];
    for (index, alter) in alterations.into_iter().enumerate() {
        let mut other = changes.clone();
        alter(&mut other);
        assert_ne!(other.hash(), changes.hash(), "alteration {index}");
    }
}

fn after(changes: &mut Changes) -> &mut weighlock_effects::Node {
    let mut all = changes.entries.iter_mut();
    all.find_map(|change| change.after.as_mut()).unwrap()
}
