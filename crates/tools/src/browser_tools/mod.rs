//! The browser tools: one page for a session, which can be read, clicked and typed into.
//!
//! Visible only where the user turned them on. Every request of the page is judged by the rules for hosts of the call that
//! runs, and a call on the page is judged as a fetch of the page's URL.

mod browser_click;
mod browser_open;
mod browser_read;
mod browser_screenshot;
mod browser_type;
mod browser_wait;
mod page_script;
mod session_page;

pub(crate) use browser_click::BrowserClickTool;
pub(crate) use browser_open::BrowserOpenTool;
pub(crate) use browser_read::BrowserReadTool;
pub(crate) use browser_screenshot::BrowserScreenshotTool;
pub(crate) use browser_type::BrowserTypeTool;
pub(crate) use browser_wait::BrowserWaitTool;

use crate::Toolset;
use std::time::Duration;
use toolgate_gate::ToolSpec;

/// The names of the browser tools in all toolsets, for a host that hides them.
pub const BROWSER_TOOLS: &[&str] = &[
    "BrowserOpen",
    "BrowserRead",
    "BrowserClick",
    "BrowserType",
    "BrowserWait",
    "BrowserScreenshot",
    "browser_open",
    "browser_read",
    "browser_click",
    "browser_type",
    "browser_wait",
    "browser_screenshot",
];

/// The gate's limit for one call.
const RUN_TIMEOUT: Duration = Duration::from_secs(140);

/// What all of the tools share. `verb` is `Open`, `Read` and so on.
fn browser_spec(toolset: Toolset, verb: &str, title: &str, description: &str) -> ToolSpec {
    let name = match toolset {
        Toolset::Claude => format!("Browser{verb}"),
        Toolset::Plain => format!("browser_{}", verb.to_ascii_lowercase()),
    };
    let mut spec = ToolSpec::new(name, description).with_open_world(true).with_timeout(RUN_TIMEOUT);
    spec.title = title.to_owned();
    spec.family = Some("WebFetch".to_owned());
    spec
}
