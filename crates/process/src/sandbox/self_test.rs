//! The sandbox tried out on this machine, for a person who wants to know.

use super::{SandboxNetworkAccess, SandboxProfile};
use crate::process::{
    CaptureOptions, CommandEnvironment, ProcessExit, ProcessPhase, ProcessSpec, ProcessStartError,
    SupervisedProcess,
};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;
use toolgate_files::ScratchDirectory;
use toolgate_proto::AbsPath;

/// One attempt of a command in the box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// What must hold.
    pub what: &'static str,
    /// It did.
    pub passed: bool,
}

/// What is attempted. The first letter of the marks names a place: `IN` is writable, `OUT` is not, `KEY` unreadable.
const ATTEMPTS: [(&str, &str, SelfTestExpectation); 11] = [
    (
        "a command writes in the workspace",
        "echo x > IN/new && read -r line < IN/new",
        SelfTestExpectation::Works,
    ),
    ("no file outside is written", "echo x > OUT/new", SelfTestExpectation::Fails),
    ("no file outside is removed", "rm OUT/file", SelfTestExpectation::Fails),
    ("no mode outside is changed", "chmod 700 OUT/file", SelfTestExpectation::Fails),
    ("protected files stay as they are", "echo x > IN/.git/hooks/new", SelfTestExpectation::Fails),
    ("files can be made beside protected ones", "echo x > IN/.git/new", SelfTestExpectation::Works),
    ("denied files are not read", "read -r line < OUT/KEY", SelfTestExpectation::Fails),
    ("no TCP connection", "exec 3<>/dev/tcp/127.0.0.1/PORT", SelfTestExpectation::Fails),
    ("no UDP packet", "echo x > /dev/udp/127.0.0.1/PORT", SelfTestExpectation::Fails),
    ("no signal to processes outside", "kill -0 PID", SelfTestExpectation::Fails),
    ("no look into processes outside", "read -r -d '' line < /proc/PID/environ", SelfTestExpectation::Fails),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum SelfTestExpectation {
    Works,
    Fails,
}

/// Runs every attempt in a private directory below `parent`.
pub fn run_self_test(parent: &AbsPath) -> Result<Vec<SelfTest>, String> {
    let scratch = ScratchDirectory::new(parent, "toolgate-trial-").map_err(|error| error.to_string())?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    for name in ["in/.git/hooks/old", "out/file", "out/key"] {
        scratch.write(name, "x\n").map_err(|error| error.to_string())?;
    }
    let (inside, outside) = (scratch.dir().join("in"), scratch.dir().join("out"));
    let confinement = SandboxProfile {
        writable: vec![inside.clone()],
        protected: vec![inside.join(".git/hooks")],
        unreadable: vec![outside.join("key")],
        net: SandboxNetworkAccess::None,
        ..SandboxProfile::default()
    };
    let mut trials = Vec::new();
    for (what, text, expect) in ATTEMPTS {
        let text = text
            .replace("IN", &inside.to_string())
            .replace("OUT", &outside.to_string())
            .replace("KEY", "key")
            .replace("PORT", &port.to_string())
            .replace("PID", &std::process::id().to_string());
        let worked = run_attempt(text, &inside, confinement.clone()).map_err(|problem| problem.message)?;
        trials.push(SelfTest { what, passed: worked == (expect == SelfTestExpectation::Works) });
    }
    Ok(trials)
}

fn run_attempt(text: String, cwd: &AbsPath, confinement: SandboxProfile) -> Result<bool, ProcessStartError> {
    let file = cwd.join("output");
    let command = ProcessSpec {
        text,
        cwd: cwd.clone(),
        environment: CommandEnvironment::from_filtered(&BTreeMap::new(), &[], &BTreeMap::new()),
        startup: None,
        capture: CaptureOptions { head: 4096, tail: 0, max_bytes: 4096, file, file_at_once: false },
        sandbox: Some(confinement),
    };
    let process = SupervisedProcess::start(command, || ())?;
    process.wait_all_exited(Duration::from_secs(10));
    Ok(matches!(process.phase(), ProcessPhase::AllExited(ProcessExit::Code(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_holds_on_a_machine_with_every_part() {
        let dir = tempfile::tempdir().unwrap();
        let trials = run_self_test(&AbsPath::new(dir.path().canonicalize().unwrap()).unwrap()).unwrap();
        let ground = super::super::KernelSupport::detect();
        if ground.landlock >= 6 && ground.seccomp_notify {
            let open: Vec<_> = trials.iter().filter(|trial| !trial.passed).collect();
            assert!(open.is_empty(), "{open:?}");
        }
        assert_eq!(trials.len(), ATTEMPTS.len());
    }
}
