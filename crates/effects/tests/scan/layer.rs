//! Layers are made like what they cover, and go whatever a run left in them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use weighlock_effects::Layer;

use crate::world::World;

#[test]
fn the_top_of_a_layer_looks_like_the_live_directory() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().canonicalize().unwrap().join("live");
    fs::create_dir(&live).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&live, "user.x", b"1", flags).unwrap();
    fs::set_permissions(&live, PermissionsExt::from_mode(0o2751)).unwrap();
    let layer = Layer::make(&live.with_file_name("layer"), &live).unwrap();
    let (one, other) = (
        fs::metadata(&live).unwrap(),
        fs::metadata(layer.upper()).unwrap(),
    );
    let key = |stat: &fs::Metadata| {
        (
            stat.mode(),
            stat.uid(),
            stat.gid(),
            stat.mtime(),
            stat.mtime_nsec(),
        )
    };
    assert_eq!(key(&one), key(&other));
    let mut value = [0; 8];
    let length = rustix::fs::getxattr(layer.upper(), "user.x", value.as_mut_slice());
    assert_eq!(&value[..length.unwrap()], b"1");
    for private in [live.with_file_name("layer"), layer.work()] {
        assert_eq!(fs::metadata(private).unwrap().mode() & 0o777, 0o700);
    }
}

#[test]
fn a_layer_is_not_made_over_another() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    Layer::make(&dir.join("layer"), &dir).unwrap();
    assert!(Layer::make(&dir.join("layer"), &dir).is_err());
}

#[test]
fn an_absent_layer_is_removed_already() {
    let dir = tempfile::tempdir().unwrap();
    Layer::remove(&dir.path().canonicalize().unwrap().join("none")).unwrap();
}

#[test]
fn a_layer_goes_whatever_a_run_left_in_it() {
    let Some(mut world) = World::new("mkdir keep; echo 1 > keep/f") else {
        return;
    };
    let name = "n".repeat(250);
    world.run(&format!(
        "ln -s '{keep}' link; mkdir locked; echo 1 > locked/f; mkdir locked/in; ln -s '{keep}' locked/in/link; \
         mkfifo pipe; touch \"$(printf 'x\\377')\" removed-1; mkdir removed-2; touch removed-2/f; \
         (i=0; while [ $i -lt 40 ]; do mkdir {name}; cd -P {name}; i=$((i+1)); done); \
         (i=0; while [ $i -lt 1200 ]; do mkdir d; cd -P d; i=$((i+1)); done); \
         chmod 000 locked/in; chmod 000 locked",
        keep = world.path("live/keep").display(),
    ));
    let layer = world.upper().parent().unwrap().to_owned();
    Layer::remove(&layer).unwrap();
    assert!(!layer.exists());
    assert_eq!(
        fs::read_to_string(world.path("live/keep/f")).unwrap(),
        "1\n"
    );
}
