//! Mutates lines of the corpus: tokens are spliced, deleted, duplicated and exchanged.

use super::super::random_numbers::SeededRandom;
use super::generate;
use serde_json::Value;

/// The lines of the corpus as tokens.
pub(crate) struct Corpus {
    /// The tokens of each line.
    pub(crate) lines: Vec<Vec<String>>,
}

impl Corpus {
    /// Reads the corpus.
    pub(crate) fn load() -> Self {
        let texts =
            [include_str!("../../corpus/shell.jsonl"), include_str!("../../corpus/shell-round2.jsonl")];
        let lines = texts
            .into_iter()
            .flat_map(str::lines)
            .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["input"].as_str().map(tokens))
            .filter(|tokens| tokens.len() < 80)
            .collect();
        Self { lines }
    }

    /// A random line.
    fn any<'a>(&'a self, random: &mut SeededRandom) -> &'a [String] {
        &self.lines[random.below(self.lines.len())]
    }

    /// A line made from one or two of the corpus.
    pub(crate) fn line(&self, random: &mut SeededRandom) -> String {
        let mut tokens = self.any(random).to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(tokens.len() + 1);
            let end = (at + 1 + random.below(3)).min(tokens.len());
            match random.below(7) {
                0 if at < end => {
                    tokens.drain(at..end);
                }
                1 if at < end => {
                    let copy = tokens[at..end].to_vec();
                    tokens.splice(at..at, copy);
                }
                2 => {
                    let other = self.any(random);
                    let from = random.below(other.len());
                    let to = (from + 1 + random.below(6)).min(other.len());
                    tokens.splice(at..at, other[from..to].to_vec());
                }
                3 if at < end => {
                    let other = self.any(random);
                    tokens.splice(at..end, [other[random.below(other.len())].clone()]);
                }
                4 => tokens.insert(at, generate::word(random, 1)),
                5 if at < end => tokens[at] = random.pick(generate::MARKERS).to_owned(),
                _ => {
                    let text = generate::damage(random, &tokens.concat());
                    tokens = self::tokens(&text);
                    if tokens.is_empty() {
                        tokens = self.any(random).to_vec();
                    }
                }
            }
        }
        tokens.concat()
    }
}

/// The tokens of a text: runs of word characters, runs of blanks, and every other character by itself.
fn tokens(text: &str) -> Vec<String> {
    let class = |character: char| match character {
        ' ' | '\t' => 0,
        _ if character.is_alphanumeric() || "-_./".contains(character) => 1,
        _ => 2,
    };
    let mut tokens: Vec<String> = Vec::new();
    let mut last = 2;
    for character in text.chars() {
        let now = class(character);
        match tokens.last_mut() {
            Some(token) if now == last && now < 2 => token.push(character),
            _ => tokens.push(character.into()),
        }
        last = now;
    }
    tokens
}
