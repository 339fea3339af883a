use std::io;

use contextgraph_types::{Capabilities, ErrorCode, PROTOCOL_VERSION};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::{
    Provider, ProviderError,
    note::note,
    wire::{LineReader, Message, same_family},
};

/// A query is a goal and a few lists; nobody needs more.
const QUERY_BYTES_MAX: usize = 1024 * 1024;

/// Serves a provider over a pair of streams, one JSON message a line, until the other side is done or says `shutdown`.
///
/// What cannot be understood is answered with an error and ends nothing; only a broken stream or a line without bounds does.
pub async fn serve_stdio<R, W>(provider: &dyn Provider, reader: R, mut writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = LineReader::new(reader, QUERY_BYTES_MAX);
    let mut greeted = false;
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(error) => {
                send(&mut writer, &refusal(None, ErrorCode::BadRequest, error.to_string())).await?;
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        };
        let answer = match Message::from_line(&line) {
            Err(error) => refusal(None, ErrorCode::BadRequest, format!("the line is no message: {error}")),
            Ok(Message::Shutdown) => return Ok(()),
            Ok(Message::Handshake { protocol_version }) => {
                greeted = same_family(&protocol_version, PROTOCOL_VERSION);
                if greeted {
                    Message::HandshakeAck {
                        protocol_version: PROTOCOL_VERSION.to_owned(),
                        provider: provider.info(),
                        // Ids are echoed here, whatever the provider behind knows of them; verification is not served.
                        capabilities: Capabilities {
                            correlation: true,
                            verify: false,
                            ..provider.capabilities()
                        },
                    }
                } else {
                    let says = format!("this side speaks {PROTOCOL_VERSION}, not {protocol_version}");
                    refusal(None, ErrorCode::IncompatibleVersion, says)
                }
            }
            Ok(Message::Query { id, .. }) if !greeted => {
                refusal(id, ErrorCode::BadRequest, "a handshake comes first".to_owned())
            }
            Ok(Message::Query { id, query }) => match provider.query(&query).await {
                Ok(result) => Message::Frames { id, result },
                Err(ProviderError::Answered { code, message }) => refusal(id, code, message),
                Err(error) => refusal(id, ErrorCode::Unavailable, error.to_string()),
            },
            Ok(other) => {
                let says = format!("a provider takes handshake, query and shutdown, not {}", other.name());
                refusal(None, ErrorCode::BadRequest, says)
            }
        };
        send(&mut writer, &answer).await?;
    }
}

/// [`serve_stdio`] over this process's own standard input and output, which nothing else may use then.
#[cfg(unix)]
pub async fn serve_standard_streams(provider: &dyn Provider) -> io::Result<()> {
    use std::os::fd::AsFd;
    let file = |stream: std::os::fd::BorrowedFd<'_>| -> io::Result<tokio::fs::File> {
        Ok(tokio::fs::File::from_std(stream.try_clone_to_owned()?.into()))
    };
    serve_stdio(provider, file(io::stdin().as_fd())?, file(io::stdout().as_fd())?).await
}

fn refusal(id: Option<String>, code: ErrorCode, message: String) -> Message {
    Message::Error { id, code: Some(code), message: note(&message) }
}

async fn send<W: AsyncWrite + Unpin>(writer: &mut W, message: &Message) -> io::Result<()> {
    writer.write_all(&message.to_line()?).await?;
    writer.flush().await
}
