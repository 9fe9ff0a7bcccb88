//! A self-test of the sandbox on this machine, for `toolgate doctor`.

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

/// The result of one attempt of a command in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// The property that was tested, in words for the user.
    pub what: &'static str,
    /// The property holds on this machine.
    pub passed: bool,
}

/// The attempts: property, shell command, expected result. `IN` is replaced by a writable directory, `OUT` by one that is
/// not, `KEY` by an unreadable file, `PORT` by a listening port and `PID` by toolgate's process id.
const ATTEMPTS: [(&str, &str, SelfTestExpectation); 11] = [
    ("can write in the workspace", "echo x > IN/new && read -r line < IN/new", SelfTestExpectation::Works),
    ("cannot write files outside", "echo x > OUT/new", SelfTestExpectation::Fails),
    ("cannot remove files outside", "rm OUT/file", SelfTestExpectation::Fails),
    ("cannot change modes of files outside", "chmod 700 OUT/file", SelfTestExpectation::Fails),
    ("cannot change protected files", "echo x > IN/.git/hooks/new", SelfTestExpectation::Fails),
    ("can create files beside protected ones", "echo x > IN/.git/new", SelfTestExpectation::Works),
    ("cannot read denied files", "read -r line < OUT/KEY", SelfTestExpectation::Fails),
    ("cannot connect over TCP", "exec 3<>/dev/tcp/127.0.0.1/PORT", SelfTestExpectation::Fails),
    ("cannot send over UDP", "echo x > /dev/udp/127.0.0.1/PORT", SelfTestExpectation::Fails),
    ("cannot signal other processes", "kill -0 PID", SelfTestExpectation::Fails),
    ("cannot inspect other processes", "read -r -d '' line < /proc/PID/environ", SelfTestExpectation::Fails),
];

/// What an attempt must do for its property to hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SelfTestExpectation {
    /// The command exits with 0.
    Works,
    /// The command fails.
    Fails,
}

/// Runs every attempt in a private directory below `parent`.
pub fn run_self_test(parent: &AbsPath) -> Result<Vec<SelfTest>, String> {
    let scratch = ScratchDirectory::new(parent, "toolgate-self-test-").map_err(|error| error.to_string())?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    for name in ["in/.git/hooks/old", "out/file", "out/key"] {
        scratch.write(name, "x\n").map_err(|error| error.to_string())?;
    }
    let (inside, outside) = (scratch.dir().join("in"), scratch.dir().join("out"));
    let profile = SandboxProfile {
        writable: vec![inside.clone()],
        protected: vec![inside.join(".git/hooks")],
        unreadable: vec![outside.join("key")],
        net: SandboxNetworkAccess::None,
        ..SandboxProfile::default()
    };
    let mut tests = Vec::new();
    for (what, text, expect) in ATTEMPTS {
        let text = text
            .replace("IN", &inside.to_string())
            .replace("OUT", &outside.to_string())
            .replace("KEY", "key")
            .replace("PORT", &port.to_string())
            .replace("PID", &std::process::id().to_string());
        let worked = run_attempt(text, &inside, profile.clone()).map_err(|problem| problem.message)?;
        tests.push(SelfTest { what, passed: worked == (expect == SelfTestExpectation::Works) });
    }
    Ok(tests)
}

/// Whether the command exited with 0 in the sandbox.
fn run_attempt(text: String, cwd: &AbsPath, profile: SandboxProfile) -> Result<bool, ProcessStartError> {
    let file = cwd.join("output");
    let command = ProcessSpec {
        text,
        cwd: cwd.clone(),
        environment: CommandEnvironment::from_filtered(&BTreeMap::new(), &[], &BTreeMap::new()),
        startup: None,
        capture: CaptureOptions { head: 4096, tail: 0, max_bytes: 4096, file, file_at_once: false },
        sandbox: Some(profile),
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
        let tests = run_self_test(&AbsPath::new(dir.path().canonicalize().unwrap()).unwrap()).unwrap();
        let kernel = super::super::KernelSupport::detect();
        if kernel.landlock >= 6 && kernel.seccomp_notify {
            let failed: Vec<_> = tests.iter().filter(|test| !test.passed).collect();
            assert!(failed.is_empty(), "{failed:?}");
        }
        assert_eq!(tests.len(), ATTEMPTS.len());
    }
}
