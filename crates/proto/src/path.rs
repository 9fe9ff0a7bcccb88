//! Absolute paths, so that the working directory of the process cannot influence a decision.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// An absolute path as it was spelled. `.` and repeated separators are removed; `..` is kept, because what it means
/// depends on symlinks, and only the file system knows those.
///
/// Serialised as text, in which bytes that are not UTF-8 become the replacement character.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsPath(PathBuf);

/// A path that is not absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAbsolute(String);

impl fmt::Display for NotAbsolute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an absolute path", self.0)
    }
}

impl std::error::Error for NotAbsolute {}

impl AbsPath {
    /// Checks that a path is absolute.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, NotAbsolute> {
        let path = path.as_ref();
        if path.is_absolute() {
            Ok(Self(normalize_separators(path.to_path_buf())))
        } else {
            Err(NotAbsolute(path.display().to_string()))
        }
    }

    /// The root directory.
    pub fn root() -> Self {
        Self(PathBuf::from("/"))
    }

    /// `path` relative to this directory; an absolute `path` replaces it.
    pub fn join(&self, path: impl AsRef<Path>) -> Self {
        Self(normalize_separators(self.0.join(path)))
    }

    /// The path with `..` removed by text alone, without regard to symlinks.
    /// Rules are matched against this *and* against the path that the file system resolves.
    pub fn lexical(&self) -> Self {
        self.to_lexical().into_owned()
    }

    /// The same, without a copy if there is no `..` to remove.
    pub fn to_lexical(&self) -> Cow<'_, Self> {
        if self.is_lexical() {
            return Cow::Borrowed(self);
        }
        let mut out = PathBuf::new();
        for component in self.0.components() {
            match component {
                Component::ParentDir => {
                    // `/..` is `/` for the kernel as well.
                    if out.parent().is_some() {
                        out.pop();
                    }
                }
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::Normal(_) => {
                    out.push(component);
                }
            }
        }
        Cow::Owned(Self(out))
    }

    /// Whether the path is its own lexical form. Compares bytes, because a search asks this for every file.
    fn is_lexical(&self) -> bool {
        all_names_match(&self.0, |name| !matches!(name, b"" | b"." | b".."))
    }

    /// Whether this path is `root` or below it, compared by components: `/ws-evil` is not below `/ws`.
    pub fn is_under(&self, root: &AbsPath) -> bool {
        self.0.starts_with(&root.0)
    }

    /// The directory of this path; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|parent| Self(parent.to_path_buf()))
    }

    /// The last component; `None` for the root and after `..`.
    pub fn file_name(&self) -> Option<&std::ffi::OsStr> {
        self.0.file_name()
    }

    /// As a path of the standard library.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

/// Removes `.` and repeated separators. Most paths have neither, and collecting a path from its components costs more
/// than anything else that is done with it, so the bytes are looked at first.
fn normalize_separators(path: PathBuf) -> PathBuf {
    if all_names_match(&path, |name| !matches!(name, b"" | b".")) {
        path
    } else {
        path.components().collect()
    }
}

/// Whether a condition holds for the bytes of every name in an absolute path.
fn all_names_match(path: &Path, condition: impl Fn(&[u8]) -> bool) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes == b"/" || bytes.split(|byte| *byte == b'/').skip(1).all(condition)
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl fmt::Debug for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for AbsPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.display())
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexical(path: &str) -> String {
        AbsPath::new(path).unwrap().lexical().to_string()
    }

    #[test]
    fn lexical_form_removes_dots_and_stays_below_the_root() {
        assert_eq!(lexical("/a/./b//c"), "/a/b/c");
        assert_eq!(lexical("/a/b/../c"), "/a/c");
        assert_eq!(lexical("/../../x"), "/x");
        assert_eq!(lexical("/a/../.."), "/");
        assert_eq!(lexical("/a/b/"), "/a/b");
        assert_eq!(lexical("/a/.b/..c"), "/a/.b/..c");
        assert_eq!(lexical("/"), "/");
    }

    #[test]
    fn normalized_spelling_is_that_of_the_components() {
        for path in [
            "/", "//", "/./", "/a", "/a/", "//a", "/a//b", "/a/./b", "/a/.", "/a/..", "/../a", "/.a/b.",
            "/...",
        ] {
            let components: PathBuf = Path::new(path).components().collect();
            assert_eq!(AbsPath::new(path).unwrap().as_path().as_os_str(), components.as_os_str(), "{path}");
            assert_eq!(AbsPath::root().join(path).as_path().as_os_str(), components.as_os_str(), "{path}");
        }
    }

    #[test]
    fn containment_is_by_component() {
        let root = AbsPath::new("/ws").unwrap();
        assert!(AbsPath::new("/ws/a").unwrap().is_under(&root));
        assert!(AbsPath::new("/ws").unwrap().is_under(&root));
        assert!(!AbsPath::new("/ws-evil/a").unwrap().is_under(&root));
        assert!(!AbsPath::new("/w").unwrap().is_under(&root));
    }

    #[test]
    fn a_relative_path_is_refused() {
        assert_eq!(AbsPath::new("a/b").unwrap_err().to_string(), "`a/b` is not an absolute path");
    }
}
