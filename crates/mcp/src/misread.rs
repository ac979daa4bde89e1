//! Answers messages that the SDK cannot parse. It would drop them without an
//! answer; the sender waits for the answer to a failed request.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ConstString, CustomRequest, InitializeResultMethod,
    RequestId,
};
use serde::Deserialize;

/// What can be made out of a message, whatever the rest of it is: nested too
/// deeply, a number that is none, half a character.
#[derive(Deserialize)]
struct MessageHead {
    id: RequestId,
    method: String,
}

/// Reads a message; nothing if it does not even say what it is.
pub(crate) fn read(bytes: &[u8]) -> Option<ClientJsonRpcMessage> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(message) => Some(message),
        Err(_) => without_rest(bytes),
    }
}

/// The same request without anything else: the handler says what is wrong.
pub(crate) fn without_rest(bytes: &[u8]) -> Option<ClientJsonRpcMessage> {
    let MessageHead { id, method } = serde_json::from_slice(bytes).ok()?;
    let request = ClientRequest::CustomRequest(CustomRequest::new(method, None));
    Some(ClientJsonRpcMessage::request(request, id))
}

/// Whether a message is the first of a client that wants a session.
pub(crate) fn is_greeting(bytes: &[u8]) -> bool {
    let head = serde_json::from_slice::<MessageHead>(bytes);
    head.is_ok_and(|head| head.method == InitializeResultMethod::VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(text: &[u8]) -> Option<String> {
        match read(text)? {
            ClientJsonRpcMessage::Request(request) => match request.request {
                ClientRequest::CustomRequest(custom) => Some(custom.method),
                other => Some(format!("{other:?}").split('(').next()?.to_owned()),
            },
            _ => None,
        }
    }

    #[test]
    fn whoever_sends_something_odd_is_answered() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}1{}}}"#,
            "[".repeat(9999),
            "]".repeat(9999)
        );
        let odd: [&[u8]; 5] = [
            deep.as_bytes(),
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}"#,
            br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"n":1e999}}"#,
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":"\ud800"}}"#,
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"n\":\"\xff\"}}",
        ];
        for text in odd {
            assert_eq!(method(text).as_deref(), Some("tools/call"));
        }
        let plain = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(method(plain).as_deref(), Some("PingRequest"));
        for nothing in ["hello", "[]", "", r#"{"id":1}"#] {
            assert_eq!(method(nothing.as_bytes()), None);
        }
    }
}
