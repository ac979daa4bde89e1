//! Clients over TCP that are slow, silent, greedy, or do not speak HTTP.

use std::fs;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::{Value, json};

use crate::support::{Answer, Home, Server, Talk, eventually};

/// What the server gives a connection over TCP to say what it wants, and a
/// request to bring its body.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// More than any answer here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_slow_keep_neither_a_place_nor_a_request() {
    let home = Home::new();
    let (server, door) = open(&home);
    let began = Instant::now();
    // These may take their time.
    let late = home.start("until [ -e go ]; do sleep 0.05; done; echo late", json!({}));
    let mut follower = door.connect();
    let path = format!("/commands/{late}/output/raw?follow=ended");
    follower.say(&closing(&door.get(&path)));
    let flood = home.start("head -c 16000000 /dev/zero", json!({}));
    home.ended(&flood);
    let mut reader = door.connect();
    reader.say(&closing(
        &door.get(&format!("/commands/{flood}/output/raw")),
    ));
    let eater = home.start("cat", json!({ "stdin_open": true }));
    let mut feeder = door.connect();
    let path = format!("/commands/{eater}/stdin?last=true");
    feeder.say(&door.head("POST", &path, 2));
    feeder.say("a");
    let mut owner = Talk::open(&home);
    assert_eq!(owner.ask("GET", "/health", &Value::Null).status, 200);
    // These may not.
    let mut half = door.connect();
    half.say("GET /agent/terminal/health HTTP/1.1\r\nhost:");
    let mut idle = door.connect();
    idle.say(&door.get("/health"));
    assert_eq!(idle.receive().status, 200);
    let mut body = door.connect();
    body.say(&door.head("POST", "/commands", 100));
    body.say("{");
    let mut message = door.connect();
    let head = door.head("POST", "/commands", 100);
    message.say(&head.replacen("/agent/terminal/commands", "/mcp", 1));
    message.say("{");
    let crowd: Vec<Talk<TcpStream>> = (0..300).map(|_| door.connect()).collect();
    let mut honest = door.connect();
    let asked = Instant::now();
    honest.say(&door.get("/health"));

    assert_eq!(honest.receive().status, 200, "let in when others are out");
    assert!(asked.elapsed() < HEAD_WITHIN * 2, "{:?}", asked.elapsed());
    drop(crowd);
    assert_eq!(half.rest(), b"");
    assert_eq!(idle.rest(), b"");
    assert!(began.elapsed() >= HEAD_WITHIN);
    let mut dribble = door.connect();
    dribble.say("GET / HTTP/1.1\r\nx: ");
    dribble.say_until_closed("x");

    assert_eq!(owner.ask("GET", "/health", &Value::Null).status, 200);
    fs::write(home.base().join("go"), "").unwrap();
    let said = follower.rest();
    assert!(
        said.ends_with(b"5\r\nlate\n\r\n0\r\n\r\n"),
        "{}",
        text(&said)
    );
    let zeros = reader.rest().iter().filter(|&&byte| byte == 0).count();
    assert_eq!(zeros, 16_000_000);
    let refused = body.receive();
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (408, &json!("slow_body"))
    );
    assert_eq!(body.rest(), b"");
    let refused = text(&message.rest());
    assert!(
        refused.starts_with("HTTP/1.1 408")
            && refused.ends_with("\r\n\r\nthe message did not come in time; nothing was done"),
        "{refused}"
    );
    assert!(began.elapsed() >= BODY_WITHIN);
    feeder.say("b");
    assert_eq!(feeder.receive().status, 204);
    assert_eq!(home.ended(&eater)["stdout"], "ab");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let home = Home::new();
    let (_server, door) = open(&home);
    let with = |headers: &str| door.get("/health").replace("\r\n\r\n", headers) + "\r\n\r\n";
    let ask = |request: &str| {
        let mut wire = door.connect();
        // The server need not read it to its end.
        let _ = wire.0.get_mut().write_all(request.as_bytes());
        wire.receive().status
    };
    let field = |bytes| format!("\r\nx: {}", "y".repeat(bytes));
    assert_eq!(ask(&with(&field(60_000))), 200);
    for bytes in [66_000, 1_000_000, 20_000_000] {
        assert_eq!(ask(&with(&field(bytes))), 431, "{bytes}");
    }
    // Four more come with every request.
    assert_eq!(ask(&with(&"\r\nx: y".repeat(96))), 200);
    assert_eq!(ask(&with(&"\r\nx: y".repeat(97))), 431);
    assert_eq!(ask(&with(&"\r\nx: y".repeat(10_000))), 431);
    let address = door.get(&format!("/health?{}", "y".repeat(100_000)));
    assert!(matches!(ask(&address), 414 | 431));
    assert_eq!(ask(&door.get("/health")), 200);
    // The owner's door has the same.
    let huge = format!("/health?{}", "y".repeat(100_000));
    assert!(matches!(home.api_raw("GET", &huge, b"").0, 414 | 431));
}

#[test]
fn what_is_not_http_is_turned_away() {
    let home = Home::new();
    let (_server, door) = open(&home);
    let authorized = format!("authorization: Bearer {}\r\n", door.token);
    let post = format!("POST /agent/terminal/commands HTTP/1.1\r\n{authorized}");
    for garbage in [
        "\x16\x03\x01\x02\0\x01\0\x01\u{7f}\x03\x03".to_owned(),
        "\0".repeat(100_000),
        "\r\n".repeat(100_000),
        "SSH-2.0-OpenSSH_9.9\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("GET /agent/terminal/health HTTP/3.0\r\n{authorized}\r\n"),
        format!("GET /agent/terminal/health\r\n{authorized}\r\n"),
        format!("GET  /agent/terminal/health HTTP/1.1\r\n{authorized}\r\n"),
        format!("{post}no colon\r\n\r\n"),
        format!("{post} folded: x\r\n\r\n"),
        format!("{post}content-length: -1\r\n\r\n{{}}"),
        format!("{post}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"),
        format!("{post}content-length: 99999999999999999999999\r\n\r\n{{}}"),
        format!("{post}transfer-encoding: gzip\r\n\r\n{{}}"),
        format!(
            "{post}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{{}}"
        ),
    ] {
        let mut wire = door.connect();
        let _ = wire.0.get_mut().write_all(garbage.as_bytes());
        let _ = wire.0.get_mut().shutdown(Shutdown::Write);
        let said = text(&wire.rest());
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 4"),
            "{garbage:.80} was answered {said}"
        );
    }
    let (_, list) = home.api("GET", "/commands", &Value::Null);
    assert_eq!(list["commands"], json!([]));
    assert_eq!(door.ask(&door.get("/health")).status, 200);
}

#[test]
fn requests_may_come_before_their_answers() {
    let home = Home::new();
    let (_server, door) = open(&home);
    let body = |text: &str| home.wish(text, Value::Null).to_string();
    let mut wire = door.connect();
    let three = ["echo one", "echo two", "echo three"]
        .map(|text| door.request("POST", "/commands", &body(text)))
        .concat();
    let (begun, rest) = three.split_at(three.len() - 20);
    wire.say(begun);
    assert_eq!(wire.receive().body["stdout"], "one\n");
    assert_eq!(wire.receive().body["stdout"], "two\n");
    wire.say(rest);
    assert_eq!(wire.receive().body["stdout"], "three\n");
}

#[test]
fn a_foreign_host_or_origin_is_sent_away() {
    let home = Home::new();
    let (_server, door) = open(&home);
    let good = door.get("/health");
    let host = format!("host: {}", door.address);
    let origin = |origin: &str| good.replacen(&host, &format!("{host}\r\norigin: {origin}"), 1);
    assert_eq!(
        door.ask(&origin(&format!("http://{}", door.address)))
            .status,
        200
    );
    for request in [
        good.replacen(&host, "host: evil.test", 1),
        good.replacen(&host, "host: 127.0.0.1.evil.test", 1),
        good.replacen(&host, "host:", 1),
        good.replacen(&host, "host: \u{e9}", 1),
        origin("http://evil.test"),
        origin("null"),
        origin("http://127.0.0.1:1"),
    ] {
        let mut wire = door.connect();
        wire.say(&request);
        let answer = wire.receive();
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (403, &json!("foreign_origin")),
            "{request}"
        );
        assert_eq!(wire.rest(), b"", "a stranger keeps no connection");
    }
}

#[test]
fn whoever_guesses_tokens_is_slowed_down() {
    let home = Home::new();
    let (_server, door) = open(&home);
    let guess = door.get("/health").replace(&door.token, "wl_guess");
    for _ in 0..5 {
        assert_eq!(door.ask(&guess).status, 401);
    }
    let began = Instant::now();
    assert_eq!(door.ask(&guess).status, 401);
    assert!(began.elapsed() >= Duration::from_secs(1));
    let mut crowd: Vec<Talk<TcpStream>> = (0..200).map(|_| door.connect()).collect();
    crowd.iter_mut().for_each(|wire| wire.say(&guess));
    assert_eq!(door.ask(&door.get("/health")).status, 200);
    let answers: Vec<Answer> = crowd.iter_mut().map(Talk::receive).collect();
    let of = |status| answers.iter().filter(move |answer| answer.status == status);
    assert_eq!(of(401).count() + of(429).count(), 200);
    assert!(of(401).count() >= 32, "some are told, late");
    let refused = of(429).next().expect("not all can be held back");
    assert_eq!(refused.body["code"], "too_many_requests");
    assert!(
        refused.head.contains("retry-after: 1\r\n"),
        "{}",
        refused.head
    );
}

#[test]
fn a_server_without_descriptors_waits_for_some() {
    let home = Home::new();
    let (server, door) = open(&home);
    let pid = server.child.id();
    let has = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
    let few = Rlimit {
        current: Some(has + 8),
        maximum: Some(has + 8),
    };
    prlimit(Pid::from_raw(pid.cast_signed()), Resource::Nofile, few).unwrap();
    let crowd: Vec<Talk<TcpStream>> = (0..20).map(|_| door.connect()).collect();
    let talks: Vec<Talk> = (0..20).map(|_| Talk::open(&home)).collect();
    let before = ticks(pid);
    std::thread::sleep(Duration::from_secs(1));
    let spent = ticks(pid) - before;
    assert!(spent < 50, "{spent} of 100 ticks spent waiting");
    drop((crowd, talks));
    eventually("others are let in", || {
        door.ask(&door.get("/health")).status == 200
    });
    assert_eq!(home.api("GET", "/health", &Value::Null).0, 200);
}

#[test]
fn a_user_who_has_too_many_connections_is_told() {
    let most = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: most.maximum,
        ..most
    };
    setrlimit(Resource::Nofile, all).unwrap();
    let home = Home::new();
    let _server = home.serve(&[]);
    let mut first = Talk::open(&home);
    let mut crowd: Vec<Talk> = (1..1024).map(|_| Talk::open(&home)).collect();
    let told = Talk::open(&home).ask("GET", "/health", &Value::Null);
    assert_eq!(told.status, 429, "{}", told.body);
    assert_eq!(told.body["code"], "too_many_requests");
    // Those that are there go on, and so do others once there is room.
    assert_eq!(first.ask("GET", "/health", &Value::Null).status, 200);
    let last = crowd.last_mut().unwrap();
    assert_eq!(last.ask("GET", "/health", &Value::Null).status, 200);
    drop(crowd);
    eventually("there is room", || {
        Talk::open(&home).ask("GET", "/health", &Value::Null).status == 200
    });
}

/// The server's way in over TCP.
struct Door {
    address: String,
    token: String,
}

fn open(home: &Home) -> (Server, Door) {
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let (address, token) = (server.address(), home.token(&home.me()));
    (server, Door { address, token })
}

impl Door {
    fn connect(&self) -> Talk<TcpStream> {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Talk(BufReader::new(stream))
    }

    /// Asks on a connection of its own.
    fn ask(&self, request: &str) -> Answer {
        let mut wire = self.connect();
        wire.say(request);
        wire.receive()
    }

    fn get(&self, path: &str) -> String {
        self.head("GET", path, 0)
    }

    fn request(&self, method: &str, path: &str, body: &str) -> String {
        self.head(method, path, body.len()) + body
    }

    fn head(&self, method: &str, path: &str, length: usize) -> String {
        let Self { address, token } = self;
        format!(
            "{method} /agent/terminal{path} HTTP/1.1\r\nhost: {address}\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        )
    }
}

impl Talk<TcpStream> {
    fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Says the same now and then until the other end has enough.
    fn say_until_closed(&mut self, text: &str) {
        let pace = Duration::from_millis(500);
        self.0.get_mut().set_read_timeout(Some(pace)).unwrap();
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "still listening");
            let said = self.0.get_mut().write_all(text.as_bytes());
            match said.and_then(|()| self.0.read(&mut [0])) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return,
                Ok(_) => panic!("an answer to no request"),
            }
        }
    }

    /// Reads until the other end closes, in order or not.
    fn rest(&mut self) -> Vec<u8> {
        let mut said = vec![];
        if let Err(error) = self.0.read_to_end(&mut said) {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "never closed");
        }
        said
    }
}

/// The same, as the last request on its connection.
fn closing(request: &str) -> String {
    request.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1)
}

/// The processor time that a process has had, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    let field = |n: usize| fields[n].parse::<u64>().unwrap();
    field(11) + field(12)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
