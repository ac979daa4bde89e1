//! Messages as lines, on standard input and output.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ErrorData, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Semaphore};

use crate::misread;
use crate::twice::{UnderWay, refusal};

/// Bytes of one message, at the most; as much as over HTTP.
pub(crate) const MOST: usize = 16 * 1024 * 1024;

/// So many lines that are no messages are read of a client that does not hear
/// so: it may send them for ever, and read nothing.
const REFUSALS: usize = 16;

/// A client at the other end of two pipes.
pub(crate) struct StdioTransport<R, W> {
    read: BufReader<R>,
    /// What has come of a line so far: reading may be given up at any time.
    line: Vec<u8>,
    /// The rest of a line that is too long is passed over.
    passing_over: bool,
    under_way: UnderWay,
    write: Arc<Mutex<Option<W>>>,
    /// Places for saying that something is no message.
    places: Arc<Semaphore>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> StdioTransport<R, W> {
    pub(crate) fn new((read, write): (R, W)) -> Self {
        Self {
            read: BufReader::new(read),
            line: vec![],
            passing_over: false,
            under_way: UnderWay::default(),
            write: Arc::new(Mutex::new(Some(write))),
            places: Arc::new(Semaphore::new(REFUSALS)),
        }
    }

    /// Writes a message, as one line.
    fn write(
        &self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    /// Reads on until a line is whole. Returns whether it could be kept; or
    /// nothing at the end.
    async fn next(&mut self) -> Option<bool> {
        loop {
            let some = self
                .read
                .fill_buf()
                .await
                .ok()
                .filter(|some| !some.is_empty())?;
            let end = some.iter().position(|&byte| byte == b'\n');
            let some = &some[..end.unwrap_or(some.len())];
            if self.line.len() + some.len() > MOST {
                self.passing_over = true;
                self.line = vec![];
            }
            if !self.passing_over {
                self.line.extend_from_slice(some);
            }
            let used = some.len() + usize::from(end.is_some());
            self.read.consume(used);
            if end.is_some() {
                return Some(!std::mem::take(&mut self.passing_over));
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for StdioTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let wanted = self.under_way.sent(&mut message);
        let write = wanted.then(|| self.write(message));
        async move {
            match write {
                Some(write) => write.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Before anything is read, since this may be given up here, too.
            let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
            let whole = self.next().await?;
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() && whole {
                continue;
            }
            let answer = match whole.then(|| misread::read(&line)) {
                Some(Some(mut message)) => match self.under_way.received(&mut message) {
                    Ok(true) => return Some(message),
                    Ok(false) => continue,
                    Err(id) => refusal(id),
                },
                Some(None) => no_message("this is no message"),
                None => no_message("this message is too long"),
            };
            // By itself, since half a line must not be left when this is given
            // up; who does not hear it is noticed by reading.
            let said = self.write(answer);
            tokio::spawn(async move {
                let _place = place;
                said.await
            });
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.take();
        Ok(())
    }
}

fn no_message(why: &'static str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::invalid_request(why, None), None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rmcp::model::ClientJsonRpcMessage;

    use super::*;

    fn ping(id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)
    }

    /// How many messages there are, and the first lines that are answered.
    async fn received(input: String, answers: usize) -> (usize, Vec<String>) {
        let (out, heard) = tokio::io::duplex(1024);
        let mut lines = StdioTransport::new((input.as_bytes(), out));
        let mut count = 0;
        while lines.receive().await.is_some() {
            count += 1;
        }
        let mut heard = BufReader::new(heard).lines();
        let mut said = vec![];
        while said.len() < answers {
            let line = heard.next_line().await.expect("it is text");
            said.push(line.expect("an answer"));
        }
        (count, said)
    }

    #[tokio::test]
    async fn lines_are_messages() {
        let (count, _) = received(format!("{}\n\r\n{}\r\n{}", ping(1), ping(2), ping(3)), 0).await;
        assert_eq!(count, 2);
    }

    #[tokio::test]
    async fn what_is_no_message_is_said_to_be_none() {
        let long = "x".repeat(MOST + 1);
        let (count, said) = received(format!("hi\n{long}\n{}\n", ping(1)), 2).await;
        assert_eq!(count, 1);
        assert!(said[0].contains("this is no message"), "{said:?}");
        assert!(said[1].contains("this message is too long"), "{said:?}");
    }

    #[tokio::test]
    async fn an_id_is_used_again_once_nobody_waits_for_its_answer() {
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let lines = [&ping(1), &ping(1), &ping(2), cancel, &ping(1), ""].join("\n");
        let (count, said) = received(lines, 1).await;
        assert_eq!(count, 4);
        assert!(said[0].contains("id_in_use"), "{said:?}");
    }

    #[tokio::test]
    async fn an_answer_that_nobody_wants_is_not_taken_for_another() {
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        let input = [&ping(7), cancel, &ping(7), cancel, cancel, &ping(7), ""].join("\n");
        let (out, heard) = tokio::io::duplex(1024);
        let mut lines = StdioTransport::new((input.as_bytes(), out));
        let mut ids = vec![];
        while let Some(message) = lines.receive().await {
            if let ClientJsonRpcMessage::Request(request) = message {
                ids.push(request.id);
            }
        }
        // What is still done for those that were cancelled comes to nothing.
        for (id, word) in ids.into_iter().zip(["first", "second", "third"]) {
            let error = ErrorData::internal_error(word, None);
            let answer = ServerJsonRpcMessage::error(error, Some(id));
            lines.send(answer).await.expect("it is read");
        }
        drop(lines);
        let mut heard = BufReader::new(heard).lines();
        let line = heard.next_line().await.expect("it is text");
        let line = line.expect("an answer");
        assert!(
            line.contains(r#""id":7"#) && line.contains("third"),
            "{line}"
        );
        assert_eq!(heard.next_line().await.expect("it is text"), None);
    }

    #[tokio::test]
    async fn who_hears_nothing_is_not_read_for_ever() {
        const SENT: usize = 1000;
        let (mut to, from) = tokio::io::duplex(8);
        let (out, heard) = tokio::io::duplex(8);
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        tokio::spawn(async move {
            for _ in 0..SENT {
                to.write_all(b"nonsense\n").await.expect("it is read");
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut lines = StdioTransport::new((from, out));
        let end = tokio::spawn(async move { lines.receive().await.is_none() });
        // Everything goes on in this thread: by then nothing moves any more.
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
        let stuck = read.load(Ordering::Relaxed);
        assert!((REFUSALS..2 * REFUSALS).contains(&stuck), "{stuck}");
        // And whoever listens again is told of every one.
        let mut heard = BufReader::new(heard).lines();
        for _ in 0..SENT {
            let line = heard.next_line().await.expect("it is text");
            assert!(line.expect("an answer").contains("this is no message"));
        }
        assert!(end.await.expect("it does not panic"));
    }
}
