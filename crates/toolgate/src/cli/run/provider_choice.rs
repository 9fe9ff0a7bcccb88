//! Which model provider to use, by the environment.

use super::super::CliError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use toolgate::ProviderApi;
use toolgate::agent::provider::{CredentialHelper, ProviderConfig, ProviderCredential, SecretText};

/// Where the official services are.
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
/// The same of OpenAI.
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// The models to use where none is named.
const DEFAULT_ANTHROPIC_MODEL: &str = "claude-sonnet-4-5";
/// The same of OpenAI.
const DEFAULT_OPENAI_MODEL: &str = "gpt-5";

/// Short names of models.
const MODEL_ALIASES: &[(&str, &str)] =
    &[("sonnet", "claude-sonnet-4-5"), ("opus", "claude-opus-4-5"), ("haiku", "claude-haiku-4-5")];

/// A provider and how it was found.
pub(crate) struct ProviderChoice {
    /// The provider.
    pub(crate) config: ProviderConfig,
    /// Where the key comes from, for hosts: the name of a variable, or `none`.
    pub(crate) key_source: &'static str,
    /// The model to use where none is named; absent for a server of which it is not known.
    default_model: Option<String>,
}

impl ProviderChoice {
    /// Chooses by the environment. A helper brings the key of the Messages API where the environment has none.
    pub(crate) fn from_env(
        env: &BTreeMap<String, String>,
        helper: Option<Arc<dyn CredentialHelper>>,
    ) -> Result<Self, CliError> {
        let value = |name: &str| env.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let api = match value("TOOLGATE_MODEL_API") {
            Some("anthropic") => ProviderApi::Anthropic,
            Some("chat") => ProviderApi::OpenAiChat,
            Some("responses") => ProviderApi::OpenAiResponses,
            Some(other) => {
                return Err(CliError::Usage(format!(
                    "unknown TOOLGATE_MODEL_API `{other}`; use anthropic, chat or responses"
                )));
            }
            // A server that is named is meant; most servers other than OpenAI's own speak only chat completions.
            None if value("OPENAI_BASE_URL").is_some() => ProviderApi::OpenAiChat,
            None if ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]
                .iter()
                .any(|name| value(name).is_some()) =>
            {
                ProviderApi::Anthropic
            }
            None if value("OPENAI_API_KEY").is_some() => ProviderApi::OpenAiResponses,
            None if helper.is_some() => ProviderApi::Anthropic,
            None => {
                return Err(CliError::Usage(
                    "no model is configured; set ANTHROPIC_API_KEY or OPENAI_API_KEY, or \
                     OPENAI_BASE_URL=http://localhost:11434/v1 for a server on this machine"
                        .to_owned(),
                ));
            }
        };
        let mut choice = match api {
            ProviderApi::OpenAiChat | ProviderApi::OpenAiResponses => Self::openai(api, &value),
            _ => Self::anthropic(&value),
        };
        if let (ProviderCredential::Absent, Some(helper)) = (&choice.config.credential, helper) {
            (choice.config.credential, choice.key_source) =
                (ProviderCredential::Helper(helper), "apiKeyHelper");
        }
        choice.apply_limits(&value)?;
        Ok(choice)
    }

    /// A provider of the Messages API.
    fn anthropic<'a>(value: &impl Fn(&str) -> Option<&'a str>) -> Self {
        let base = value("ANTHROPIC_BASE_URL").unwrap_or(ANTHROPIC_URL).trim_end_matches('/');
        let (credential, key_source) = match (value("ANTHROPIC_AUTH_TOKEN"), value("ANTHROPIC_API_KEY")) {
            (Some(token), _) => (ProviderCredential::Bearer(SecretText::new(token)), "ANTHROPIC_AUTH_TOKEN"),
            (None, Some(key)) => (ProviderCredential::ApiKey(SecretText::new(key)), "ANTHROPIC_API_KEY"),
            (None, None) => (ProviderCredential::Absent, "none"),
        };
        Self {
            config: ProviderConfig::new(ProviderApi::Anthropic, format!("{base}/v1"), credential),
            key_source,
            default_model: Some(value("ANTHROPIC_MODEL").unwrap_or(DEFAULT_ANTHROPIC_MODEL).to_owned()),
        }
    }

    /// A provider of one of OpenAI's APIs.
    fn openai<'a>(api: ProviderApi, value: &impl Fn(&str) -> Option<&'a str>) -> Self {
        let base = value("OPENAI_BASE_URL");
        let (credential, key_source) = match value("OPENAI_API_KEY") {
            Some(key) => (ProviderCredential::Bearer(SecretText::new(key)), "OPENAI_API_KEY"),
            None => (ProviderCredential::Absent, "none"),
        };
        let official = base.is_none().then_some(DEFAULT_OPENAI_MODEL);
        Self {
            config: ProviderConfig::new(api, base.unwrap_or(OPENAI_URL), credential),
            key_source,
            default_model: value("OPENAI_MODEL").or(official).map(str::to_owned),
        }
    }

    /// Retries and silence, where the environment says so.
    fn apply_limits<'a>(&mut self, value: &impl Fn(&str) -> Option<&'a str>) -> Result<(), CliError> {
        let number = |name: &str| match value(name) {
            None => Ok(None),
            Some(text) => text
                .trim()
                .parse::<u64>()
                .map(Some)
                .map_err(|_| CliError::Usage(format!("invalid {name} `{text}`; give a whole number"))),
        };
        if let Some(retries) = number("CLAUDE_CODE_MAX_RETRIES")? {
            self.config.retry.max_retries = u32::try_from(retries).unwrap_or(u32::MAX);
        }
        if let Some(millis) = number("API_TIMEOUT_MS")? {
            self.config.idle_timeout = self.config.idle_timeout.min(Duration::from_millis(millis.max(1)));
        }
        if let Some(millis) = number("TOOLGATE_STREAM_IDLE_MS")? {
            self.config.idle_timeout = Duration::from_millis(millis.max(1));
        }
        Ok(())
    }

    /// The model for a name or an alias.
    pub(crate) fn model(&self, named: Option<&str>) -> Result<String, CliError> {
        let Some(named) = named.filter(|name| !matches!(*name, "" | "default")) else {
            return self.default_model.clone().ok_or_else(|| {
                CliError::Usage(
                    "which model should answer is not known; give --model, or set OPENAI_MODEL".to_owned(),
                )
            });
        };
        let alias = MODEL_ALIASES.iter().find(|(alias, _)| *alias == named).map(|(_, model)| *model);
        Ok(alias.unwrap_or(named).to_owned())
    }

    /// What the short names in files of agents and skills mean: at a provider that has none of these models, the one of the
    /// run.
    pub(crate) fn model_aliases(&self, model: &str) -> BTreeMap<String, String> {
        let meaning = |own: &'static str| match self.config.api {
            ProviderApi::Anthropic => own.to_owned(),
            _ => model.to_owned(),
        };
        MODEL_ALIASES.iter().map(|(alias, own)| ((*alias).to_owned(), meaning(own))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(pairs: &[(&str, &str)]) -> Result<ProviderChoice, CliError> {
        let env = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ProviderChoice::from_env(&env, None)
    }

    #[test]
    fn the_provider_follows_from_the_environment() {
        for (env, api, url) in [
            (vec![("ANTHROPIC_API_KEY", "k")], ProviderApi::Anthropic, "https://api.anthropic.com/v1"),
            (vec![("OPENAI_API_KEY", "k")], ProviderApi::OpenAiResponses, OPENAI_URL),
            (
                vec![("ANTHROPIC_API_KEY", "k"), ("OPENAI_BASE_URL", "http://localhost:1/v1/")],
                ProviderApi::OpenAiChat,
                "http://localhost:1/v1",
            ),
            (
                vec![("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "")],
                ProviderApi::Anthropic,
                "https://api.anthropic.com/v1",
            ),
            (vec![("TOOLGATE_MODEL_API", "responses")], ProviderApi::OpenAiResponses, OPENAI_URL),
        ] {
            let choice = choose(&env).ok().unwrap();
            assert_eq!((choice.config.api, choice.config.base_url.as_str()), (api, url), "{env:?}");
        }
        assert!(choose(&[]).is_err());
        assert!(choose(&[("TOOLGATE_MODEL_API", "gemini")]).is_err());
        assert!(choose(&[("OPENAI_BASE_URL", "http://x")]).ok().unwrap().model(None).is_err());
        assert_eq!(
            choose(&[("OPENAI_API_KEY", "k")]).ok().unwrap().model(Some("haiku")).ok().unwrap(),
            "claude-haiku-4-5"
        );
    }
}
