//! The files that set values, so that a hint names the file to edit and a message the right author.

use crate::raw::Layer;
use std::collections::BTreeMap;
use std::fmt;

/// Where a value is set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingPlace {
    /// The layer of the file.
    pub layer: Layer,
    /// The file; none for options of the command line.
    pub file: Option<String>,
    /// The line, from 1, if known.
    pub line: Option<usize>,
}

impl SettingPlace {
    /// Creates the place of a value in a layer, or in a line of a file.
    pub fn new(layer: Layer, file: Option<String>, line: Option<usize>) -> Self {
        Self { layer, file, line }
    }
}

impl fmt::Display for SettingPlace {
    /// Formats as `file:line`, or as the layer if there is no file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}"),
            (Some(file), None) => write!(f, "{file}"),
            (None, _) => write!(f, "{} settings", self.layer),
        }
    }
}

/// Where values are set, by key; an entry of a list has the key `list.entry`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingPlaces {
    places: BTreeMap<String, SettingPlace>,
}

impl SettingPlaces {
    /// Adds the place of a key, unless it has one: the strongest file comes first.
    pub fn insert(&mut self, key: impl Into<String>, place: SettingPlace) {
        self.places.entry(key.into()).or_insert(place);
    }

    /// Forgets the place of a key that something stronger than files sets.
    pub fn remove(&mut self, key: &str) {
        self.places.remove(key);
    }

    /// Where a key is set, if that is known.
    pub fn get(&self, key: &str) -> Option<&SettingPlace> {
        self.places.get(key)
    }

    /// ` in FILE:LINE` for the end of a sentence; empty if the place is not known.
    pub fn clause(&self, key: &str) -> String {
        self.get(key).map(|place| format!(" in {place}")).unwrap_or_default()
    }
}
