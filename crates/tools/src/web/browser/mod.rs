//! A headless Chromium for pages that must be seen, or whose text needs their scripts.
//!
//! The browser is driven over a pair of pipes, so that no port is open to other programs of the machine.
//! It runs in the sandbox with a profile of its own, reads programs, libraries and fonts and nothing else, and reaches one
//! port: that of a proxy which asks the rules of the call about every host.
//! Its own sandbox is off, because it needs namespaces, which a confined process cannot make.

mod act_on_page;
mod browser_hosts;
mod browser_page;
mod browser_process;
mod debug_pipe;
mod find_browser;
mod local_page;
mod page_events;
mod screen_capture;
mod view_page;

pub(crate) use browser_hosts::BrowserHosts;
pub(crate) use browser_page::BrowserPage;
pub(crate) use browser_process::BrowserLaunch;
pub(crate) use local_page::LocalPage;
pub(crate) use screen_capture::{CaptureFormat, CaptureWindow, CapturedImage};
pub(crate) use view_page::{PageView, ViewRequest, ViewSource, view_page};
