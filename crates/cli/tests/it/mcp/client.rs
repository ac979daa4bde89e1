//! A client of the door for agents, over either way in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, Server};

/// The revision that is asked for unless a test says otherwise.
pub(crate) const REVISION: &str = "2025-11-25";

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A client that is connected.
pub(crate) struct Client {
    way: Way,
    heard: Arc<Heard>,
    next: AtomicU64,
    /// What the server said when it was asked for.
    pub(crate) greeting: Value,
}

enum Way {
    Stdio {
        child: Mutex<Child>,
        input: Mutex<Option<ChildStdin>>,
    },
    Http(Arc<Http>),
}

/// Where posts go, and as whom.
struct Http {
    address: String,
    path: String,
    token: String,
    session: Mutex<Option<String>>,
    open: Mutex<Vec<TcpStream>>,
}

/// Every message that has come, in order.
#[derive(Default)]
struct Heard {
    messages: Mutex<Vec<Value>>,
    more: Condvar,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Called {
    pub(crate) text: String,
    pub(crate) data: Value,
    pub(crate) failed: bool,
}

impl Client {
    /// Starts `weighlock mcp`.
    pub(crate) fn stdio(home: &Home, flags: &[&str]) -> Self {
        Self::stdio_with(home, flags, json!({}))
    }

    /// The same, able to do what it says.
    pub(crate) fn stdio_with(home: &Home, flags: &[&str], capabilities: Value) -> Self {
        Self::start(mcp(home, flags)).greeted(capabilities)
    }

    /// The same as somebody else.
    pub(crate) fn stdio_as(home: &Home, token: &str, flags: &[&str], capabilities: Value) -> Self {
        let mut command = mcp(home, flags);
        command.env("WEIGHLOCK_TOKEN", token);
        Self::start(command).greeted(capabilities)
    }

    /// Starts it, and has said nothing yet.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let heard = Arc::<Heard>::default();
        let output = BufReader::new(child.stdout.take().unwrap());
        let to = Arc::clone(&heard);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line);
                to.add(message.unwrap_or_else(|_| panic!("no JSON: {line}")));
            }
            to.add(json!({ "closed": true }));
        });
        let input = Mutex::new(child.stdin.take());
        let child = Mutex::new(child);
        Self::new(Way::Stdio { child, input }, heard)
    }

    /// Opens a session at a server's address; `query` as in `toolset=bash`.
    pub(crate) fn http(server: &Server, token: &str, query: &str) -> Self {
        Self::http_with(server, token, query, json!({}))
    }

    /// The same, able to do what it says.
    pub(crate) fn http_with(
        server: &Server,
        token: &str,
        query: &str,
        capabilities: Value,
    ) -> Self {
        let http = Http {
            address: server.address(),
            path: format!("/mcp?{query}"),
            token: token.to_owned(),
            session: Mutex::default(),
            open: Mutex::default(),
        };
        Self::new(Way::Http(Arc::new(http)), Arc::default()).greeted(capabilities)
    }

    fn new(way: Way, heard: Arc<Heard>) -> Self {
        Self {
            way,
            heard,
            next: AtomicU64::new(1),
            greeting: Value::Null,
        }
    }

    fn greeted(mut self, capabilities: Value) -> Self {
        let client = &mut self;
        let info = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": REVISION, "capabilities": capabilities,
                            "clientInfo": info });
        client.greeting = client.request("initialize", hello);
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        self
    }

    /// Calls a tool and waits for what it answers.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Called {
        self.answered(self.begin(tool, arguments))
    }

    /// Calls a tool; the answer is waited for by its number.
    pub(crate) fn begin(&self, tool: &str, arguments: Value) -> u64 {
        self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// The same, with `token` for progress.
    pub(crate) fn begin_with_progress(&self, tool: &str, arguments: Value, token: &str) -> u64 {
        let meta = json!({ "progressToken": token });
        self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments, "_meta": meta }),
        )
    }

    /// Waits for what a call has come to. It is never an error of the protocol.
    pub(crate) fn answered(&self, id: u64) -> Called {
        self.answered_within(id, PATIENCE)
    }

    /// The same for a client that gives up after a time.
    pub(crate) fn answered_within(&self, id: u64, limit: Duration) -> Called {
        let answer = self
            .heard
            .wait(&format!("an answer to {id}"), limit, answers(id));
        let result = &answer["result"];
        assert!(result.is_object(), "an error of the protocol: {answer}");
        let [content] = &result["content"].as_array().unwrap()[..] else {
            panic!("one text: {answer}");
        };
        Called {
            text: content["text"].as_str().unwrap().to_owned(),
            data: result["structuredContent"].clone(),
            failed: result["isError"].as_bool().unwrap_or(false),
        }
    }

    /// Sends a request, and waits for its result.
    pub(crate) fn request(&self, method: &str, params: Value) -> Value {
        let answer = self.answer(self.ask(method, params));
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request.
    pub(crate) fn ask(&self, method: &str, params: Value) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the whole answer to a request.
    pub(crate) fn answer(&self, id: u64) -> Value {
        self.hears(&format!("an answer to {id}"), answers(id))
    }

    /// Whether a request has been answered by now.
    pub(crate) fn has_answer(&self, id: u64) -> bool {
        let messages = self.heard.messages.lock().unwrap();
        messages.iter().any(answers(id))
    }

    /// Tells the server that nobody wants this any more.
    pub(crate) fn cancel(&self, id: u64) {
        let params = json!({ "requestId": id, "reason": "a test" });
        self.send(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                          "params": params }),
        );
    }

    /// Waits for a message that fits.
    pub(crate) fn hears(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.heard.wait(what, PATIENCE, fits)
    }

    /// Every message of a kind that has come so far.
    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        let messages = self.heard.messages.lock().unwrap();
        let all = messages.iter().filter(|one| one["method"] == method);
        all.cloned().collect()
    }

    /// Forgets what has come so far.
    pub(crate) fn forget(&self) {
        self.heard.messages.lock().unwrap().clear();
    }

    /// Sends a message as it is.
    pub(crate) fn send(&self, message: Value) {
        self.send_text(&message.to_string());
    }

    /// Sends a line, whatever it is.
    pub(crate) fn send_text(&self, text: &str) {
        match &self.way {
            Way::Stdio { input, .. } => {
                let mut input = input.lock().unwrap();
                let input = input.as_mut().expect("it is open");
                writeln!(input, "{text}").unwrap();
                input.flush().unwrap();
            }
            Way::Http(http) => {
                let (http, heard, text) =
                    (Arc::clone(http), Arc::clone(&self.heard), text.to_owned());
                // Notifications and answers are taken before anything else.
                let is_request = text.contains("\"id\"") && text.contains("\"method\"");
                let post = std::thread::spawn(move || http.post(&text, &heard));
                if !is_request {
                    post.join().unwrap();
                }
            }
        }
    }

    /// The tools, by name.
    pub(crate) fn tools(&self) -> Vec<Value> {
        let listed = self.request("tools/list", json!({}));
        listed["tools"].as_array().unwrap().clone()
    }

    /// Kills it as a crash would; only over standard input and output.
    pub(crate) fn kill(&self) {
        let Way::Stdio { child, .. } = &self.way else {
            panic!("there is no process");
        };
        let mut child = child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Closes what `weighlock mcp` reads, as the end of its client would.
    pub(crate) fn close_input(&self) {
        let Way::Stdio { input, .. } = &self.way else {
            panic!("there is no process");
        };
        input.lock().unwrap().take();
    }

    /// Hears from now on what no call has to do with, over HTTP as well.
    pub(crate) fn listen(&self) {
        let Way::Http(http) = &self.way else {
            return;
        };
        let (http, heard) = (Arc::clone(http), Arc::clone(&self.heard));
        let stream = http.ask("GET", "");
        std::thread::spawn(move || http.hear(stream, &heard));
    }

    /// Breaks every connection, as a client that is killed does; over HTTP.
    pub(crate) fn hang_up(&self) {
        let Way::Http(http) = &self.way else {
            panic!("there are no connections");
        };
        for stream in http.open.lock().unwrap().drain(..) {
            // It may be over already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The name of its session, over HTTP.
    pub(crate) fn session(&self) -> String {
        let Way::Http(http) = &self.way else {
            panic!("there is no session");
        };
        let session = http.session.lock().unwrap();
        session.clone().expect("it was greeted")
    }

    /// The process id of `weighlock mcp`.
    pub(crate) fn pid(&self) -> u32 {
        let Way::Stdio { child, .. } = &self.way else {
            panic!("there is no process");
        };
        child.lock().unwrap().id()
    }
}

/// Whether a message is the answer to a request.
fn answers(id: u64) -> impl Fn(&Value) -> bool {
    move |message| message["id"] == json!(id) && message["method"].is_null()
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Way::Stdio { child, input } = &self.way {
            input.lock().unwrap().take();
            let mut child = child.lock().unwrap();
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Heard {
    fn add(&self, message: Value) {
        self.messages.lock().unwrap().push(message);
        self.more.notify_all();
    }

    fn wait(&self, what: &str, limit: Duration, fits: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + limit;
        let mut messages = self.messages.lock().unwrap();
        loop {
            if let Some(found) = messages.iter().find(|message| fits(message)) {
                return found.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "never heard {what}: {messages:?}");
            messages = self.more.wait_timeout(messages, left).unwrap().0;
        }
    }
}

impl Http {
    /// Posts a message and adds what comes back, until it ends.
    fn post(&self, text: &str, heard: &Heard) {
        self.hear(self.ask("POST", text), heard);
    }

    /// Opens a connection and sends a request.
    fn ask(&self, method: &str, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        self.open.lock().unwrap().push(stream.try_clone().unwrap());
        let session = match &*self.session.lock().unwrap() {
            Some(session) => format!("mcp-session-id: {session}\r\n"),
            None => String::new(),
        };
        let Self {
            address,
            path,
            token,
            ..
        } = self;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: {REVISION}\r\n{session}content-length: {}\r\n\
             connection: close\r\n\r\n",
            text.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    /// Adds what comes back, until it ends.
    fn hear(&self, stream: TcpStream, heard: &Heard) {
        let mut answer = BufReader::new(stream);
        let (status, session) = head_of(&mut answer);
        if let Some(session) = session {
            *self.session.lock().unwrap() = Some(session);
        }
        if !(200..300).contains(&status) {
            let mut body = String::new();
            let _ = answer.read_to_string(&mut body);
            heard.add(json!({ "status": status, "body": body }));
            return;
        }
        // Both a plain body and events: chunk sizes are no JSON, and no data.
        for line in answer.lines().map_while(Result::ok) {
            let line = line.strip_prefix("data:").unwrap_or(&line).trim();
            if line.starts_with('{') {
                heard.add(serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")));
            }
        }
    }
}

/// `weighlock mcp`, as a client would start it.
pub(crate) fn mcp(home: &Home, flags: &[&str]) -> Command {
    let args: Vec<&str> = ["mcp"].iter().chain(flags).copied().collect();
    home.weighlock(&args)
}

/// Reads the status, and the session if one is named.
fn head_of(answer: &mut impl BufRead) -> (u16, Option<String>) {
    let mut line = String::new();
    // A connection that breaks has no status.
    let _ = answer.read_line(&mut line);
    let status = line
        .split(' ')
        .nth(1)
        .map_or(0, |code| code.parse().unwrap());
    let mut session = None;
    loop {
        line.clear();
        let _ = answer.read_line(&mut line);
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return (status, session);
        };
        if name.eq_ignore_ascii_case("mcp-session-id") {
            session = Some(value.to_owned());
        }
    }
}
