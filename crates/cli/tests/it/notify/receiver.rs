//! Somebody who is told things: a real receiver on this machine, with or
//! without TLS, that answers as a test wants.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver as Got, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hmac::{Hmac, KeyInit, Mac};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use sha2::Sha256;

use crate::support::Home;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a receiver answers.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// With this status, and these header lines.
    Status(u16, &'static str),
    /// With 200, and a body that never ends.
    Endless,
    /// With a head that never ends.
    EndlessHead,
    /// Not before this is dropped or sends something.
    Held(Arc<Mutex<Got<()>>>),
}

impl Answer {
    pub(crate) const OK: Self = Self::Status(204, "");

    /// One that comes when the other half says so.
    pub(crate) fn held() -> (Sender<()>, Self) {
        let (release, held) = channel();
        (release, Self::Held(Arc::new(Mutex::new(held))))
    }
}

/// One request as it came in.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    pub(crate) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// The commands that it is about.
    pub(crate) fn commands(&self) -> Vec<String> {
        let told = self.json();
        let approvals = told["data"]["approvals"].as_array().unwrap().clone();
        { approvals.iter() }
            .map(|one| one["command"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Checks the signature as docs/notifications.md says.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = secret.strip_prefix("whsec_").unwrap();
        let key = BASE64_STANDARD.decode(key).unwrap();
        let (id, time) = (self.id(), &self.headers["webhook-timestamp"]);
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{id}.{time}.{}", self.body).as_bytes());
        let ours = BASE64_STANDARD.encode(mac.finalize().into_bytes());
        self.headers["webhook-signature"] == format!("v1,{ours}")
    }
}

/// The receiver.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    pub(crate) url: String,
    told: Got<Told>,
    answer: Arc<Mutex<Answer>>,
}

impl Receiver {
    pub(crate) fn new(answer: Answer) -> Self {
        Self::at(0, answer, None)
    }

    /// At a port of this machine.
    pub(crate) fn at(port: u16, answer: Answer, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let answer = Arc::new(Mutex::new(answer));
        let (tell, told) = channel();
        let answers = Arc::clone(&answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tell, answers, tls) = (tell.clone(), Arc::clone(&answers), tls.clone());
                std::thread::spawn(move || match tls {
                    None => attend(stream, &tell, &answers),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        attend(StreamOwned::new(connection, stream), &tell, &answers);
                    }
                });
            }
        });
        Self {
            port,
            url: format!("{scheme}://127.0.0.1:{port}/hook/secret-path"),
            told,
            answer,
        }
    }

    pub(crate) fn answers(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    /// The next message, once it has come.
    #[track_caller]
    pub(crate) fn next(&self) -> Told {
        self.told.recv_timeout(PATIENCE).expect("nothing was told")
    }

    /// Nothing has come that was not looked at.
    #[track_caller]
    pub(crate) fn assert_silent(&self) {
        match self.told.recv_timeout(Duration::ZERO) {
            Err(RecvTimeoutError::Timeout) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn attend<S: Read + Write>(stream: S, tell: &Sender<Told>, answers: &Mutex<Answer>) {
    let mut stream = BufReader::new(stream);
    let Some(told) = read(&mut stream) else {
        return;
    };
    let answer = answers.lock().unwrap().clone();
    let _ = tell.send(told);
    let to = stream.get_mut();
    let _ = match answer {
        Answer::Status(status, headers) => write!(
            to,
            "HTTP/1.1 {status} x\r\n{headers}content-length: 0\r\n\r\n"
        ),
        Answer::Endless => {
            let mut written = write!(to, "HTTP/1.1 200 x\r\ncontent-length: 99999999999\r\n\r\n");
            while written.is_ok() {
                written = to.write_all(&[b'x'; 65536]);
            }
            written
        }
        Answer::EndlessHead => {
            let mut written = write!(to, "HTTP/1.1 200 x\r\n");
            while written.is_ok() {
                written = to.write_all(b"x-more: of this and never an end of it\r\n");
            }
            written
        }
        Answer::Held(held) => {
            let _ = held.lock().unwrap().recv_timeout(PATIENCE);
            write!(to, "HTTP/1.1 200 x\r\ncontent-length: 0\r\n\r\n")
        }
    };
    let _ = to.flush();
}

fn read<S: Read>(from: &mut BufReader<S>) -> Option<Told> {
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    from.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    Some(Told {
        path,
        headers,
        body,
    })
}

/// Makes a certificate authority, and a server's certificate for a name.
/// Returns the authority's file, and what the server needs.
pub(crate) fn authority(home: &Home, name: &str) -> (PathBuf, Arc<ServerConfig>) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let own_key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let own = own.signed_by(&own_key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], secret)
        .unwrap();
    (home.put("ca.pem", &root.pem()), Arc::new(config))
}

/// A port of this machine that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    port
}
