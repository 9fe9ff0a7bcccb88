//! Pictures, for models that can see.
//!
//! A picture is told by its first bytes, not by its name.
//! What is larger than models look at is made smaller first; what claims to be enormous is refused before anything
//! of that size is allocated.

use super::FileReadHandle;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::os::unix::fs::FileExt;
use toolgate_proto::{AbsPath, Code, Output, OutputBlock, Refusal};

/// Providers make anything larger smaller themselves.
const MAX_SIDE_PIXELS: u32 = 1568;
/// Raw bytes that go out as they are; base64 adds a third, and providers take 5 MB.
const MAX_IMAGE_BYTES: usize = 3_700_000;
/// Larger files are not opened as pictures.
const MAX_IMAGE_FILE_BYTES: u64 = 64 << 20;

/// Formats that models take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImageFileFormat {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl ImageFileFormat {
    fn detect(start: &[u8]) -> Option<Self> {
        match start {
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// The picture in a file. `None` where it is none; then nothing has been read away.
pub(super) async fn read_image(opened: &FileReadHandle<'_>) -> Result<Option<Output>, Refusal> {
    let mut start = [0; 16];
    let got = opened.file.read_at(&mut start, 0).unwrap_or(0);
    let Some(format) = ImageFileFormat::detect(start.get(..got).unwrap_or_default()) else { return Ok(None) };
    let path = opened.path.clone();
    let again = FileReadHandle::new(opened.cleared, &path)?;
    let (bytes, path) = again
        .read_bytes(MAX_IMAGE_FILE_BYTES, |path| {
            Refusal::new(
                Code::FileRead,
                format!("the picture `{path}` is larger than {} MB", MAX_IMAGE_FILE_BYTES >> 20),
            )
        })
        .await?;
    let made = toolgate_files::run_blocking(move || image_output(&path, format, bytes)).await;
    let made =
        made.map_err(|problem| crate::file_refusal::file_refusal(&opened.path, &problem, Code::FileRead))?;
    made.map(Some)
}

fn image_output(path: &AbsPath, format: ImageFileFormat, bytes: Vec<u8>) -> Result<Output, Refusal> {
    let size = imagesize::blob_size(&bytes).map_err(|_| damaged_image_refusal(path))?;
    let (width, height) = (size.width, size.height);
    let original_size = bytes.len();
    let fits = width.max(height) <= MAX_SIDE_PIXELS as usize && bytes.len() <= MAX_IMAGE_BYTES;
    let (media_type, data, shown) = if fits {
        (format.media_type(), bytes, (width, height))
    } else {
        let smaller = shrink(path, format, &bytes)?;
        (smaller.media_type, smaller.bytes, smaller.size)
    };
    let data = STANDARD.encode(data);
    let mut words = format!("{path}: {width}×{height} pixels, {original_size} bytes");
    if !fits {
        words.push_str(&format!(", shown at {}×{}", shown.0, shown.1));
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
        Output::text(words.clone()).display(format!("read picture {words}")).structured(structured);
    output.content.insert(0, OutputBlock::Image { media_type: media_type.to_owned(), data });
    Ok(output)
}

fn damaged_image_refusal(path: &AbsPath) -> Refusal {
    Refusal::new(Code::FileRead, format!("the picture `{path}` is damaged"))
}

struct ScaledImage {
    media_type: &'static str,
    bytes: Vec<u8>,
    size: (usize, usize),
}

#[cfg(feature = "images")]
fn shrink(path: &AbsPath, format: ImageFileFormat, bytes: &[u8]) -> Result<ScaledImage, Refusal> {
    use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
    let coded = match format {
        ImageFileFormat::Png => ImageFormat::Png,
        ImageFileFormat::Jpeg => ImageFormat::Jpeg,
        ImageFileFormat::Gif => ImageFormat::Gif,
        ImageFileFormat::Webp => ImageFormat::WebP,
    };
    let mut limits = Limits::default();
    limits.max_image_width = Some(16_384);
    limits.max_image_height = Some(16_384);
    limits.max_alloc = Some(256 << 20);
    let mut reader = ImageReader::with_format(std::io::Cursor::new(bytes), coded);
    reader.limits(limits);
    let too_much = |error: image::ImageError| {
        Refusal::new(Code::FileRead, format!("the picture `{path}` cannot be made smaller: {error}"))
    };
    let mut decoder = reader.into_decoder().map_err(too_much)?;
    let turned = decoder.orientation().map_err(too_much)?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(too_much)?;
    picture.apply_orientation(turned);
    let mut side = MAX_SIDE_PIXELS;
    loop {
        let smaller = picture.thumbnail(side, side);
        let (media_type, bytes) = encode_image(&smaller, format).map_err(too_much)?;
        if bytes.len() <= MAX_IMAGE_BYTES || side < 256 {
            let size = (smaller.width() as usize, smaller.height() as usize);
            return Ok(ScaledImage { media_type, bytes, size });
        }
        side = side / 3 * 2;
    }
}

/// A PNG larger than this is a photograph more often than a drawing.
#[cfg(feature = "images")]
const MAX_DRAWING_PNG_BYTES: usize = 400_000;

/// A photograph as PNG would be larger than before, and a drawing as JPEG would be blurred.
#[cfg(feature = "images")]
fn encode_image(
    picture: &image::DynamicImage,
    format: ImageFileFormat,
) -> Result<(&'static str, Vec<u8>), image::ImageError> {
    use image::codecs::{jpeg, png};
    let as_jpeg = || {
        let mut out = Vec::new();
        picture.to_rgb8().write_with_encoder(jpeg::JpegEncoder::new_with_quality(&mut out, 85))?;
        Ok(("image/jpeg", out))
    };
    if format == ImageFileFormat::Jpeg {
        return as_jpeg();
    }
    let mut out = Vec::new();
    let (pack, filter) = (png::CompressionType::Default, png::FilterType::Adaptive);
    picture.write_with_encoder(png::PngEncoder::new_with_quality(&mut out, pack, filter))?;
    let opaque = || picture.to_rgba8().pixels().all(|pixel| matches!(pixel.0, [_, _, _, 255]));
    if out.len() > MAX_DRAWING_PNG_BYTES && opaque() {
        let jpeg = as_jpeg()?;
        if jpeg.1.len() < out.len() {
            return Ok(jpeg);
        }
    }
    Ok(("image/png", out))
}

#[cfg(not(feature = "images"))]
fn shrink(path: &AbsPath, _format: ImageFileFormat, _bytes: &[u8]) -> Result<ScaledImage, Refusal> {
    Err(Refusal::new(
        Code::FileRead,
        format!(
            "the picture `{path}` is too large for models, and this build of toolgate cannot make it smaller"
        ),
    ))
}
