//! What os found out about the paths of an intent, before judgement.
//! The types live in proto, because os makes them and policy reads them, and the two do not know each other.

pub use toolgate_proto::{EntryKind, PathFact, PathFacts, Workspace};
