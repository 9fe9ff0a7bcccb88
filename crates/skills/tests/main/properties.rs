//! Properties of the readers over any text.

use proptest::prelude::*;
use std::time::Duration;
use toolgate_skills::{
    AgentFile, AgentFileOrigin, FilledPart, FrontMatter, ListedSkill, OutputStyle, PluginManifest,
    PluginMarketplace, SkillDefinition, SkillFileKind, SkillListing, SkillTemplate, TemplateValues,
    check_capability_name, split_arguments, split_tool_list,
};

/// Text that is near what the readers look for.
fn text_of_signs() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("---\n"),
        Just("\n"),
        Just("\r\n"),
        Just(": "),
        Just("- "),
        Just("$ARGUMENTS"),
        Just("$ARGUMENTS["),
        Just("$0"),
        Just("$file"),
        Just("${CLAUDE_SKILL_DIR}"),
        Just("${"),
        Just("}"),
        Just("]"),
        Just("\\$1"),
        Just("!`"),
        Just("`"),
        Just("```!\n"),
        Just("```\n"),
        Just("~~~\n"),
        Just(" @a/b.rs"),
        Just("name: x\n"),
        Just("description: |\n  x\n"),
        Just("&a [*a]"),
        Just("\""),
        Just("'"),
        Just("ü"),
        Just("\u{FEFF}"),
        Just(" "),
        Just("{"),
        Just("[a] [b]"),
        Just("allowed-tools: Bash(rm *)\n"),
        Just("word"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// The processor time of this thread so far. Unlike the time of the clock it does not grow while others are at work.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// How much processor time loading may take: 50 ms for 100 KB, and for anything shorter.
fn limit(bytes: usize) -> Duration {
    Duration::from_nanos(u64::try_from(bytes.max(100_000)).unwrap() * 500)
}

/// One kind of file, loaded as it is for use.
type FileLoader = (&'static str, fn(&[u8]));

const FILE_LOADERS: [FileLoader; 6] = [
    ("skill", |bytes| {
        let (skill, _) = SkillDefinition::read(bytes, SkillFileKind::Skill);
        let template = SkillTemplate::parse(&skill.body, &skill.argument_names);
        template.fill(&TemplateValues::new("a 'b c' $0"));
        template.commands();
    }),
    ("command", |bytes| drop(SkillDefinition::read(bytes, SkillFileKind::Command))),
    ("agent", |bytes| drop(AgentFile::read(bytes, "stem", AgentFileOrigin::Plugin))),
    ("output style", |bytes| drop(OutputStyle::read(bytes, "stem"))),
    ("manifest", |bytes| drop(PluginManifest::read(bytes))),
    ("marketplace", |bytes| drop(PluginMarketplace::read(bytes))),
];

fn read_everything(bytes: &[u8]) {
    FILE_LOADERS.iter().for_each(|(_, load)| load(bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_bytes_end_in_a_value_or_a_report(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_everything(&bytes);
    }

    #[test]
    fn any_text_ends_in_a_value_or_a_report(text in text_of_signs()) {
        read_everything(text.as_bytes());
        let _ = check_capability_name(&text);
        split_tool_list(&text);
    }

    /// What an argument holds becomes neither a placeholder nor a command nor a file, and appears as it was given.
    #[test]
    fn arguments_are_filled_in_once_and_never_read_again(body in text_of_signs(), arguments in text_of_signs()) {
        let template = SkillTemplate::parse(&body, &["file".to_owned()]);
        let fill = |arguments: &str| template.fill(&TemplateValues::new(arguments));
        let filled = fill(&arguments);
        let is_active = |part: &&FilledPart| !matches!(part, FilledPart::Text(_));
        prop_assert_eq!(filled.parts.iter().filter(is_active).count(), fill("").parts.iter().filter(is_active).count());
        if !body.contains('$') {
            // Nothing to fill in: the body stays as it is, and the arguments follow as they are.
            let plain = fill("").text();
            prop_assert!(filled.text().starts_with(&plain));
            prop_assert!(arguments.trim().is_empty() || filled.text().ends_with(&arguments));
        }
    }

    #[test]
    fn all_arguments_stand_where_the_placeholder_stood(before in "[a-z .\n]{0,20}", arguments in text_of_signs()) {
        let template = SkillTemplate::parse(&format!("{before}<$ARGUMENTS>"), &[]);
        let filled = template.fill(&TemplateValues::new(&arguments));
        prop_assert_eq!(filled.text(), format!("{before}<{arguments}>"));
    }

    #[test]
    fn words_without_signs_are_split_as_they_are(words in proptest::collection::vec("[a-z0-9$!@.]{1,8}", 0..8)) {
        prop_assert_eq!(split_arguments(&words.join("  ")), words);
    }

    #[test]
    fn a_listing_never_exceeds_its_budget(
        skills in proptest::collection::vec(("[a-z]{1,20}", "[a-zü ]{0,120}", 0u64..5), 0..25),
        budget in 0usize..2500,
    ) {
        let skills: Vec<ListedSkill> = skills
            .into_iter()
            .map(|(name, description, uses)| ListedSkill::new(name, description, uses))
            .collect();
        let listing = SkillListing::build(&skills, budget);
        prop_assert!(listing.text.chars().count() <= budget);
        let shown = listing.text.lines().filter(|line| line.starts_with("- ")).count();
        prop_assert_eq!(shown + listing.unlisted.len(), skills.len(), "each skill is listed or named as missing");
    }

    /// The fallback finds what YAML would have found in plain `key: value` lines.
    #[test]
    fn plain_fields_are_read_alike_with_and_without_yaml(
        fields in proptest::collection::btree_map("[a-z]{2,8}", "[a-z][a-z0-9 ]{0,20}[a-z]", 1..6),
    ) {
        let header: String = fields.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        let strict = FrontMatter::read(format!("---\n{header}---\n").as_bytes());
        let loose = FrontMatter::read(format!("---\n{header}zz-broken: a: b\n---\n").as_bytes());
        prop_assert!(strict.problems.is_empty() && loose.problems.len() == 1);
        for key in fields.keys().filter(|key| !["true", "false", "null"].contains(&fields[*key].as_str())) {
            prop_assert_eq!(&strict.fields[key], &loose.fields[key]);
        }
    }
}

#[test]
fn hostile_texts_of_100_kilobytes_are_read_in_time() {
    // Without optimisation a tenth of the size has the same limit per byte.
    let size = if cfg!(debug_assertions) { 10_000 } else { 100_000 };
    let names: String = (0..size / 20).map(|n| format!("n{n} ")).collect();
    for piece in [
        "${",
        "$ARGUMENTS[",
        "!`",
        " !`a",
        " !`a` ",
        " !x",
        "!`\n",
        "```\n",
        "~~~\n```!\n",
        " @a",
        "\\$",
        "$1",
        "---\n",
        "a: ",
        "- ",
        "[",
        "{\"a\":",
        "&a ",
        "? ",
        "a: &a\n",
        "*a\n",
        "\"",
        "|\n",
        "\u{202E}",
        "name: a\n",
        "`",
        "$n1",
        "<<: *a\n",
    ] {
        for head in ["", "---\n", "---\ndescription: d\n---\n", &format!("---\narguments: {names}\n---\n")] {
            let text = format!("{head}{}", piece.repeat(size / piece.len()));
            for (kind, load) in FILE_LOADERS {
                let started = processor_time();
                load(text.as_bytes());
                let took = processor_time() - started;
                assert!(took < limit(text.len()), "{kind}: {piece:?} after {head:.20?} took {took:?}");
            }
        }
    }
}

/// Runs what the fuzz target runs, over its seeds.
#[test]
fn any_text_is_a_skill_or_reported() {
    for line in include_str!("../../../../fuzz/seeds/skills.jsonl").lines() {
        let text: String = serde_json::from_str(line).unwrap();
        read_everything(text.as_bytes());
    }
}
