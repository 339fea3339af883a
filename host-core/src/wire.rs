//! The protocol's messages, one JSON object a line, and a reader of lines that holds no more than it was told.

use std::io;

use contextgraph_types::{
    Capabilities, ContextQuery, ContextQueryResult, ErrorCode, ProviderInfo, VerifyRequest, VerifyResponse,
};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

/// One message. Unknown members are ignored, as the protocol asks; an unknown type is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message {
    Handshake {
        protocol_version: String,
    },
    HandshakeAck {
        protocol_version: String,
        provider: ProviderInfo,
        #[serde(default)]
        capabilities: Capabilities,
    },
    Query {
        /// Only sent to a provider that declared `correlation`, which then echoes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        query: ContextQuery,
    },
    Frames {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        result: ContextQueryResult,
    },
    Verify {
        request: VerifyRequest,
    },
    Verified {
        response: VerifyResponse,
    },
    Shutdown,
    Error {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ErrorCode>,
        message: String,
    },
}

impl Message {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Handshake { .. } => "handshake",
            Self::HandshakeAck { .. } => "handshake_ack",
            Self::Query { .. } => "query",
            Self::Frames { .. } => "frames",
            Self::Verify { .. } => "verify",
            Self::Verified { .. } => "verified",
            Self::Shutdown => "shutdown",
            Self::Error { .. } => "error",
        }
    }

    /// The whole line, its end included. JSON escapes line ends inside of texts, so there is no other.
    pub(crate) fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Refuses bytes that are not UTF-8: content is billed by its bytes, so none may be replaced.
    pub(crate) fn from_line(line: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }
}

/// Versions understand each other when they have the same major number.
pub(crate) fn same_family(a: &str, b: &str) -> bool {
    let family = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    family(a) == family(b)
}

/// Reads lines of at most `max` bytes. A call that is dropped loses nothing: what was read stays here.
pub(crate) struct LineReader<R> {
    from: R,
    held: Vec<u8>,
    /// Bytes of `held` that are known to have no line end.
    searched: usize,
    max: usize,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("a line is longer than {max} bytes")]
    TooLong { max: usize },
    #[error("the last line has no end")]
    Torn,
    #[error("it cannot be read")]
    Io(#[source] io::Error),
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(from: R, max: usize) -> Self {
        Self { from, held: Vec::new(), searched: 0, max }
    }

    /// The next line without its end; none when the other side is done.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            let found =
                self.held.get(self.searched..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'));
            if let Some(end) = found.map(|at| at + self.searched) {
                if end > self.max {
                    return Err(LineError::TooLong { max: self.max });
                }
                let rest = self.held.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.held, rest);
                line.truncate(end);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.held.len();
            if self.held.len() > self.max {
                return Err(LineError::TooLong { max: self.max });
            }
            self.held.reserve(8192);
            match self.from.read_buf(&mut self.held).await {
                Ok(0) if self.held.is_empty() => return Ok(None),
                Ok(0) => return Err(LineError::Torn),
                Ok(_) => {}
                Err(error) => return Err(LineError::Io(error)),
            }
        }
    }

    /// Whether something of a next line is here already.
    pub(crate) fn has_more(&self) -> bool {
        !self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_bounded() {
        let mut lines = LineReader::new(&b"one\n\nthree\nfour"[..], 5);
        assert_eq!(lines.next().await.unwrap().unwrap(), b"one");
        assert_eq!(lines.next().await.unwrap().unwrap(), b"");
        assert_eq!(lines.next().await.unwrap().unwrap(), b"three");
        assert!(matches!(lines.next().await, Err(LineError::Torn)));
        let mut lines = LineReader::new(&b"123456\n"[..], 5);
        assert!(matches!(lines.next().await, Err(LineError::TooLong { max: 5 })));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        assert!(Message::from_line(b"{\"type\":\"error\",\"message\":\"ab\xff\"}").is_err());
        assert!(same_family("contextgraph/1.0-draft", "contextgraph/1.9"));
        assert!(!same_family("contextgraph/1.0", "contextgraph/2.0"));
    }
}
