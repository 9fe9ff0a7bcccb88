//! The format of the log: one JSON object per line, tagged by `op`.

use super::{ContentDescriptor, JournalChange, MovedChanges};
use crate::ContentHash;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use toolgate_proto::{AbsPath, CallId, SessionId};

/// The state of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// Recorded, and not known to have ended: it is in flight, or a crash interrupted it.
    Begun,
    /// Made, or redone.
    Done,
    /// Not made; the file is unchanged.
    Failed,
    /// Made and then undone.
    Undone,
}

/// One line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum JournalLine {
    /// A change is about to be made.
    Begin {
        /// The number of the change.
        id: u64,
        /// The call that makes it.
        call: CallId,
        /// The session of the call.
        session: SessionId,
        /// When, in milliseconds since 1970.
        at: u64,
        /// The real path of the file.
        path: JournalPath,
        /// The content that is displaced; `None` if the file is created.
        before: Option<JournalContent>,
        /// The new content; `None` if the file is deleted.
        after: Option<JournalContent>,
        /// The temporary name that is used in the directory of the file.
        temp: JournalPath,
        /// When it took effect, if that is not `at`: in a rewritten log, and for a change that an undo or redo makes.
        #[serde(default, skip_serializing_if = "is_zero")]
        applied: u64,
        /// The changes that an undo sets to undone while it makes this one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        undone: Vec<u64>,
        /// The changes that are set to done while this one is made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redone: Vec<u64>,
    },
    /// Changes are about to be undone or redone, all of them of one file.
    Moving {
        /// The numbers of the changes.
        ids: Vec<u64>,
        /// The state that they get: [`ChangeState::Undone`] by an undo, [`ChangeState::Done`] by a redo.
        to: ChangeState,
        /// The hash of the content that the file gets; `None` if it is deleted.
        target: Option<String>,
        /// The temporary name that is used in the directory of the file.
        temp: JournalPath,
        /// Whether the content after the changes is in the blob store now, so that a redo can restore it.
        stored: bool,
        /// When the undo or redo began, in milliseconds since 1970; the same for all files of it.
        #[serde(default)]
        at: u64,
    },
    /// Changes have got a state: what began with `Begin` or `Moving` has ended.
    State {
        /// The numbers of the changes.
        ids: Vec<u64>,
        /// Their new state.
        state: ChangeState,
        /// When the undo or redo began that this ends; 0 for the end of a change.
        #[serde(default, skip_serializing_if = "is_zero")]
        at: u64,
    },
}

fn is_zero(at: &u64) -> bool {
    *at == 0
}

/// A path or name in JSON: a string, or an array of bytes if it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum JournalPath {
    /// UTF-8, as almost every path is.
    Text(String),
    /// Any other bytes.
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

    /// The name again.
    pub(super) fn name(&self) -> OsString {
        match self {
            Self::Text(text) => OsString::from(text),
            Self::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }

    /// The absolute path; `None` if it is not absolute.
    pub(super) fn path(&self) -> Option<AbsPath> {
        AbsPath::new(self.name()).ok()
    }
}

/// A [`ContentDescriptor`] in JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JournalContent {
    /// The hash in hexadecimal digits.
    blake3: String,
    /// Uncompressed size.
    bytes: u64,
    /// Permission bits of the file; 0 if they are not known.
    mode: u32,
    /// Whether the content is in the blob store.
    stored: bool,
}

impl From<ContentDescriptor> for JournalContent {
    fn from(content: ContentDescriptor) -> Self {
        let ContentDescriptor { hash, bytes, mode, stored } = content;
        Self { blake3: hash.to_string(), bytes, mode, stored }
    }
}

impl JournalContent {
    /// The descriptor; `None` if the hash is none.
    fn parse(&self) -> Option<ContentDescriptor> {
        let hash = ContentHash::from_hex(&self.blake3)?;
        Some(ContentDescriptor { hash, bytes: self.bytes, mode: self.mode, stored: self.stored })
    }
}

/// The change that a `Begin` line describes, with its temporary name. `None` for any other line and for an invalid one.
pub(super) fn parse_begin(line: &JournalLine) -> Option<(JournalChange, OsString)> {
    let JournalLine::Begin { id, call, session, at, path, before, after, temp, applied, undone, redone } =
        line
    else {
        return None;
    };
    let parse = |content: &Option<JournalContent>| match content {
        Some(content) => content.parse().map(Some),
        None => Some(None),
    };
    let change = JournalChange {
        id: *id,
        call: call.clone(),
        session: session.clone(),
        at_millis: *at,
        applied_at_millis: if *applied == 0 { *at } else { *applied },
        moved_at_millis: 0,
        path: path.path()?,
        before: parse(before)?,
        after: parse(after)?,
        state: ChangeState::Begun,
        moved: MovedChanges { undone: undone.clone(), redone: redone.clone() },
    };
    Some((change, temp.name()))
}

/// The `Begin` line of a change that has ended, for a rewritten log. It has no temporary name any more.
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
        applied: change.applied_at_millis,
        undone: change.moved.undone.clone(),
        redone: change.moved.redone.clone(),
    }
}
