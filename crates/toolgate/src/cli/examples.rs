//! The examples in the help of each command, in one table: they are attached to the grammar in [`build_command`], and a
//! test parses every one of them.

use super::args::CliArgs;
use clap::{Command, CommandFactory};

/// A command, by the names that lead to it, and its examples: the command line and what it does.
type CommandExamples = (&'static [&'static str], &'static [(&'static str, &'static str)]);

/// The examples of every command, in the order of the help.
const EXAMPLES: &[CommandExamples] = &[
    (
        &[],
        &[
            ("toolgate call ls '{\"path\":\"src\"}'", "make a call"),
            ("toolgate check Bash '{\"command\":\"npm publish\"}'", "would it be allowed, and why?"),
            ("toolgate mcp serve", "serve the tools to an MCP client"),
        ],
    ),
    (
        &["run"],
        &[
            ("toolgate run 'fix the failing test'", "work on a prompt, with approvals at the terminal"),
            ("toolgate run", "begin a conversation"),
            ("toolgate run -p 'where is the parser?'", "print the answer, and end"),
            ("toolgate run --continue 'now add a test'", "go on with the last session"),
        ],
    ),
    #[cfg(feature = "acp")]
    (
        &["acp"],
        &[
            ("toolgate acp", "what an editor is configured to start"),
            (
                "toolgate acp --model opus --permission-mode plan",
                "with another model, and only reading at first",
            ),
        ],
    ),
    (
        &["init"],
        &[
            ("toolgate init", "write .toolgate/settings.json and .toolgate/policy.md"),
            ("toolgate init --dry-run", "only print the policy"),
        ],
    ),
    (
        &["tools"],
        &[
            ("toolgate tools", "list the tools"),
            ("toolgate tools Read", "describe one"),
            ("toolgate tools --format anthropic", "definitions for a model provider"),
            ("toolgate --tools Read,Grep tools", "offer only these"),
        ],
    ),
    (
        &["call"],
        &[
            ("toolgate call Read '{\"file_path\":\"/etc/hostname\"}'", "make one call"),
            ("toolgate call Bash - --timeout 60", "read the input from standard input"),
            ("toolgate call --batch calls.jsonl --form anthropic", "many calls, as tool_result blocks"),
            (
                "toolgate call --allowedTools 'Bash(npm test)' Bash '{\"command\":\"npm test\"}'",
                "with a rule",
            ),
        ],
    ),
    (
        &["check"],
        &[
            ("toolgate check Bash '{\"command\":\"ls | sort\"}'", "explain the verdict of one call"),
            ("toolgate check --batch calls.jsonl --require-allow", "fail unless all are allowed"),
            ("toolgate --json check Read '{\"file_path\":\"/etc/passwd\"}'", "for scripts"),
        ],
    ),
    (&["policy"], &[("toolgate policy lint", "find problems"), ("toolgate policy test", "test the rules")]),
    (
        &["policy", "lint"],
        &[("toolgate policy lint", "list every problem"), ("toolgate --json policy lint", "for scripts")],
    ),
    (
        &["policy", "test"],
        &[
            ("toolgate policy test", "run .toolgate/policy.md"),
            ("toolgate policy test rules.md", "run a file"),
            ("toolgate policy test --watch", "run again after each change"),
        ],
    ),
    (
        &["policy", "fmt"],
        &[
            ("toolgate policy fmt", "format the settings of this project"),
            ("toolgate policy fmt --check", "for CI"),
        ],
    ),
    (
        &["policy", "import"],
        &[
            ("toolgate policy import codex default.rules", "print settings"),
            ("toolgate policy import goose permission.yaml", "print settings"),
            ("toolgate --json policy import gemini team.toml", "settings and notes as JSON"),
        ],
    ),
    (
        &["log"],
        &[("toolgate log", "the latest calls"), ("toolgate log --tool Bash --verdict ask", "filtered")],
    ),
    (
        &["undo"],
        &[("toolgate undo --dry-run", "show what would change"), ("toolgate undo", "undo the last call")],
    ),
    (&["redo"], &[("toolgate redo", "redo what was undone last")]),
    (&["mcp"], &[("toolgate mcp serve", "serve the tools"), ("toolgate mcp list", "list the servers")]),
    (
        &["mcp", "serve"],
        &[
            ("toolgate mcp serve", "over standard input and output"),
            ("toolgate mcp serve --http localhost:8765", "over HTTP on this machine"),
        ],
    ),
    (
        &["mcp", "add"],
        &[
            ("toolgate mcp add files npx -- -y @modelcontextprotocol/server-filesystem .", "a program"),
            ("toolgate mcp add docs https://example.com/mcp", "a remote server"),
        ],
    ),
    (
        &["mcp", "add-json"],
        &[("toolgate mcp add-json files '{\"command\":\"npx\",\"args\":[\"-y\",\"server\"]}'", "a program")],
    ),
    (&["mcp", "remove"], &[("toolgate mcp remove files", "remove a server")]),
    (
        &["mcp", "list"],
        &[
            ("toolgate mcp list", "list the servers"),
            ("toolgate mcp list --status", "start each of them, and show which are connected"),
        ],
    ),
    (&["mcp", "get"], &[("toolgate mcp get files", "show one server")]),
    (&["mcp", "test"], &[("toolgate mcp test files", "connect and show its tools")]),
    (&["mcp", "login"], &[("toolgate mcp login docs", "sign in with the browser")]),
    (&["mcp", "approve"], &[("toolgate mcp approve files", "approve it as it is now")]),
    (&["settings"], &[("toolgate settings", "each value with its file and line")]),
    (&["settings", "show"], &[("toolgate settings show", "each value with its file and line")]),
    (
        &["settings", "check"],
        &[
            ("toolgate settings check", "list every problem of the files in force"),
            ("toolgate settings check .toolgate/settings.json", "list those of one file"),
        ],
    ),
    (&["settings", "schema"], &[("toolgate settings schema settings.schema.json", "for editors")]),
    (&["trust"], &[("toolgate trust", "is this project trusted?"), ("toolgate trust add", "trust it")]),
    (&["trust", "show"], &[("toolgate trust show", "what needs trust")]),
    (&["trust", "add"], &[("toolgate trust add", "asks first"), ("toolgate trust add --yes", "for scripts")]),
    (&["trust", "workspace"], &[("toolgate trust workspace", "accept the home directory as a workspace")]),
    (&["trust", "remove"], &[("toolgate trust remove", "stop trusting this project")]),
    (&["trust", "list"], &[("toolgate trust list", "every trusted project")]),
    (&["log", "show"], &[("toolgate log show 12", "the call with this number in the list")]),
    (&["log", "report"], &[("toolgate log report 6d9e1a", "the session that ends with this, as Markdown")]),
    (
        &["lsp"],
        &[
            ("toolgate lsp", "the language servers"),
            ("toolgate lsp test src/main.rs", "what the server says about a file"),
        ],
    ),
    (&["lsp", "status"], &[("toolgate lsp status", "the language servers")]),
    (&["lsp", "restart"], &[("toolgate lsp restart", "start them anew")]),
    (&["lsp", "test"], &[("toolgate lsp test src/main.rs", "what the server says about a file")]),
    (
        &["skill"],
        &[
            ("toolgate skill list", "the skills and commands"),
            ("toolgate skill show review", "one skill"),
            ("toolgate skill lint .claude", "every problem with its line"),
        ],
    ),
    (&["skill", "list"], &[("toolgate skill list", "the skills and commands")]),
    (&["skill", "show"], &[("toolgate skill show review", "one skill")]),
    (&["skill", "run"], &[("toolgate skill run review src/lib.rs", "its text, as a model gets it")]),
    (&["skill", "lint"], &[("toolgate skill lint .claude", "every problem with its line")]),
    (
        &["plugin"],
        &[
            ("toolgate plugin add ./my-plugin", "show what it would run, and install it"),
            ("toolgate plugin list", "the plugins, and whether each is approved"),
        ],
    ),
    (
        &["plugin", "add"],
        &[
            ("toolgate plugin add ./my-plugin", "a directory"),
            ("toolgate plugin add https://example.com/plugins.git", "the plugins of a marketplace"),
            ("toolgate plugin add ./plugins formatter", "one plugin of a marketplace"),
        ],
    ),
    (&["plugin", "list"], &[("toolgate plugin list", "the plugins, and whether each is approved")]),
    (&["plugin", "show"], &[("toolgate plugin show formatter", "what it brings and what it would run")]),
    (
        &["plugin", "approve"],
        &[("toolgate plugin approve ./my-plugin", "approve it as it is now, for --plugin-dir")],
    ),
    (&["plugin", "enable"], &[("toolgate plugin enable formatter", "switch it on")]),
    (&["plugin", "disable"], &[("toolgate plugin disable formatter", "switch it off")]),
    (&["plugin", "update"], &[("toolgate plugin update", "fetch every plugin again, and show what changed")]),
    (&["plugin", "remove"], &[("toolgate plugin remove formatter", "remove it with its approval")]),
    (&["plugin", "validate"], &[("toolgate plugin validate ./my-plugin", "every problem with its line")]),
    (
        &["schedule"],
        &[
            ("toolgate schedule", "what is scheduled in this project"),
            ("toolgate schedule run", "run what is due, and end"),
            ("toolgate schedule run --watch -- --model sonnet", "run what is due until Ctrl-C, with a model"),
        ],
    ),
    (&["schedule", "list"], &[("toolgate schedule list --all", "the schedules of all projects")]),
    (&["schedule", "cancel"], &[("toolgate schedule cancel 9f86d081", "it does not run again")]),
    (&["schedule", "run"], &[("toolgate schedule run --watch", "run what is due until Ctrl-C")]),
    (
        &["tasks"],
        &[
            ("toolgate tasks", "the tasks of this project"),
            ("toolgate tasks add 'Fix the parser'", "add a task"),
            ("toolgate tasks export --format markdown", "print the list as Markdown"),
        ],
    ),
    (&["tasks", "list"], &[("toolgate tasks list", "every task of the list")]),
    (&["tasks", "show"], &[("toolgate tasks show 1", "a task with its notes")]),
    (&["tasks", "add"], &[("toolgate tasks add 'Write the tests'", "add a task")]),
    (&["tasks", "edit"], &[("toolgate tasks edit 1 --status completed", "change a task")]),
    (&["tasks", "remove"], &[("toolgate tasks remove 1", "remove a task")]),
    (&["tasks", "lists"], &[("toolgate tasks lists", "the names of all lists")]),
    (&["tasks", "clear"], &[("toolgate tasks clear", "remove the whole list")]),
    (&["tasks", "watch"], &[("toolgate tasks watch", "print changes until Ctrl-C")]),
    (&["tasks", "export"], &[("toolgate tasks export", "print the list")]),
    (
        &["memory"],
        &[
            ("toolgate memory", "the notes of this project"),
            ("toolgate memory --user", "the notes for all projects"),
            ("toolgate memory edit build", "open a note, which is a Markdown file"),
        ],
    ),
    (&["memory", "list"], &[("toolgate memory list", "the keys of all notes")]),
    (&["memory", "show"], &[("toolgate memory show style", "print a note")]),
    (&["memory", "set"], &[("toolgate memory set style 'two spaces'", "save a note")]),
    (&["memory", "forget"], &[("toolgate memory forget style", "delete a note")]),
    (&["memory", "search"], &[("toolgate memory search spaces", "find notes")]),
    (&["memory", "edit"], &[("toolgate memory edit style", "open a note in your editor")]),
    (&["memory", "path"], &[("toolgate memory path", "the directory of the notes")]),
    (&["memory", "export"], &[("toolgate memory export", "all notes as JSON")]),
    (&["grants"], &[("toolgate grants", "the rules granted here")]),
    (&["grants", "list"], &[("toolgate grants list", "the rules granted here")]),
    (&["grants", "revoke"], &[("toolgate grants revoke 'Bash(npm test)'", "revoke a rule")]),
    (
        &["ask"],
        &[(
            "toolgate ask '{\"tool\":\"deploy\",\"description\":\"deploy to production\",\"risk\":\"high\"}'",
            "ask one question",
        )],
    ),
    (&["doctor"], &[("toolgate doctor", "check this machine")]),
    (&["demo"], &[("toolgate demo", "watch a scripted agent")]),
    (
        &["completions"],
        &[
            ("toolgate completions bash", "print the script"),
            ("toolgate completions --install", "write the script of your shell and the man pages"),
        ],
    ),
];

/// The grammar of the command line with the examples.
pub(crate) fn build_command() -> Command {
    EXAMPLES.iter().fold(CliArgs::command(), |command, (path, examples)| {
        attach_examples(command, path, &render_examples(examples))
    })
}

/// Adds a text to the end of the help of one command.
fn attach_examples(command: Command, path: &[&'static str], text: &str) -> Command {
    match path.split_first() {
        Some((name, rest)) if command.find_subcommand(name).is_some() => {
            command.mut_subcommand(name, |below| attach_examples(below, rest, text))
        }
        Some(_) => command,
        None => {
            let before = command.get_after_help().map(ToString::to_string);
            let help = before.map_or_else(|| text.to_owned(), |before| format!("{before}\n\n{text}"));
            command.after_help(help)
        }
    }
}

/// The examples as lines, with what each does.
fn render_examples(examples: &[(&str, &str)]) -> String {
    let width = examples.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0).min(52);
    let lines: Vec<String> =
        examples.iter().map(|(line, meaning)| format!("  {line:width$}  # {meaning}")).collect();
    format!("Examples:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::args::CliCommand;
    use super::super::select_named_commands;
    use super::*;
    use clap::FromArgMatches;
    use std::ffi::OsString;
    use toolgate_shell_syntax as _;

    /// The words of an example; single quotes are the only quotes in them.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (index, part) in line.split('\'').enumerate() {
            match index % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    #[test]
    fn every_example_is_a_valid_command_line() {
        for (path, examples) in EXAMPLES {
            for (line, _) in *examples {
                if let Err(error) = build_command().try_get_matches_from(words(line)) {
                    panic!("{path:?} {line}: {error}");
                }
            }
        }
    }

    #[test]
    fn the_commands_that_a_line_names_parse_it_as_the_whole_grammar_does() {
        let examples = EXAMPLES.iter().flat_map(|(_, examples)| examples.iter().map(|(line, _)| *line));
        let more = [
            "toolgate --cwd run mcp serve --quiet",
            "toolgate mcp --tools Read,call serve --permission-mode plan",
            "toolgate call --add-dir check Read mcp",
            "toolgate --cwd add mcp get list",
        ];
        for line in examples.chain(more) {
            let words: Vec<OsString> = words(line).into_iter().map(OsString::from).collect();
            let parse = |command: Command| {
                let matches =
                    command.try_get_matches_from(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
                format!("{:?}", CliArgs::from_arg_matches(&matches).unwrap())
            };
            assert_eq!(parse(select_named_commands(&words)), parse(build_command()), "{line}");
        }
    }

    #[test]
    fn the_grammar_of_one_command_is_that_of_the_whole_program() {
        fn arguments(command: &Command) -> Vec<String> {
            let mut found: Vec<String> = command.get_arguments().map(|arg| format!("{arg:?}")).collect();
            for below in command.get_subcommands() {
                found.push(below.get_name().to_owned());
                found.extend(below.get_all_aliases().map(str::to_owned));
                found.extend(arguments(below));
            }
            found
        }
        for whole in CliArgs::command().get_subcommands() {
            let one = CliCommand::grammar_of(whole.get_name())
                .unwrap_or_else(|| panic!("CliCommand::grammar_of has no `{}`", whole.get_name()));
            assert_eq!(arguments(&one), arguments(whole), "{}", whole.get_name());
            assert_eq!(whole.get_all_aliases().count(), 0, "grammar_of finds commands by their names only");
        }
    }

    #[test]
    fn every_command_has_examples() {
        fn visit(command: &Command, path: &[&str], missing: &mut Vec<String>) {
            if !EXAMPLES.iter().any(|(known, _)| *known == path) {
                missing.push(path.join(" "));
            }
            for below in command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
                visit(below, &[path, &[below.get_name()]].concat(), missing);
            }
        }
        let mut missing = Vec::new();
        visit(&CliArgs::command(), &[], &mut missing);
        assert!(missing.is_empty(), "add examples to this file for: {missing:?}");
    }
}
