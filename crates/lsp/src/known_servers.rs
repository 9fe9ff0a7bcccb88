//! Well-known language servers. Nothing is downloaded: a server is used if its program is found in `PATH`.

use crate::readiness::ReadySignal;
use crate::server_entry::LspServerEntry;

/// One row of the table.
struct KnownServer {
    /// The name of the server in messages and settings.
    name: &'static str,
    /// The program, searched in `PATH`.
    command: &'static str,
    /// The arguments, such as `--stdio`.
    args: &'static [&'static str],
    /// Extensions and their language ids.
    languages: &'static [(&'static str, &'static str)],
    /// The files that mark the root directory of a project.
    root_markers: &'static [&'static str],
    /// What it must write to, beside a temporary directory of its own; a directory ends with a slash.
    writable: &'static [&'static str],
    /// What `initialize` sends along, as JSON; empty for nothing.
    options: &'static str,
    /// The signal by which the server shows that it is ready.
    ready: ReadySignal,
    /// The install command or advice, for the message that the server is missing.
    install: &'static str,
}

/// The extensions of Python, shared by several servers.
const PYTHON: &[(&str, &str)] = &[(".py", "python"), (".pyi", "python")];
/// The root markers of Python projects.
const PYTHON_MARKERS: &[&str] = &["pyproject.toml", "pyrightconfig.json", "setup.py", "requirements.txt"];
/// The extensions of C and C++. A `.h` file is opened as C, because its extension does not tell them apart.
const C_LANGUAGES: &[(&str, &str)] = &[
    (".c", "c"),
    (".h", "c"),
    (".cc", "cpp"),
    (".cpp", "cpp"),
    (".cxx", "cpp"),
    (".hpp", "cpp"),
    (".hh", "cpp"),
];
/// The extensions of TypeScript and JavaScript, which one server handles.
const SCRIPT_LANGUAGES: &[(&str, &str)] = &[
    (".ts", "typescript"),
    (".mts", "typescript"),
    (".cts", "typescript"),
    (".tsx", "typescriptreact"),
    (".js", "javascript"),
    (".mjs", "javascript"),
    (".cjs", "javascript"),
    (".jsx", "javascriptreact"),
];

/// The table; of several servers for an extension the first that is installed is used.
const KNOWN_SERVERS: &[KnownServer] = &[
    KnownServer {
        name: "rust-analyzer",
        command: "rust-analyzer",
        args: &[],
        languages: &[(".rs", "rust")],
        root_markers: &["Cargo.toml"],
        writable: &[
            "target/",
            "Cargo.lock",
            "~/.cargo/registry/",
            "~/.cargo/git/",
            "~/.cargo/.package-cache",
        ],
        options: "",
        ready: ReadySignal::Status,
        install: "rustup component add rust-analyzer rust-src",
    },
    KnownServer {
        name: "typescript",
        command: "typescript-language-server",
        args: &["--stdio"],
        languages: SCRIPT_LANGUAGES,
        root_markers: &["tsconfig.json", "jsconfig.json", "package.json"],
        writable: &[],
        // Its second process for syntax answers references from single files while the project is loaded. Without the
        // preference, a rename at a use in another file adds an alias to the import there.
        options: r#"{ "tsserver": { "useSyntaxServer": "never" },
                      "preferences": { "providePrefixAndSuffixTextForRename": false } }"#,
        ready: ReadySignal::Immediate,
        install: "npm install -g typescript-language-server typescript@5",
    },
    KnownServer {
        name: "basedpyright",
        command: "basedpyright-langserver",
        args: &["--stdio"],
        languages: PYTHON,
        root_markers: PYTHON_MARKERS,
        writable: &[],
        options: "",
        ready: ReadySignal::SourceFilesFound,
        install: "pip install basedpyright",
    },
    KnownServer {
        name: "pyright",
        command: "pyright-langserver",
        args: &["--stdio"],
        languages: PYTHON,
        root_markers: PYTHON_MARKERS,
        writable: &[],
        options: "",
        ready: ReadySignal::SourceFilesFound,
        install: "npm install -g pyright",
    },
    KnownServer {
        name: "pylsp",
        command: "pylsp",
        args: &[],
        languages: PYTHON,
        root_markers: PYTHON_MARKERS,
        writable: &[],
        options: "",
        ready: ReadySignal::Unknown,
        install: "pip install python-lsp-server",
    },
    KnownServer {
        name: "gopls",
        command: "gopls",
        args: &[],
        languages: &[(".go", "go"), (".mod", "go.mod")],
        root_markers: &["go.work", "go.mod"],
        writable: &["~/.cache/go-build/", "~/.cache/gopls/", "~/go/pkg/"],
        options: "",
        ready: ReadySignal::Progress,
        install: "go install golang.org/x/tools/gopls@latest",
    },
    KnownServer {
        name: "clangd",
        command: "clangd",
        args: &["--background-index"],
        languages: C_LANGUAGES,
        root_markers: &["compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt"],
        writable: &[".cache/clangd/", "~/.cache/clangd/"],
        options: "",
        ready: ReadySignal::Unknown,
        install: "apt install clangd",
    },
    KnownServer {
        name: "bash",
        command: "bash-language-server",
        args: &["start"],
        languages: &[(".sh", "shellscript"), (".bash", "shellscript")],
        root_markers: &[],
        writable: &[],
        options: "",
        ready: ReadySignal::Unknown,
        install: "npm install -g bash-language-server",
    },
    KnownServer {
        name: "json",
        command: "vscode-json-language-server",
        args: &["--stdio"],
        languages: &[(".json", "json"), (".jsonc", "jsonc")],
        root_markers: &[],
        writable: &[],
        options: "",
        ready: ReadySignal::Immediate,
        install: "npm install -g vscode-langservers-extracted",
    },
    KnownServer {
        name: "yaml",
        command: "yaml-language-server",
        args: &["--stdio"],
        languages: &[(".yaml", "yaml"), (".yml", "yaml")],
        root_markers: &[],
        writable: &[],
        options: "",
        ready: ReadySignal::Unknown,
        install: "npm install -g yaml-language-server",
    },
    KnownServer {
        name: "lua",
        command: "lua-language-server",
        args: &[],
        languages: &[(".lua", "lua")],
        root_markers: &[".luarc.json"],
        writable: &[],
        options: "",
        ready: ReadySignal::Progress,
        install: "brew install lua-language-server",
    },
    KnownServer {
        name: "zls",
        command: "zls",
        args: &[],
        languages: &[(".zig", "zig")],
        root_markers: &["build.zig"],
        writable: &["zig-cache/", ".zig-cache/", "~/.cache/zls/"],
        options: "",
        ready: ReadySignal::Unknown,
        install: "see the releases of zigtools/zls",
    },
    KnownServer {
        name: "ruby-lsp",
        command: "ruby-lsp",
        args: &[],
        languages: &[(".rb", "ruby")],
        root_markers: &["Gemfile"],
        writable: &[".ruby-lsp/"],
        options: "",
        ready: ReadySignal::Progress,
        install: "gem install ruby-lsp",
    },
];

/// The entries of all well-known servers, in the order in which they are preferred.
pub fn known_servers() -> Vec<LspServerEntry> {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let entry = |known: &KnownServer| {
        let mut entry = LspServerEntry::new(known.name, known.command);
        entry.args = texts(known.args);
        let languages = known.languages.iter();
        entry.languages =
            languages.map(|(extension, id)| ((*extension).to_owned(), (*id).to_owned())).collect();
        entry.root_markers = texts(known.root_markers);
        entry.writable = texts(known.writable);
        entry.initialization_options = serde_json::from_str(known.options).unwrap_or_default();
        entry.ready = known.ready;
        entry.install = Some(known.install.to_owned());
        entry
    };
    KNOWN_SERVERS.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_every_server_are_json() {
        for known in KNOWN_SERVERS.iter().filter(|known| !known.options.is_empty()) {
            assert!(serde_json::from_str::<serde_json::Value>(known.options).is_ok(), "{}", known.name);
        }
    }
}
