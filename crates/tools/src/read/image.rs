//! Images for multimodal models.
//!
//! The format is detected from the first bytes, not from the file name.
//! An image that is larger than providers accept is scaled down.
//! The decoder has allocation limits, so that a file whose header claims enormous dimensions is refused before memory
//! of that size is allocated.

use super::FileReadHandle;
use crate::file_refusal::file_refusal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::os::unix::fs::FileExt;
use toolgate_files::run_blocking;
use toolgate_proto::{Code, Output, OutputBlock, Refusal};

/// Providers scale larger images down to this themselves, so more pixels would only cost bytes.
pub(crate) const MAX_SIDE_PIXELS: u32 = 1568;
/// Bytes of an image before base64, which adds a third; providers accept 5 MB.
pub(crate) const MAX_IMAGE_BYTES: usize = 3_700_000;
/// A larger file is not read as an image.
const MAX_IMAGE_FILE_BYTES: u64 = 64 << 20;
/// Bytes at the start of a file from which the format is detected.
const FORMAT_PROBE_BYTES: usize = 16;
/// Width and height that the decoder accepts.
#[cfg(feature = "images")]
const MAX_DECODED_SIDE_PIXELS: u32 = 16_384;
/// Memory that the decoder may allocate.
#[cfg(feature = "images")]
const MAX_DECODER_BYTES: u64 = 256 << 20;
/// Scaling down ends here even if the image is still too large in bytes.
#[cfg(feature = "images")]
const MIN_SIDE_PIXELS: u32 = 256;
/// JPEG quality of scaled images: a compromise between size and artifacts.
#[cfg(feature = "images")]
const JPEG_QUALITY_PERCENT: u8 = 85;

/// The formats that providers accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImageFileFormat {
    /// Lossless, with transparency.
    Png,
    /// Lossy and without transparency.
    Jpeg,
    /// Passed on unchanged, animation included, if it is small enough.
    Gif,
    /// Lossy or lossless; scaled copies become JPEG or PNG.
    Webp,
}

impl ImageFileFormat {
    /// Detects the format by its magic number.
    fn detect(start: &[u8]) -> Option<Self> {
        match start {
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    /// The MIME type that providers expect.
    fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// Reads an image file; `None` if the file is not an image. The position of the open file does not change, so that the
/// caller can read it as something else.
pub(super) async fn read_image(handle: &FileReadHandle<'_>) -> Result<Option<Output>, Refusal> {
    let mut start = [0; FORMAT_PROBE_BYTES];
    let len = handle.file.read_at(&mut start, 0).unwrap_or(0);
    let Some(format) = ImageFileFormat::detect(start.get(..len).unwrap_or_default()) else { return Ok(None) };
    let path = handle.path.clone();
    let reopened = FileReadHandle::open(handle.cleared, &path)?;
    let (bytes, path) = reopened
        .read_bytes(MAX_IMAGE_FILE_BYTES, |path| {
            Refusal::new(
                Code::FileRead,
                format!("the image `{path}` is larger than {} MB", MAX_IMAGE_FILE_BYTES >> 20),
            )
        })
        .await?;
    let output = run_blocking(move || image_output(&path.to_string(), format, bytes)).await;
    let output = output.map_err(|problem| file_refusal(&handle.path, &problem, Code::FileRead))?;
    output.map(Some)
}

/// An image that is not in a file, such as one from the web; `None` if the bytes are not an image. `name` is for messages.
#[cfg(feature = "web")]
pub(crate) fn render_image(name: &str, bytes: Vec<u8>) -> Option<Result<Output, Refusal>> {
    let format = ImageFileFormat::detect(&bytes)?;
    Some(image_output(name, format, bytes))
}

/// The image as a content block with a line about its size, scaled down if necessary.
fn image_output(path: &str, format: ImageFileFormat, bytes: Vec<u8>) -> Result<Output, Refusal> {
    let size = imagesize::blob_size(&bytes).map_err(|_| damaged_image_refusal(path))?;
    let (width, height) = (size.width, size.height);
    let original_size = bytes.len();
    let fits = width.max(height) <= MAX_SIDE_PIXELS as usize && bytes.len() <= MAX_IMAGE_BYTES;
    let (media_type, data, shown) = if fits {
        (format.media_type(), bytes, (width, height))
    } else {
        let scaled = scale_down(path, format, &bytes)?;
        (scaled.media_type, scaled.bytes, scaled.size)
    };
    let data = STANDARD.encode(data);
    let mut summary = format!("{path}: {width}×{height} pixels, {original_size} bytes");
    if !fits {
        summary.push_str(&format!(", shown at {}×{}", shown.0, shown.1));
    }
    let structured = json!({
        "type": "image",
        "file": {
            "base64": data,
            "type": media_type,
            "originalSize": original_size,
            "dimensions": {
                "originalWidth": width, "originalHeight": height,
                "displayWidth": shown.0, "displayHeight": shown.1,
            },
        },
    });
    let mut output =
        Output::text(summary.clone()).display(format!("read image {summary}")).structured(structured);
    output.content.insert(0, OutputBlock::Image { media_type: media_type.to_owned(), data });
    Ok(output)
}

/// The refusal for a file with the magic number of an image whose header cannot be read.
fn damaged_image_refusal(path: &str) -> Refusal {
    Refusal::new(Code::FileRead, format!("the image `{path}` is damaged"))
}

/// An image after scaling and encoding.
struct ScaledImage {
    /// JPEG or PNG, whatever the original was.
    media_type: &'static str,
    /// The encoded image.
    bytes: Vec<u8>,
    /// Width and height in pixels.
    size: (usize, usize),
}

/// Scales an image down until it has at most [`MAX_SIDE_PIXELS`] and [`MAX_IMAGE_BYTES`].
#[cfg(feature = "images")]
fn scale_down(path: &str, format: ImageFileFormat, bytes: &[u8]) -> Result<ScaledImage, Refusal> {
    use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
    let decoder_format = match format {
        ImageFileFormat::Png => ImageFormat::Png,
        ImageFileFormat::Jpeg => ImageFormat::Jpeg,
        ImageFileFormat::Gif => ImageFormat::Gif,
        ImageFileFormat::Webp => ImageFormat::WebP,
    };
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_DECODED_SIDE_PIXELS);
    limits.max_image_height = Some(MAX_DECODED_SIDE_PIXELS);
    limits.max_alloc = Some(MAX_DECODER_BYTES);
    let mut reader = ImageReader::with_format(std::io::Cursor::new(bytes), decoder_format);
    reader.limits(limits);
    let refuse = |error: image::ImageError| {
        Refusal::new(Code::FileRead, format!("the image `{path}` cannot be scaled down: {error}"))
    };
    let mut decoder = reader.into_decoder().map_err(refuse)?;
    let orientation = decoder.orientation().map_err(refuse)?;
    let mut original = DynamicImage::from_decoder(decoder).map_err(refuse)?;
    original.apply_orientation(orientation);
    let mut side = MAX_SIDE_PIXELS;
    loop {
        let scaled = original.thumbnail(side, side);
        let (media_type, bytes) = encode_image(&scaled, format).map_err(refuse)?;
        if bytes.len() <= MAX_IMAGE_BYTES || side < MIN_SIDE_PIXELS {
            let size = (scaled.width() as usize, scaled.height() as usize);
            return Ok(ScaledImage { media_type, bytes, size });
        }
        side = side / 3 * 2;
    }
}

/// A larger PNG is more likely a photograph than a drawing.
#[cfg(feature = "images")]
const MAX_DRAWING_PNG_BYTES: usize = 400_000;

/// Encodes as JPEG or PNG: a photograph as PNG would grow, and a drawing as JPEG would blur.
#[cfg(feature = "images")]
fn encode_image(
    scaled: &image::DynamicImage,
    format: ImageFileFormat,
) -> Result<(&'static str, Vec<u8>), image::ImageError> {
    use image::codecs::{jpeg, png};
    let as_jpeg = || {
        let mut out = Vec::new();
        scaled
            .to_rgb8()
            .write_with_encoder(jpeg::JpegEncoder::new_with_quality(&mut out, JPEG_QUALITY_PERCENT))?;
        Ok(("image/jpeg", out))
    };
    if format == ImageFileFormat::Jpeg {
        return as_jpeg();
    }
    let mut out = Vec::new();
    let (compression, filter) = (png::CompressionType::Default, png::FilterType::Adaptive);
    scaled.write_with_encoder(png::PngEncoder::new_with_quality(&mut out, compression, filter))?;
    // JPEG has no transparency.
    let is_opaque = || scaled.to_rgba8().pixels().all(|pixel| matches!(pixel.0, [_, _, _, 255]));
    if out.len() > MAX_DRAWING_PNG_BYTES && is_opaque() {
        let jpeg = as_jpeg()?;
        if jpeg.1.len() < out.len() {
            return Ok(jpeg);
        }
    }
    Ok(("image/png", out))
}

/// Refuses large images in builds without the `images` feature, which contain no decoder.
#[cfg(not(feature = "images"))]
fn scale_down(path: &str, _format: ImageFileFormat, _bytes: &[u8]) -> Result<ScaledImage, Refusal> {
    Err(Refusal::new(
        Code::FileRead,
        format!(
            "the image `{path}` is too large for models, and this build of toolgate cannot scale it down"
        ),
    ))
}
