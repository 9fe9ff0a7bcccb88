//! Whether the kernel of this machine limits commands to the rights that were judged.

use toolgate_policy::Enforcement;
use toolgate_process::sandbox::{KernelSupport, SandboxMechanism};
use toolgate_tools::ShellConfig;

/// Whether the kernel limits commands to the rights that were judged: the sandbox is enabled, its backend is Landlock,
/// and the kernel has every feature that it needs. Otherwise policy lets fewer commands run without approval.
pub fn enforcement(shell_config: &ShellConfig) -> Enforcement {
    let sandbox = &shell_config.sandbox;
    let is_enforced = sandbox.enabled
        && sandbox.backend == SandboxMechanism::Landlock
        && KernelSupport::detect().enforces_rights();
    if is_enforced { Enforcement::Kernel } else { Enforcement::Absent }
}
