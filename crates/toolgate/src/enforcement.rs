//! Whether this machine's kernel holds commands to what was judged.

use toolgate_policy::Enforcement;
use toolgate_process::sandbox::{KernelSupport, SandboxMechanism};
use toolgate_tools::ShellConfig;

/// Whether the kernel holds commands to what was judged, in these surroundings: the sandbox is on, and this machine
/// has every part of it.
pub fn enforcement(surroundings: &ShellConfig) -> Enforcement {
    let sandbox = &surroundings.sandbox;
    let holds = sandbox.enabled
        && sandbox.backend == SandboxMechanism::Landlock
        && KernelSupport::detect().enforces_rights();
    if holds { Enforcement::Kernel } else { Enforcement::Absent }
}
