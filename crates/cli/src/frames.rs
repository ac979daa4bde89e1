//! Output as the server streams it: frames that tell the streams apart.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use weighlock_api::{FRAME_HEADER, Frame};

use crate::client::Failure;

/// Frames out of a stream of bytes.
pub(crate) struct FrameDecoder {
    body: Incoming,
    buffer: bytes::BytesMut,
}

impl FrameDecoder {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body,
            buffer: bytes::BytesMut::new(),
        }
    }

    /// Returns the next frame; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(Frame, Bytes)>, Failure> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(piece)) => {
                    if let Ok(bytes) = piece.into_data() {
                        self.buffer.extend_from_slice(&bytes);
                    }
                }
                Some(Err(error)) => {
                    return Err(Failure::new(
                        format!("the connection to the server broke: {error}"),
                        "the run continues: `weighlock output @last --follow`",
                    ));
                }
            }
        }
    }

    fn take(&mut self) -> Result<Option<(Frame, Bytes)>, Failure> {
        let Some(header) = self.buffer.get(..FRAME_HEADER) else {
            return Ok(None);
        };
        let header = header.try_into().expect("as long as a header");
        let (kind, length) = Frame::read(header).ok_or_else(|| {
            Failure::new(
                "cannot read the server's answer; a run that was started continues",
                "restart the server if it is of another version",
            )
        })?;
        if self.buffer.len() < FRAME_HEADER + length {
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(FRAME_HEADER + length);
        Ok(Some((kind, frame.split_off(FRAME_HEADER).freeze())))
    }
}
