//! Chance that can be repeated: the same seed gives the same cases.

/// A small generator of random numbers.
pub(crate) struct Dice {
    state: u64,
    /// Leave out what the analysis always refuses, so that more lines are put to the test.
    pub(crate) tame: bool,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, tame: false }
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }

    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    /// One of the words of a text.
    pub(crate) fn word<'a>(&mut self, from: &'a str) -> &'a str {
        let words: Vec<&str> = from.split_whitespace().collect();
        self.pick(&words)
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// A number from the environment, for longer runs than the everyday one.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
