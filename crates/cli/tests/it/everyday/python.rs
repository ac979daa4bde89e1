//! Python, which uses more of the system than most.

use super::{check, desk};
use crate::support::have;

const PROCESSES: &str = r#"
import multiprocessing as m
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

def square(x):
    return x * x

def put(queue, lock):
    with lock:
        queue.put(7)

if __name__ == "__main__":
    for kind in ("fork", "spawn", "forkserver"):
        c = m.get_context(kind)
        with c.Pool(2) as pool:
            squares = pool.map(square, [1, 2, 3])
        queue, lock = c.Queue(), c.Lock()
        child = c.Process(target=put, args=(queue, lock))
        child.start()
        with ProcessPoolExecutor(2, mp_context=c) as workers:
            print(kind, squares, queue.get(), list(workers.map(square, [4])))
        child.join()
    m.Semaphore(2).acquire()
    one = shared_memory.SharedMemory(create=True, size=100)
    one.buf[0] = 5
    other = shared_memory.SharedMemory(one.name)
    print("shared", other.buf[0])
    other.close(); one.close(); one.unlink()
    with m.Manager() as manager:
        print("managed", dict(manager.dict(a=1)))
"#;

const LIBRARY: &str = r#"
import asyncio, os, pty, socket, sqlite3, subprocess, tempfile
async def child():
    it = await asyncio.create_subprocess_shell("echo child", stdout=-1)
    return (await it.communicate())[0]
print(asyncio.run(child()))
with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as dir:
    print(os.path.dirname(file.name), os.path.dirname(dir))
with tempfile.TemporaryFile(dir=".") as file:
    print(file.write(b"x"))
db = sqlite3.connect("x.db")
print(db.execute("pragma journal_mode=wal").fetchone())
db.execute("create table t(a)"); db.execute("insert into t values(42)"); db.commit()
print(db.execute("select a from t").fetchone())
for path in ("/tmp/s", "s"):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path); server.listen()
    socket.socket(socket.AF_UNIX).connect(path)
said = []
def read(fd):
    data = os.read(fd, 1024); said.append(data); return b""
print(pty.spawn(["test", "-t", "0"], read))
print(os.path.expanduser("~") == os.environ["HOME"], socket.gethostname() != "")
"#;

const SERVERS: &str = r#"
import os, socket, threading, urllib.request
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
class Quiet(SimpleHTTPRequestHandler):
    def log_message(*_): pass
class Six(ThreadingHTTPServer):
    address_family = socket.AF_INET6
for kind, bind, host in [
    (ThreadingHTTPServer, "127.0.0.1", "127.0.0.1"),
    (ThreadingHTTPServer, "localhost", "localhost"),
    (ThreadingHTTPServer, "", "localhost"),
    (Six, "::1", "[::1]"),
    (Six, "::", "localhost"),
]:
    server = kind((bind, 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://{host}:{server.server_port}/"
    other = "200"
    if os.path.exists("/usr/bin/curl"):
        other = os.popen(f"curl -sS -o /dev/null -w '%{{http_code}}' {url} 2>&1").read()
    print(urllib.request.urlopen(url).status, other)
"#;

#[test]
fn processes_share_memory_and_queues() {
    let home = desk();
    if have(&["python3"]) {
        home.put("base/x.py", PROCESSES);
        let each = "[1, 4, 9] 7 [16]";
        let said =
            format!("fork {each}\nspawn {each}\nforkserver {each}\nshared 5\nmanaged {{'a': 1}}");
        check(&home, &[("python3 x.py", &said)]);
    }
}

#[test]
fn the_library_finds_what_it_needs() {
    let home = desk().live_elsewhere();
    if have(&["python3"]) {
        home.put("base/x.py", LIBRARY);
        let said = "b'child\\n'\n/tmp /tmp\n1\n('wal',)\n(42,)\n0\nTrue True";
        check(&home, &[("python3 x.py", said)]);
    }
}

#[test]
fn servers_are_reached_by_every_name_of_this_machine() {
    let home = desk();
    if have(&["python3"]) {
        home.put("base/x.py", SERVERS);
        check(
            &home,
            &[("python3 x.py", ["200 200"; 5].join("\n").as_str())],
        );
    }
}

#[test]
fn a_package_is_installed_into_a_virtual_environment() {
    let home = desk();
    if !have(&["python3"]) {
        return;
    }
    home.put("base/pkg/local/__init__.py", "answer = 42\n");
    home.put(
        "base/pkg/setup.py",
        "from setuptools import setup\nsetup(name='local', version='1', packages=['local'])\n",
    );
    let made = home.run(&["-q"], "python3 -m venv v");
    if made.err.contains("ensurepip") || made.out.contains("ensurepip") {
        return crate::support::skip("python3 has no ensurepip");
    }
    check(
        &home,
        &[
            (
                "v/bin/pip install -q ./pkg --no-index --no-build-isolation 2> /dev/null",
                "",
            ),
            ("v/bin/python -c 'import local; print(local.answer)'", "42"),
            (
                ". v/bin/activate && python -c 'import local; print(local.answer)'",
                "42",
            ),
        ],
    );
}
