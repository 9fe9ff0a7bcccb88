//! Why a fetch has no result.

use std::fmt;
use std::time::Duration;

/// Why a fetch has no result. Messages name hosts and URLs, and never a header that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchError {
    /// The judge does not let the request go on; its reason.
    Refused(String),
    /// The text is not a URL that can be fetched.
    InvalidUrl(String),
    /// More redirects than the limit.
    TooManyRedirects(usize),
    /// A redirect without a target; its status.
    RedirectWithoutTarget(u16),
    /// The name does not resolve.
    Unresolved {
        /// The name.
        host: String,
        /// What the resolver says.
        problem: String,
    },
    /// No connection, or it broke before the response began.
    Unreachable {
        /// The host.
        host: String,
        /// What the system says.
        problem: String,
    },
    /// No complete answer in time.
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
    },
    /// The body is coded in a way that is not decoded here.
    UnknownCoding(String),
    /// The response is not valid HTTP.
    Protocol(String),
    /// The body broke off, or cannot be decoded.
    Incomplete {
        /// Bytes of the body that arrived.
        received: u64,
        /// What is the matter.
        problem: String,
    },
    /// The stated length is above the limit.
    TooLarge {
        /// The stated length.
        stated: u64,
        /// The limit.
        limit: u64,
    },
    /// Too many requests to one host.
    Paced {
        /// The host.
        host: String,
        /// When the next one may be made.
        wait: Duration,
    },
    /// The site's `robots.txt` does not allow it.
    Robots(String),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) | Self::InvalidUrl(reason) => f.write_str(reason),
            Self::TooManyRedirects(limit) => write!(f, "too many redirects: more than {limit}"),
            Self::RedirectWithoutTarget(status) => {
                write!(f, "the server answered with a redirect ({status}) that has no target")
            }
            Self::Unresolved { host, problem } => write!(f, "host `{host}` does not resolve: {problem}"),
            Self::Unreachable { host, problem } => write!(f, "cannot connect to `{host}`: {problem}"),
            Self::TimedOut { what, after } => write!(f, "timed out after {after:.1?} waiting for {what}"),
            Self::UnknownCoding(coding) => {
                write!(f, "the body has the content encoding `{coding}`, which cannot be decoded")
            }
            Self::Protocol(problem) => write!(f, "the response is not valid HTTP: {problem}"),
            Self::Incomplete { received, problem } => {
                write!(f, "the page is incomplete: it broke off after {received} bytes ({problem})")
            }
            Self::TooLarge { stated, limit } => {
                write!(f, "the server announces {stated} bytes, and the limit is {limit}")
            }
            Self::Paced { host, wait } => {
                write!(
                    f,
                    "too many requests to `{host}`: the next one is possible in {} s",
                    wait.as_secs() + 1
                )
            }
            Self::Robots(url) => write!(f, "the site's robots.txt does not allow fetching `{url}`"),
        }
    }
}

impl std::error::Error for FetchError {}
