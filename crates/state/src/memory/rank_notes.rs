//! The order of notes that a search found, and the part of each that it shows.
//!
//! FTS5 finds notes and could rank them, but its `bm25` first counts every note that has each word: 10 ms for each word
//! that a hundred thousand notes have, and 200 ms to rank them. So the index hands out a bounded number of candidates,
//! the newest first, and they are ranked here.

use super::memory_store::MemoryHit;

/// The parameters of BM25, as everywhere.
const TERM_SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;
/// As how many words of a value a word of a key counts.
const KEY_WORD_COUNT: usize = 3;
/// A note in which the index sees a word that is spelled otherwise, such as with an accent, counts as having it this often.
const MIN_WORD_COUNT: f64 = 0.5;
/// Words around the first hit that a snippet shows, and of these before it.
const SNIPPET_WORD_COUNT: usize = 24;
const SNIPPET_COUNT_BEFORE: usize = 6;
/// What stands for words that are left out.
const OMISSION: &str = "…";

/// A word of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueryWord {
    /// In lower case.
    pub(super) text: String,
    /// Longer words that begin with it count as well.
    pub(super) is_prefix: bool,
    /// What a note with it gains: much for a rare word.
    pub(super) weight: f64,
}

impl QueryWord {
    /// Whether a word in lower case is meant.
    fn fits(&self, word: &str) -> bool {
        if self.is_prefix { word.starts_with(&self.text) } else { word == self.text }
    }
}

/// A note that has at least one of the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoteCandidate {
    /// Its number in the index: a newer note has a larger one.
    pub(super) id: i64,
    /// Its key.
    pub(super) key: String,
    /// Its text.
    pub(super) value: String,
}

/// The weight of a word that so many of all notes have, as in BM25.
pub(super) fn word_weight(with_word: usize, all: usize) -> f64 {
    let (with_word, all) = (with_word as f64, all.max(with_word) as f64);
    ((all - with_word + 0.5) / (with_word + 0.5) + 1.0).ln()
}

/// The best candidates, the best first; of equal ones the newest.
pub(super) fn rank_notes(
    candidates: Vec<NoteCandidate>,
    words: &[QueryWord],
    limit: usize,
) -> Vec<MemoryHit> {
    let counted: Vec<(NoteCandidate, Vec<usize>, usize)> = candidates
        .into_iter()
        .map(|note| {
            let (counts, length) = count_words(&note, words);
            (note, counts, length)
        })
        .collect();
    let total: usize = counted.iter().map(|(_, _, length)| *length).sum();
    let average = total as f64 / counted.len().max(1) as f64;
    let score = |counts: &[usize], length: usize| -> f64 {
        let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length as f64 / average.max(1.0);
        let of_word = |(word, count): (&QueryWord, &usize)| {
            let count = (*count as f64).max(MIN_WORD_COUNT);
            word.weight * count * (TERM_SATURATION + 1.0) / (count + TERM_SATURATION * length)
        };
        words.iter().zip(counts).map(of_word).sum()
    };
    let mut ranked: Vec<(f64, NoteCandidate)> =
        counted.into_iter().map(|(note, counts, length)| (score(&counts, length), note)).collect();
    ranked.sort_by(|(one, left), (two, right)| two.total_cmp(one).then(right.id.cmp(&left.id)));
    let hits = ranked.into_iter().take(limit);
    hits.map(|(_, note)| MemoryHit { snippet: cut_snippet(&note.value, words), key: note.key }).collect()
}

/// How often each word occurs in a note, and how many words the note has.
fn count_words(note: &NoteCandidate, words: &[QueryWord]) -> (Vec<usize>, usize) {
    let mut counts = vec![0; words.len()];
    let mut length = 0;
    for (text, weight) in [(&note.key, KEY_WORD_COUNT), (&note.value, 1)] {
        for word in split_words(&text.to_lowercase()) {
            length += weight;
            for (count, wanted) in counts.iter_mut().zip(words) {
                *count += if wanted.fits(word) { weight } else { 0 };
            }
        }
    }
    (counts, length)
}

/// The words of a text.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The part of a text around the first of the words; its beginning if none is in it.
fn cut_snippet(text: &str, words: &[QueryWord]) -> String {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let has_word = |part: &&str| {
        let part = part.to_lowercase();
        split_words(&part).any(|word| words.iter().any(|wanted| wanted.fits(word)))
    };
    let first = parts.iter().position(has_word).unwrap_or_default();
    let start = first.saturating_sub(SNIPPET_COUNT_BEFORE);
    let shown: Vec<&str> = parts.iter().skip(start).take(SNIPPET_WORD_COUNT).copied().collect();
    let before = if start > 0 { OMISSION } else { "" };
    let after = if start + shown.len() < parts.len() { OMISSION } else { "" };
    format!("{before}{}{after}", shown.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str, weight: f64) -> QueryWord {
        QueryWord { text: text.to_owned(), is_prefix: false, weight }
    }

    fn note(id: i64, key: &str, value: &str) -> NoteCandidate {
        NoteCandidate { id, key: key.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn keys_rare_words_and_short_notes_come_first() {
        let notes = vec![
            note(1, "a", &format!("make {}", "filler ".repeat(40))),
            note(2, "make", "it is so"),
            note(3, "b", "make it so"),
        ];
        let keys = |words: &[QueryWord]| -> Vec<String> {
            rank_notes(notes.clone(), words, 5).into_iter().map(|hit| hit.key).collect()
        };
        assert_eq!(keys(&[word("make", 1.0)]), ["make", "b", "a"]);
        assert_eq!(keys(&[word("filler", 9.0), word("make", 0.1)])[0], "a");
        assert!(word_weight(1, 1_000) > word_weight(500, 1_000) && word_weight(1_000, 10) > 0.0);
    }

    #[test]
    fn a_snippet_shows_the_words_around_a_hit() {
        let text = format!("{}the Build-command is\nmake {}", "x ".repeat(50), "y ".repeat(50));
        let snippet = cut_snippet(&text, &[word("build", 1.0)]);
        assert!(snippet.starts_with("…x x") && snippet.ends_with("y…"), "{snippet}");
        assert!(snippet.contains("the Build-command is make"), "{snippet}");
        assert_eq!(cut_snippet("short text", &[word("none", 1.0)]), "short text");
    }
}
