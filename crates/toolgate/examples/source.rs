//! A source of tools that come and go, as a plugin would bring them.
//!
//! Run with `cargo run --package toolgate --example source`.

use std::sync::{Arc, Mutex, PoisonError};
use toolgate::serde_json::{Map, Value, json};
use toolgate::{
    FnTool, Intent, Output, RegisterError, Source, SourceId, SourceTools, Tool, ToolSpec, Toolgate,
};

/// The tools of a plugin, by name. They are known at run time only.
#[derive(Default)]
struct Plugin {
    greetings: Mutex<Vec<String>>,
}

impl Plugin {
    fn set_greetings(&self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        *self.greetings.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }
}

impl Source for Plugin {
    fn id(&self) -> SourceId {
        SourceId::Plugin { plugin: "greeter".to_owned() }
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        let names = self.greetings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        names.iter().try_for_each(|name| tools.register(greeting(name)))
    }
}

fn greeting(name: &str) -> impl Tool + use<> {
    let spec = ToolSpec::new(name, format!("Says {name}.")).read_only().with_input_schema(json!({
        "type": "object", "properties": {}, "additionalProperties": false,
    }));
    let text = name.to_owned();
    FnTool::new(spec, move |_: Map<String, Value>, _cleared| {
        let output = Output::text(text.clone());
        async move { Ok(output) }
    })
    .intent(|_, _| Intent::none("say something"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plugin = Arc::new(Plugin::default());
    plugin.set_greetings(&["hello", "good_morning"]);
    // A plugin is not believed when it says that a tool touches nothing, so a rule allows its tools.
    let builder = Toolgate::builder("/").allow("hello").allow("good_evening");
    let toolgate = builder.source(Arc::clone(&plugin)).build()?;
    assert_eq!(toolgate.call("call_1", "hello", "{}").await.result?.model_text(), "hello");

    // The plugin changes: a refresh registers what is new and removes what is gone.
    plugin.set_greetings(&["hello", "good_evening"]);
    toolgate.refresh_sources().await?;
    assert!(toolgate.call("call_2", "good_evening", "{}").await.result.is_ok());
    assert!(toolgate.call("call_3", "good_morning", "{}").await.result.is_err());

    // The name of a built-in tool is taken, and the error names both owners.
    let impostor = Arc::new(Plugin::default());
    impostor.set_greetings(&["Read"]);
    let collision = toolgate.add_source(impostor).map_err(|error| error.to_string());
    assert_eq!(collision, Err("`Read` from plugin `greeter` collides with `Read` from built-in".to_owned()));

    toolgate.close_sources().await;
    assert!(toolgate.call("call_4", "hello", "{}").await.result.is_err());
    Ok(())
}
