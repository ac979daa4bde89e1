//! Runs one command inside walls: `cargo run --example inside -- 'id; ls /'`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weighlock_confine::{
    Access, FileId, Limits, Mount, NOBODY, Network, Notice, Profile, ProgramSpec, Rung, Spare,
    Tree, Writes, is_root,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command = std::env::args().nth(1).unwrap_or("id; pwd; ls /".into());
    let here = std::env::current_dir()?;
    let layer = std::env::temp_dir().join("weighlock-example-home");
    std::fs::create_dir_all(&layer)?;
    if is_root() {
        std::os::unix::fs::chown(&layer, Some(NOBODY.uid), Some(NOBODY.gid))?;
    }
    let spare = Spare::prepare()?;
    let profile = profile(&here, layer)?;
    let grown = Tree::spawn(spare, profile, program(command), || {
        Ok(vec![
            std::fs::File::open("/dev/null")?.into(),
            rustix::io::dup(rustix::stdio::stdout())?,
            rustix::io::dup(rustix::stdio::stderr())?,
        ])
    })?;
    for layer in grown.walls.layers {
        eprintln!("{:<11} {:?}: {}", layer.name, layer.holds, layer.how);
    }
    loop {
        for notice in grown.tree.hear()? {
            match notice {
                Notice::Empty(_) => return Ok(()),
                told => eprintln!("{told:?}"),
            }
        }
    }
}

fn profile(here: &Path, layer: std::path::PathBuf) -> std::io::Result<Profile> {
    let meta = here.metadata()?;
    let id = FileId {
        device: meta.dev(),
        inode: meta.ino(),
    };
    Ok(Profile {
        identity: NOBODY,
        home: "/home/agent".into(),
        home_layer: layer.canonicalize()?,
        home_writes: Writes::Kept,
        files: vec![match std::env::args().nth(2) {
            // A directory with `upper` and `work` in it takes what is written.
            Some(layer) => Mount::Layered {
                from: here.into(),
                at: here.into(),
                is: Some(id),
                lent: is_root() && meta.uid() == 0,
                below: std::env::args().skip(3).map(Into::into).collect(),
                layer: Some(layer.into()),
            },
            None => Mount::Show {
                from: here.into(),
                at: here.into(),
                access: Access::Write,
                is: Some(id),
                lent: is_root() && meta.uid() == 0,
                required: true,
            },
        }],
        cwd: here.into(),
        cwd_is: None,
        network: Network::Off,
        limits: Limits {
            memory_bytes: 4 << 30,
            processes: 512,
            cpu_weight: 100,
            open_files: 1024,
            file_bytes: 1 << 30,
            disk_bytes: 1 << 30,
            disk_files: 1 << 20,
        },
        minimum: Rung::Landlock,
    })
}

fn program(command: String) -> ProgramSpec {
    let env = [("PATH", "/usr/bin:/bin"), ("HOME", "/home/agent")];
    ProgramSpec {
        argv: vec!["/bin/sh".into(), "-c".into(), command],
        env: env.map(|(name, value)| (name.into(), value.into())).into(),
        note: None,
        terminal: None,
    }
}
