//! Token usage and what it costs.
//!
//! The budget and the usage of a run are shared by its main loop and all subagents: [`UsageMeter`].

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Tokens of one or more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenUsage {
    /// Input tokens that were not cached.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that were written to the prompt cache.
    pub cache_creation_input_tokens: u64,
    /// Input tokens that were read from the prompt cache.
    pub cache_read_input_tokens: u64,
}

impl std::ops::Add for TokenUsage {
    type Output = Self;

    /// The sum of both.
    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens + other.input_tokens,
            output_tokens: self.output_tokens + other.output_tokens,
            cache_creation_input_tokens: self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            cache_read_input_tokens: self.cache_read_input_tokens + other.cache_read_input_tokens,
        }
    }
}

impl TokenUsage {
    /// All tokens that the model read.
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens
    }
}

/// What a model costs, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ModelPrice {
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
}

/// Published list prices by a part of the model's name; the first that fits counts.
const PRICES: &[(&str, ModelPrice)] = &[
    ("opus-4-1", ModelPrice { input: 15.0, output: 75.0 }),
    ("opus-4-2025", ModelPrice { input: 15.0, output: 75.0 }),
    ("3-opus", ModelPrice { input: 15.0, output: 75.0 }),
    ("opus", ModelPrice { input: 5.0, output: 25.0 }),
    ("sonnet", ModelPrice { input: 3.0, output: 15.0 }),
    ("3-haiku", ModelPrice { input: 0.25, output: 1.25 }),
    ("3-5-haiku", ModelPrice { input: 0.8, output: 4.0 }),
    ("haiku", ModelPrice { input: 1.0, output: 5.0 }),
    ("gpt-5-nano", ModelPrice { input: 0.05, output: 0.4 }),
    ("gpt-5-mini", ModelPrice { input: 0.25, output: 2.0 }),
    ("gpt-5", ModelPrice { input: 1.25, output: 10.0 }),
    ("gpt-4.1-nano", ModelPrice { input: 0.1, output: 0.4 }),
    ("gpt-4.1-mini", ModelPrice { input: 0.4, output: 1.6 }),
    ("gpt-4.1", ModelPrice { input: 2.0, output: 8.0 }),
    ("gpt-4o-mini", ModelPrice { input: 0.15, output: 0.6 }),
    ("gpt-4o", ModelPrice { input: 2.5, output: 10.0 }),
];

impl ModelPrice {
    /// Creates a price for input and output.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output }
    }

    /// The list price of a model; none for one that is not known, such as a local one.
    pub fn of_model(model: &str) -> Option<Self> {
        let model = model.to_ascii_lowercase();
        PRICES.iter().find(|(part, _)| model.contains(part)).map(|(_, price)| *price)
    }

    /// Parses `INPUT/OUTPUT`, such as `3/15`.
    pub fn parse(text: &str) -> Option<Self> {
        let (input, output) = text.split_once('/')?;
        let price =
            |text: &str| text.trim().parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
        Some(Self { input: price(input)?, output: price(output)? })
    }

    /// What these tokens cost. Cached input costs a tenth to read and a quarter more to write.
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    pub fn cost(&self, usage: TokenUsage) -> f64 {
        let input = usage.input_tokens as f64
            + usage.cache_read_input_tokens as f64 * 0.1
            + usage.cache_creation_input_tokens as f64 * 1.25;
        (input * self.input + usage.output_tokens as f64 * self.output) / 1_000_000.0
    }
}

/// What one model used in a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct ModelTotal {
    /// Its tokens.
    pub usage: TokenUsage,
    /// What they cost; 0 for a model without a known price.
    pub cost_usd: f64,
}

/// Counts what a run uses: its main loop and its subagents together.
#[derive(Debug, Default)]
pub struct UsageMeter {
    /// What was counted so far.
    state: Mutex<UsageMeterState>,
    /// A price for every model, in place of the list.
    price: Option<ModelPrice>,
    /// The most that the run may cost.
    max_budget_usd: Option<f64>,
}

/// What was counted so far.
#[derive(Debug, Default)]
struct UsageMeterState {
    /// The totals of each model.
    models: BTreeMap<String, ModelTotal>,
    /// How long models took in all.
    api_time: Duration,
    /// What the answers under way have cost so far, by their number: a subagent that an answer starts must not spend
    /// what that answer has used up.
    open: BTreeMap<u64, f64>,
    /// The number of the next answer.
    next_answer: u64,
}

/// An answer under way. What it has cost so far counts against the budget until it is dropped or added.
#[derive(Debug)]
pub(crate) struct OpenAnswer {
    /// Where it is counted.
    meter: Arc<UsageMeter>,
    number: u64,
}

impl OpenAnswer {
    /// Sets what the answer has used so far.
    pub(crate) fn set(&self, model: &str, usage: TokenUsage) {
        let cost = self.meter.price(model).map_or(0.0, |price| price.cost(usage));
        self.meter.lock().open.insert(self.number, cost);
    }
}

impl Drop for OpenAnswer {
    /// From here on the answer itself is counted.
    fn drop(&mut self) {
        self.meter.lock().open.remove(&self.number);
    }
}

impl UsageMeter {
    /// A meter with an optional price for every model and an optional budget.
    pub fn new(price: Option<ModelPrice>, max_budget_usd: Option<f64>) -> Self {
        Self { state: Mutex::default(), price, max_budget_usd }
    }

    /// Whether a budget can be kept with this model: its price must be known.
    pub fn can_price(&self, model: &str) -> bool {
        self.max_budget_usd.is_none() || self.price(model).is_some()
    }

    /// The price of a model.
    fn price(&self, model: &str) -> Option<ModelPrice> {
        self.price.or_else(|| ModelPrice::of_model(model))
    }

    /// What tokens of a model would cost, and where the price is from: `configured`, `catalog`, or `default` for a model
    /// without a known price, which counts as free.
    pub(crate) fn estimate_cost(&self, model: &str, usage: TokenUsage) -> (f64, &'static str) {
        let source = match (self.price, ModelPrice::of_model(model)) {
            (Some(_), _) => "configured",
            (None, Some(_)) => "catalog",
            (None, None) => "default",
        };
        (self.price(model).map_or(0.0, |price| price.cost(usage)), source)
    }

    /// An answer begins.
    pub(crate) fn begin_answer(self: &Arc<Self>) -> OpenAnswer {
        let mut state = self.lock();
        state.next_answer += 1;
        OpenAnswer { meter: Arc::clone(self), number: state.next_answer }
    }

    /// Adds one response.
    pub fn add(&self, model: &str, usage: TokenUsage, api_time: Duration) {
        let price = self.price(model);
        let mut state = self.lock();
        state.api_time += api_time;
        let total = state.models.entry(model.to_owned()).or_default();
        total.usage = total.usage + usage;
        total.cost_usd += price.map_or(0.0, |price| price.cost(usage));
    }

    /// What each model used.
    pub fn models(&self) -> BTreeMap<String, ModelTotal> {
        self.lock().models.clone()
    }

    /// What the run has cost.
    pub fn total_cost_usd(&self) -> f64 {
        self.lock().models.values().map(|total| total.cost_usd).sum()
    }

    /// How long models took.
    pub fn api_time(&self) -> Duration {
        self.lock().api_time
    }

    /// The budget, if it is used up. No further request may be made then, and no subagent started.
    pub fn exhausted_budget(&self) -> Option<f64> {
        let open: f64 = self.lock().open.values().sum();
        self.max_budget_usd.filter(|budget| self.total_cost_usd() + open >= *budget)
    }

    /// The counts; adding to them cannot fail halfway.
    fn lock(&self) -> MutexGuard<'_, UsageMeterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_counts_all_models_together_and_needs_a_price() {
        let meter = UsageMeter::new(None, Some(0.01));
        assert!(meter.can_price("claude-sonnet-5") && !meter.can_price("my-local-model"));
        let usage = TokenUsage { input_tokens: 1_000, output_tokens: 200, ..TokenUsage::default() };
        meter.add("claude-sonnet-5", usage, Duration::ZERO);
        assert!((meter.total_cost_usd() - 0.006).abs() < 1e-9);
        assert_eq!(meter.exhausted_budget(), None);
        meter.add("claude-haiku-4-5", TokenUsage { output_tokens: 1_000, ..usage }, Duration::ZERO);
        assert_eq!(meter.exhausted_budget(), Some(0.01));
        let meter = Arc::new(UsageMeter::new(None, Some(0.01)));
        let open = meter.begin_answer();
        open.set("claude-sonnet-5", TokenUsage { input_tokens: 10_000, ..TokenUsage::default() });
        assert_eq!(meter.exhausted_budget(), Some(0.01), "an answer under way counts");
        drop(open);
        assert_eq!(meter.exhausted_budget(), None);
        assert_eq!(ModelPrice::parse("3/15"), ModelPrice::of_model("sonnet"));
        assert_eq!(ModelPrice::parse("3"), None);
        assert_eq!(ModelPrice::parse("-1/2"), None);
    }
}
