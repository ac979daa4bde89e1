//! What a command does through a copy is what it does directly.
//!
//! Each case is done twice in the same place, from the same beginning: by a
//! shell of ours, and on a copy that is then applied. Both must come to the
//! same: kinds, modes, owners, sizes, contents, targets of links, names of the
//! same file, extended attributes, holes, times that were set, exit code and
//! output. Before it is applied nothing may have changed, and once it is undone
//! everything is as it was, times included.
//!
//! What is not compared is said with the case (`loose`): content that has times
//! or numbers of files in it, such as git's index. What git makes of it is
//! compared instead (`probe`).
//!
//! Known to differ:
//! - A directory that was there before cannot be renamed on a copy with
//!   rename(2), which gives EXDEV as it does between file systems. `mv` copes,
//!   Python's `os.rename` does not.
//! - A directory in which no name is another in the end keeps its time, even if
//!   names came and went.
//! - A new name for a file that was there becomes a file of its own, and so does
//!   a name that an undo brings back. For ordinary users so does a name that is
//!   written to, and a new name has another number at once: `git clone` of a
//!   directory on the copy itself notices, and wants `--no-hardlinks`.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::tree::{Span, Tree};
use super::{Place, SYSTEM, is_root, sh};
use crate::crew::text;
use crate::support::{Home, is_installed, no_toolchain, skip};

/// How many cases are tried at once.
const AT_ONCE: usize = 4;

/// What every case finds. All of it is old, so that new times stand out.
const COMMON: &str = "\
mkdir -p src docs/guide/deep empty
printf 'one\\ntwo\\nthree\\n' > src/a.txt
printf 'alpha\\nbeta\\n' > src/b.txt
printf '#!/bin/sh\\necho hello\\n' > src/run.sh; chmod 755 src/run.sh
printf 'guide\\n' > docs/guide/deep/page.md
printf 'top\\n' > README.md
ln -s src/a.txt link
";
const OLD: &str = "find . -depth -exec touch -h -d '2020-02-03 04:05:06.123456789' {} +";

/// One command, and what it finds.
struct Case {
    name: &'static str,
    setup: &'static str,
    command: &'static str,
    /// Programs without which there is no case.
    needs: &'static [&'static str],
    /// Files whose content is not compared; `x/` is all below it.
    loose: &'static [&'static str],
    /// What is asked directly afterwards, both times.
    probe: &'static str,
    /// Exit code on a copy, where it differs from the direct one.
    differs: Option<i64>,
    /// The same on an ordinary user's copy.
    differs_for_users: Option<i64>,
    /// Names of the same file become files of their own.
    splits: Splits,
}

/// When names of the same file become files of their own.
#[derive(Clone, Copy, PartialEq)]
enum Splits {
    Never,
    /// On an ordinary user's copy.
    ForUsers,
    Always,
    /// Once it is undone.
    WhenUndone,
}

const fn case(name: &'static str, setup: &'static str, command: &'static str) -> Case {
    Case {
        name,
        setup,
        command,
        needs: &[],
        loose: &[],
        probe: "",
        differs: None,
        differs_for_users: None,
        splits: Splits::Never,
    }
}

/// A case in a repository with two commits.
const fn git(name: &'static str, setup: &'static str, command: &'static str) -> Case {
    Case {
        needs: &["git"],
        loose: &[".git/index", ".git/worktrees/side/index"],
        probe: GIT_PROBE,
        ..case(name, setup, command)
    }
}

/// A case that is a program in Python.
const fn python(name: &'static str, setup: &'static str, command: &'static str) -> Case {
    Case {
        needs: &["python3"],
        ..case(name, setup, command)
    }
}

const GIT_ENV: &str = "\
export GIT_AUTHOR_NAME=Ana GIT_AUTHOR_EMAIL=ana@example.org GIT_COMMITTER_NAME=Ana \
GIT_COMMITTER_EMAIL=ana@example.org GIT_AUTHOR_DATE='2024-01-02T03:04:05Z' \
GIT_COMMITTER_DATE='2024-01-02T03:04:05Z' GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_COUNT=4 \
GIT_CONFIG_KEY_0=init.defaultBranch GIT_CONFIG_VALUE_0=main GIT_CONFIG_KEY_1=pack.threads \
GIT_CONFIG_VALUE_1=1 GIT_CONFIG_KEY_2=advice.detachedHead GIT_CONFIG_VALUE_2=false \
GIT_CONFIG_KEY_3=gc.auto GIT_CONFIG_VALUE_3=0; ";
const GIT_SETUP: &str = "\
git init -q .; printf '*.log\\nbuild/\\n' > .gitignore; git add -A; git commit -qm one
printf 'two\\n' >> src/a.txt; git commit -qam two
git checkout -q -b topic; printf 'topic\\n' > topic.txt; git add -A; git commit -qm topic
git checkout -q main; printf 'more\\n' >> README.md; git commit -qam three
";
const GIT_PROBE: &str = "\
export GIT_OPTIONAL_LOCKS=0; git status --porcelain -b; git log --all --format='%H %d %s'; \
git fsck --full 2>&1; git stash list; git worktree list; git ls-files -s";

const EDITS: &[Case] = &[
    case("edit", "", "printf 'new\\n' > src/a.txt"),
    case(
        "edit same size",
        "",
        "printf 'ONE\\nTWO\\nTHREE\\n' > src/a.txt",
    ),
    case("append", "", "echo four >> src/a.txt"),
    case(
        "append to many",
        "",
        "for f in src/*.txt README.md; do echo x >> $f; done",
    ),
    case("truncate", "", "truncate -s 3 src/a.txt"),
    case("truncate to nothing", "", ": > src/a.txt"),
    case("grow", "", "truncate -s 100000 src/a.txt"),
    case("sed", "", "sed -i s/two/2/ src/a.txt"),
    case(
        "sed with backup",
        "",
        "sed -i.bak s/two/2/ src/a.txt src/b.txt",
    ),
    case(
        "sed through a link",
        "",
        "sed -i --follow-symlinks s/two/2/ link",
    ),
    case("sed replaces a link", "", "sed -i s/two/2/ link"),
    case("write through a link", "", "echo via >> link"),
    case("heredoc", "", "cat > src/new.txt <<'END'\na\n$b\nEND"),
    case("tee", "", "echo x | tee src/a.txt docs/new.txt"),
    case(
        "dd inside",
        "",
        "printf XX | dd of=src/a.txt bs=1 seek=4 conv=notrunc",
    ),
    case(
        "no newline at the end",
        "",
        "printf 'one\\ntwo' > src/a.txt",
    ),
    case("carriage returns", "", "sed -i 's/$/\\r/' src/a.txt"),
    case(
        "binary",
        "",
        "head -c 5000 /dev/zero | tr '\\0' '\\377' > src/a.txt",
    ),
    Case {
        needs: &["patch"],
        ..case(
            "patch",
            "",
            "patch -p0 <<'END'\n--- src/a.txt\n+++ src/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\nEND",
        )
    },
    case("install", "", "install -m 751 src/a.txt docs/installed"),
];

const NAMES: &[Case] = &[
    case("move", "", "mv src/a.txt src/c.txt"),
    case("move elsewhere", "", "mv src/a.txt docs/guide/"),
    case(
        "move and edit",
        "",
        "mv src/a.txt c.txt && echo more >> c.txt",
    ),
    case("rename over", "", "mv src/a.txt src/b.txt"),
    case(
        "swap by three moves",
        "",
        "mv src/a.txt t; mv src/b.txt src/a.txt; mv t src/b.txt",
    ),
    case("move a directory", "", "mv docs papers"),
    case("move a directory into another", "", "mv docs src/"),
    case(
        "move a new directory",
        "",
        "mkdir -p n/m; echo x > n/m/f; mv n o",
    ),
    case("move a directory back", "", "mv docs t && mv t docs"),
    case("copy a tree", "", "cp -r docs copy"),
    case("copy a tree with times", "", "cp -a docs copy"),
    case("rename to a new case", "", "mv README.md readme.md"),
    Case {
        differs: Some(1),
        ..python(
            "rename(2) of a directory that was there",
            "",
            "python3 -c 'import os; os.rename(\"docs\", \"papers\")'",
        )
    },
    python(
        "rename(2) of a new directory",
        "",
        "python3 -c 'import os; os.mkdir(\"n\"); os.rename(\"n\", \"m\")'",
    ),
    python(
        "rename(2) of a file",
        "",
        "python3 -c 'import os; os.replace(\"src/a.txt\", \"src/b.txt\")'",
    ),
    python(
        "exchange of files",
        "",
        "python3 -c 'import ctypes,os,sys; c=ctypes.CDLL(None,use_errno=True); r=c.syscall(316,-100,b\"src/a.txt\",-100,b\"src/b.txt\",2); sys.exit(r and ctypes.get_errno())'",
    ),
];

const GONE: &[Case] = &[
    case("delete", "", "rm src/a.txt"),
    case("delete a tree", "", "rm -r docs"),
    case("delete an empty directory", "", "rmdir empty"),
    case("delete a link", "", "rm link"),
    case(
        "delete and make again",
        "",
        "rm src/a.txt && printf 'one\\ntwo\\nthree\\n' > src/a.txt",
    ),
    case(
        "delete and make another",
        "",
        "rm -r docs && mkdir docs && echo x > docs/other",
    ),
    case(
        "delete a tree and make it empty",
        "",
        "rm -r docs && mkdir docs",
    ),
    case("delete by pattern", "", "rm src/*.txt"),
    case("find and delete", "", "find . -name '*.md' -delete"),
    case(
        "delete all but one",
        "",
        "find . -mindepth 1 -maxdepth 1 ! -name src -exec rm -r {} +",
    ),
    case(
        "file becomes directory",
        "",
        "rm README.md && mkdir README.md && echo x > README.md/x",
    ),
    case("directory becomes file", "", "rm -r docs && echo x > docs"),
    case(
        "there and back",
        "",
        "rm README.md; mkdir README.md; rmdir README.md; echo x > README.md",
    ),
    case("link becomes file", "", "rm link && echo x > link"),
    case(
        "link becomes directory",
        "",
        "rm link && mkdir link && echo x > link/x",
    ),
    case(
        "file becomes link",
        "",
        "rm README.md && ln -s src/b.txt README.md",
    ),
    case("directory becomes link", "", "rm -r docs && ln -s src docs"),
    case("make and delete", "echo x > x", "echo y > y; rm y x"),
];

const LINKS: &[Case] = &[
    case("new link", "", "ln -s src/b.txt other"),
    case("link elsewhere", "", "ln -sfn src/b.txt link"),
    case("dangling link", "", "ln -s nowhere/at/all dangling"),
    case("absolute link", "", "ln -s /etc/hostname absolute"),
    case("loop", "", "ln -s b a; ln -s a b"),
    case("loop on itself", "", "ln -s self self"),
    case(
        "loop of directories",
        "",
        "ln -s .. src/up; ln -s . docs/here",
    ),
    case(
        "edit where loops are",
        "ln -s .. src/up; ln -s . docs/here",
        "echo x >> src/up/docs/here/here/guide/deep/page.md",
    ),
    case(
        "delete where loops are",
        "ln -s .. src/up; ln -s . docs/here",
        "rm -r docs src/up",
    ),
    case("time of a link", "", "touch -h -d '2001-01-01' link"),
    case(
        "new name of a new file",
        "",
        "echo x > n; ln n m; mkdir d; ln n d/o",
    ),
    Case {
        splits: Splits::Always,
        ..case("new name of an old file", "", "ln src/a.txt src/hard.txt")
    },
    Case {
        splits: Splits::ForUsers,
        ..case(
            "edit one of two names",
            "ln src/a.txt src/hard.txt",
            "echo x >> src/a.txt",
        )
    },
    Case {
        splits: Splits::WhenUndone,
        ..case(
            "delete one of two names",
            "ln src/a.txt src/hard.txt",
            "rm src/hard.txt",
        )
    },
    Case {
        splits: Splits::WhenUndone,
        ..case(
            "replace one of two names",
            "ln src/a.txt src/hard.txt",
            "echo x > t && mv t src/hard.txt",
        )
    },
    Case {
        splits: Splits::WhenUndone,
        ..case(
            "delete both names",
            "ln src/a.txt src/hard.txt",
            "rm src/hard.txt src/a.txt",
        )
    },
];

const RIGHTS: &[Case] = &[
    case("chmod", "", "chmod 600 src/a.txt"),
    case(
        "chmod of a program",
        "",
        "chmod +x src/b.txt; chmod -x src/run.sh",
    ),
    case("chmod of a directory", "", "chmod 700 docs"),
    case("chmod of a tree", "", "chmod -R go-rwx docs"),
    case(
        "chmod and edit",
        "",
        "chmod 640 src/a.txt; echo x >> src/a.txt",
    ),
    case("sticky directory", "", "chmod 1777 empty"),
    case(
        "umask",
        "",
        "umask 077; echo x > secret; mkdir -p hidden/dir",
    ),
    case(
        "umask of nothing",
        "",
        "umask 0; echo x > open; mkdir public",
    ),
    case("touch new", "", "touch new"),
    case("touch old", "", "touch src/a.txt"),
    case(
        "touch a time",
        "",
        "touch -d '1999-12-31 23:59:59.5' src/a.txt docs",
    ),
    case(
        "touch the future",
        "",
        "touch -d '2037-01-01 00:00:00.000000001' src/a.txt",
    ),
    case(
        "touch before the epoch",
        "",
        "touch -d '1950-01-01' src/a.txt",
    ),
    case(
        "touch as another",
        "touch -d 2011-11-11 src/b.txt",
        "touch -r src/b.txt src/a.txt",
    ),
    python(
        "new attributes",
        "",
        "python3 -c 'import os; os.setxattr(\"src/a.txt\", \"user.note\", b\"v\\0w\"); os.setxattr(\"docs\", \"user.dir\", b\"\")'",
    ),
    python(
        "changed attributes",
        "python3 -c 'import os; os.setxattr(\"src/a.txt\", \"user.one\", b\"1\"); os.setxattr(\"src/a.txt\", \"user.two\", b\"2\")'",
        "python3 -c 'import os; os.setxattr(\"src/a.txt\", \"user.one\", b\"uno\"); os.removexattr(\"src/a.txt\", \"user.two\")'",
    ),
    python(
        "attributes stay when edited",
        "python3 -c 'import os; os.setxattr(\"src/a.txt\", \"user.one\", b\"1\")'",
        "echo x >> src/a.txt",
    ),
    python(
        "attributes of a new file",
        "",
        "echo x > n; python3 -c 'import os; os.setxattr(\"n\", \"user.one\", b\"1\")'",
    ),
];

const SHAPES: &[Case] = &[
    case(
        "unicode",
        "",
        "mkdir 'ünï ☃'; echo x > 'ünï ☃/日本語 🎉.txt'",
    ),
    case("edit unicode", "echo x > 'é'", "echo y >> 'é'"),
    case("newline in a name", "", "echo x > $'a\\nb'; mkdir $'c\\n'"),
    case(
        "edit with a newline in its name",
        "echo x > $'a\\nb'",
        "echo y > $'a\\nb'; rm README.md",
    ),
    case(
        "not UTF-8",
        "echo x > $'old\\xff'",
        "echo x > $'new\\xfe\\x80'; echo y >> $'old\\xff'",
    ),
    case(
        "delete what is not UTF-8",
        "mkdir $'d\\xff'; echo x > $'d\\xff/\\xfe'",
        "rm -r $'d\\xff'",
    ),
    case(
        "odd names",
        "",
        "touch -- ' ' '-rf' '*' '\"' \"'\" '\\' $'\\t' $'\\e[31m' '...' '~'",
    ),
    case(
        "name of 255 bytes",
        "",
        "n=$(printf 'x%.0s' $(seq 255)); echo x > $n; mkdir d; echo y > d/$n",
    ),
    case(
        "delete a name of 255 bytes",
        "n=$(printf 'x%.0s' $(seq 255)); echo x > $n",
        "rm x*",
    ),
    case(
        "deep",
        "",
        "p=$(printf 'd/%.0s' $(seq 200)); mkdir -p $p; echo x > ${p}f",
    ),
    case(
        "edit deep",
        "p=$(printf 'd/%.0s' $(seq 200)); mkdir -p $p; echo x > ${p}f",
        "echo y >> $(printf 'd/%.0s' $(seq 200))f",
    ),
    case(
        "delete deep",
        "p=$(printf 'd/%.0s' $(seq 200)); mkdir -p $p; echo x > ${p}f",
        "rm -r d",
    ),
    case(
        "deep with long names",
        "",
        "n=$(printf 'x%.0s' $(seq 200)); mkdir -p $n/$n/$n/$n/$n/$n/$n/$n/$n/$n; echo x > $n/$n/$n/$n/$n/$n/$n/$n/$n/$n/f",
    ),
    case("empty directories", "", "mkdir -p a/b/c d/e f"),
    case("into an empty directory", "", "echo x > empty/x"),
    case(
        "holes",
        "",
        "truncate -s 50M holes; printf end | dd of=holes bs=1 seek=40000000 conv=notrunc",
    ),
    case(
        "write into a hole",
        "truncate -s 50M holes",
        "printf x | dd of=holes bs=1 seek=30000000 conv=notrunc",
    ),
    case("empty file", "", "touch nothing; : > also"),
    case("16 MiB", "", "seq 1 3000000 | head -c 16777216 > large"),
    case(
        "edit of 16 MiB",
        "seq 1 3000000 | head -c 16777216 > large",
        "printf x | dd of=large bs=1 seek=33333333 conv=notrunc",
    ),
    case(
        "delete of 16 MiB",
        "seq 1 3000000 | head -c 16777216 > large",
        "rm large",
    ),
    case(
        "2,500 files",
        "",
        "for d in $(seq 25); do mkdir -p many/$d; for f in $(seq 100); do echo $f > many/$d/$f; done; done",
    ),
    case(
        "2,500 files less",
        "for d in $(seq 25); do mkdir -p many/$d; for f in $(seq 100); do echo $f > many/$d/$f; done; done",
        "rm -r many",
    ),
    case(
        "1,000 files edited",
        "mkdir many; for f in $(seq 1000); do echo $f > many/$f; done",
        "for f in many/*; do echo x >> $f; done",
    ),
];

const GITS: &[Case] = &[
    Case {
        probe: "git rev-parse --is-inside-work-tree",
        ..git("git init", "rm -rf .git", "git init")
    },
    git("git add", "echo x > new", "git add new && echo y >> new"),
    git(
        "git commit",
        "echo x > new; echo y >> README.md",
        "git add -A && git commit -m 'a commit'",
    ),
    git(
        "git commit --amend",
        "",
        "echo x >> README.md; git commit -a --amend -m other",
    ),
    git("git rm", "", "git rm -q README.md"),
    git("git mv", "", "git mv README.md docs/read.md"),
    git(
        "git clean",
        "echo x > junk; mkdir -p build; echo y > build/out; echo z > a.log",
        "git clean -fdx",
    ),
    git(
        "git reset --hard",
        "echo x > src/a.txt; echo n > n; git add n",
        "git reset --hard",
    ),
    git("git reset to before", "", "git reset --hard HEAD~1"),
    git(
        "git checkout of a file",
        "echo x > src/a.txt",
        "git checkout -- src/a.txt",
    ),
    git(
        "git restore of a deleted tree",
        "rm -r docs",
        "git restore docs",
    ),
    git(
        "git stash",
        "echo x >> src/a.txt; echo n > n; git add n",
        "git stash push",
    ),
    git(
        "git stash pop",
        "echo x >> src/a.txt; git stash push -q",
        "git stash pop",
    ),
    git(
        "git stash and pop",
        "echo x >> src/a.txt",
        "git stash push && git stash pop",
    ),
    git("git rebase", "git checkout -q topic", "git rebase main"),
    git(
        "git rebase that stops",
        "git checkout -q topic; echo other >> README.md; git commit -qam clash",
        "git rebase main",
    ),
    git("git checkout -b", "", "git checkout -b new topic"),
    git("git checkout of another branch", "", "git checkout topic"),
    git("git merge", "", "git merge --no-ff -m merged topic"),
    git(
        "git merge that stops",
        "git checkout -q topic; echo other >> README.md; git commit -qam clash; git checkout -q main",
        "git merge topic",
    ),
    git(
        "git merge --abort",
        "git checkout -q topic; echo other >> README.md; git commit -qam clash; git checkout -q main; git merge -q topic || true",
        "git merge --abort",
    ),
    git("git branch -D", "", "git branch -D topic"),
    git("git tag", "", "git tag v1 && git tag -a v2 -m two"),
    git("git tag -d", "git tag v1", "git tag -d v1"),
    git("git gc", "", "git gc --prune=now"),
    git("git cherry-pick", "", "git cherry-pick topic"),
    git("git revert", "", "git revert --no-edit HEAD"),
    git("git worktree add", "", "git worktree add side topic"),
    git("git config", "", "git config user.signingkey none"),
    Case {
        differs_for_users: Some(128),
        splits: Splits::Always,
        probe: "cd copy && git log --format=%H",
        loose: &[".git/index", "copy/.git/index"],
        ..git("git clone inside", "", "git clone -q . copy")
    },
];

const TOOLS: &[Case] = &[
    Case {
        needs: &["make", "cc"],
        probe: "./prog",
        ..case(
            "make",
            "printf 'int puts(const char*);int main(void){puts(\"made\");return 0;}\\n' > main.c; printf 'prog: main.o\\n\\tcc -o prog main.o\\nmain.o: main.c\\n\\tcc -c main.c\\nclean:\\n\\trm -f prog *.o\\n' > Makefile",
            "make",
        )
    },
    Case {
        needs: &["make"],
        ..case(
            "make clean",
            "touch prog main.o; printf 'clean:\\n\\trm -f prog *.o\\n' > Makefile",
            "make clean",
        )
    },
    Case {
        needs: &["make"],
        ..case(
            "make with commands only",
            "printf 'all: out/x\\nout/x: README.md\\n\\tmkdir -p out\\n\\tcp README.md out/x\\n' > Makefile",
            "make all",
        )
    },
    case(
        "tar extract",
        "tar cf t.tar src docs link; rm -r docs",
        "tar xf t.tar",
    ),
    case(
        "tar extract elsewhere",
        "tar czf t.tgz src docs link",
        "mkdir out && tar xzf t.tgz -C out",
    ),
    case(
        "tar create",
        "",
        "tar cf all.tar --sort=name --owner=0 --group=0 --numeric-owner src docs link",
    ),
    Case {
        needs: &["gzip"],
        ..case("gzip", "", "gzip -n src/a.txt")
    },
    Case {
        needs: &["zip"],
        ..case("zip", "", "zip -qrX all.zip src docs")
    },
    Case {
        needs: &["zip", "unzip"],
        ..case(
            "unzip",
            "zip -qrX all.zip src docs; rm -r docs",
            "unzip -qo all.zip",
        )
    },
    python(
        "sqlite writes",
        "",
        "python3 -c '\nimport sqlite3\nd = sqlite3.connect(\"d.db\")\nd.execute(\"create table t (n)\")\nd.executemany(\"insert into t values (?)\", [(n,) for n in range(5000)])\nd.commit()\nd.close()'",
    ),
    python(
        "sqlite changes",
        "python3 -c 'import sqlite3; d = sqlite3.connect(\"d.db\"); d.execute(\"create table t (n)\"); d.executemany(\"insert into t values (?)\", [(n,) for n in range(5000)]); d.commit(); d.close()'",
        "python3 -c 'import sqlite3; d = sqlite3.connect(\"d.db\"); d.execute(\"delete from t where n % 3 = 0\"); d.commit(); d.execute(\"vacuum\"); d.close()'",
    ),
    python(
        "sqlite with a write-ahead log",
        "",
        "python3 -c '\nimport sqlite3\nd = sqlite3.connect(\"d.db\")\nd.execute(\"pragma journal_mode=wal\")\nd.execute(\"create table t (n)\")\nd.executemany(\"insert into t values (?)\", [(n,) for n in range(5000)])\nd.commit()\nd.close()'",
    ),
    python(
        "mmap",
        "head -c 100000 /dev/zero > m",
        "python3 -c '\nimport mmap\nf = open(\"m\", \"r+b\")\nm = mmap.mmap(f.fileno(), 0)\nm[50000:50005] = b\"hello\"\nm.flush()\nm.close()'",
    ),
    python(
        "mmap without flush",
        "head -c 100000 /dev/zero > m",
        "python3 -c '\nimport mmap\nf = open(\"m\", \"r+b\")\nm = mmap.mmap(f.fileno(), 0)\nm[99990:99995] = b\"hello\"'",
    ),
    python(
        "file without a name, then one",
        "",
        "python3 -c '\nimport os\nfd = os.open(\".\", os.O_TMPFILE | os.O_RDWR, 0o644)\nos.write(fd, b\"x\")\nos.link(\"/proc/self/fd/%d\" % fd, \"named\", follow_symlinks=True)'",
    ),
    python(
        "write and rename",
        "",
        "python3 -c '\nimport os\nf = open(\"src/.a.tmp\", \"w\")\nf.write(\"atomic\")\nf.flush()\nos.fsync(f.fileno())\nos.rename(\"src/.a.tmp\", \"src/a.txt\")'",
    ),
    python(
        "byte code",
        "printf 'x = 1\\n' > mod.py; touch -d '2020-02-03 04:05:06' mod.py",
        "python3 -c 'import sys; sys.path.insert(0, \"\"); import mod'",
    ),
    Case {
        needs: &["npm", "node"],
        loose: &["node_modules/.package-lock.json"],
        probe: "node -e 'console.log(require(\"dep\"))'",
        ..case(
            "npm with a local dependency",
            "mkdir dep; echo '{\"name\":\"dep\",\"version\":\"1.0.0\",\"main\":\"i.js\"}' > dep/package.json; echo 'module.exports = 42' > dep/i.js; echo '{\"name\":\"app\",\"version\":\"1.0.0\"}' > package.json",
            "npm install --offline --no-audit --no-fund --silent file:dep",
        )
    },
];

/// A command that fails has changed what it has changed.
const FAILURES: &[Case] = &[
    case(
        "fails after changes",
        "",
        "echo x > x; rm README.md; exit 3",
    ),
    case(
        "fails on the way",
        "",
        "set -e; echo x > x; false; echo y > y",
    ),
    case("ends by a signal of its own", "", "echo x > x; kill -9 $$"),
];

/// What one came to.
struct Outcome {
    exit: Option<i64>,
    said: String,
    tree: Tree,
    span: Span,
    probe: String,
}

impl Case {
    fn is_git(&self) -> bool {
        self.needs.contains(&"git")
    }

    fn script(&self) -> String {
        let env = if self.is_git() { GIT_ENV } else { "" };
        format!("{env}{}", self.command)
    }

    /// Makes what it finds, all of it old.
    fn prepare(&self, dir: &Path, home: &Path) {
        let (env, repository) = match self.is_git() {
            true => (GIT_ENV, GIT_SETUP),
            false => ("", ""),
        };
        let script = format!("set -e\n{env}\n{COMMON}\n{repository}\n{}\n", self.setup);
        let script = match self.setup.contains("touch") {
            true => format!("set -e\n{COMMON}\n{OLD}\n{}\n", self.setup),
            false => format!("{script}{OLD}\n"),
        };
        fs::create_dir(dir).unwrap();
        let done = sh(dir, home, &script);
        assert!(done.status.success(), "no setup: {done:?}");
    }

    fn probe(&self, dir: &Path, home: &Path) -> String {
        if self.probe.is_empty() {
            return String::new();
        }
        let done = sh(dir, home, self.probe);
        let text = [done.stdout, done.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn directly(&self, dir: &Path, home: &Path) -> Outcome {
        let from = SystemTime::now();
        let done = sh(dir, home, &self.script());
        let to = SystemTime::now();
        Outcome {
            exit: done.status.code().map(i64::from),
            said: String::from_utf8_lossy(&done.stdout).into_owned(),
            probe: self.probe(dir, home),
            tree: Tree::of(dir),
            span: Span { from, to },
        }
    }

    /// Tries it, applies it and undoes it; returns what it was between.
    fn on_a_copy(&self, place: &Place, dir: &Path, home: &Path) -> Outcome {
        let before = Tree::of(dir);
        let from = SystemTime::now();
        let wishes = json!({ "cwd": dir, "shell": "bash", "preview": true });
        let run = place.ask(&self.script(), wishes).json();
        let to = SystemTime::now();
        same("a preview has changed", &before, &Tree::of(dir));
        if run["changes"]["state"] == "none" {
            return Outcome {
                exit: run["exit_code"].as_i64(),
                said: output(&run),
                probe: self.probe(dir, home),
                tree: before,
                span: Span { from, to },
            };
        }
        assert_eq!(run["changes"]["state"], "held", "not asked: {run}");
        let applied = place.apply(&run);
        let outcome = Outcome {
            exit: run["exit_code"].as_i64(),
            said: output(&run),
            probe: self.probe(dir, home),
            tree: Tree::of(dir),
            span: Span { from, to },
        };
        place.with_run(&applied, "revert", &Value::Null).expect(200);
        match self.splits {
            Splits::WhenUndone | Splits::ForUsers => {
                same("undo has left", &before.split(), &Tree::of(dir).split());
            }
            _ => same("undo has left", &before, &Tree::of(dir)),
        }
        outcome
    }

    /// Compares the two.
    fn check(&self, place: &Place, number: usize) {
        let around = place.home.around();
        let (dir, home) = (
            place.home.base().join(format!("case{number}")),
            around.join("direct-home"),
        );
        let prepared = around.join(format!("prepared{number}"));
        self.prepare(&prepared, &home);
        let copy = |to: &Path| {
            let script = format!("cp -a {} {}", prepared.display(), to.display());
            assert!(sh(&around, &home, &script).status.success());
        };
        copy(&dir);
        let mut directly = self.directly(&dir, &home);
        let script = format!("rm -rf {}", dir.display());
        assert!(sh(&around, &home, &script).status.success());
        copy(&dir);
        let before = Tree::of(&dir);
        let on_a_copy = self.on_a_copy(place, &dir, &home);
        assert!(sh(&around, &home, &script).status.success());
        assert!(
            sh(&around, &home, &format!("rm -rf {}", prepared.display()))
                .status
                .success()
        );
        let for_users = self.differs_for_users.filter(|_| !is_root());
        if let Some(exit) = self.differs.or(for_users) {
            assert_eq!((directly.exit, on_a_copy.exit), (Some(0), Some(exit)));
            return;
        }
        if self.splits == Splits::ForUsers && !is_root() {
            return;
        }
        assert_eq!(
            directly.exit, on_a_copy.exit,
            "another exit code: {}",
            on_a_copy.said
        );
        assert_eq!(directly.said, on_a_copy.said, "another output");
        assert_eq!(directly.probe, on_a_copy.probe, "another probe");
        let mut theirs = on_a_copy.tree.without(self.loose);
        directly.tree = directly.tree.without(self.loose);
        if self.splits == Splits::Always {
            theirs = theirs.split();
            directly.tree = directly.tree.split();
        }
        let ours = { directly.tree }
            .with_times_of(&directly.span, &theirs, &on_a_copy.span)
            .with_old_dirs_of(&theirs, &before);
        same("directly, and on a copy", &ours, &theirs);
    }
}

/// What it said on its standard output.
fn output(run: &Value) -> String {
    text(run, "stdout")
}

#[track_caller]
fn same(what: &str, one: &Tree, two: &Tree) {
    let differences = one.differences(two);
    assert!(
        differences.is_empty(),
        "{what}:\n  {}",
        differences.join("\n  ")
    );
}

/// Tries cases, several at once, on one server.
fn check(groups: &[&[Case]]) {
    let place = Place::new();
    fs::create_dir(place.home.around().join("direct-home")).unwrap();
    let only = std::env::var("WL_CASE").unwrap_or_default();
    let cases: Vec<&Case> = { groups.iter().copied().flatten() }
        .filter(|case| case.name.contains(&only))
        .filter(|case| {
            let missing = case.needs.iter().find(|program| !is_installed(program));
            if let Some(program) = missing {
                skip(&format!(
                    "{}: {program} is not installed for everyone",
                    case.name
                ));
            }
            missing.is_none()
        })
        .collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(number) else {
                        return;
                    };
                    let tried = catch_unwind(AssertUnwindSafe(|| case.check(&place, number)));
                    if let Err(why) = tried {
                        let why = why.downcast_ref::<String>().cloned();
                        let why = why.unwrap_or_default();
                        wrong.lock().unwrap().push(format!("{}: {why}", case.name));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    place.home.assert_audit_verifies();
}

#[test]
fn edits_names_and_deletions_come_to_the_same_on_a_copy() {
    check(&[EDITS, NAMES, GONE, FAILURES]);
}

#[test]
fn links_rights_and_shapes_come_to_the_same_on_a_copy() {
    check(&[LINKS, RIGHTS, SHAPES]);
}

#[test]
fn git_comes_to_the_same_on_a_copy() {
    check(&[GITS]);
}

#[test]
fn tools_come_to_the_same_on_a_copy() {
    check(&[TOOLS]);
}

/// Its toolchain is the person's own, and what it builds has times in it: so
/// that nothing is built again is what says that all of it is the same.
#[test]
fn cargo_takes_what_was_built_on_a_copy_for_its_own() {
    let real = std::env::var("HOME").unwrap_or_default();
    let bin = format!("{real}/.cargo/bin");
    if fs::metadata(format!("{bin}/cargo")).is_err() {
        return no_toolchain(&bin);
    }
    let mut home = Home::untouched();
    home.set("HOME", &real);
    let place = Place::at_path(home, "", &format!("{bin}:{SYSTEM}"));
    place.write(
        "Cargo.toml",
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    place.write("src/main.rs", "fn main() { println!(\"tiny\"); }\n");
    let before = place.tree();
    let run = place.held("cargo build -q --offline", json!({ "preview": true }));
    assert_eq!(run["exit_code"], 0, "{run}");
    same("a preview has changed", &before, &place.tree());
    let applied = place.apply(&run);
    let base = place.home.base();
    let done = sh(&base, &base, "./target/debug/tiny");
    assert_eq!(done.stdout, b"tiny\n", "{done:?}");
    let run = place.unasked("cargo build -v --offline", Value::Null);
    let said = text(&run, "stderr");
    assert!(
        said.contains("Fresh") && !said.contains("Compiling"),
        "{said}"
    );
    place.with_run(&run, "revert", &Value::Null);
    place.with_run(&applied, "revert", &Value::Null).expect(200);
    same("undo has left", &before, &place.tree());
}

/// There are up to five of each at once: prepared, live, on the copy, and kept
/// for undo.
const HUGE: &[Case] = &[
    case("2 GiB", "", "seq 1 300000000 | head -c 2147483648 > large"),
    case(
        "100,000 files",
        "",
        "for d in $(seq 1000); do mkdir -p many/$d; for f in $(seq 100); do echo $f > many/$d/$f; done; done",
    ),
];

#[test]
#[ignore = "2 GiB and 100,000 files take minutes and 10 GiB of disk"]
fn huge_things_come_to_the_same_on_a_copy() {
    check(&[HUGE]);
}
