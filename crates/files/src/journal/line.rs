//! The lines of the journal.

use super::{ContentDescriptor, JournalChange};
use crate::ContentHash;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use toolgate_proto::{AbsPath, CallId, SessionId};

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// Announced. Only a crash leaves it so.
    Begun,
    /// Made.
    Done,
    /// Not made.
    Failed,
    /// Made, and undone.
    Undone,
}

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum JournalLine {
    /// A change is about to be made.
    Begin {
        id: u64,
        call: CallId,
        session: SessionId,
        at: u64,
        path: JournalPath,
        before: Option<JournalContent>,
        after: Option<JournalContent>,
        temp: JournalPath,
    },
    /// Changes are about to be undone or redone, all of them of one file.
    Moving {
        ids: Vec<u64>,
        /// What they will be afterwards.
        to: ChangeState,
        /// What the file will hold then.
        target: Option<String>,
        temp: JournalPath,
        /// What the changes made is now in the blobs as well.
        stored: bool,
        /// When the undo or redo began that this is a part of.
        #[serde(default)]
        at: u64,
    },
    /// So it is.
    State {
        ids: Vec<u64>,
        state: ChangeState,
        /// When the undo or redo began that made it so; 0 where none did.
        #[serde(default, skip_serializing_if = "is_zero")]
        at: u64,
    },
}

fn is_zero(at: &u64) -> bool {
    *at == 0
}

/// A path, also one that is no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum JournalPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl JournalPath {
    pub(super) fn of(path: &AbsPath) -> Self {
        Self::of_name(path.as_path().as_os_str())
    }

    pub(super) fn of_name(name: &OsStr) -> Self {
        match name.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(name.as_bytes().to_vec()),
        }
    }

    pub(super) fn name(&self) -> OsString {
        match self {
            Self::Text(text) => OsString::from(text),
            Self::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }

    pub(super) fn path(&self) -> Option<AbsPath> {
        AbsPath::new(self.name()).ok()
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JournalContent {
    blake3: String,
    bytes: u64,
    mode: u32,
    stored: bool,
}

impl From<ContentDescriptor> for JournalContent {
    fn from(kept: ContentDescriptor) -> Self {
        Self { blake3: kept.hash.to_string(), bytes: kept.bytes, mode: kept.mode, stored: kept.stored }
    }
}

impl JournalContent {
    fn parse(&self) -> Option<ContentDescriptor> {
        let hash = ContentHash::from_hex(&self.blake3)?;
        Some(ContentDescriptor { hash, bytes: self.bytes, mode: self.mode, stored: self.stored })
    }
}

/// A change as a line told it, with the temporary name it used. `None` where the line makes no sense.
pub(super) fn parse_begin(line: &JournalLine) -> Option<(JournalChange, OsString)> {
    let JournalLine::Begin { id, call, session, at, path, before, after, temp } = line else { return None };
    let read = |kept: &Option<JournalContent>| match kept {
        Some(kept) => kept.parse().map(Some),
        None => Some(None),
    };
    let change = JournalChange {
        id: *id,
        call: call.clone(),
        session: session.clone(),
        at_millis: *at,
        moved_at_millis: 0,
        path: path.path()?,
        before: read(before)?,
        after: read(after)?,
        state: ChangeState::Begun,
    };
    Some((change, temp.name()))
}

pub(super) fn to_begin_line(change: &JournalChange) -> JournalLine {
    JournalLine::Begin {
        id: change.id,
        call: change.call.clone(),
        session: change.session.clone(),
        at: change.at_millis,
        path: JournalPath::of(&change.path),
        before: change.before.map(Into::into),
        after: change.after.map(Into::into),
        temp: JournalPath::Text(String::new()),
    }
}
