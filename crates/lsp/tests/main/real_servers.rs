//! Real language servers, in the sandbox, on a small project. `cargo xtask language-servers` installs them and runs this.
//!
//! The project has one type error, a symbol that two files use, an interface with one implementation, and an emoji before a
//! symbol, so that columns in bytes, UTF-16 units and characters differ.

use super::edits::policy;
use super::fake_server::{TestPermission, test_environment};
use super::write_tool::PutTool;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate_gate::{Gate, GateParts};
use toolgate_lsp::{
    EditDiagnostics, LaunchOptions, LspSource, PoolOptions, ServerPool, find_server_program, known_servers,
};
use toolgate_proto::{AbsPath, SourceId};
use toolgate_testkit::GateFixture;

/// The directory of the servers' programs.
const PROGRAMS_VARIABLE: &str = "TOOLGATE_LSP_SERVERS";

const FILES: &[(&str, &str)] = &[
    (
        "tsconfig.json",
        r#"{"compilerOptions":{"strict":true,"target":"es2020","module":"commonjs"},"include":["*.ts"]}"#,
    ),
    (
        "a.ts",
        "export interface Shape { area(): number }\nexport class Circle implements Shape {\n  constructor(private r: \
         number) {}\n  area(): number { return square(this.r) * 3.14; }\n}\nexport function square(x: number): number \
         { return x * x; }\nconst bad: string = 5;\n",
    ),
    (
        "b.ts",
        "import { Circle, Shape, square } from './a';\nexport function total(xs: Shape[]): number { return \
         xs.reduce((s, x) => s + x.area(), 0); }\nexport function main() { const s = '😀'; return total([new \
         Circle(square(2))]); }\n",
    ),
    (
        "a.py",
        "class Shape:\n    def area(self) -> float:\n        raise NotImplementedError\n\nclass Circle(Shape):\n    def \
         __init__(self, r: float) -> None:\n        self.r = r\n    def area(self) -> float:\n        return \
         square(self.r) * 3.14\n\ndef square(x: float) -> float:\n    return x * x\n\nbad: str = 5\n",
    ),
    (
        "b.py",
        "from a import Circle, square\n\ndef total(xs: list[Circle]) -> float:\n    return sum(x.area() for x in \
         xs)\n\ndef main() -> float:\n    s = '😀'; return total([Circle(square(2))])\n",
    ),
    ("rs/Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    (
        "rs/src/main.rs",
        "trait Shape { fn area(&self) -> f64; }\nstruct Circle(f64);\nimpl Shape for Circle { fn area(&self) -> f64 { \
         square(self.0) * 3.14 } }\nfn square(x: f64) -> f64 { x * x }\nfn total(xs: &[Circle]) -> f64 { \
         xs.iter().map(|x| x.area()).sum() }\nfn main() { let _b: String = 5; let _s = \"😀\"; println!(\"{}\", \
         total(&[Circle(square(2.0))])); }\n",
    ),
    ("a.sh", "#!/bin/bash\nsquare() { echo $(( $1 * $1 )); }\necho 😀; square 2\nsquare 3\n"),
];

/// One question, and texts that the answer must contain.
struct ExpectedAnswer {
    operation: &'static str,
    file: &'static str,
    line: u32,
    symbol: &'static str,
    contains: &'static [&'static str],
}

const fn expect(
    operation: &'static str,
    (file, line, symbol): (&'static str, u32, &'static str),
    contains: &'static [&'static str],
) -> ExpectedAnswer {
    ExpectedAnswer { operation, file, line, symbol, contains }
}

const TYPESCRIPT: &[ExpectedAnswer] = &[
    // First what a server answers incompletely before it has loaded the project.
    expect("findReferences", ("b.ts", 3, "square"), &["a.ts:4:27", "a.ts:6:17", "b.ts:1:25", "b.ts:3:66"]),
    expect("goToDefinition", ("b.ts", 3, "square"), &["a.ts:6:17: export function square"]),
    expect("hover", ("b.ts", 3, "square"), &["square(x: number): number"]),
    expect(
        "documentSymbol",
        ("a.ts", 1, ""),
        &["interface Shape", "class Circle", "  method area", "function square"],
    ),
    expect("workspaceSymbol", ("b.ts", 1, "square"), &["a.ts:6:", "function square"]),
    expect("goToImplementation", ("a.ts", 1, "Shape"), &["a.ts:2:14"]),
    expect("prepareCallHierarchy", ("b.ts", 3, "square"), &["a.ts:6:17: function square"]),
    expect("incomingCalls", ("b.ts", 3, "square"), &["a.ts:4:27: method area", "b.ts:3:66: function main"]),
    expect(
        "outgoingCalls",
        ("b.ts", 3, "main"),
        &["b.ts:2:17: function total", "a.ts:6:17: function square"],
    ),
    expect(
        "diagnostics",
        ("a.ts", 1, ""),
        &["a.ts:7:7: error[2322]: Type 'number' is not assignable to type 'string'"],
    ),
];

const PYTHON: &[ExpectedAnswer] = &[
    expect("findReferences", ("b.py", 7, "square"), &["a.py:9:16", "a.py:11:5", "b.py:1:23", "b.py:7:35"]),
    expect("goToDefinition", ("b.py", 7, "square"), &["a.py:11:5: def square"]),
    expect("hover", ("b.py", 7, "square"), &["square(x: float) -> float"]),
    expect(
        "documentSymbol",
        ("a.py", 1, ""),
        &["class Shape", "class Circle", "  method area", "function square"],
    ),
    expect("workspaceSymbol", ("b.py", 1, "square"), &["a.py:11:5: function square"]),
    expect("prepareCallHierarchy", ("b.py", 7, "square"), &["a.py:11:5: function square"]),
    expect("incomingCalls", ("b.py", 7, "square"), &["a.py:9:16", "b.py:7:35"]),
    expect("diagnostics", ("a.py", 1, ""), &["a.py:14:12: error[reportAssignmentType]"]),
];

const BASH: &[ExpectedAnswer] = &[
    expect("goToDefinition", ("a.sh", 3, "square"), &["a.sh:2:1: square()"]),
    expect("findReferences", ("a.sh", 3, "square"), &["a.sh:2:1", "a.sh:3:9", "a.sh:4:1"]),
    expect("hover", ("a.sh", 3, "square"), &["square"]),
    expect("documentSymbol", ("a.sh", 1, ""), &["function square [line 2]"]),
    expect("workspaceSymbol", ("a.sh", 1, "square"), &["function square"]),
];

const RUST: &[ExpectedAnswer] = &[
    expect(
        "findReferences",
        ("rs/src/main.rs", 6, "square"),
        &["main.rs:3:49", "main.rs:4:4", "main.rs:6:77"],
    ),
    expect("goToDefinition", ("rs/src/main.rs", 6, "square"), &["main.rs:4:4: fn square"]),
    expect("hover", ("rs/src/main.rs", 6, "square"), &["fn square(x: f64) -> f64"]),
    expect(
        "documentSymbol",
        ("rs/src/main.rs", 1, ""),
        &["interface Shape", "struct Circle", "function square"],
    ),
    expect("workspaceSymbol", ("rs/src/main.rs", 1, "square"), &["main.rs:4:4: function square"]),
    expect("goToImplementation", ("rs/src/main.rs", 1, "Shape"), &["main.rs:3:"]),
    expect("prepareCallHierarchy", ("rs/src/main.rs", 6, "square"), &["main.rs:4:4: function square"]),
    expect("incomingCalls", ("rs/src/main.rs", 6, "square"), &["main.rs:3:49", "main.rs:6:77"]),
    expect("outgoingCalls", ("rs/src/main.rs", 5, "total"), &["function area"]),
    expect("diagnostics", ("rs/src/main.rs", 1, ""), &["main.rs:6:30: error[E0308]"]),
];

/// A gate with one of the well-known servers, in the sandbox, on the project. Edits are allowed, and their results wait long
/// for diagnostics. `None` without the programs: then there is nothing to compare with.
pub(crate) fn real_fixture(only: &str) -> Option<(GateFixture, Arc<ServerPool>)> {
    let programs = std::env::var(PROGRAMS_VARIABLE).ok()?;
    let mut env = test_environment();
    if let Some(path) = env.get_mut("PATH") {
        *path = format!("{programs}:{path}");
    }
    let servers: Vec<_> = known_servers().into_iter().filter(|server| server.name == only).collect();
    // Not in every registry: rust-analyzer is a component of rustup, whose placeholder answers no question.
    if only == "rust-analyzer" {
        let program = find_server_program(&servers[0], &env)?;
        let version = std::process::Command::new(program.as_path()).arg("--version").output().ok()?;
        if !version.status.success() {
            println!("rust-analyzer is not installed, so it is left out");
            return None;
        }
        // Without them it finds nothing inside a macro of the standard library, and says so.
        let sysroot = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
        let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_owned();
        if !std::path::Path::new(&sysroot).join("lib/rustlib/src/rust/library").exists() {
            println!("the sources of the standard library are not installed, so rust-analyzer is left out");
            return None;
        }
    }
    let temp_dir = AbsPath::new(std::env::temp_dir()).unwrap();
    let home = env.get("HOME").and_then(|home| AbsPath::new(home).ok());
    let mut launch = LaunchOptions::new(env, temp_dir, Arc::new(TestPermission::Sandboxed));
    launch.home = home;
    let mut options = PoolOptions::new(servers, launch);
    options.ready_timeout = Duration::from_secs(100);
    options.diagnostics_timeout = Duration::from_secs(60);
    let pool = ServerPool::new(options);
    let mut parts = GateParts::default().with_policy(policy(&[]));
    let hook = Arc::new(EditDiagnostics::default());
    hook.connect(Arc::clone(&pool));
    parts.hooks.push(hook);
    let gate = Arc::new(Gate::new(parts));
    gate.add_source(LspSource::new("LSP", Arc::clone(&pool))).unwrap();
    gate.register(SourceId::Builtin, PutTool).unwrap();
    let fixture = GateFixture::new(gate).unwrap();
    for (name, text) in FILES {
        let path = fixture.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Some((fixture, pool))
}

async fn check_answers(server: &str, expected: &[ExpectedAnswer]) {
    let Some((fixture, pool)) = real_fixture(server) else { return };
    let mut wrong = Vec::new();
    for answer in expected {
        let mut input = json!({ "operation": answer.operation, "filePath": answer.file });
        match answer.operation {
            "workspaceSymbol" => input["query"] = json!(answer.symbol),
            "documentSymbol" | "diagnostics" => {}
            _ => {
                input["line"] = json!(answer.line);
                input["symbol"] = json!(answer.symbol);
            }
        }
        let started = Instant::now();
        let result = fixture.call("LSP", &input).await;
        let took = started.elapsed().as_millis();
        let (text, complete) = match &result {
            Ok(output) => (
                output.model_text(),
                output.structured.as_ref().and_then(|value| value.get("complete"))
                    == Some(&Value::Bool(true)),
            ),
            Err(refusal) => (refusal.to_string(), false),
        };
        println!("{server} {} {} ms: {} lines", answer.operation, took, text.lines().count());
        if !complete || !answer.contains.iter().all(|part| text.contains(part)) {
            wrong.push(format!("{}: wanted {:?}, got\n{text}", answer.operation, answer.contains));
        }
    }
    let status = pool.status();
    println!(
        "{server}: {:?}",
        status[0].instances.first().map(|instance| (
            &instance.title,
            &instance.columns,
            &instance.sandbox_denials,
            &instance.log,
            &instance.activity
        ))
    );
    pool.close().await;
    assert!(wrong.is_empty(), "{server}: {}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_each_operation_gives_the_right_answer() {
    check_answers("typescript", TYPESCRIPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyright_each_operation_gives_the_right_answer() {
    check_answers("pyright", PYTHON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_each_operation_gives_the_right_answer() {
    check_answers("bash", BASH).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn basedpyright_each_operation_gives_the_right_answer() {
    check_answers("basedpyright", PYTHON).await;
    check_answers("basedpyright", &[expect("goToImplementation", ("a.py", 1, "Shape"), &["a.py:5:7"])]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_analyzer_each_operation_gives_the_right_answer() {
    check_answers("rust-analyzer", RUST).await;
}
