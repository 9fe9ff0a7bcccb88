//! Another model for the session, with the hooks before and after the change.

use crate::agent_hook::AgentHookEvent;
use crate::agent_loop::AgentLoop;
use crate::conversation::text_block;
use crate::token_usage::TokenUsage;
use serde_json::{Map, Value, json};

/// How long the prompt cache of the Messages API lasts with the breakpoints that requests have.
const CACHE_LIFETIME: &str = "5m";

impl AgentLoop {
    /// Changes the model from the next request on. `requested` is what was asked for, such as an alias; `source` says who
    /// asked, such as `sdk`. The error is the reason of a hook that refused the change.
    pub async fn switch_model(
        &self,
        model: &str,
        requested: Option<&str>,
        source: &'static str,
    ) -> Result<(), String> {
        let fields = self.describe_switch(model, requested, source);
        let answer = self.run_hooks(AgentHookEvent::PreModelSwitch, fields.clone()).await;
        if let Some(reason) = answer.stop.or(answer.block) {
            return Err(format!("a hook refused the change of the model: {reason}"));
        }
        self.update_settings(|settings| model.clone_into(&mut settings.model));
        let answer = self.run_hooks(AgentHookEvent::PostModelSwitch, fields).await;
        self.attach(answer.context.map(text_block).into_iter().collect());
        Ok(())
    }

    /// The fields of both events.
    fn describe_switch(
        &self,
        model: &str,
        requested: Option<&str>,
        source: &'static str,
    ) -> Map<String, Value> {
        let usage = self.context_usage();
        let context_tokens = usage.context_tokens() + usage.output_tokens;
        let written = TokenUsage { cache_creation_input_tokens: context_tokens, ..TokenUsage::default() };
        let (cost, pricing) = self.meter.estimate_cost(model, written);
        let fields = json!({
            "from_model": self.settings().model,
            "to_model": model,
            "requested_model": requested,
            "source": source,
            "context_tokens": context_tokens,
            "prompt_cache_warm": context_tokens > 0,
            "cache_ttl": CACHE_LIFETIME,
            "estimated_cache_write_usd": cost,
            "pricing": pricing,
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}
