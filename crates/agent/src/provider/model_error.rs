//! Why a model gave no answer, and whether another attempt makes sense.

use crate::conversation::text_field;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use toolgate_net::ModelHttpError;
use toolgate_proto::json::{JsonLimits, parse};

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// Too many requests.
    RateLimit,
    /// The service is overloaded.
    Overloaded,
    /// The request is wrong.
    InvalidRequest,
    /// The conversation does not fit the context window.
    ContextFull,
    /// The key is missing, wrong or not permitted to do this.
    Authentication,
    /// The account has no credit, or a spend limit is reached.
    Billing,
    /// The service failed.
    Server,
    /// The service was not reached, or the connection broke.
    Connection,
    /// No server listens at the address.
    NotListening,
    /// The certificate of the service was refused.
    Certificate,
    /// The stream was silent for too long.
    Silent,
    /// The stream cannot be read.
    BadStream,
}

impl ModelErrorKind {
    /// The name that hosts know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::InvalidRequest | Self::ContextFull => "invalid_request",
            Self::Authentication => "authentication_failed",
            Self::Billing => "billing_error",
            Self::Server | Self::Connection | Self::NotListening | Self::Silent | Self::BadStream => {
                "server_error"
            }
            Self::Certificate => "unknown",
        }
    }
}

/// Why a model gave no answer. The message never contains the key.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelError {
    /// What kind of error.
    pub kind: ModelErrorKind,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// What happened.
    pub message: String,
    /// How long the service wants us to wait.
    pub retry_after: Option<Duration>,
    /// Whether the service itself says that another attempt makes sense.
    pub should_retry: Option<bool>,
}

impl ModelError {
    /// An error without a status.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into(), retry_after: None, should_retry: None }
    }

    /// Whether another attempt makes sense.
    pub fn is_retryable(&self) -> bool {
        // What an account cannot pay for, and a certificate, do not get better by asking again.
        if matches!(self.kind, ModelErrorKind::Billing | ModelErrorKind::Certificate) {
            return false;
        }
        if let Some(should_retry) = self.should_retry {
            return should_retry;
        }
        match self.status {
            Some(status) => matches!(status, 408 | 409 | 429) || status >= 500,
            None => match self.kind {
                ModelErrorKind::RateLimit
                | ModelErrorKind::Overloaded
                | ModelErrorKind::Server
                | ModelErrorKind::Connection
                | ModelErrorKind::NotListening
                | ModelErrorKind::Silent
                | ModelErrorKind::BadStream => true,
                ModelErrorKind::InvalidRequest
                | ModelErrorKind::ContextFull
                | ModelErrorKind::Authentication
                | ModelErrorKind::Billing
                | ModelErrorKind::Certificate => false,
            },
        }
    }

    /// The error of an answer with this status.
    pub(crate) fn from_response(status: u16, headers: &BTreeMap<String, String>, body: &str) -> Self {
        let value = parse(body, JsonLimits::SETTINGS).unwrap_or_default();
        let error = match value.get("error") {
            Some(error) if error.is_object() => error.clone(),
            Some(Value::String(text)) => serde_json::json!({ "message": text }),
            _ => value,
        };
        let said = [text_field(&error, "message"), text_field(&error, "detail")];
        let message = match said.into_iter().find(|text| !text.is_empty()) {
            Some(text) => text.to_owned(),
            None if body.trim().is_empty() => "the service gave no reason".to_owned(),
            None => body.trim().chars().take(500).collect(),
        };
        let words = format!("{} {}", text_field(&error, "type"), text_field(&error, "code"));
        Self {
            kind: classify_error(status, &words, &message),
            status: Some(status),
            message,
            retry_after: retry_after(headers, toolgate_files::now_millis()),
            should_retry: headers.get("x-should-retry").and_then(|value| value.trim().parse().ok()),
        }
    }

    /// The error that a provider reports inside a stream.
    pub(crate) fn from_stream(kind: &str, message: &str) -> Self {
        let message = if message.is_empty() { "the stream ended with an error" } else { message };
        let kind = match kind {
            "overloaded_error" | "server_is_overloaded" => ModelErrorKind::Overloaded,
            "rate_limit_error" | "rate_limit_exceeded" => ModelErrorKind::RateLimit,
            "invalid_request_error" | "invalid_prompt" => ModelErrorKind::InvalidRequest,
            "context_length_exceeded" => ModelErrorKind::ContextFull,
            "authentication_error" | "permission_error" => ModelErrorKind::Authentication,
            "billing_error" | "insufficient_quota" => ModelErrorKind::Billing,
            _ => ModelErrorKind::Server,
        };
        Self::new(kind, message)
    }
}

/// The kind of an error, by its status and the words of the service.
fn classify_error(status: u16, words: &str, message: &str) -> ModelErrorKind {
    let lower = message.to_ascii_lowercase();
    let is_full = words.contains("context_length_exceeded")
        || lower.contains("prompt is too long")
        || lower.contains("context length")
        || lower.contains("context window");
    match status {
        400 | 413 if is_full => ModelErrorKind::ContextFull,
        402 => ModelErrorKind::Billing,
        _ if words.contains("billing_error") || words.contains("insufficient_quota") => {
            ModelErrorKind::Billing
        }
        400 if lower.contains("credit balance") => ModelErrorKind::Billing,
        401 | 403 => ModelErrorKind::Authentication,
        429 => ModelErrorKind::RateLimit,
        529 => ModelErrorKind::Overloaded,
        _ if words.contains("overloaded") => ModelErrorKind::Overloaded,
        500.. => ModelErrorKind::Server,
        _ => ModelErrorKind::InvalidRequest,
    }
}

/// How long the service wants us to wait: milliseconds, or seconds, or until a date. For a date that is over, the usual
/// backoff applies.
fn retry_after(headers: &BTreeMap<String, String>, now_millis: u64) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    let seconds = number("retry-after-ms").map(|millis| millis / 1000.0).or_else(|| number("retry-after"));
    match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            let at = jiff::fmt::rfc2822::parse(headers.get("retry-after")?.trim()).ok()?;
            let at = u64::try_from(at.timestamp().as_millisecond()).ok()?;
            at.checked_sub(now_millis).map(Duration::from_millis)
        }
    }
}

impl From<ModelHttpError> for ModelError {
    fn from(error: ModelHttpError) -> Self {
        let kind = match &error {
            ModelHttpError::Invalid(_) => ModelErrorKind::InvalidRequest,
            ModelHttpError::Certificate(_) => ModelErrorKind::Certificate,
            ModelHttpError::NotListening => ModelErrorKind::NotListening,
            ModelHttpError::Broken(_) => ModelErrorKind::Connection,
        };
        Self::new(kind, error.to_string())
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status} {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ModelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_retried_or_not_as_the_services_say() {
        for (status, body, headers, kind, retryable) in [
            (429, "{}", vec![], ModelErrorKind::RateLimit, true),
            (529, "", vec![], ModelErrorKind::Overloaded, true),
            (500, "oops", vec![], ModelErrorKind::Server, true),
            (500, "", vec![("x-should-retry", "false")], ModelErrorKind::Server, false),
            (400, "", vec![("x-should-retry", "true")], ModelErrorKind::InvalidRequest, true),
            (408, "", vec![], ModelErrorKind::InvalidRequest, true),
            (409, "", vec![], ModelErrorKind::InvalidRequest, true),
            (401, "", vec![], ModelErrorKind::Authentication, false),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 300000 tokens"}}"#,
                vec![],
                ModelErrorKind::ContextFull,
                false,
            ),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded","message":"m"}}"#,
                vec![],
                ModelErrorKind::ContextFull,
                false,
            ),
            (
                429,
                r#"{"error":{"type":"insufficient_quota","message":"m"}}"#,
                vec![],
                ModelErrorKind::Billing,
                false,
            ),
            (400, r#"{"error":"plain text"}"#, vec![], ModelErrorKind::InvalidRequest, false),
        ] {
            let headers =
                headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let error = ModelError::from_response(status, &headers, body);
            assert_eq!((error.kind, error.is_retryable()), (kind, retryable), "{status} {body}");
        }
    }

    #[test]
    fn the_wait_is_read_in_both_units_and_as_a_date() {
        for (name, value, wanted) in [
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "2", Some(2000)),
            ("retry-after", "Thu, 01 Jan 1970 00:01:30 GMT", Some(30_000)),
            ("retry-after", "Thu, 01 Jan 1970 00:00:59 GMT", None),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
        ] {
            let headers = [(name.to_owned(), value.to_owned())].into();
            assert_eq!(retry_after(&headers, 60_000), wanted.map(Duration::from_millis), "{name}: {value}");
        }
    }
}
