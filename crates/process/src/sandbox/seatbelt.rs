//! A [`SandboxProfile`] in the profile language of macOS's Seatbelt (`sandbox-exec`).
//!
//! The generated text is tested; it has not been run on macOS, and nothing uses it yet.

use super::{SandboxNetworkAccess, SandboxProfile};
use toolgate_proto::AbsPath;

/// The profile for `sandbox-exec -p`. Later rules win, so an exception follows the rule it restricts.
pub fn build_seatbelt_profile(profile: &SandboxProfile) -> String {
    let mut out = String::from(
        "(version 1)\n(deny default)\n(allow process-exec process-fork signal (target same-sandbox))\n\
         (allow sysctl-read mach-lookup ipc-posix-shm)\n(allow file-read*)\n\
         (allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))\n",
    );
    for path in &profile.writable {
        out.push_str(&format!("(allow file-write* (subpath {}))\n", quote_path(path)));
    }
    for path in &profile.protected {
        out.push_str(&format!("(deny file-write* (subpath {}))\n", quote_path(path)));
        // Renaming a parent directory would move the file.
        let mut above = path.parent();
        while let Some(parent) =
            above.filter(|parent| profile.writable.iter().any(|root| parent.is_under(root) && parent != root))
        {
            out.push_str(&format!("(deny file-write-unlink (literal {}))\n", quote_path(&parent)));
            above = parent.parent();
        }
    }
    for path in &profile.unreadable {
        out.push_str(&format!("(deny file-read-data file-write* (subpath {}))\n", quote_path(path)));
    }
    match profile.net {
        SandboxNetworkAccess::None => {}
        SandboxNetworkAccess::Loopback(Some(port)) => {
            out.push_str(&format!("(allow network-outbound (remote ip \"localhost:{port}\"))\n"));
        }
        SandboxNetworkAccess::Loopback(None) => out.push_str(
            "(allow network-outbound (remote ip \"localhost:*\"))\n\
             (allow network-bind network-inbound (local ip \"localhost:*\"))\n",
        ),
        SandboxNetworkAccess::Full => out.push_str("(allow network*)\n"),
    }
    out
}

/// A string literal of the profile language, with quotes and backslashes escaped.
fn quote_path(path: &AbsPath) -> String {
    let mut out = String::from("\"");
    for c in path.to_string().chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    #[test]
    fn exceptions_follow_the_rules_they_restrict() {
        let profile = build_seatbelt_profile(&SandboxProfile {
            writable: vec![path("/ws")],
            protected: vec![path("/ws/.git/hooks")],
            unreadable: vec![path("/Users/a/.ssh")],
            ..SandboxProfile::default()
        });
        let tail: Vec<&str> = profile.lines().skip(6).collect();
        assert_eq!(
            tail,
            [
                "(allow file-write* (subpath \"/ws\"))",
                "(deny file-write* (subpath \"/ws/.git/hooks\"))",
                "(deny file-write-unlink (literal \"/ws/.git\"))",
                "(deny file-read-data file-write* (subpath \"/Users/a/.ssh\"))",
            ]
        );
        assert!(profile.starts_with("(version 1)\n(deny default)\n"));
        assert!(!profile.contains("network"));
    }

    #[test]
    fn a_path_cannot_inject_rules() {
        let profile =
            SandboxProfile { writable: vec![path("/a\") (allow default) (\"")], ..SandboxProfile::default() };
        assert!(build_seatbelt_profile(&profile).contains(r#"(subpath "/a\") (allow default) (\"")"#));
    }

    #[test]
    fn the_network_rules_match_the_profile() {
        let profile = |net| build_seatbelt_profile(&SandboxProfile { net, ..SandboxProfile::default() });
        assert!(profile(SandboxNetworkAccess::Loopback(Some(8080))).contains("localhost:8080"));
        assert!(profile(SandboxNetworkAccess::Loopback(None)).contains("network-bind"));
        assert!(profile(SandboxNetworkAccess::Full).contains("(allow network*)"));
    }
}
