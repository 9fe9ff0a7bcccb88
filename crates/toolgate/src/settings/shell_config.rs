//! The keys `sandbox`, `shell` and `env`, applied to the shell configuration of commands.
//!
//! The configuration applies from the next command on; running commands keep the sandbox that they started with.

use super::LoadedSettings;
use super::values::{SandboxBackendSetting, SandboxSection, ShellTimeoutSetting};
use toolgate_files::DEFAULT_SEARCH_PATH;
use toolgate_process::GitHelpers;
use toolgate_process::sandbox::SandboxMechanism;
use toolgate_proto::AbsPath;
use toolgate_tools::{OnTimeout, ShellConfig};

impl LoadedSettings {
    /// Applies the merged settings to a shell configuration. What the configuration forbids stays forbidden: lists are
    /// extended, and of two limits the smaller one applies.
    pub fn apply_to_shell_config(&self, shell_config: &mut ShellConfig) {
        let merged = self.merged();
        shell_config.settings_file = self.user_file.as_ref().map(ToString::to_string);
        let SandboxSection { network, filesystem, environment, limits, .. } = &merged.sandbox;
        let paths =
            |texts: &[String]| texts.iter().filter_map(|text| AbsPath::new(text).ok()).collect::<Vec<_>>();
        let sandbox = &mut shell_config.sandbox;
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
        let smaller = |configured: Option<u64>, setting: Option<u64>| match (configured, setting) {
            (Some(configured), Some(setting)) => Some(configured.min(setting)),
            (configured, setting) => configured.or(setting),
        };
        let process_limits = &mut sandbox.limits;
        process_limits.memory = smaller(process_limits.memory, limits.memory_bytes);
        process_limits.processes = smaller(process_limits.processes, limits.processes);
        process_limits.file_size = smaller(process_limits.file_size, limits.file_size_bytes);
        process_limits.cpu_seconds = smaller(process_limits.cpu_seconds, limits.cpu_seconds);

        shell_config.pass.extend(environment.pass.iter().cloned());
        shell_config.set.extend(self.env());
        // Programs of plugins come last, so that none takes the place of another program.
        let dirs: Vec<String> = self.plugins().program_dirs().iter().map(ToString::to_string).collect();
        if !dirs.is_empty() {
            let path = shell_config.set.get("PATH").or_else(|| shell_config.environment.get("PATH"));
            let path = path.map_or(DEFAULT_SEARCH_PATH, String::as_str);
            let path = format!("{path}:{}", dirs.join(":"));
            shell_config.set.insert("PATH".to_owned(), path);
        }
        let size = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok());
        let shown = merged.bash_output_max_chars.map(|chars| chars.clamp(4_000, 128_000));
        shell_config.max_shown_bytes = size(shown).unwrap_or(shell_config.max_shown_bytes);
        shell_config.max_output_bytes =
            merged.shell.max_output_bytes.unwrap_or(shell_config.max_output_bytes);
        shell_config.max_background_tasks =
            size(merged.shell.max_background_tasks).unwrap_or(shell_config.max_background_tasks);
        shell_config.snapshots = merged.shell.snapshots.unwrap_or(shell_config.snapshots);
        shell_config.on_timeout = match merged.shell.on_timeout {
            Some(ShellTimeoutSetting::Stop) => OnTimeout::Stop,
            Some(ShellTimeoutSetting::Background) => OnTimeout::Background,
            None => shell_config.on_timeout,
        };
        shell_config.git = match merged.shell.git_helpers {
            Some(true) => GitHelpers::On,
            Some(false) => GitHelpers::Off,
            None => shell_config.git,
        };
    }
}
