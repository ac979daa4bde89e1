use super::*;

/// What the walls of the tests are, but for the fence.
struct TestWalls {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    protected: Vec<PathBuf>,
    network_off: bool,
    fence: FileFence,
}

fn test_walls(fence: FileFence) -> TestWalls {
    let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
    TestWalls {
        readable: paths(&[
            "/usr",
            "/etc",
            "/bin",
            "/lib",
            "/dev",
            "/proc",
            "/srv/shop",
            "/srv/shop/vendor",
            "/home/agent",
        ]),
        writable: paths(&[
            "/srv/shop",
            "/home/agent",
            "/tmp",
            "/var/tmp",
            "/dev/shm",
            "/run",
            "/opt/cache/shop",
        ]),
        protected: paths(&[
            "/srv/shop/.git/config",
            "/srv/shop/.git/hooks",
            "/srv/shop/.envrc",
            "/srv/shop/lib/.husky",
        ]),
        network_off: true,
        fence,
    }
}

impl TestWalls {
    fn walls(&self) -> WallMap<'_> {
        WallMap {
            name: "webshop",
            cwd: Path::new("/srv/shop"),
            readable: &self.readable,
            writable: &self.writable,
            protected: &self.protected,
            closed_home: None,
            network_off: self.network_off,
            fence: self.fence,
            limits: LimitValues {
                memory_bytes: Some(512 << 20),
                processes: Some(200),
                open_files: Some(1024),
                file_bytes: Some(1 << 30),
            },
        }
    }

    /// Returns codes and objects, in a line.
    fn told(&self, stderr: &str) -> String {
        let found = find_denials(stderr, &self.walls());
        if found.is_empty() {
            return "none".into();
        }
        let words = |denial: &Denial| match &denial.object {
            Some(object) => format!("{} {object}", denial.code),
            None => denial.code.clone(),
        };
        found.iter().map(words).collect::<Vec<_>>().join(", ")
    }
}

/// Checks a table with a line for each case: what is told, and the standard
/// error with `\n` for a newline and `\e` for an escape.
fn check(fence: FileFence, cases: &str) {
    let walls = test_walls(fence);
    for (expected, stderr) in lines(cases) {
        assert_eq!(walls.told(&stderr), expected, "{stderr}");
    }
}

fn lines(cases: &str) -> impl Iterator<Item = (&str, String)> {
    let cases = cases.lines().filter(|line| !line.trim().is_empty());
    cases.map(|line| {
        let (expected, stderr) = line.split_once(" | ").expect("a case has a bar");
        let stderr = stderr.replace("\\n", "\n").replace("\\e", "\u{1b}");
        (expected.trim(), stderr)
    })
}

#[test]
fn writes_outside_are_named() {
    check(
        FileFence::Mounts,
        r#"
        fs.write /etc/x              | touch: cannot touch '/etc/x': Read-only file system
        fs.write /etc/a b            | cp: cannot create regular file '/etc/a b': Read-only file system
        fs.write /usr/d              | mkdir: cannot create directory ‘/usr/d’: Read-only file system
        fs.write /etc/hosts          | rm: cannot remove '/etc/hosts': Read-only file system
        fs.write /etc/w              | mv: inter-device move failed: '/tmp/w' to '/etc/w'; unable to remove target: Read-only file system
        fs.write /etc/x              | mv: cannot move '/etc/x' to 'x': Read-only file system
        fs.write /etc/l              | ln: failed to create symbolic link '/etc/l': Read-only file system
        fs.write /etc/t              | tee: /etc/t: Read-only file system
        fs.write /etc/t              | truncate: cannot open '/etc/t' for writing: Read-only file system
        fs.write /etc/t.tar          | tar: /etc/t.tar: Cannot open: Read-only file system
        fs.write /etc/x              | sh: 1: cannot create /etc/x: Read-only file system
        fs.write /etc/x              | bash: line 1: /etc/x: Read-only file system
        fs.write /etc/x              | zsh:1: read-only file system: /etc/x
        fs.write /etc/x              | OSError: [Errno 30] Read-only file system: '/etc/x'
        fs.write /etc/x              | OSError: [Errno 30] Read-only file system: b'/etc/x'
        fs.write /etc/a              | OSError: [Errno 30] Read-only file system: '/srv/shop/a' -> '/etc/a'
        fs.write /etc/x              | Error: EROFS: read-only file system, open '/etc/x'\n    at Object.writeFileSync (node:fs:2380:20) {\n  errno: -30,\n  code: 'EROFS',\n  syscall: 'open',\n  path: '/etc/x'\n}
        fs.write /etc/x              | 2026/11/16 00:01:26 open /etc/x: read-only file system
        fs.write /etc/x              | panic: mkdir /etc/x: read-only file system
        fs.write /usr/c              | error: failed to create package `c` at `/usr/c`\n\nCaused by:\n  failed to create directory `/usr/c`\n\nCaused by:\n  Read-only file system (os error 30)
        fs.write /usr/rmetaTGYzRv    | error: couldn't create a temp dir: Read-only file system (os error 30) at path "/usr/rmetaTGYzRv"
        fs.write                     | Error: Os { code: 30, kind: ReadOnlyFilesystem, message: "Read-only file system" }
        fs.write /etc/x              | java.io.FileNotFoundException: /etc/x (Read-only file system)
        fs.write /etc/x              | java.nio.file.FileSystemException: /etc/x: Read-only file system
        fs.write /etc/x              | -e:1:in 'initialize': Read-only file system @ rb_sysopen - /etc/x (Errno::EROFS)
        fs.write /etc/x              | PHP Warning:  fopen(/etc/x): Failed to open stream: Read-only file system
        fs.write /etc/x              | cannot open /etc/x: Read-only file system at -e line 1.
        fs.write /usr/a.out          | /usr/bin/ld: cannot open output file /usr/a.out: Read-only file system
        fs.write /etc/x              |   0     0    0     0 --:--:--     0Warning: Failed to open the file /etc/x: Read-only file system
        fs.write /etc/.git/description | fatal: cannot copy '/usr/share/git-core/templates/description' to '/etc/.git/description': Read-only file system
        fs.write /etc/clone          | fatal: could not create work tree dir '/etc/clone': Read-only file system
        fs.write /root/.gitconfig    | error: could not lock config file /root/.gitconfig: Read-only file system
        fs.write /srv/other/x        | touch: cannot touch '../other/x': Read-only file system
        fs.write /srv/shop/vendor/x  | touch: cannot touch 'vendor/x': Read-only file system
        fs.write /usr/lib/x          | \e[31mnpm error\e[0m EROFS: read-only file system, mkdir '\e[1m/usr/lib/x\e[0m'
        fs.write /usr/x              | npm error code EROFS\nnpm error syscall mkdir\nnpm error path /usr/x\nnpm error errno -30\nnpm error EROFS: read-only file system, mkdir '/usr/x'
        fs.write /root/x             | touch: cannot touch '/root/x': No such file or directory
        fs.write /root/x             | sh: 1: cannot create /root/x: Directory nonexistent
        "#,
    );
}

#[test]
fn read_only_places_of_the_host_are_not_blamed() {
    check(
        FileFence::Mounts,
        r#"
        none | touch: cannot touch 'x': Read-only file system
        none | touch: cannot touch '/srv/shop/cdrom/x': Read-only file system
        none | touch: cannot touch '/opt/cache/shop/x': Read-only file system
        none | touch: cannot touch '/srv/shop/vendor/../x': Read-only file system
        none | cp: cannot create regular file '~/x': Read-only file system
        none | rmdir: failed to remove '/mnt/disk': Device or resource busy
        "#,
    );
    check(
        FileFence::Landlock,
        r#"
        none | touch: cannot touch '/etc/x': Read-only file system
        none | OSError: Read-only file system
        "#,
    );
}

#[test]
fn protected_files_are_named() {
    check(
        FileFence::Mounts,
        r#"
        fs.write /srv/shop/.envrc    | rm: cannot remove '.envrc': Device or resource busy
        fs.write /srv/shop/.git/config | error: could not write config file .git/config: Device or resource busy
        fs.write /srv/shop/.git/config | error: could not lock config file .git/config: Read-only file system
        fs.write /srv/shop/.git/config | mv: cannot move '.git/config' to 'x': Device or resource busy
        fs.write /srv/shop/.git/hooks/pre-commit | t.sh: line 11: .git/hooks/pre-commit: Read-only file system
        fs.write /srv/shop/.envrc    | Error: EBUSY: resource busy or locked, rename '/srv/shop/a' -> '/srv/shop/.envrc'
        fs.write /srv/shop/.git      | sed: cannot rename .git/sed2wjvIe: Device or resource busy
        fs.write /srv/shop/lib/.husky | rm: cannot remove './.husky/pre-commit': Read-only file system
        none                         | rm: cannot remove 'hooks': Device or resource busy
        "#,
    );
    check(
        FileFence::Landlock,
        r#"
        fs.write /srv/shop/.git/hooks/x | touch: cannot touch '.git/hooks/x': Permission denied
        "#,
    );
}

#[test]
fn hidden_paths_are_named_and_missing_files_are_not() {
    check(
        FileFence::Mounts,
        r#"
        fs.read /root/x             | cat: /root/x: No such file or directory
        fs.read /root/x             | ls: cannot access '/root/x': No such file or directory
        fs.read /root/x             | head: cannot open '/root/x' for reading: No such file or directory
        fs.read /root/x             | find: ‘/root/x’: No such file or directory
        fs.read /root/x             | sort: cannot read: /root/x: No such file or directory
        fs.read /root/x             | sed: can't read /root/x: No such file or directory
        fs.read /root/x             | sh: 1: cannot open /root/x: No such file
        fs.read /root/x             | sh: 1: /root/x: not found
        fs.read /root/x y           | sh: 1: cd: can't cd to /root/x y
        fs.read /root/x             | bash: line 1: cd: /root/x: No such file or directory
        fs.read /root/py/bin/python | bash: ./run: /root/py/bin/python: bad interpreter: No such file or directory
        fs.read /root/x             | FileNotFoundError: [Errno 2] No such file or directory: '/root/x'
        fs.read /root/x.py          | /usr/bin/python3: can't open file '/root/x.py': [Errno 2] No such file or directory
        fs.read /root/x             | Error: ENOENT: no such file or directory, open '/root/x'
        fs.read /root/x.js          | Error: Cannot find module '/root/x.js'
        fs.read /root/x             | open /root/x: no such file or directory
        fs.read /root/x             | java.nio.file.NoSuchFileException: /root/x
        fs.read /root/p/Cargo.toml  | error: failed to read `/root/p/Cargo.toml`\n\nCaused by:\n  No such file or directory (os error 2)
        fs.read /srv/other/x        | cat: ../other/x: No such file or directory
        none                        | cat: x: No such file or directory
        none                        | cat: /etc/nope: No such file or directory
        none                        | cat: /tmp/nope: No such file or directory
        none                        | ls: cannot access '/opt/cache': No such file or directory
        none                        | cat: /proc/77/status: No such file or directory
        none                        | FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'
        none                        | sh: 1: nope: not found
        none                        | bash: line 1: nope: command not found
        none                        | Error: No such file or directory (os error 2)
        none                        | fatal: not a git repository (or any of the parent directories): .git
        "#,
    );
    check(
        FileFence::Landlock,
        r#"
        none | cat: /root/x: No such file or directory
        "#,
    );
}

#[test]
fn permission_errors_of_the_host_are_not_blamed() {
    check(
        FileFence::Mounts,
        r#"
        none | cat: /etc/shadow: Permission denied
        none | touch: cannot touch '/etc/x': Permission denied
        none | cat: /root/x: Permission denied
        none | PermissionError: [Errno 13] Permission denied: '/etc/shadow'
        none | Error: EACCES: permission denied, open '/etc/shadow'
        none | bash: line 1: ./script.sh: Permission denied
        none | git@example.org: Permission denied (publickey).
        none | chown: changing ownership of 'x': Operation not permitted
        none | bash: line 1: kill: (1) - Operation not permitted
        none | chmod: changing permissions of '/etc/hostname': Operation not permitted
        "#,
    );
    check(
        FileFence::Landlock,
        r#"
        none | cat: /etc/shadow: Permission denied
        none | PermissionError: [Errno 13] Permission denied: '/etc/shadow'
        none | bash: line 1: ./script.sh: Permission denied
        none | bash: line 1: /usr/sbin/x: Permission denied
        none | touch: cannot touch 'locked/x': Permission denied
        none | Got permission denied while trying to connect to the Docker daemon socket: dial unix /var/run/docker.sock: connect: permission denied
        "#,
    );
}

#[test]
fn landlock_denies_as_the_host_does_and_the_path_decides() {
    check(
        FileFence::Landlock,
        r#"
        fs.read /root/x | cat: /root/x: Permission denied
        fs.read /home   | ls: cannot open directory '/home': Permission denied
        fs.read /root/x | PermissionError: [Errno 13] Permission denied: '/root/x'
        fs.read /root/x | java.nio.file.AccessDeniedException: /root/x
        fs.write /etc/x | touch: cannot touch '/etc/x': Permission denied
        fs.write /etc/x | sh: 1: cannot create /etc/x: Permission denied
        fs.write /etc/x | bash: line 1: /etc/x: Permission denied
        fs.write /usr/x | Error: EACCES: permission denied, mkdir '/usr/x'
        network 1.2.3.4 | Error: connect EACCES 1.2.3.4:443
        none            | dial tcp 127.0.0.1:80: connect: permission denied
        "#,
    );
}

#[test]
fn the_walls_have_no_room_for_privileges() {
    check(
        FileFence::Mounts,
        r#"
        syscall unshare      | unshare: unshare failed: Operation not permitted
        syscall mount        | mount: /mnt: must be superuser to use mount.
        syscall mount        | mount: /mnt: permission denied.
        syscall chroot       | chroot: cannot change root directory to '/': Operation not permitted
        syscall nsenter      | nsenter: cannot open /proc/1/ns/mnt: Permission denied
        syscall dmesg        | dmesg: read kernel buffer failed: Operation not permitted
        syscall ping         | bash: line 1: /usr/bin/ping: Operation not permitted
        none                 | sh: 1: mount: Permission denied
        fs.setid /srv/shop/x | chmod: changing permissions of 'x': Operation not permitted
        "#,
    );
}

#[test]
fn hosts_are_named_when_the_network_is_off() {
    let cases = r#"
        network example.org        | curl: (6) Could not resolve host: example.org
        network 1.2.3.4            | curl: (7) Failed to connect to 1.2.3.4 port 80 after 0 ms: Couldn't connect to server
        network 2001:db8::1        | curl: (7) Failed to connect to 2001:db8::1 port 80 after 5 ms: Couldn't connect to server
        network example.org        | wget: unable to resolve host address ‘example.org’
        network example.org        | Resolving example.org (example.org)... failed: Temporary failure in name resolution.
        network 1.2.3.4            | Connecting to 1.2.3.4:80... failed: Network is unreachable.
        network example.org        | fatal: unable to access 'https://example.org/x/': Could not resolve host: example.org
        network example.org        | ssh: Could not resolve hostname example.org: Temporary failure in name resolution
        network 1.2.3.4            | ssh: connect to host 1.2.3.4 port 22: Network is unreachable
        network example.org        | fatal: unable to look up example.org (port 9418) (Temporary failure in name resolution)
        network example.org        | ping: example.org: Temporary failure in name resolution
        network                    | ping: connect: Network is unreachable
        network                    | urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>
        network                    | OSError: [Errno 101] Network is unreachable
        network pypi.org           | ERROR: HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded with url: / (Caused by NewConnectionError('<x>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution'))
        network example.org        | Error: getaddrinfo EAI_AGAIN example.org\n  code: 'EAI_AGAIN',
        network example.org        | Error: getaddrinfo ENOTFOUND example.org
        network 1.2.3.4            | Error: connect ENETUNREACH 1.2.3.4:80 - Local (0.0.0.0:0)
        network registry.npmjs.org | npm error code EAI_AGAIN\nnpm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org
        network example.org        | Get "https://example.org/": dial tcp: lookup example.org on 10.0.0.1:53: dial udp 10.0.0.1:53: connect: network is unreachable
        network 2001:db8::1        | dial tcp [2001:db8::1]:443: connect: network is unreachable
        network index.crates.io    |   failed to download from `https://index.crates.io/config.json`\n\nCaused by:\n  [6] Could not resolve hostname (Could not resolve host: index.crates.io)
        network deb.debian.org     | W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease  Temporary failure resolving 'deb.debian.org'
        network example.org        | java.net.UnknownHostException: example.org
        network example.org        | bash: line 1: example.org: Temporary failure in name resolution\nbash: line 1: /dev/tcp/example.org/80: Invalid argument
        network example.org        | error sending request for url (https://me:secret@example.org:8443/): failed to lookup address information
        network a.example          | OSError: [Errno 101] Network is unreachable\ncurl: (6) Could not resolve host: a.example\ncurl: (6) Could not resolve host: a.example
        "#;
    check(FileFence::Mounts, cases);
    let open = TestWalls {
        network_off: false,
        ..test_walls(FileFence::Mounts)
    };
    for (_, stderr) in lines(cases) {
        assert_eq!(open.told(&stderr), "none", "{stderr}");
    }
}

#[test]
fn own_servers_that_are_not_up_are_not_blamed() {
    check(
        FileFence::Mounts,
        r#"
        none | curl: (7) Failed to connect to localhost port 99 after 8 ms: Couldn't connect to server
        none | curl: (7) Failed to connect to 127.0.0.1 port 99: Connection refused
        none | curl: (7) Failed to connect to ::1 port 99 after 0 ms: Couldn't connect to server
        none | Error: connect ECONNREFUSED 127.0.0.1:5432
        none | Error: connect ENETUNREACH 127.0.0.1:99 - Local (0.0.0.0:0)
        none | Error: connect ENETUNREACH ::1:99 - Local (:::0)
        none | Error: getaddrinfo EAI_AGAIN app.localhost
        none | dial tcp [::1]:443: connect: connection refused
        none | cannot reach localhost:80, Network is unreachable
        "#,
    );
}

#[test]
fn limits_are_named_with_their_measure() {
    check(
        FileFence::Mounts,
        r#"
        memory              | Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nMemoryError
        memory              | OSError: [Errno 12] Cannot allocate memory
        memory              | Out of memory!
        memory              | memory allocation of 1073741824 bytes failed
        memory              | terminate called after throwing an instance of 'std::bad_alloc'
        none                | FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory
        processes           | bash: fork: retry: Resource temporarily unavailable\nbash: fork: Resource temporarily unavailable
        processes           | sh: 1: Cannot fork
        processes           | RuntimeError: can't start new thread
        none                | BlockingIOError: [Errno 11] Resource temporarily unavailable
        open_files          | OSError: [Errno 24] Too many open files: '/etc/hostname'
        none                | Error: EMFILE: too many open files, watch '/srv/shop'
        none                | open x: too many open files in system
        file_size           | bash: line 1: 13495 File size limit exceededdd if=/dev/zero of=big
        file_size           | cat: /usr/bin/bash: File too large
        tmp_full /tmp/x     | OSError: [Errno 28] No space left on device: '/tmp/x'
        tmp_full /dev/shm/x | cp: error writing '/dev/shm/x': No space left on device
        none                | cp: error writing 'x': No space left on device
        "#,
    );
    let walls = test_walls(FileFence::Mounts);
    let free = WallMap {
        limits: LimitValues::default(),
        ..walls.walls()
    };
    assert_eq!(find_denials("MemoryError", &free), []);
}

#[test]
fn a_denial_teaches() {
    let walls = test_walls(FileFence::Mounts);
    let told = |stderr| {
        let denial = find_denials(stderr, &walls.walls()).remove(0);
        (denial.text, denial.remedy)
    };
    for (stderr, text, remedy) in [
        (
            "touch: cannot touch '/etc/x': Read-only file system",
            "cannot write /etc/x: outside the sandbox",
            "if it should be allowed, a person can add `/etc` to `write` of sandbox `webshop` in the configuration; agents cannot",
        ),
        (
            "touch: cannot touch '/x': Read-only file system",
            "cannot write /x: outside the sandbox",
            "if it should be allowed, a person can add `/x` to `write` of sandbox `webshop` in the configuration; agents cannot",
        ),
        (
            "touch: cannot touch 'vendor/x': Read-only file system",
            "cannot write vendor/x: outside the sandbox",
            "if it should be allowed, a person can add `/srv/shop/vendor` to `write` of sandbox `webshop` in the configuration; agents cannot",
        ),
        (
            "sh: 1: cannot create /proc/sys/vm/swappiness: Read-only file system",
            "cannot write /proc/sys/vm/swappiness: outside the sandbox",
            "no setting opens the kernel's own files",
        ),
        (
            "rm: cannot remove '.git/hooks/pre-commit': Read-only file system",
            "cannot write .git/hooks/pre-commit: protected, it would run outside the walls",
            "a person can change it outside the walls; agents cannot",
        ),
        (
            "cat: /root/x: No such file or directory",
            "cannot read /root/x: outside the sandbox, it is not visible there",
            "if it should be allowed, a person can add `/root/x` or its directory to `read` of sandbox `webshop` in the configuration; agents cannot",
        ),
        (
            "curl: (6) Could not resolve host: example.org",
            "network is off: cannot reach example.org",
            "if it should be allowed, a person can set `network = \"on\"` for sandbox `webshop`; agents cannot",
        ),
        (
            "MemoryError",
            "the command may have met its memory limit of 512 MiB",
            "if it should be allowed, a person can raise `memory_mib` of sandbox `webshop`; agents cannot",
        ),
    ] {
        assert_eq!(told(stderr), (text.into(), remedy.into()), "{stderr}");
    }
}

#[test]
fn a_sandbox_that_may_only_be_read_is_not_called_outside() {
    let walls = TestWalls {
        writable: vec!["/tmp".into()],
        ..test_walls(FileFence::Mounts)
    };
    let found = find_denials(
        "touch: cannot touch 'x': Read-only file system",
        &walls.walls(),
    );
    assert_eq!(found[0].text, "cannot write x: read-only in this sandbox");
}

#[test]
fn hostile_text_is_bounded_and_undisguised() {
    let walls = test_walls(FileFence::Mounts);
    let many: String = (0..1000)
        .map(|n| format!("touch: cannot touch '/etc/{n}': Read-only file system\n"))
        .collect();
    assert_eq!(find_denials(&many, &walls.walls()).len(), MOST_DENIALS);
    let crowd = format!("x:{}: Read-only file system\n", " 'a/b'".repeat(1000)).repeat(10);
    assert_eq!(find_denials(&crowd, &walls.walls()), []);
    let long = format!("cat: /root/{}: No such file or directory", "é".repeat(2000));
    let found = find_denials(&long, &walls.walls());
    assert_eq!(
        found[0].object.as_ref().unwrap().chars().count(),
        OBJECT_CHARS
    );
    assert!(found[0].text.len() < 1000 && found[0].remedy.len() < 1000);
    assert_eq!(
        walls.told("cat: '/root/a\u{202e}b\u{7}\u{200b}`c': No such file or directory"),
        "fs.read /root/abc"
    );
}

#[test]
fn junk_takes_no_time_and_is_not_blamed() {
    let walls = test_walls(FileFence::Mounts);
    let whole = 64 * 1024;
    for piece in [
        "x",
        "\n",
        "'",
        " '",
        " ‘",
        "`",
        ": ",
        "/",
        "\u{1b}[",
        "\u{1b}]",
        "../",
        "\u{fffd}\0",
        "Read-only file system ",
        "connect socket ",
        "fork thread ",
        "a: b: '/",
        "://@",
        "é",
        "(os error \n",
        "bash: fork: ",
        "can't cd to ",
        "mount: ",
    ] {
        let junk = piece.repeat(whole / piece.len());
        let began = std::time::Instant::now();
        let found = find_denials(&junk, &walls.walls());
        // A thousandfold of what it takes, without optimisation.
        assert!(began.elapsed().as_secs() < 5, "{piece:?}");
        assert!(
            found.iter().all(|denial| denial.object.is_none()),
            "{piece:?}: {found:?}"
        );
    }
}

#[test]
fn a_home_that_is_closed_is_named_as_such() {
    let walls = test_walls(FileFence::Mounts);
    let closed = WallMap {
        closed_home: Some(Path::new("/home/agent")),
        ..walls.walls()
    };
    let stderr = "touch: cannot touch '/home/agent/.bashrc': Read-only file system";
    let found = find_denials(stderr, &closed);
    let expected = "cannot write /home/agent/.bashrc: what is proved to read does not write to \
                    the sandbox's home directory";
    assert_eq!(found[0].text, expected);
    assert_eq!(find_denials(stderr, &walls.walls()), []);
}
