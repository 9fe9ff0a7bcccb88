//! Positions: what people write (line and column from 1, columns in characters), and what servers speak (from 0, columns
//! in UTF-8, UTF-16 or UTF-32 units).

use gen_lsp_types::{Position, PositionEncodingKind, Range};

/// The unit of the columns of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnUnit {
    /// Bytes of UTF-8.
    Utf8,
    /// Units of UTF-16; what a server speaks that says nothing.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl ColumnUnit {
    /// The unit that a server chose.
    pub(crate) fn negotiated(chosen: Option<&PositionEncodingKind>) -> Self {
        match chosen {
            Some(PositionEncodingKind::UTF8) => Self::Utf8,
            Some(PositionEncodingKind::UTF32) => Self::Utf32,
            Some(PositionEncodingKind::UTF16 | PositionEncodingKind::Custom(_)) | None => Self::Utf16,
        }
    }

    /// The length of a character.
    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// The name, for `toolgate lsp`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }
}

/// The text of a file with the offsets of its lines. Lines end at LF, CRLF or CR, as the protocol says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentText {
    text: String,
    /// The offset of the first byte of each line.
    starts: Vec<usize>,
}

impl DocumentText {
    /// Finds the lines of a text.
    pub fn new(text: String) -> Self {
        let mut starts = vec![0];
        let bytes = text.as_bytes();
        for (offset, byte) in bytes.iter().enumerate() {
            let ends = *byte == b'\n' || (*byte == b'\r' && bytes.get(offset + 1) != Some(&b'\n'));
            if ends {
                starts.push(offset + 1);
            }
        }
        Self { text, starts }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of lines; a text that ends with a line break has an empty last line.
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// A line without its line break, counted from 0.
    pub fn line(&self, line: usize) -> Option<&str> {
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).map(|text| text.trim_end_matches(['\r', '\n']))
    }

    /// The position of a line and a column in characters, both counted from 0.
    /// The column may be the end of the line, and no further.
    pub fn position(&self, line: usize, column: usize, unit: ColumnUnit) -> Option<Position> {
        let text = self.line(line)?;
        let mut units = 0;
        let mut characters = text.chars();
        for _ in 0..column {
            units += unit.width(characters.next()?);
        }
        Some(Position { line: u32::try_from(line).ok()?, character: u32::try_from(units).ok()? })
    }

    /// The line and the column in characters of a position, both counted from 0. A column past the end of the line is
    /// its end, as the protocol says; one inside a character is its start.
    pub fn character_position(&self, position: Position, unit: ColumnUnit) -> Option<(usize, usize)> {
        let line = usize::try_from(position.line).ok()?;
        let text = self.line(line)?;
        let wanted = usize::try_from(position.character).ok()?;
        let mut units = 0;
        let mut column = 0;
        for character in text.chars() {
            units += unit.width(character);
            if units > wanted {
                break;
            }
            column += 1;
        }
        Some((line, column))
    }

    /// The byte offset of a position. The position after the last line is the end of the text.
    pub fn offset(&self, position: Position, unit: ColumnUnit) -> Option<usize> {
        let line = usize::try_from(position.line).ok()?;
        if line == self.starts.len() && position.character == 0 {
            return Some(self.text.len());
        }
        let start = *self.starts.get(line)?;
        let wanted = usize::try_from(position.character).ok()?;
        let (mut units, mut bytes) = (0, 0);
        for character in self.line(line)?.chars() {
            units += unit.width(character);
            if units > wanted {
                break;
            }
            bytes += character.len_utf8();
        }
        Some(start + bytes)
    }

    /// The byte offsets of a range; `None` if it lies outside the text or ends before it starts.
    pub fn offsets(&self, range: &Range, unit: ColumnUnit) -> Option<std::ops::Range<usize>> {
        let (start, end) = (self.offset(range.start, unit)?, self.offset(range.end, unit)?);
        (start <= end).then_some(start..end)
    }

    /// The column of a name on a line, both counted from 0. The name must stand alone: `sum` is not found in `summary`.
    /// Of several, the first.
    pub fn find_symbol(&self, line: usize, name: &str) -> Option<usize> {
        let text = self.line(line)?;
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let mut column = 0;
        let mut rest = text;
        let mut before = None;
        while !rest.is_empty() && !name.is_empty() {
            if let Some(after) = rest.strip_prefix(name) {
                let starts_word = name.starts_with(is_word) && before.is_some_and(is_word);
                let ends_word = name.ends_with(is_word) && after.starts_with(is_word);
                if !starts_word && !ends_word {
                    return Some(column);
                }
            }
            let mut characters = rest.chars();
            before = characters.next();
            rest = characters.as_str();
            column += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_position_is_found_again_in_every_unit(text in "[a-zé😀\n\r]{0,40}", line in 0_usize..6, column in 0_usize..10) {
            let index = DocumentText::new(text);
            for unit in [ColumnUnit::Utf8, ColumnUnit::Utf16, ColumnUnit::Utf32] {
                let Some(position) = index.position(line, column, unit) else { continue };
                prop_assert_eq!(index.character_position(position, unit), Some((line, column)));
                let offset = index.offset(position, unit).unwrap();
                let before = index.text().get(..offset).unwrap();
                let starts = index.starts[line];
                prop_assert_eq!(before.get(starts..).unwrap().chars().count(), column);
            }
        }

        #[test]
        fn any_position_is_answered_without_a_panic(text in "\\PC{0,30}", line in any::<u32>(), character in any::<u32>()) {
            let index = DocumentText::new(text);
            for unit in [ColumnUnit::Utf8, ColumnUnit::Utf16, ColumnUnit::Utf32] {
                let position = Position { line, character };
                if let Some(offset) = index.offset(position, unit) {
                    prop_assert!(index.text().is_char_boundary(offset));
                }
                let _ = index.character_position(position, unit);
            }
        }
    }

    #[test]
    fn columns_after_an_emoji_differ_by_unit() {
        let index = DocumentText::new("a\r\nlet s = '😀'; square(2)\r\n".to_owned());
        let column = index.find_symbol(1, "square").unwrap();
        let at = |unit| index.position(1, column, unit).unwrap().character;
        assert_eq!((at(ColumnUnit::Utf8), at(ColumnUnit::Utf16), at(ColumnUnit::Utf32)), (16, 14, 13));
        assert_eq!(index.line_count(), 3);
        assert_eq!(index.position(1, 99, ColumnUnit::Utf16), None);
        assert_eq!(index.find_symbol(1, "squ"), None);
        assert_eq!(index.find_symbol(1, "("), Some(column + 6));
    }
}
