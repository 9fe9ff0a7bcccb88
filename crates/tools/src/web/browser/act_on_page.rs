//! What a user does with a page: looking where it is, clicking, typing.

use super::browser_page::BrowserPage;
use serde_json::{Value, json};
use std::time::Duration;
use toolgate_proto::Refusal;

/// How long a page gets to start what an action causes.
const REACTION_TIMEOUT: Duration = Duration::from_millis(150);

impl BrowserPage {
    /// The URL that the page has now.
    pub(crate) async fn current_url(&self) -> Result<String, Refusal> {
        let history = self.act_on_page("Page.getNavigationHistory", json!({})).await?;
        let index =
            history.get("currentIndex").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let entry = index.and_then(|at| history.get("entries")?.get(at)?.get("url"));
        let url = entry.and_then(Value::as_str);
        url.map(str::to_owned).ok_or_else(|| self.failure("it does not say where the page is"))
    }

    /// Runs a function with an argument in a world of its own, which scripts of the page cannot reach.
    pub(crate) async fn run_function(&self, function: &str, argument: &Value) -> Result<Value, Refusal> {
        let world = json!({ "frameId": self.main_frame(), "worldName": "toolgate" });
        let world = self.act_on_page("Page.createIsolatedWorld", world).await?;
        let params = json!({
            "expression": format!("({function})({argument})"),
            "contextId": world.get("executionContextId"),
            "returnByValue": true,
            "awaitPromise": true,
        });
        let answer = self.act_on_page("Runtime.evaluate", params).await?;
        if let Some(problem) = answer.get("exceptionDetails") {
            let text = problem.get("exception").and_then(|exception| exception.get("description"));
            return Err(self.failure(text.and_then(Value::as_str).unwrap_or("a script failed")));
        }
        Ok(answer.get("result").and_then(|result| result.get("value")).cloned().unwrap_or_default())
    }

    /// Clicks at a place of the window, and waits for what follows.
    pub(crate) async fn click(&self, x: f64, y: f64) -> Result<(), Refusal> {
        for (kind, button) in [("mouseMoved", "none"), ("mousePressed", "left"), ("mouseReleased", "left")] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
            self.act_on_page("Input.dispatchMouseEvent", event).await?;
        }
        self.wait_reaction().await
    }

    /// Types into what has the focus; with `submit` presses Enter and waits for what follows.
    pub(crate) async fn type_text(&self, text: &str, submit: bool) -> Result<(), Refusal> {
        self.act_on_page("Input.insertText", json!({ "text": text })).await?;
        if !submit {
            return Ok(());
        }
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "nativeVirtualKeyCode": 13,
            });
            if let (Value::Object(fields), "keyDown") = (&mut event, kind) {
                fields.insert("text".to_owned(), json!("\r"));
            }
            self.act_on_page("Input.dispatchKeyEvent", event).await?;
        }
        self.wait_reaction().await
    }

    /// Waits for what an action causes.
    async fn wait_reaction(&self) -> Result<(), Refusal> {
        tokio::time::sleep(REACTION_TIMEOUT).await;
        self.settle().await
    }

    /// Sends a command; a failure is a refusal.
    async fn act_on_page(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        self.call(method, params).await.map_err(|problem| self.failure(&problem))
    }
}
