//! Reproducible random numbers: the same seed gives the same cases.

/// A random number generator (xorshift).
pub(crate) struct SeededRandom {
    /// The state of the generator; never zero.
    state: u64,
    /// Generators leave out constructs that the analysis never allows, so that more lines are run.
    pub(crate) tame: bool,
}

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, tame: false }
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }

    /// True once in `sides` times on average.
    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    /// One word of a text.
    pub(crate) fn word<'a>(&mut self, from: &'a str) -> &'a str {
        let words: Vec<&str> = from.split_whitespace().collect();
        self.pick(&words)
    }

    /// One element of a list.
    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// A number from an environment variable, for longer runs than the default.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
