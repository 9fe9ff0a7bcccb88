//! The documents that are open at a server: their versions, and which of them changed on disk.

use std::collections::HashMap;
use tokio::time::Instant;
use toolgate_files::{ContentHash, FileWatcher};
use toolgate_proto::AbsPath;

/// Documents that are open at once; the one that was used longest ago is closed for another.
const MAX_OPEN_DOCUMENTS: usize = 1_000;

/// A document that is open at a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenDocument {
    /// Counts what was sent of it.
    pub(crate) version: i32,
    /// When the last version was sent.
    pub(crate) sent: Instant,
    /// The text that was sent.
    hash: ContentHash,
    /// Grows with each use; the smallest was used longest ago.
    used: u64,
}

/// What has to be sent so that a server has the text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentSync {
    /// It has it.
    Current,
    /// It must be opened.
    Open,
    /// Its text must be replaced, by this version.
    Change(i32),
}

/// The open documents of one server.
#[derive(Default)]
pub(crate) struct OpenDocuments {
    /// By real path.
    documents: HashMap<AbsPath, OpenDocument>,
    /// Counts uses.
    uses: u64,
    /// Tells which of them other programs changed; `None` where the system has no watcher.
    watcher: Option<FileWatcher>,
}

impl OpenDocuments {
    /// No documents yet, and a watcher for those to come.
    pub(crate) fn new() -> Self {
        Self { watcher: FileWatcher::new().ok(), ..Self::default() }
    }

    /// Notes that a server gets this text of a file, and says how.
    pub(crate) fn sync(&mut self, path: &AbsPath, text: &str) -> (DocumentSync, OpenDocument) {
        self.uses += 1;
        let hash = ContentHash::of(text.as_bytes());
        let used = self.uses;
        match self.documents.get_mut(path) {
            Some(document) if document.hash == hash => {
                document.used = used;
                (DocumentSync::Current, *document)
            }
            Some(document) => {
                let version = document.version.wrapping_add(1);
                *document = OpenDocument { version, sent: Instant::now(), hash, used };
                (DocumentSync::Change(version), *document)
            }
            None => {
                let document = OpenDocument { version: 1, sent: Instant::now(), hash, used };
                self.documents.insert(path.clone(), document);
                if let Some(watcher) = &self.watcher {
                    watcher.watch(path);
                }
                (DocumentSync::Open, document)
            }
        }
    }

    /// Takes a document over the limit, which must be closed.
    pub(crate) fn take_surplus(&mut self) -> Option<AbsPath> {
        if self.documents.len() <= MAX_OPEN_DOCUMENTS {
            return None;
        }
        let oldest = self.documents.iter().min_by_key(|(_, document)| document.used)?.0.clone();
        self.documents.remove(&oldest);
        Some(oldest)
    }

    /// What the server has of a file.
    pub(crate) fn get(&self, path: &AbsPath) -> Option<OpenDocument> {
        self.documents.get(path).copied()
    }

    /// Forgets a document. False if it was not open.
    pub(crate) fn remove(&mut self, path: &AbsPath) -> bool {
        self.documents.remove(path).is_some()
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    /// The open documents whose files may have changed since they were sent.
    pub(crate) fn take_changed(&mut self) -> Vec<AbsPath> {
        if self.documents.is_empty() {
            return Vec::new();
        }
        match &self.watcher {
            Some(watcher) => {
                let changed = watcher.take_settled(std::time::Duration::ZERO);
                changed.into_iter().filter(|path| self.documents.contains_key(path)).collect()
            }
            None => self.documents.keys().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_text_is_sent_once_and_the_least_used_document_is_closed() {
        let mut documents = OpenDocuments::default();
        let path = |index: usize| AbsPath::root().join(index.to_string());
        assert_eq!(documents.sync(&path(0), "a").0, DocumentSync::Open);
        assert_eq!(documents.sync(&path(0), "a").0, DocumentSync::Current);
        assert_eq!(documents.sync(&path(0), "b").0, DocumentSync::Change(2));
        for index in 1..=MAX_OPEN_DOCUMENTS {
            documents.sync(&path(index), "a");
        }
        documents.sync(&path(0), "b");
        assert_eq!(documents.take_surplus(), Some(path(1)));
        assert_eq!(documents.take_surplus(), None);
        assert_eq!(documents.len(), MAX_OPEN_DOCUMENTS);
    }
}
