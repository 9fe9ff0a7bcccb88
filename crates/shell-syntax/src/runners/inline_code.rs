//! Finds code on the command line that no table follows: the programs that `perl -e` or `expect -c` starts are only
//! known when the code runs.
//!
//! The string literals of the code are shown to deny and ask rules as guesses, but code can build a command from
//! pieces (`"git" + " push"`). So under a rule for all commands, such a use needs an approval where another rule
//! denies some of them.

use super::runner_entry::CodeOptions;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// Interpreters with options whose value is code. A single letter also counts inside a cluster (`perl -lne`).
const CODE_OPTIONS: &[CodeOptions] = &[
    CodeOptions { programs: WordList("python python2 python3 pypy pypy3 ipython"), options: WordList("-c") },
    CodeOptions { programs: WordList("perl raku perl6"), options: WordList("-e -E -M -d") },
    CodeOptions { programs: WordList("ruby jruby lua luajit crystal"), options: WordList("-e") },
    CodeOptions { programs: WordList("julia Rscript R"), options: WordList("-e -E --eval --print") },
    CodeOptions {
        programs: WordList("elixir iex"),
        options: WordList("-e --eval --rpc-eval --erl --require"),
    },
    CodeOptions { programs: WordList("erl"), options: WordList("-eval -run -s") },
    CodeOptions {
        programs: WordList("node nodejs bun tsx ts-node"),
        options: WordList("-e --eval -p --print --import --loader --experimental-loader"),
    },
    CodeOptions { programs: WordList("deno"), options: WordList("eval") },
    CodeOptions { programs: WordList("php"), options: WordList("-r -B -R -E --run --process-code") },
    CodeOptions { programs: WordList("osascript"), options: WordList("-e") },
    CodeOptions { programs: WordList("expect expectk tclsh wish"), options: WordList("-c -f") },
    CodeOptions { programs: WordList("guile"), options: WordList("-c -e") },
    CodeOptions {
        programs: WordList("racket scheme chibi-scheme csi gosh"),
        options: WordList("-e -E --eval"),
    },
    CodeOptions {
        programs: WordList("sbcl clisp ecl ccl clojure clj bb lein janet fennel"),
        options: WordList("--eval -eval -e -x"),
    },
    CodeOptions { programs: WordList("groovy scala scala-cli swift kotlin jbang"), options: WordList("-e") },
    CodeOptions { programs: WordList("ghc runghc stack ocaml utop"), options: WordList("-e") },
    CodeOptions { programs: WordList("nu xonsh elvish"), options: WordList("-c -e") },
    CodeOptions {
        programs: WordList("pwsh powershell"),
        options: WordList("-c -Command -EncodedCommand -ec -enc"),
    },
    CodeOptions {
        programs: WordList("octave matlab maxima gp"),
        options: WordList("--eval -r -batch --batch-string"),
    },
];

/// Programs whose operands or options are queries, which start programs only by certain words.
const QUERY_PROGRAMS: WordList = WordList("sqlite3 psql mysql mariadb duckdb");

/// What in a query starts a program or loads code.
const QUERY_ESCAPES: [&str; 8] = ["\\", "program", "system", ".sh", "load", "edit(", ".import", ".output"];

/// Names that code may use without starting a program: functions that compute or print, keywords, and modules that
/// start nothing. A name that is not here may be bound to anything (`__import__`, `require`, `eval`).
const HARMLESS_NAMES: WordList = WordList(
    "print len sum min max range sorted reversed round abs str int float bool list dict set tuple repr type \
     enumerate zip any all chr ord hex oct bin isinstance pow divmod \
     import as for in if elif else not and or is True False None while \
     json loads load read readline dumps indent sort_keys sys version version_info argv stdin stdout maxsize platform path \
     math pi sqrt ceil floor log re string datetime time now strftime isoformat \
     join split strip lower upper get keys values items replace startswith endswith append count format sep end \
     console JSON parse stringify Math const let var of true false null undefined process versions length \
     toString slice map filter \
     a b c d e f g h i j k l m n o p q r s t u v w x y z data line lines key value name result",
);

/// Whether the arguments of an interpreter contain code that may start programs.
pub(super) fn has_inline_code(name: &str, args: &[ShellArg]) -> bool {
    if QUERY_PROGRAMS.contains(name) {
        return args.iter().any(|arg| {
            let text = arg.text.to_ascii_lowercase();
            arg.live.is_some() || QUERY_ESCAPES.iter().any(|escape| text.contains(escape))
        });
    }
    let mut entries = CODE_OPTIONS.iter().filter(|entry| entry.programs.contains(name));
    entries.any(|entry| {
        let options = own_arguments(args);
        let mut found =
            options.iter().enumerate().filter(|(_, arg)| takes_code(entry.options, arg)).peekable();
        found.peek().is_some()
            && !found.all(|(at, arg)| {
                let is_whole = entry.options.contains(&arg.text);
                let code = args.get(at + 1).and_then(ShellArg::known);
                is_whole && code.is_some_and(|code| is_harmless_code(name, code))
            })
    })
}

/// The arguments before the script. An operand behind an option may be the value of the option.
fn own_arguments(args: &[ShellArg]) -> &[ShellArg] {
    let is_script = |at: usize, arg: &ShellArg| {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        arg.live.is_none()
            && !arg.text.starts_with('-')
            && arg.text != "eval"
            && !before.is_some_and(|before| before.text.starts_with('-'))
    };
    let end = args.iter().enumerate().position(|(at, arg)| is_script(at, arg)).unwrap_or(args.len());
    args.get(..end).unwrap_or_default()
}

/// Whether an argument is one of the options, alone, in a cluster, or with its value attached.
fn takes_code(options: WordList, arg: &ShellArg) -> bool {
    let text = arg.text.as_str();
    options.iter().any(|option| match option.strip_prefix('-').filter(|letter| letter.len() == 1) {
        // `-Mstrict` loads a module; only one that gets arguments (`-MPOSIX=…`) or ends a statement is code.
        Some("M") => text.starts_with("-M") && text.contains(['=', ';', '(', ' ']),
        Some("d") => text.starts_with("-d:"),
        Some(letter) => text.starts_with('-') && !text.starts_with("--") && text.contains(letter),
        None => {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            name == option || name.len() >= 4 && name.starts_with('-') && option.starts_with(name)
        }
    })
}

/// Whether code does nothing but compute and print: outside of string literals it has only known names.
///
/// Only for Python and JavaScript. Strings are data there, unless they are templates; what could make quotes begin
/// or end elsewhere (escapes, comments, regular expressions, triple quotes) is not accepted.
fn is_harmless_code(name: &str, code: &str) -> bool {
    let is_python = name.starts_with("python") || name.starts_with("pypy");
    if !is_python && !matches!(name, "node" | "nodejs") {
        return false;
    }
    // In JavaScript `[k]` and `{"k": x}` find a function by its name: `console.log["constructor"]` compiles code.
    if code.contains(['\\', '#', '`', '@']) || !is_python && code.contains(['/', '[', '{']) {
        return false;
    }
    if code.contains("'''") || code.contains("\"\"\"") {
        return false;
    }
    let Some(code) = without_strings(code) else { return false };
    let ends_name = |character: char| character != '_' && character != '$' && !character.is_alphanumeric();
    code.split(ends_name)
        .filter(|name| !name.is_empty())
        .all(|name| name.bytes().all(|byte| byte.is_ascii_digit()) || HARMLESS_NAMES.contains(name))
}

/// Code with every string literal replaced by `0`. `None` if one has a prefix (`f"{x}"`) or is not closed.
fn without_strings(code: &str) -> Option<String> {
    let mut rest = code;
    let mut outside = String::new();
    while let Some(at) = rest.find(['\'', '"']) {
        let (before, quoted) = rest.split_at_checked(at)?;
        if before.ends_with(|last: char| last == '_' || last.is_alphanumeric()) {
            return None;
        }
        let quote = quoted.chars().next()?;
        outside.push_str(before);
        outside.push('0');
        rest = quoted.strip_prefix(quote)?.split_once(quote)?.1;
    }
    outside.push_str(rest);
    Some(outside)
}
