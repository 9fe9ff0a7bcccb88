//! The keys `sandbox`, `shell` and `env`: what commands run in.

use super::LoadedSettings;
use super::values::{SandboxBackendSetting, SandboxSection, ShellTimeoutSetting};
use toolgate_process::GitHelpers;
use toolgate_process::sandbox::SandboxMechanism;
use toolgate_proto::AbsPath;
use toolgate_tools::{OnTimeout, ShellConfig};

impl LoadedSettings {
    /// Puts what the settings say into the surroundings of commands. What the program that made the surroundings
    /// forbids stays forbidden.
    pub fn apply_to_shell_config(&self, surroundings: &mut ShellConfig) {
        let merged = self.merged();
        let SandboxSection { network, filesystem, environment, limits, .. } = &merged.sandbox;
        let paths =
            |texts: &[String]| texts.iter().filter_map(|text| AbsPath::new(text).ok()).collect::<Vec<_>>();
        let sandbox = &mut surroundings.sandbox;
        sandbox.enabled = merged.sandbox.enabled.unwrap_or(sandbox.enabled);
        sandbox.required |=
            merged.sandbox.required == Some(true) || merged.sandbox.fail_if_unavailable == Some(true);
        sandbox.allow_unsandboxed &= merged.sandbox.allow_unsandboxed_commands != Some(false);
        sandbox.local_binding = network.allow_local_binding.unwrap_or(sandbox.local_binding);
        sandbox.writable.extend(paths(&filesystem.allow_write));
        sandbox.protected.extend(paths(&filesystem.deny_write));
        sandbox.unreadable.extend(paths(&filesystem.deny_read));
        sandbox.hosts.extend(network.allowed_domains.iter().cloned());
        sandbox.denied_hosts.extend(network.denied_domains.iter().cloned());
        sandbox.sockets.extend(paths(&network.allow_unix_sockets));
        if network.allow_all_unix_sockets == Some(true) {
            sandbox.sockets.push(AbsPath::root());
        }
        sandbox.backend = match merged.sandbox.backend {
            Some(SandboxBackendSetting::Landlock) => SandboxMechanism::Landlock,
            Some(SandboxBackendSetting::Bubblewrap) => SandboxMechanism::Bubblewrap,
            None => sandbox.backend,
        };
        let smaller = |before: Option<u64>, said: Option<u64>| match (before, said) {
            (Some(before), Some(said)) => Some(before.min(said)),
            (before, said) => before.or(said),
        };
        let slots = &mut sandbox.limits;
        slots.memory = smaller(slots.memory, limits.memory_bytes);
        slots.processes = smaller(slots.processes, limits.processes);
        slots.file_size = smaller(slots.file_size, limits.file_size_bytes);
        slots.cpu_seconds = smaller(slots.cpu_seconds, limits.cpu_seconds);

        surroundings.pass.extend(environment.pass.iter().cloned());
        surroundings.set.extend(self.env());
        let size = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok());
        let shown = merged.bash_output_max_chars.map(|most| most.clamp(4_000, 128_000));
        surroundings.max_shown_bytes = size(shown).unwrap_or(surroundings.max_shown_bytes);
        surroundings.max_output_bytes =
            merged.shell.max_output_bytes.unwrap_or(surroundings.max_output_bytes);
        surroundings.max_background_tasks =
            size(merged.shell.max_background_tasks).unwrap_or(surroundings.max_background_tasks);
        surroundings.on_timeout = match merged.shell.on_timeout {
            Some(ShellTimeoutSetting::Stop) => OnTimeout::Stop,
            Some(ShellTimeoutSetting::Background) => OnTimeout::Background,
            None => surroundings.on_timeout,
        };
        surroundings.git = match merged.shell.git_helpers {
            Some(true) => GitHelpers::On,
            Some(false) => GitHelpers::Off,
            None => surroundings.git,
        };
    }
}
