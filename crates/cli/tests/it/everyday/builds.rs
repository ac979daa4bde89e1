//! Compilers, package managers and debuggers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{SYSTEM, check, check_with, desk};
use crate::support::{Home, have, no_toolchain};

/// Two crates, one beside the other and one vendored.
const CRATES: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         [dependencies]\nbeside = { path = \"beside\" }\nvendored = \"1\"\n",
    ),
    (
        "src/main.rs",
        "fn main() { println!(\"{}\", beside::SIX * vendored::SEVEN); }\n\
         #[test]\nfn it_multiplies() { assert_eq!(beside::SIX * vendored::SEVEN, 42); }\n",
    ),
    (
        "beside/Cargo.toml",
        "[package]\nname = \"beside\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    ),
    ("beside/src/lib.rs", "pub const SIX: u32 = 6;\n"),
    (
        "vendor/vendored/Cargo.toml",
        "[package]\nname = \"vendored\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
    ),
    ("vendor/vendored/src/lib.rs", "pub const SEVEN: u32 = 7;\n"),
    (
        "vendor/vendored/.cargo-checksum.json",
        "{\"files\":{},\"package\":null}",
    ),
    (
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"vendor\"\n[source.vendor]\ndirectory = \"vendor\"\n",
    ),
];

#[test]
fn crates_are_built_and_tested_and_built_no_more_than_once() {
    let Some((home, real)) = rust_desk() else {
        return;
    };
    for (path, text) in CRATES {
        home.put(&format!("base/{path}"), text);
    }
    let marker = format!("everyday-{}", home.mark);
    check(
        &home,
        &[
            (
                "command -v cargo",
                real.join(".cargo/bin/cargo").to_str().unwrap(),
            ),
            ("cargo run -q --offline", "42"),
            ("cargo test -q --offline 2>&1 | grep -c '1 passed'", "1"),
            ("cargo build -v --offline 2>&1 | grep -c Fresh", "3"),
            (
                "cargo build -v --offline 2>&1 | grep -c Compiling || true",
                "0",
            ),
            // What it remembers stays in the sandbox.
            (
                &format!("ls -d ~/.cargo/.package-cache && echo kept > ~/.cargo/{marker}"),
                real.join(".cargo/.package-cache").to_str().unwrap(),
            ),
            (&format!("cat ~/.cargo/{marker}"), "kept"),
            ("touch ~/.cargo/bin/x 2> /dev/null || echo shut", "shut"),
        ],
    );
    assert!(!real.join(".cargo").join(marker).exists());
}

#[test]
fn downloaded_crates_are_lent_where_there_is_no_network() {
    let home = desk();
    home.put("home/.cargo/registry/cache/x", "x");
    let base = home.base();
    let _server = home.serve_with(&format!(
        "[sandbox.open]\ndirectory = {base:?}\nnetwork = \"on\"\n"
    ));
    let run = |sandbox: &str, command: &str| {
        let done = home.run(&["-q", "--sandbox", sandbox], command);
        (done.out, done.code == Some(0))
    };
    let store = "cd ~/.cargo/registry && cat cache/x && echo y > cache/y";
    assert_eq!(run("default", store), ("x".into(), false));
    let own = "mkdir -p ~/.cargo/registry && cd ~/.cargo/registry && ls && echo y > y";
    assert_eq!(run("open", own), (String::new(), true));
    assert_eq!(run("open", "cat ~/.cargo/registry/y"), ("y\n".into(), true));
    assert!(!home.around().join("home/.cargo/registry/y").exists());
}

/// A person who has Rust: whoever runs this test.
fn rust_desk() -> Option<(Home, PathBuf)> {
    let real = PathBuf::from(std::env::var_os("HOME")?);
    let bin = real.join(".cargo/bin");
    if fs::metadata(bin.join("cargo")).is_err() {
        no_toolchain(&bin.display().to_string());
        return None;
    }
    let mut home = desk();
    home.set("PATH", format!("{}:{SYSTEM}", bin.display()));
    home.set("HOME", &real);
    Some((home, real))
}

#[test]
fn node_packages_are_installed_and_run() {
    let home = desk();
    if !have(&["npm"]) {
        return;
    }
    home.put(
        "base/answer/package.json",
        "{\"name\":\"answer\",\"version\":\"1.0.0\",\"bin\":{\"answer\":\"bin.js\"}}",
    );
    home.put_program(
        "base/answer/bin.js",
        "#!/usr/bin/env node\nconsole.log(42)\n",
    );
    check(
        &home,
        &[
            (
                "npm init -y > /dev/null && npm pkg set scripts.test='node -p 6*7' && npm install ./answer --offline > /dev/null && npm test --silent",
                "42",
            ),
            ("npx --offline answer", "42"),
            (
                "rm -r node_modules && npm ci --offline > /dev/null && npx --offline answer && ls -d ~/.npm | wc -l",
                "42\n1",
            ),
        ],
    );
    assert!(!home.around().join("home/.npm").exists());
}

#[test]
fn node_has_children_threads_and_watches() {
    let home = desk();
    if !have(&["node"]) {
        return;
    }
    home.put(
        "base/x.js",
        r#"
const fs = require("fs"), cp = require("child_process"), { Worker } = require("worker_threads");
const once = (it, event) => new Promise(done => it.once(event, done));
(async () => {
  console.log(cp.execSync("echo child").toString().trim());
  console.log(await once(new Worker("require('worker_threads').parentPort.postMessage('thread')", { eval: true }), "message"));
  const watch = fs.watch(".");
  const seen = once(watch, "change");
  fs.writeFileSync("seen", "x");
  await seen; watch.close();
  const server = require("http").createServer((_, answer) => answer.end("served"));
  await once(server.listen(0), "listening");
  console.log(await (await fetch(`http://localhost:${server.address().port}`)).text());
  process.exit();
})();
"#,
    );
    check(&home, &[("node x.js", "child\nthread\nserved")]);
}

#[test]
fn programs_are_compiled_run_and_debugged() {
    let home = desk();
    home.put(
        "base/Makefile",
        "all: a b c d\n%: ; @sleep 0.1; echo $@ > $@.o\n",
    );
    home.put(
        "base/x.c",
        "#include <stdio.h>\nint main(void) { puts(\"42\"); }\n",
    );
    home.put(
        "base/X.java",
        "class X { public static void main(String[] a) { System.out.println(42); } }\n",
    );
    home.put(
        "base/CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_executable(x x.c)\n",
    );
    check_with(
        &home,
        &[
            (
                "make",
                "make -s -j4 && cat a.o b.o c.o d.o | paste -sd,",
                "a,b,c,d",
            ),
            ("gcc", "gcc -g x.c -o x && ./x", "42"),
            ("cc", "cc -g -O0 x.c -o x && ./x", "42"),
            (
                "cmake",
                "cmake -B build > /dev/null && cmake --build build > /dev/null && build/x",
                "42",
            ),
            ("java", "java X.java", "42"),
        ],
    );
    if have(&["cc"]) {
        check_with(
            &home,
            &[
                (
                    "strace",
                    "strace -f -e trace=execve -o trace sh -c './x; true' && grep -c '\"./x\"' trace",
                    "42\n1",
                ),
                (
                    "gdb",
                    "gdb -batch -ex 'break main' -ex run -ex bt ./x 2> /dev/null | grep -c '^#0  main'",
                    "1",
                ),
                (
                    "gdb",
                    "sleep 100 & gdb -batch -p $! -ex detach > /dev/null 2>&1; echo $?",
                    "0",
                ),
                ("valgrind", "valgrind -q ./x", "42"),
            ],
        );
    }
}

#[test]
fn a_virtual_environment_elsewhere_is_found_through_path() {
    let mut home = desk();
    if !have(&["python3"]) {
        return;
    }
    let root = home.around().join("home/envs/x");
    let made = Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&root)
        .status();
    assert!(made.unwrap().success());
    home.put("home/envs/x/private", "s3cr3t");
    home.set("PATH", format!("{}/bin:{SYSTEM}", root.display()));
    let root = root.to_str().unwrap();
    check(
        &home,
        &[
            ("python -c 'import sys; print(sys.prefix)'", root),
            ("cat ~/envs/x/private 2> /dev/null || echo hidden", "hidden"),
        ],
    );
}

/// A toolchain is more than its programs.
#[test]
fn a_toolchain_that_only_path_names_has_its_libraries() {
    let mut home = desk();
    let bin = |home: &Home, root: &str| {
        home.put_program(
            &format!("{root}/bin/tool"),
            "#!/bin/sh\n. ${0%/*}/../lib/tool/part\n",
        );
        home.put(&format!("{root}/lib/tool/part"), "echo whole\n");
        home.put(&format!("{root}/private"), "s3cr3t");
        home.around().join(root).join("bin")
    };
    let places = ["home/opt/tool", "tools"].map(|root| bin(&home, root));
    let path = places
        .each_ref()
        .map(|place| place.to_string_lossy())
        .join(":");
    home.set("PATH", format!("{path}:{SYSTEM}"));
    for place in &places {
        assert!(fs::metadata(place).unwrap().permissions().mode() & 0o5 == 0o5);
        let root = place.parent().map(Path::display).unwrap();
        check(
            &home,
            &[
                (&format!("{}/tool", place.display()), "whole"),
                (
                    &format!("cat {root}/private 2> /dev/null || echo hidden"),
                    "hidden",
                ),
            ],
        );
    }
}
