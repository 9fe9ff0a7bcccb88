//! A repeatable random number generator.

/// SplitMix64: the same seed gives the same sequence on every machine and in every version of our dependencies.
#[derive(Debug, Clone)]
pub(super) struct SplitMixRng {
    /// The counter that is mixed into the next number.
    state: u64,
}

impl SplitMixRng {
    /// Starts the sequence of a seed, which failure messages print for a replay.
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Advances the counter and mixes it, with the constants of the published algorithm.
    fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub(super) fn random_below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(1).max(1);
        usize::try_from(self.next_u64() % end).unwrap_or(0)
    }

    /// True once in `times` calls on average.
    pub(super) fn random_one_in(&mut self, times: usize) -> bool {
        self.random_below(times) == 0
    }

    /// One of several texts.
    pub(super) fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        let index = self.random_below(texts.len());
        texts.get(index).copied().unwrap_or_default()
    }
}
