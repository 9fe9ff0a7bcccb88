//! Rules files of Codex: a file that is translated gives settings that can be used.

use serde_json::Value;
use toolgate_policy::codex::translate;
use toolgate_policy::{Layer, LayerRules, ProblemSeverity, RawPolicy, RawRule};
use toolgate_proto::AbsPath;

/// Checks a rules file.
pub(crate) fn check(text: &str) {
    let Ok(translation) = translate(text) else { return };
    let list = |name: &str| -> Vec<RawRule> {
        let rules = translation.settings.pointer(&format!("/permissions/{name}")).and_then(Value::as_array);
        rules.into_iter().flatten().filter_map(Value::as_str).map(RawRule::from).collect()
    };
    let mut layer = LayerRules::new(Layer::Project, AbsPath::root());
    (layer.allow, layer.ask, layer.deny) = (list("allow"), list("ask"), list("deny"));
    let (_, problems) = RawPolicy::default().with_layers(vec![layer]).compile();
    let fatal = problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal);
    assert!(fatal.is_none(), "a translated rule cannot be used: {fatal:?}");
}
