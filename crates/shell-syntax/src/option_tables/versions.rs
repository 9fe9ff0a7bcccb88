//! Questions for a version: harmless of any program that is known to answer them and do nothing else.
//!
//! Some names stand for a shim that starts the program which a file of the project chooses: rustup's proxies, pyenv,
//! rbenv, asdf, mise, volta, yarn with its `yarnPath`. They count only while no such file is there.
//! Missing on purpose, because the question alone runs code of the project or reaches the network: `mvn` and `sbt`
//! (`.mvn/jvm.config`, `.sbtopts`), `gradle`, `bazel` (bazelisk), `npx`, `bundle`, `composer`, `pytest` (plugins and
//! `conftest.py`), `terraform` and `az` (ask for updates), `brew` (starts git), `docker version` (asks the daemon).

/// Files with which a project chooses a toolchain of Rust.
pub(in super::super) const RUST_VERSION_FILES: &[&str] =
    &["rust-toolchain.toml", "rust-toolchain", ".tool-versions", "mise.toml", ".mise.toml"];
/// The same for Python.
pub(in super::super) const PYTHON_VERSION_FILES: &[&str] =
    &[".python-version", ".tool-versions", "mise.toml", ".mise.toml"];
/// The same for JavaScript; `volta` looks into `package.json`, but takes no path from it.
pub(in super::super) const JAVASCRIPT_VERSION_FILES: &[&str] =
    &[".node-version", ".nvmrc", ".tool-versions", "mise.toml", ".mise.toml"];
const YARN_VERSION_FILES: &[&str] =
    &[".yarnrc.yml", ".yarnrc", "package.json", ".tool-versions", "mise.toml", ".mise.toml"];
const RUBY_VERSION_FILES: &[&str] = &[".ruby-version", ".tool-versions", "mise.toml", ".mise.toml"];
const JAVA_VERSION_FILES: &[&str] =
    &[".java-version", ".sdkmanrc", ".tool-versions", "mise.toml", ".mise.toml"];
const DOTNET_VERSION_FILES: &[&str] = &["global.json", ".tool-versions", "mise.toml", ".mise.toml"];
const SWIFT_VERSION_FILES: &[&str] = &[".swift-version"];
const OTHER_VERSION_FILES: &[&str] = &[".tool-versions", "mise.toml", ".mise.toml"];

/// Programs and the arguments, all of them, with which they only print their version.
const VERSIONS: &[(&[&str], &[&[&str]])] = &[
    (
        &[
            "cargo",
            "rustc",
            "rustup",
            "rustfmt",
            "clippy-driver",
            "node",
            "npm",
            "pnpm",
            "yarn",
            "bun",
            "deno",
            "tsc",
            "python",
            "python3",
            "python2",
            "pip",
            "pip3",
            "pipx",
            "poetry",
            "uv",
            "ruff",
            "black",
            "mypy",
            "ruby",
            "gem",
            "php",
            "perl",
            "gcc",
            "g++",
            "cc",
            "c++",
            "clang",
            "clang++",
            "ld",
            "make",
            "cmake",
            "ninja",
            "meson",
            "docker",
            "kubectl",
            "podman",
            "helm",
            "gh",
            "glab",
            "git",
            "rg",
            "fd",
            "jq",
            "yq",
            "curl",
            "wget",
            "tar",
            "zip",
            "unzip",
            "openssl",
            "bash",
            "zsh",
            "sh",
            "dash",
            "fish",
            "vim",
            "nvim",
            "emacs",
            "code",
            "sqlite3",
            "psql",
            "mysql",
            "redis-cli",
            "aws",
            "gcloud",
            "swift",
            "kotlin",
            "scala",
            "ghc",
            "stack",
            "cabal",
            "elixir",
            "erl",
            "julia",
            "lua",
            "luajit",
            "zig",
            "nim",
            "dart",
            "dotnet",
            "just",
            "pre-commit",
            "eslint",
            "prettier",
            "tree",
            "bat",
            "awk",
            "gawk",
            "sed",
            "find",
            "xargs",
            "rsync",
            "nix",
            "apt",
            "dpkg",
            "go-task",
            "protoc",
            "ffmpeg",
            "gdb",
            "lldb",
            "valgrind",
        ],
        &[&["--version"]],
    ),
    (&["cargo", "rustc", "rustup", "rg", "fd", "python", "python3", "pip", "pip3", "curl"], &[&["-V"]]),
    (
        &["node", "npm", "pnpm", "yarn", "bun", "tsc", "ruby", "perl", "php", "gcc", "make", "lua", "docker"],
        &[&["-v"]],
    ),
    (&["rustc"], &[&["-vV"], &["--version", "--verbose"], &["-V", "-v"]]),
    (&["java", "javac", "scala", "kotlin", "kotlinc", "ant", "erl"], &[&["-version"], &["--version"]]),
    (&["go", "helm", "gh", "hugo", "zig", "openssl"], &[&["version"]]),
    (&["git"], &[&["version"], &["--version"]]),
];

/// If a program, used so, only prints its version: the files of a project that would choose another program.
pub(in super::super) fn asks_version(program: &str, args: &[&str]) -> Option<&'static [&'static str]> {
    VERSIONS
        .iter()
        .any(|(programs, uses)| programs.contains(&program) && uses.contains(&args))
        .then(|| version_files(program))
}

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
        "go" | "php" | "perl" | "elixir" | "erl" | "julia" | "lua" | "zig" | "nim" | "dart" | "stack"
        | "ghc" | "cabal" | "helm" | "kubectl" | "hugo" => OTHER_VERSION_FILES,
        _ => &[],
    }
}
