//! Images of a page, within what providers accept.

use super::browser_page::BrowserPage;
use crate::read::{MAX_IMAGE_BYTES, MAX_SIDE_PIXELS};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The height of a page that is shown; what is below it is left out.
const MAX_PAGE_HEIGHT: u32 = 8_000;
/// Qualities of JPEG images, tried in this order until one is small enough.
const JPEG_QUALITIES: &[u8] = &[85, 60, 30];

/// The format of an image. The variants have no comments, which would be in every definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CaptureFormat {
    #[default]
    Png,
    Jpeg,
}

/// What of a page is shown, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CaptureWindow {
    /// The width of the window.
    pub(crate) width: u32,
    /// The height of the window.
    pub(crate) height: u32,
    /// The whole page, and not only what fits the window.
    pub(crate) full_page: bool,
    /// The format. An image that is too large becomes JPEG.
    pub(crate) format: CaptureFormat,
}

impl Default for CaptureWindow {
    /// A window as laptops have it.
    fn default() -> Self {
        Self { width: 1_280, height: 800, full_page: false, format: CaptureFormat::default() }
    }
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CapturedImage {
    /// Its type.
    pub(crate) media_type: &'static str,
    /// The image in base64.
    pub(crate) data: String,
}

/// The images of a page, from top to bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScreenCapture {
    /// One for each part of the page that is as high as providers accept.
    pub(crate) images: Vec<CapturedImage>,
    /// The part of the page that they show together, in pixels.
    pub(crate) size: (u32, u32),
    /// The page goes on below.
    pub(crate) is_cut: bool,
}

/// Takes images of what a page shows.
pub(super) async fn capture_page(
    page: &BrowserPage,
    options: CaptureWindow,
) -> Result<ScreenCapture, String> {
    let (mut width, mut height) = (options.width, options.height);
    let mut is_cut = false;
    if options.full_page {
        let metrics = page.call("Page.getLayoutMetrics", json!({})).await?;
        let content = metrics.get("cssContentSize");
        let pixels = |name: &str, least: u32| -> u32 {
            let value = content.and_then(|content| content.get(name)).and_then(Value::as_f64);
            // A page can claim any size; beyond the limit it is cut.
            let value = value.unwrap_or_default().clamp(0.0, f64::from(u32::MAX / 2));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
            let value = value.ceil() as u32;
            value.max(least)
        };
        let (whole_width, whole_height) = (pixels("width", width), pixels("height", 1));
        is_cut = whole_height > MAX_PAGE_HEIGHT || whole_width > MAX_SIDE_PIXELS;
        width = whole_width.min(MAX_SIDE_PIXELS);
        height = whole_height.min(MAX_PAGE_HEIGHT).max(options.height);
    }
    let mut images = Vec::new();
    let mut top = 0;
    while top < height {
        let part = (height - top).min(MAX_SIDE_PIXELS);
        images.push(capture_part(page, options.format, (top, width, part)).await?);
        top += part;
    }
    Ok(ScreenCapture { images, size: (width, height), is_cut })
}

/// Takes an image of a part of the page that starts at `top`.
async fn capture_part(
    page: &BrowserPage,
    format: CaptureFormat,
    (top, width, height): (u32, u32, u32),
) -> Result<CapturedImage, String> {
    let jpeg = JPEG_QUALITIES.iter().map(|quality| ("jpeg", "image/jpeg", Some(*quality)));
    let png = (format == CaptureFormat::Png).then_some(("png", "image/png", None));
    for (name, media_type, quality) in png.into_iter().chain(jpeg) {
        let mut params = json!({
            "format": name,
            "captureBeyondViewport": true,
            "optimizeForSpeed": name == "png",
            "clip": { "x": 0, "y": top, "width": width, "height": height, "scale": 1 },
        });
        if let (Value::Object(fields), Some(quality)) = (&mut params, quality) {
            fields.insert("quality".to_owned(), json!(quality));
        }
        let answer = page.call("Page.captureScreenshot", params).await?;
        let data = answer.get("data").and_then(Value::as_str).unwrap_or_default();
        let is_image = STANDARD.decode(data).is_ok_and(|bytes| !bytes.is_empty());
        if !is_image {
            return Err("the browser sent no image".to_owned());
        }
        if data.len() / 4 * 3 <= MAX_IMAGE_BYTES {
            return Ok(CapturedImage { media_type, data: data.to_owned() });
        }
    }
    Err("the image is larger than providers accept; show less of the page".to_owned())
}
