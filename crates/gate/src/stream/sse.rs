//! A decoder of server-sent events, from bytes that are split anywhere: in a line, in its end, in a character.

/// A larger event is an error.
const MAX_SSE_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// Decodes bytes into events.
#[derive(Debug, Default)]
pub struct SseReader {
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    /// The data of the event that is not ended yet. Its memory is used again for the next event.
    data: String,
    /// Whether the event has data, which may be empty.
    has_data: bool,
    /// The last byte was a carriage return: a line feed right after it ends nothing.
    after_return: bool,
    started: bool,
}

/// An event exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEventTooLong;

impl SseReader {
    /// Takes more bytes, and hands each event's data to `take` as it is complete.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str)) -> Result<(), SseEventTooLong> {
        let mut rest = bytes;
        loop {
            if let Some(first) = rest.first()
                && std::mem::take(&mut self.after_return)
                && *first == b'\n'
            {
                rest = rest.get(1..).unwrap_or_default();
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                let held = self.line.len() + self.data.len();
                return if held > MAX_SSE_EVENT_BYTES { Err(SseEventTooLong) } else { Ok(()) };
            };
            let line = rest.get(..end).unwrap_or_default();
            self.after_return = rest.get(end) == Some(&b'\r');
            rest = rest.get(end + 1..).unwrap_or_default();
            if self.line.is_empty() {
                // The whole line is in these bytes, as nearly every line of a fast stream: it is read where it is.
                self.end_line(line, &mut take);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.end_line(&whole, &mut take);
            }
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Handles a complete line: data is collected, and an empty line ends the event.
    fn end_line(&mut self, line: &[u8], take: &mut impl FnMut(&str)) {
        let text = String::from_utf8_lossy(line);
        let mut text: &str = &text;
        if !std::mem::replace(&mut self.started, true) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        if text.is_empty() {
            if std::mem::take(&mut self.has_data) {
                take(&self.data);
                self.data.clear();
            }
            return;
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        // The event's name is repeated inside its data by every provider, so only the data counts.
        if field == "data" {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push('\n');
            }
            self.data.push_str(value.strip_prefix(' ').unwrap_or(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        for chunk in chunks {
            reader.push(chunk, |data| events.push(data.to_owned())).unwrap();
        }
        events
    }

    #[test]
    fn lines_end_in_any_of_three_ways_and_unended_events_are_none() {
        for (text, wanted) in [
            ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", vec!["a", "b"]),
            ("data: a\r\rdata: b\r\r", vec!["a", "b"]),
            ("\u{feff}data:a\ndata: b\n\n", vec!["a\nb"]),
            (": comment\nevent: x\nid: 1\nretry: 5\n\ndata\n\n", vec![""]),
            ("data: whole\n\ndata: cut off\n", vec!["whole"]),
            ("data: whole\n\ndata: cut off", vec!["whole"]),
        ] {
            assert_eq!(read(&[text.as_bytes()]), wanted, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            text in r"(data: ?[aé\u{1F600}]{0,3}(\n|\r\n|\r)|\n|\r\n|\r|: x\n){0,12}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let chunks: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&chunks), read(&[bytes]));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(read(&single), read(&[bytes]));
        }
    }
}
