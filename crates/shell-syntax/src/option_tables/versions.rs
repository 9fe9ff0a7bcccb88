//! Version queries: which programs only print their version, and with which arguments.
//!
//! Some names are shims that start the program which a file of the project chooses: the proxies of rustup, pyenv,
//! rbenv, asdf, mise, volta, yarn with its `yarnPath`. Their queries are read-only only while no such file exists.
//!
//! Some programs are left out, because even the query runs code of the project or uses the network: `mvn` and `sbt`
//! (`.mvn/jvm.config`, `.sbtopts`), `gradle`, `bazel` (bazelisk), `npx`, `bundle`, `composer`, `pytest` (plugins and
//! `conftest.py`), `terraform` and `az` (check for updates), `brew` (starts git), `docker version` (asks the daemon).

use crate::word_list::WordList;

/// Files with which a project chooses a Rust toolchain.
pub(crate) const RUST_VERSION_FILES: &[&str] =
    &["rust-toolchain.toml", "rust-toolchain", ".tool-versions", "mise.toml", ".mise.toml"];

/// Files with which a project chooses a version of Python.
pub(crate) const PYTHON_VERSION_FILES: &[&str] =
    &[".python-version", ".tool-versions", "mise.toml", ".mise.toml"];

/// Files with which a project chooses a version of Node.js. `volta` also reads `package.json`, but no path from it.
pub(crate) const JAVASCRIPT_VERSION_FILES: &[&str] =
    &[".node-version", ".nvmrc", ".tool-versions", "mise.toml", ".mise.toml"];

/// Files with which a project chooses a version of Yarn or pnpm.
const YARN_VERSION_FILES: &[&str] =
    &[".yarnrc.yml", ".yarnrc", "package.json", ".tool-versions", "mise.toml", ".mise.toml"];

/// Files with which a project chooses a version of Ruby.
const RUBY_VERSION_FILES: &[&str] = &[".ruby-version", ".tool-versions", "mise.toml", ".mise.toml"];

/// Files with which a project chooses a version of Java.
const JAVA_VERSION_FILES: &[&str] =
    &[".java-version", ".sdkmanrc", ".tool-versions", "mise.toml", ".mise.toml"];

/// Files with which a project chooses a version of .NET.
const DOTNET_VERSION_FILES: &[&str] = &["global.json", ".tool-versions", "mise.toml", ".mise.toml"];

/// Files with which a project chooses a version of Swift.
const SWIFT_VERSION_FILES: &[&str] = &[".swift-version"];

/// Files with which a project chooses a version of Go: the lines `go` and `toolchain` of a module make `go` get and start
/// that version.
pub(crate) const GO_VERSION_FILES: &[&str] =
    &["go.mod", "go.work", ".tool-versions", "mise.toml", ".mise.toml"];

/// Files with which a project chooses versions of other languages, through asdf or mise.
const OTHER_VERSION_FILES: &[&str] = &[".tool-versions", "mise.toml", ".mise.toml"];

/// Programs, and the complete argument lists with which they only print their version.
const VERSIONS: &[(WordList, &[&[&str]])] = &[
    (
        WordList(
            "cargo rustc rustup rustfmt clippy-driver node npm pnpm yarn bun deno tsc python \
             python3 python2 pip pip3 pipx poetry uv ruff black mypy ruby gem php perl gcc g++ cc \
             c++ clang clang++ ld make cmake ninja meson docker kubectl podman helm gh glab git rg \
             fd jq yq curl wget tar zip unzip openssl bash zsh sh dash fish vim nvim emacs code \
             sqlite3 psql mysql redis-cli aws gcloud swift kotlin scala ghc stack cabal elixir erl \
             julia lua luajit zig nim dart dotnet just pre-commit eslint prettier tree bat awk gawk \
             sed find xargs rsync nix apt dpkg go-task protoc ffmpeg gdb lldb valgrind",
        ),
        &[&["--version"]],
    ),
    (WordList("cargo rustc rustup rg fd python python3 pip pip3 curl"), &[&["-V"]]),
    (WordList("node npm pnpm yarn bun tsc ruby perl php gcc make lua docker"), &[&["-v"]]),
    (WordList("rustc"), &[&["-vV"], &["--version", "--verbose"], &["-V", "-v"]]),
    (WordList("java javac scala kotlin kotlinc ant erl"), &[&["-version"], &["--version"]]),
    (WordList("go helm gh hugo zig openssl"), &[&["version"]]),
    (WordList("git"), &[&["version"], &["--version"]]),
];

/// The files of a project that would choose another program, if a use of a program only prints its version; `None` if
/// it
/// does more.
///
/// The arguments must match as a whole: `python --version x` may do something else.
pub(crate) fn asks_version(program: &str, args: &[&str]) -> Option<&'static [&'static str]> {
    VERSIONS
        .iter()
        .any(|(programs, uses)| programs.contains(program) && uses.contains(&args))
        .then(|| version_files(program))
}

/// The files with which a project chooses the program behind a name.
fn version_files(program: &str) -> &'static [&'static str] {
    match program {
        "cargo" | "rustc" | "rustup" | "rustfmt" | "clippy-driver" => RUST_VERSION_FILES,
        "python" | "python2" | "python3" | "pip" | "pip3" | "poetry" | "black" | "mypy" | "ruff"
        | "pre-commit" => PYTHON_VERSION_FILES,
        "node" | "npm" | "tsc" | "eslint" | "prettier" | "bun" | "deno" => JAVASCRIPT_VERSION_FILES,
        "yarn" | "pnpm" => YARN_VERSION_FILES,
        "ruby" | "gem" => RUBY_VERSION_FILES,
        "java" | "javac" | "scala" | "kotlin" | "kotlinc" | "ant" => JAVA_VERSION_FILES,
        "dotnet" => DOTNET_VERSION_FILES,
        "swift" => SWIFT_VERSION_FILES,
        "go" => GO_VERSION_FILES,
        "php" | "perl" | "elixir" | "erl" | "julia" | "lua" | "zig" | "nim" | "dart" | "stack" | "ghc"
        | "cabal" | "helm" | "kubectl" | "hugo" => OTHER_VERSION_FILES,
        _ => &[],
    }
}
