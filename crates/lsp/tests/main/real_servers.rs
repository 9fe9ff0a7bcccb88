//! Real language servers, in the sandbox, on a small project. `cargo xtask language-servers` installs them and runs this.
//!
//! The project has one type error, a symbol that two files use, an interface with one implementation, and an emoji before a
//! symbol, so that columns in bytes, UTF-16 units and characters differ.

use super::fake_server::{TestPermission, test_environment};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate_gate::{Gate, GateParts};
use toolgate_lsp::{LaunchOptions, LspSource, PoolOptions, ServerPool, known_servers};
use toolgate_proto::AbsPath;
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
    expect("goToDefinition", ("b.ts", 3, "square"), &["a.ts:6:17: export function square"]),
    expect("findReferences", ("b.ts", 3, "square"), &["a.ts:4:27", "a.ts:6:17", "b.ts:1:25", "b.ts:3:66"]),
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
    expect("goToDefinition", ("b.py", 7, "square"), &["a.py:11:5: def square"]),
    expect("findReferences", ("b.py", 7, "square"), &["a.py:9:16", "a.py:11:5", "b.py:1:23", "b.py:7:35"]),
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

/// A gate with the well-known servers of one directory, in the sandbox.
fn fixture(programs: &str, only: &str) -> (GateFixture, Arc<ServerPool>) {
    let mut env = test_environment();
    if let Some(path) = env.get_mut("PATH") {
        *path = format!("{programs}:{path}");
    }
    let temp_dir = AbsPath::new(std::env::temp_dir()).unwrap();
    let launch = LaunchOptions::new(env, temp_dir, Arc::new(TestPermission::Sandboxed));
    let servers = known_servers().into_iter().filter(|server| server.name == only).collect();
    let mut options = PoolOptions::new(servers, launch);
    options.ready_timeout = Duration::from_secs(60);
    let pool = ServerPool::new(options);
    let gate = Arc::new(Gate::new(GateParts::default()));
    gate.add_source(LspSource::new("LSP", Arc::clone(&pool))).unwrap();
    let fixture = GateFixture::new(gate).unwrap();
    for (name, text) in FILES {
        std::fs::write(fixture.root.join(name), text).unwrap();
    }
    (fixture, pool)
}

async fn check_answers(server: &str, expected: &[ExpectedAnswer]) {
    // Without the programs there is nothing to compare with; `cargo xtask language-servers` gives them.
    let Ok(programs) = std::env::var(PROGRAMS_VARIABLE) else { return };
    let (fixture, pool) = fixture(&programs, server);
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
            instance.columns,
            &instance.sandbox_denials
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
