//! Compression of bodies, both of HTTP (`Content-Encoding`) and of ClickHouse's own framing (`compress=1`,
//! `decompress=1`): a block is a checksum of 16 bytes, a method byte, two lengths of 4 bytes, and the data.

use std::io::{self, Read};

use bytes::Bytes;

const METHOD_NONE: u8 = 0x02;
const METHOD_LZ4: u8 = 0x82;
const METHOD_ZSTD: u8 = 0x90;
/// Method byte and both lengths; the block's length counts them.
const HEADER: usize = 9;
const CHECKSUM: usize = 16;
/// A block larger than this is a broken one.
const MAX_BLOCK: usize = 256 * 1024 * 1024;
/// Blocks of the LZ4 frames written here; 4 MiB is the largest the format knows.
const FRAME_BLOCK: usize = 4 * 1024 * 1024;

/// A request's body as its sender wrote it, whatever it was compressed with.
pub(crate) fn decoder(
    body: Box<dyn Read + Send>,
    content_encoding: Option<&str>,
    native_blocks: bool,
) -> Option<Box<dyn Read + Send>> {
    let body: Box<dyn Read + Send> = match content_encoding.map(str::trim) {
        None | Some("" | "identity") => body,
        Some(name) if name.eq_ignore_ascii_case("lz4") => Box::new(lz4_flex::frame::FrameDecoder::new(body)),
        Some(name) if name.eq_ignore_ascii_case("gzip") => Box::new(flate2::read::MultiGzDecoder::new(body)),
        Some(name) if name.eq_ignore_ascii_case("zstd") => {
            Box::new(ZstdFrames { source: body, frame: None, ended: false })
        }
        Some(_) => return None,
    };
    Some(if native_blocks { Box::new(NativeBlocks::new(body)) } else { body })
}

/// The zstd decoder reads one frame; a body may have several, and the decoder does not tell a cut one from none.
struct ZstdFrames {
    source: Box<dyn Read + Send>,
    frame: Option<ruzstd::decoding::StreamingDecoder<Box<dyn Read + Send>, ruzstd::decoding::FrameDecoder>>,
    ended: bool,
}

impl Read for ZstdFrames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.ended || buffer.is_empty() {
                return Ok(0);
            }
            let mut frame = match self.frame.take() {
                Some(frame) => frame,
                None => {
                    let mut probe = [0_u8; 1];
                    let source = std::mem::replace(&mut self.source, Box::new(io::empty()));
                    let mut source = source;
                    if source.read(&mut probe)? == 0 {
                        self.ended = true;
                        continue;
                    }
                    let source: Box<dyn Read + Send> = Box::new(io::Cursor::new(probe).chain(source));
                    ruzstd::decoding::StreamingDecoder::new(source).map_err(invalid)?
                }
            };
            let count = frame.read(buffer)?;
            if count > 0 {
                self.frame = Some(frame);
                return Ok(count);
            }
            self.source = frame.into_inner();
        }
    }
}

/// ClickHouse's block framing, each block checked against its checksum.
struct NativeBlocks {
    source: Box<dyn Read + Send>,
    block: io::Cursor<Vec<u8>>,
}

impl NativeBlocks {
    fn new(source: Box<dyn Read + Send>) -> Self {
        Self { source, block: io::Cursor::new(Vec::new()) }
    }

    /// False at the end, which may only be between two blocks.
    fn next(&mut self) -> io::Result<bool> {
        let mut first = [0_u8; 1];
        if self.source.read(&mut first)? == 0 {
            return Ok(false);
        }
        let mut rest = [0_u8; CHECKSUM + HEADER - 1];
        self.source.read_exact(&mut rest)?;
        let mut head = first.to_vec();
        head.extend_from_slice(&rest);
        let (checksum, header) = head.split_at(CHECKSUM);
        let length = |at: usize| -> io::Result<usize> {
            let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
            let length = usize::try_from(u32::from_le_bytes(bytes)).map_err(invalid)?;
            if length > MAX_BLOCK { Err(invalid("a compressed block is too large")) } else { Ok(length) }
        };
        let (stored, plain) = (length(1)?, length(5)?);
        let body = stored
            .checked_sub(HEADER)
            .ok_or_else(|| invalid("a compressed block is shorter than its header"))?;
        let mut block = header.to_vec();
        block.resize(HEADER + body, 0);
        self.source.read_exact(block.get_mut(HEADER..).unwrap_or_default())?;
        if checksum != block_checksum(&block) {
            return Err(invalid("a compressed block does not match its checksum"));
        }
        let data = block.get(HEADER..).unwrap_or_default();
        let decoded = match header.first() {
            Some(&METHOD_NONE) => data.to_vec(),
            Some(&METHOD_LZ4) => lz4_flex::block::decompress(data, plain).map_err(invalid)?,
            Some(&METHOD_ZSTD) => {
                let mut decoded = Vec::with_capacity(plain);
                let mut frame = ruzstd::decoding::StreamingDecoder::new(data).map_err(invalid)?;
                frame.read_to_end(&mut decoded)?;
                decoded
            }
            other => return Err(invalid(format!("unknown compression method {other:?}"))),
        };
        if decoded.len() != plain {
            return Err(invalid("a compressed block has another length than it says"));
        }
        self.block = io::Cursor::new(decoded);
        Ok(true)
    }
}

impl Read for NativeBlocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.block.read(buffer)?;
            if count > 0 || buffer.is_empty() || !self.next()? {
                return Ok(count);
            }
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// City hash 1.0.2 of header and data, its halves the other way round.
fn block_checksum(block: &[u8]) -> [u8; CHECKSUM] {
    cityhash_rs::cityhash_102_128(block).rotate_left(64).to_le_bytes()
}

/// How an answer's bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    /// `Accept-Encoding: lz4`
    Lz4Frame,
    /// `compress=1`
    NativeBlocks,
}

impl Encoding {
    pub(crate) fn content_encoding(self) -> Option<&'static str> {
        (self == Self::Lz4Frame).then_some("lz4")
    }

    /// What stands before the first piece.
    pub(crate) fn start(self) -> Bytes {
        match self {
            // Magic, version 1 with independent blocks, blocks of at most 4 MiB, checksum of these two bytes.
            Self::Lz4Frame => Bytes::from_static(&[0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73]),
            Self::Identity | Self::NativeBlocks => Bytes::new(),
        }
    }

    /// One piece, complete in itself: a reader can decode it as soon as it is there.
    pub(crate) fn piece(self, data: Bytes) -> Bytes {
        match self {
            Self::Identity => data,
            Self::Lz4Frame => {
                let mut out = Vec::with_capacity(data.len() / 2 + 16);
                for block in data.chunks(FRAME_BLOCK) {
                    frame_block(block, &mut out);
                }
                out.into()
            }
            Self::NativeBlocks => {
                let mut out = Vec::with_capacity(data.len() / 2 + 32);
                for block in data.chunks(FRAME_BLOCK) {
                    native_block(block, &mut out);
                }
                out.into()
            }
        }
    }

    /// What stands after the last piece.
    pub(crate) fn end(self) -> Bytes {
        match self {
            Self::Lz4Frame => Bytes::from_static(&[0; 4]),
            Self::Identity | Self::NativeBlocks => Bytes::new(),
        }
    }
}

fn length_bytes(length: usize) -> [u8; 4] {
    // At most FRAME_BLOCK and its overhead.
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

fn frame_block(block: &[u8], out: &mut Vec<u8>) {
    let compressed = lz4_flex::block::compress(block);
    if compressed.len() < block.len() {
        out.extend_from_slice(&length_bytes(compressed.len()));
        out.extend_from_slice(&compressed);
    } else {
        let [a, b, c, d] = length_bytes(block.len());
        out.extend_from_slice(&[a, b, c, d | 0x80]); // the high bit: stored as it is
        out.extend_from_slice(block);
    }
}

fn native_block(block: &[u8], out: &mut Vec<u8>) {
    let compressed = lz4_flex::block::compress(block);
    let mut body = vec![METHOD_LZ4];
    body.extend_from_slice(&length_bytes(compressed.len() + HEADER));
    body.extend_from_slice(&length_bytes(block.len()));
    body.extend_from_slice(&compressed);
    out.extend_from_slice(&block_checksum(&body));
    out.extend_from_slice(&body);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        (0..5_000_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect()
    }

    fn written(encoding: Encoding, data: &[u8]) -> Vec<u8> {
        let mut out = encoding.start().to_vec();
        out.extend_from_slice(&encoding.piece(Bytes::copy_from_slice(data)));
        out.extend_from_slice(&encoding.end());
        out
    }

    fn read(bytes: Vec<u8>, encoding: Option<&str>, native: bool) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decoder(Box::new(io::Cursor::new(bytes)), encoding, native).unwrap().read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn what_is_written_as_an_lz4_frame_reads_back() {
        let data = sample();
        assert!(read(written(Encoding::Lz4Frame, &data), Some("lz4"), false).unwrap() == data);
    }

    #[test]
    fn what_is_written_as_native_blocks_reads_back() {
        let data = sample();
        assert!(read(written(Encoding::NativeBlocks, &data), None, true).unwrap() == data);
    }

    #[test]
    fn a_flipped_bit_in_a_native_block_is_an_error() {
        let mut bytes = written(Encoding::NativeBlocks, b"some rows");
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(read(bytes, None, true).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_cut_body_is_an_error_in_every_encoding() {
        for (encoding, name, native) in
            [(Encoding::Lz4Frame, Some("lz4"), false), (Encoding::NativeBlocks, None, true)]
        {
            let mut bytes = written(encoding, &sample());
            bytes.truncate(bytes.len() / 2);
            assert!(read(bytes, name, native).is_err(), "{encoding:?}");
        }
    }

    #[test]
    fn an_unknown_encoding_is_refused() {
        assert!(decoder(Box::new(io::empty()), Some("br"), false).is_none());
    }
}
