//! `file:` URIs and paths.

use gen_lsp_types::Uri;
use toolgate_proto::AbsPath;
use url::Url;

/// The URI of a file.
pub(crate) fn to_uri(path: &AbsPath) -> Uri {
    match Url::from_file_path(path.as_path()) {
        Ok(url) => Uri(url.into()),
        // INVARIANT: the path is absolute, which is all that is asked.
        Err(()) => Uri(format!("file://{path}")),
    }
}

/// The path of a `file:` URI of this machine, without `.` and `..`; `None` for any other URI.
pub(crate) fn to_path(uri: &Uri) -> Option<AbsPath> {
    let url = Url::parse(&uri.0).ok()?;
    if url.scheme() != "file" || url.host().is_some() {
        return None;
    }
    let path = url.to_file_path().ok()?;
    AbsPath::new(path).ok().map(|path| path.lexical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_path_survives_its_uri(name in "[a-zA-Z0-9 %#?é😀&+;=@\\[\\]-]{1,30}") {
            let path = AbsPath::new("/project").unwrap().join(&name);
            prop_assert_eq!(to_path(&to_uri(&path)), Some(path.lexical()));
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in "\\PC{0,60}") {
            let _ = to_path(&Uri(text));
        }
    }

    #[test]
    fn only_files_of_this_machine_have_a_path() {
        for uri in ["http://example.com/a", "file://server/share", "untitled:Untitled-1", "jdt://x", ""] {
            assert_eq!(to_path(&Uri(uri.to_owned())), None, "{uri}");
        }
        assert_eq!(to_path(&Uri("file:///a/../b%20c".to_owned())), AbsPath::new("/b c").ok());
    }
}
