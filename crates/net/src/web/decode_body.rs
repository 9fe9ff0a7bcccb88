//! Content encodings, decoded as the bytes arrive, with a limit on what comes out.
//!
//! The decoders write into a sink that fails at the limit, so a decompression bomb costs as much memory as an honest page.

use std::io::{self, Write};

/// Memory that a zstd frame may ask for, as a power of two: 8 MB, which the standard asks decoders to support.
const MAX_ZSTD_WINDOW_LOG: u32 = 23;
/// Buffer of the brotli decoder.
const BROTLI_BUFFER_BYTES: usize = 16 * 1024;

/// A body beyond this gets all the memory that it may need at once; pages are not touched before they are written. Doubling
/// would hold two large buffers while it copies.
const LARGE_BODY_BYTES: usize = 512 * 1024;

/// How a body is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    /// As it is.
    Identity,
    /// gzip, one member or several.
    Gzip,
    /// zlib, or deflate without its header.
    Deflate,
    /// Brotli.
    Brotli,
    /// Zstandard.
    Zstd,
}

impl ContentCoding {
    /// What requests offer.
    pub(super) const OFFERED: &'static str = "gzip, deflate, br, zstd";

    /// Parses the header; an error is the text that is not supported. More than one coding is refused: no honest server
    /// sends that, and each layer would multiply.
    pub(super) fn parse(header: Option<&str>) -> Result<Self, String> {
        let text = header.unwrap_or_default().trim().to_ascii_lowercase();
        match text.as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "deflate" => Ok(Self::Deflate),
            "br" => Ok(Self::Brotli),
            "zstd" => Ok(Self::Zstd),
            _ => Err(text.chars().filter(|c| !c.is_control()).take(60).collect()),
        }
    }
}

/// Collects decoded bytes up to a limit.
#[derive(Debug)]
struct LimitedSink {
    /// What was decoded.
    bytes: Vec<u8>,
    /// The most bytes.
    limit: usize,
    /// More would have come.
    is_full: bool,
}

impl Write for LimitedSink {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let room = self.limit.saturating_sub(self.bytes.len());
        let taken = part.get(..room.min(part.len())).unwrap_or(part);
        let needed = self.bytes.len() + taken.len();
        if needed > LARGE_BODY_BYTES && needed > self.bytes.capacity() {
            self.bytes.reserve_exact(room);
        }
        self.bytes.extend_from_slice(taken);
        if taken.len() < part.len() {
            self.is_full = true;
            return Err(io::Error::new(io::ErrorKind::StorageFull, "limit reached"));
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that are decoded at a time.
const DECODE_BUFFER_BYTES: usize = 32 * 1024;

/// zlib or bare deflate. The writer of the library does not tell a stream that ended from one that broke off.
struct DeflateDecoder {
    /// The decoder of the library.
    state: flate2::Decompress,
    sink: LimitedSink,
    /// The end of the stream was seen.
    has_ended: bool,
}

impl DeflateDecoder {
    /// Decodes one part into the sink.
    fn write_part(&mut self, mut part: &[u8]) -> io::Result<()> {
        let mut buffer = vec![0; DECODE_BUFFER_BYTES];
        while !self.has_ended {
            let (taken, given) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(part, &mut buffer, flate2::FlushDecompress::None);
            let status = status.map_err(io::Error::other)?;
            let taken = usize::try_from(self.state.total_in() - taken).unwrap_or(part.len());
            let given = usize::try_from(self.state.total_out() - given).unwrap_or(buffer.len());
            self.sink.write_all(buffer.get(..given).unwrap_or_default())?;
            part = part.get(taken..).unwrap_or_default();
            self.has_ended = status == flate2::Status::StreamEnd;
            if taken == 0 && given == 0 || part.is_empty() && given < buffer.len() {
                break;
            }
        }
        Ok(())
    }
}

/// zstd, for the same reason by the library's inner interface.
struct ZstdDecoder {
    /// The decoder of the library.
    state: zstd::stream::raw::Decoder<'static>,
    sink: LimitedSink,
    /// The end of the stream was seen.
    has_ended: bool,
}

impl ZstdDecoder {
    /// A decoder that refuses frames with a larger window than the standard asks for.
    fn new(sink: LimitedSink) -> io::Result<Self> {
        let mut state = zstd::stream::raw::Decoder::new()?;
        state.set_parameter(zstd::stream::raw::DParameter::WindowLogMax(MAX_ZSTD_WINDOW_LOG))?;
        Ok(Self { state, sink, has_ended: false })
    }

    /// Decodes one part into the sink.
    fn write_part(&mut self, mut part: &[u8]) -> io::Result<()> {
        use zstd::stream::raw::Operation;
        let mut buffer = vec![0; DECODE_BUFFER_BYTES];
        loop {
            let status = self.state.run_on_buffers(part, &mut buffer)?;
            let (taken, given) = (status.bytes_read, status.bytes_written);
            self.sink.write_all(buffer.get(..given).unwrap_or_default())?;
            part = part.get(taken..).unwrap_or_default();
            // Nothing more is expected: the frame is complete. Another may follow.
            self.has_ended = status.remaining == 0;
            if taken == 0 && given == 0 || part.is_empty() && given < buffer.len() {
                return Ok(());
            }
        }
    }
}

/// A decoder with the bytes that it has decoded so far.
pub(super) struct BodyDecoder {
    /// By encoding.
    inner: DecoderKind,
}

/// The decoder of each encoding.
enum DecoderKind {
    Identity(LimitedSink),
    Gzip(flate2::write::MultiGzDecoder<LimitedSink>),
    /// Not known yet: `deflate` should be the zlib format, and some servers send the bare one.
    Undecided(LimitedSink),
    Deflate(DeflateDecoder),
    Brotli(Box<brotli_decompressor::DecompressorWriter<LimitedSink>>),
    Zstd(ZstdDecoder),
    /// Taken out while it is replaced.
    Ended,
}

impl BodyDecoder {
    /// A decoder that yields at most `limit` bytes.
    pub(super) fn new(coding: ContentCoding, limit: usize) -> io::Result<Self> {
        let sink = LimitedSink { bytes: Vec::new(), limit, is_full: false };
        let inner = match coding {
            ContentCoding::Identity => DecoderKind::Identity(sink),
            ContentCoding::Gzip => DecoderKind::Gzip(flate2::write::MultiGzDecoder::new(sink)),
            ContentCoding::Deflate => DecoderKind::Undecided(sink),
            ContentCoding::Brotli => DecoderKind::Brotli(Box::new(
                brotli_decompressor::DecompressorWriter::new(sink, BROTLI_BUFFER_BYTES),
            )),
            ContentCoding::Zstd => DecoderKind::Zstd(ZstdDecoder::new(sink)?),
        };
        Ok(Self { inner })
    }

    /// Decodes one part. `Ok(false)` means that the limit is reached, and that no more need be read.
    pub(super) fn push(&mut self, part: &[u8]) -> Result<bool, String> {
        let Some(first) = part.first() else { return Ok(true) };
        if matches!(self.inner, DecoderKind::Undecided(_))
            && let DecoderKind::Undecided(sink) = std::mem::replace(&mut self.inner, DecoderKind::Ended)
        {
            // A zlib stream begins with its method, 8, and a window of at most 32 KB.
            let has_header = first & 0x0f == 8 && first >> 4 <= 7;
            self.inner = DecoderKind::Deflate(DeflateDecoder {
                state: flate2::Decompress::new(has_header),
                sink,
                has_ended: false,
            });
        }
        let written = match &mut self.inner {
            DecoderKind::Identity(sink) | DecoderKind::Undecided(sink) => sink.write_all(part),
            DecoderKind::Gzip(decoder) => decoder.write_all(part),
            DecoderKind::Deflate(decoder) => decoder.write_part(part),
            DecoderKind::Brotli(decoder) => decoder.write_all(part),
            DecoderKind::Zstd(decoder) => decoder.write_part(part),
            DecoderKind::Ended => Ok(()),
        };
        match written {
            Ok(()) => Ok(true),
            Err(_) if self.is_full() => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether the limit is reached.
    fn is_full(&self) -> bool {
        match &self.inner {
            DecoderKind::Identity(sink) | DecoderKind::Undecided(sink) => sink.is_full,
            DecoderKind::Gzip(decoder) => decoder.get_ref().is_full,
            DecoderKind::Deflate(decoder) => decoder.sink.is_full,
            DecoderKind::Brotli(decoder) => decoder.get_ref().is_full,
            DecoderKind::Zstd(decoder) => decoder.sink.is_full,
            DecoderKind::Ended => false,
        }
    }

    /// The decoded bytes, and whether they were cut at the limit. An error means that the coded stream did not end.
    pub(super) fn finish(mut self, was_cut: bool) -> Result<(Vec<u8>, bool), String> {
        let ended = match &mut self.inner {
            DecoderKind::Identity(_) | DecoderKind::Undecided(_) | DecoderKind::Ended => Ok(()),
            DecoderKind::Gzip(decoder) => decoder.try_finish(),
            DecoderKind::Deflate(decoder) if decoder.has_ended => Ok(()),
            DecoderKind::Zstd(decoder) if decoder.has_ended => Ok(()),
            DecoderKind::Deflate(_) | DecoderKind::Zstd(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            DecoderKind::Brotli(decoder) => decoder.close(),
        };
        let is_cut = was_cut || self.is_full();
        if let (Err(error), false) = (ended, is_cut) {
            return Err(error.to_string());
        }
        Ok((self.into_bytes(), is_cut))
    }

    /// The decoded bytes.
    fn into_bytes(self) -> Vec<u8> {
        match self.inner {
            DecoderKind::Identity(sink) | DecoderKind::Undecided(sink) => sink.bytes,
            DecoderKind::Gzip(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
            DecoderKind::Deflate(decoder) => decoder.sink.bytes,
            DecoderKind::Brotli(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
            DecoderKind::Zstd(decoder) => decoder.sink.bytes,
            DecoderKind::Ended => Vec::new(),
        }
    }
}
