//! Changes that real servers compute, in the sandbox: renames, formatting, code actions; diagnostics after an edit; files of
//! other programs. `cargo xtask language-servers` installs the servers and runs this.

use super::real_servers::real_fixture;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use toolgate_lsp::ServerPool;
use toolgate_proto::{Code, Refusal};
use toolgate_testkit::GateFixture;

/// A real server, and the project that it serves.
struct RealProject {
    fixture: GateFixture,
    pool: Arc<ServerPool>,
}

impl RealProject {
    /// `None` if the server is not installed.
    fn new(server: &str) -> Option<Self> {
        real_fixture(server).map(|(fixture, pool)| Self { fixture, pool })
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.fixture.root.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.fixture.root.join(name)).unwrap()
    }

    /// Asks about a file.
    async fn ask(&self, operation: &str, file: &str, rest: Value) -> Result<String, Refusal> {
        let mut input = json!({ "operation": operation, "filePath": file });
        for (name, value) in rest.as_object().into_iter().flatten() {
            input[name] = value.clone();
        }
        let output = self.fixture.call("LSP", &input).await;
        println!("{operation} {file}: {output:?}");
        output.map(|output| output.model_text())
    }

    /// Renames `square` on a line to `squared`.
    async fn rename(&self, file: &str, line: u32) -> String {
        let rest = json!({ "line": line, "symbol": "square", "newName": "squared" });
        self.ask("rename", file, rest).await.unwrap()
    }

    /// The result of an edit, with the diagnostics that follow it.
    async fn put(&self, file: &str, text: &str) -> String {
        let output = self.fixture.call("Put", &json!({ "file": file, "text": text })).await.unwrap();
        println!("put {file}: {}", output.model_text());
        output.model_text()
    }

    /// Asks until the answer contains a text, because a server learns of files of other programs in its own time.
    async fn ask_until(&self, operation: &str, file: &str, rest: Value, wanted: &str) -> String {
        let mut last = String::new();
        for _ in 0..100 {
            last = match self.ask(operation, file, rest.clone()).await {
                Ok(text) => text,
                Err(refusal) => refusal.to_string(),
            };
            if last.contains(wanted) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        last
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_edits_are_right() {
    let Some(project) = RealProject::new("typescript") else { return };
    let renamed = project.rename("b.ts", 3).await;
    assert!(renamed.starts_with("rename to `squared`: 4 edits in 2 files\n"), "{renamed}");
    assert!(project.read("a.ts").contains("export function squared(x: number): number { return x * x; }"));
    assert!(project.read("a.ts").contains("area(): number { return squared(this.r) * 3.14; }"));
    assert!(project.read("b.ts").starts_with("import { Circle, Shape, squared } from './a';"));
    assert!(project.read("b.ts").contains("'😀'; return total([new Circle(squared(2))]);"));

    project.write("c.ts", "export const  wide=  1 ;\n");
    project.ask("formatting", "c.ts", json!({})).await.unwrap();
    assert_eq!(project.read("c.ts"), "export const wide = 1;\n");

    project.write("d.ts", "export const four = squared(2);\n");
    let action = "Add import from \"./a\"";
    let rest = json!({ "line": 1, "symbol": "squared" });
    let listed = project.ask_until("codeActions", "d.ts", rest, action).await;
    assert!(listed.contains(&format!("{action} [quickfix]")), "{listed}");
    let rest = json!({ "line": 1, "symbol": "squared", "action": action });
    project.ask("applyCodeAction", "d.ts", rest).await.unwrap();
    assert_eq!(project.read("d.ts"), "import { squared } from \"./a\";\n\nexport const four = squared(2);\n");

    let text = project.read("a.ts") + "const worse: number = 'x';\n";
    let result = project.put("a.ts", &text).await;
    assert!(
        result.contains("a.ts:8:7: new error[2322]: Type 'string' is not assignable to type 'number'"),
        "{result}"
    );
    assert!(!result.contains("a.ts:7:"), "the old error is not new: {result}");
    project.pool.close().await;
}

/// What both servers for Python have in common.
async fn check_python(server: &str) -> Option<RealProject> {
    let project = RealProject::new(server)?;
    let renamed = project.rename("b.py", 7).await;
    assert!(renamed.starts_with("rename to `squared`: 4 edits in 2 files\n"), "{renamed}");
    assert!(project.read("a.py").contains("def squared(x: float) -> float:"));
    assert!(project.read("a.py").contains("return squared(self.r) * 3.14"));
    assert!(project.read("b.py").starts_with("from a import Circle, squared\n"));
    assert!(project.read("b.py").contains("s = '😀'; return total([Circle(squared(2))])"));

    let refusal = project.ask("formatting", "a.py", json!({})).await.unwrap_err();
    assert_eq!(refusal.code, Code::LspUnavailable);
    assert!(refusal.reason.contains("does not offer `formatting`"), "{}", refusal.reason);

    let text = project.read("a.py") + "worse: int = 'x'\n";
    let result = project.put("a.py", &text).await;
    assert!(result.contains("a.py:15:14: new error[reportAssignmentType]"), "{result}");
    assert!(!result.contains("a.py:14:"), "the old error is not new: {result}");

    // A file of another program is seen without being opened.
    project.write("c.py", "from a import squared\n\nnine = squared(3)\n");
    let rest = json!({ "line": 11, "symbol": "squared" });
    let found = project.ask_until("findReferences", "a.py", rest, "c.py:3:8").await;
    assert!(found.contains("c.py:1:15") && found.contains("c.py:3:8"), "{found}");
    Some(project)
}

#[tokio::test(flavor = "multi_thread")]
async fn pyright_edits_are_right() {
    if let Some(project) = check_python("pyright").await {
        project.pool.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn basedpyright_edits_are_right() {
    let Some(project) = check_python("basedpyright").await else { return };
    let listed = project.ask("codeActions", "a.py", json!({ "line": 14 })).await.unwrap();
    let action = "Add `# pyright: ignore[reportAssignmentType]`";
    assert!(listed.contains(action), "{listed}");
    project.ask("applyCodeAction", "a.py", json!({ "line": 14, "action": action })).await.unwrap();
    assert!(project.read("a.py").contains("bad: str = 5  # pyright: ignore[reportAssignmentType]\n"));
    project.pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_edits_are_right() {
    let Some(project) = RealProject::new("bash") else { return };
    let renamed = project.rename("a.sh", 3).await;
    assert!(renamed.starts_with("rename to `squared`: 3 edits in 1 file\n"), "{renamed}");
    assert_eq!(
        project.read("a.sh"),
        "#!/bin/bash\nsquared() { echo $(( $1 * $1 )); }\necho 😀; squared 2\nsquared 3\n"
    );
    project.pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_analyzer_edits_are_right() {
    let Some(project) = RealProject::new("rust-analyzer") else { return };
    let main = "rs/src/main.rs";
    let renamed = project.rename(main, 6).await;
    assert!(renamed.starts_with("rename to `squared`: 3 edits in 1 file\n"), "{renamed}");
    assert!(project.read(main).contains("fn squared(x: f64) -> f64 { x * x }"));
    assert!(project.read(main).contains("total(&[Circle(squared(2.0))])"));

    let action = "Convert to named struct";
    let listed = project.ask("codeActions", main, json!({ "line": 2, "symbol": "Circle" })).await.unwrap();
    assert!(listed.contains(action), "{listed}");
    let rest = json!({ "line": 2, "symbol": "Circle", "action": action });
    project.ask("applyCodeAction", main, rest).await.unwrap();
    assert!(project.read(main).contains("struct Circle { field1: f64 }"), "{}", project.read(main));

    project.ask("formatting", main, json!({})).await.unwrap();
    assert!(project.read(main).contains("fn squared(x: f64) -> f64 {\n    x * x\n}\n"));

    let text = project.read(main) + "fn worse() -> u32 { missing( }\n";
    let result = project.put(main, &text).await;
    assert!(result.contains("error"), "{result}");
    project.pool.close().await;
}
