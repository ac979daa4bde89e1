//! Ids of requests, which clients choose. The SDK knows a request by nothing
//! else (rmcp 3.8): of two with one id it would do both and answer one, and
//! where the first was cancelled, the second would get its answer. So each has
//! a number of ours while it is under way.

use std::collections::HashMap;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, RequestId, ServerJsonRpcMessage,
};
use serde_json::json;

/// What a client is still to be answered, by our numbers.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    last: i64,
    theirs: HashMap<RequestId, RequestId>,
}

impl UnderWay {
    /// Replaces the client's id by our number. Returns whether the message is
    /// to be handled; the error is an id that is in use.
    pub(crate) fn received(
        &mut self,
        message: &mut ClientJsonRpcMessage,
    ) -> Result<bool, RequestId> {
        if let ClientJsonRpcMessage::Request(request) = message {
            if self.ours(&request.id).is_some() {
                return Err(request.id.clone());
            }
            self.last += 1;
            let ours = RequestId::Number(self.last);
            let theirs = std::mem::replace(&mut request.id, ours.clone());
            self.theirs.insert(ours, theirs);
        }
        let Some(cancelled) = cancelled(message) else {
            return Ok(true);
        };
        let Some(ours) = self.ours(cancelled) else {
            // It was answered, or never asked.
            return Ok(false);
        };
        // It gets no answer.
        self.theirs.remove(&ours);
        *cancelled = ours;
        Ok(true)
    }

    /// Replaces our number by the client's own id. Returns whether the client
    /// still wants the message.
    pub(crate) fn sent(&mut self, message: &mut ServerJsonRpcMessage) -> bool {
        let Some(id) = answered(message) else {
            return true;
        };
        match self.theirs.remove(id) {
            Some(theirs) => {
                *id = theirs;
                true
            }
            None => false,
        }
    }

    /// Forgets what will not be answered, by our number.
    pub(crate) fn forget(&mut self, ours: &RequestId) {
        self.theirs.remove(ours);
    }

    fn ours(&self, id: &RequestId) -> Option<RequestId> {
        let mut all = self.theirs.iter();
        let found = all.find(|(_, theirs)| *theirs == id);
        found.map(|(ours, _)| ours.clone())
    }
}

/// The request that a client does not want any more.
fn cancelled(message: &mut ClientJsonRpcMessage) -> Option<&mut RequestId> {
    match message {
        ClientJsonRpcMessage::Notification(told) => match &mut told.notification {
            ClientNotification::CancelledNotification(gone) => gone.params.request_id.as_mut(),
            _ => None,
        },
        _ => None,
    }
}

/// The request that a message is the answer to.
fn answered(message: &mut ServerJsonRpcMessage) -> Option<&mut RequestId> {
    match message {
        ServerJsonRpcMessage::Response(answer) => Some(&mut answer.id),
        ServerJsonRpcMessage::Error(answer) => answer.id.as_mut(),
        _ => None,
    }
}

/// What the second of two such requests is answered.
pub(crate) fn refusal(id: RequestId) -> ServerJsonRpcMessage {
    let hint = "Give each request an id of its own.";
    let error = ErrorData::invalid_request(
        "another request with this id is under way; nothing was done",
        Some(json!({ "code": "id_in_use", "hint": hint })),
    );
    ServerJsonRpcMessage::error(error, Some(id))
}
