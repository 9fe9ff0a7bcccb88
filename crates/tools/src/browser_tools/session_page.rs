//! The page of a session.

use crate::web::{BrowserHosts, BrowserLaunch, BrowserPage, CaptureWindow};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::MutexGuard;
use tokio::time::timeout;
use toolgate_gate::{CallContext, Cleared};
use toolgate_proto::{Code, Effect, Intent, Refusal};

/// How long one action may take.
pub(super) const ACTION_TIMEOUT: Duration = Duration::from_secs(60);

/// State of the browser tools of a session. The browser ends with it.
#[derive(Default)]
pub(super) struct SessionPage {
    /// The page; one action at a time.
    page: tokio::sync::Mutex<Option<BrowserPage>>,
    /// Where the page is, for the intents of calls, which cannot wait.
    url: Mutex<Option<String>>,
}

/// The page while a call uses it.
pub(super) struct HeldPage<'a> {
    /// Always `Some` while it is held.
    slot: MutexGuard<'a, Option<BrowserPage>>,
    /// To note where the page went.
    state: &'a SessionPage,
}

impl SessionPage {
    /// Where the page is; `None` if none is open.
    pub(super) fn url(&self) -> Option<String> {
        self.url.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens a URL in the page, which is made at first use.
    pub(super) async fn open(&self, url: &str, cleared: &Cleared) -> Result<HeldPage<'_>, Refusal> {
        let mut slot = self.page.lock().await;
        let is_dead = slot.as_ref().is_some_and(BrowserPage::has_ended);
        if slot.is_none() || is_dead {
            let launch = BrowserLaunch::from_call(cleared)?;
            *slot = None;
            let started = BrowserPage::start(launch, BrowserHosts::default(), CaptureWindow::default());
            *slot = Some(within(started).await?);
        }
        if let Some(page) = slot.as_mut() {
            page.hosts.set_rules(cleared.hosts());
            page.hosts.grant_url(url);
            within(page.open_url(url)).await?;
        }
        let mut held = HeldPage { slot, state: self };
        held.note_url().await?;
        Ok(held)
    }

    /// The page that is open, with the rules of this call.
    pub(super) async fn hold(&self, cleared: &Cleared) -> Result<HeldPage<'_>, Refusal> {
        let slot = self.page.lock().await;
        match slot.as_ref() {
            Some(page) if !page.has_ended() => page.hosts.set_rules(cleared.hosts()),
            Some(_) | None => return Err(no_page()),
        }
        Ok(HeldPage { slot, state: self })
    }
}

impl HeldPage<'_> {
    /// The page.
    pub(super) fn page(&self) -> Result<&BrowserPage, Refusal> {
        self.slot.as_ref().ok_or_else(no_page)
    }

    /// Notes where the page is now.
    pub(super) async fn note_url(&mut self) -> Result<String, Refusal> {
        let url = within(self.page()?.current_url()).await?;
        *self.state.url.lock().unwrap_or_else(PoisonError::into_inner) = Some(url.clone());
        Ok(url)
    }
}

/// Limits the time of an action.
pub(super) async fn within<T>(action: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    timeout(ACTION_TIMEOUT, action).await.unwrap_or_else(|_| {
        Err(Refusal::new(
            Code::Fetch,
            format!("the page did not answer within {} s", ACTION_TIMEOUT.as_secs()),
        ))
    })
}

/// The intent of an action on the page: a fetch of its URL, because that is what an action can cause.
pub(super) fn page_intent(what: &str, context: &CallContext) -> Intent {
    match context.session.state::<SessionPage>().url() {
        Some(url) => Intent::new(format!("{what} on {url}"), [Effect::Fetch { url }]),
        // Refused when it runs.
        None => Intent::none(what),
    }
}

/// The refusal where no page is open.
fn no_page() -> Refusal {
    Refusal::new(Code::Fetch, "no page is open").hint("open one with the tool that opens pages")
}
