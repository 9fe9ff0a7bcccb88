//! Tool names that fit the limit of a provider, shortened in a way that is always the same.

use std::collections::BTreeMap;
use toolgate_proto::ToolDefinition;

/// The longest name that OpenAI's APIs accept.
const MAX_NAME_CHARS: usize = 64;
/// How many hexadecimal digits of the hash tell shortened names apart.
const HASH_LEN: usize = 8;

/// Short names of tools and back.
#[derive(Debug, Default, Clone)]
pub(super) struct ShortNames {
    /// The long name of each short one.
    to_long: BTreeMap<String, String>,
}

impl ShortNames {
    /// The names of these tools.
    pub(super) fn new(tools: &[ToolDefinition]) -> Self {
        let pairs = tools.iter().map(|tool| tool.name.as_str()).filter_map(|name| {
            let short = shorten_name(name);
            (short != name).then(|| (short, name.to_owned()))
        });
        Self { to_long: pairs.collect() }
    }

    /// The tool's own name.
    pub(super) fn long_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.to_long.get(name).map_or(name, String::as_str)
    }
}

/// A name of at most 64 characters: a long one keeps its start and gets a hash of the whole.
pub(super) fn shorten_name(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_CHARS {
        return name.to_owned();
    }
    let kept: String = name.chars().take(MAX_NAME_CHARS - HASH_LEN - 1).collect();
    format!("{kept}_{:08x}", hash_name(name))
}

/// FNV-1a: names must be the same in every run and on every machine, and no attacker gains from two that collide,
/// because a name that is taken is refused at registration.
fn hash_name(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_and_found_again() {
        let long = format!("mcp__server__{}", "x".repeat(80));
        let short = shorten_name(&long);
        assert_eq!(short.len(), MAX_NAME_CHARS);
        assert_eq!(short, shorten_name(&long));
        assert_ne!(short, shorten_name(&format!("{long}y")));
        let names = ShortNames { to_long: [(short.clone(), long.clone())].into() };
        assert_eq!(names.long_name(&short), long);
        assert_eq!(names.long_name("Read"), "Read");
    }
}
