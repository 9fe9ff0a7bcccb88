//! The keys `sandbox`, `shell` and `env`: what commands run in.
//!
//! What loosens counts only from where loosening is trusted; what tightens counts from everywhere.

use super::Settings;
use super::read::Origin;
use super::shape::{Lapse, Sandbox, SandboxBackend, Shape, ShellShape};
use std::collections::BTreeMap;
use toolgate_os::process::GitHelpers;
use toolgate_os::sandbox::Backend;
use toolgate_proto::AbsPath;
use toolgate_tools::{OnTimeout, Surroundings};

/// What one file says about the sandbox.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SandboxPart {
    /// `sandbox.enabled`.
    pub enabled: Option<bool>,
    /// `sandbox.failIfUnavailable`, or `sandbox.required`.
    pub required: Option<bool>,
    /// `sandbox.allowUnsandboxedCommands`.
    pub allow_unsandboxed: Option<bool>,
    /// `sandbox.filesystem.allowWrite`.
    pub allow_write: Vec<AbsPath>,
    /// `sandbox.filesystem.denyWrite`.
    pub deny_write: Vec<AbsPath>,
    /// `sandbox.filesystem.denyRead`.
    pub deny_read: Vec<AbsPath>,
    /// `sandbox.network.allowedDomains`.
    pub allowed_domains: Vec<String>,
    /// `sandbox.network.deniedDomains`.
    pub denied_domains: Vec<String>,
    /// `sandbox.network.allowLocalBinding`.
    pub local_binding: Option<bool>,
    /// `sandbox.network.allowUnixSockets`, and the root for `allowAllUnixSockets`.
    pub sockets: Vec<AbsPath>,
    /// `sandbox.backend`.
    pub backend: Option<SandboxBackend>,
    /// `sandbox.environment.pass`.
    pub pass: Vec<String>,
    /// `sandbox.limits`: memory, processes, file size, processor time.
    pub limits: [Option<u64>; 4],
    /// `env`.
    pub env: BTreeMap<String, String>,
    /// `shell`.
    pub shell: ShellShape,
    /// `bashOutputMaxChars`.
    pub shown_output: Option<u64>,
}

impl Sandbox {
    /// Whether something in it gives commands more than they have without it.
    pub(super) fn loosens(&self) -> bool {
        self.enabled == Some(false)
            || self.fail_if_unavailable == Some(false)
            || self.required == Some(false)
            || self.allow_unsandboxed_commands == Some(true)
            || self.network.allow_local_binding == Some(true)
            || self.network.allow_all_unix_sockets == Some(true)
            || self.backend.is_some()
            || !self.network.allow_unix_sockets.is_empty()
            || !self.network.allowed_domains.is_empty()
            || !self.filesystem.allow_write.is_empty()
            || !self.environment.pass.is_empty()
    }
}

impl SandboxPart {
    /// What counts of a file.
    pub(super) fn of(shape: &Shape, origin: &Origin<'_>) -> Self {
        let Sandbox { network, filesystem, environment, limits, .. } = &shape.sandbox;
        let trusted = origin.trusted;
        let paths = |texts: &[String]| texts.iter().map(|text| path(text, origin)).collect();
        let tightening = |said: Option<bool>, tight: bool| said.filter(|said| *said == tight || trusted);
        let mut part = Self {
            enabled: tightening(shape.sandbox.enabled, true),
            required: tightening(shape.sandbox.required.or(shape.sandbox.fail_if_unavailable), true),
            allow_unsandboxed: tightening(shape.sandbox.allow_unsandboxed_commands, false),
            local_binding: tightening(network.allow_local_binding, false),
            deny_write: paths(&filesystem.deny_write),
            deny_read: paths(&filesystem.deny_read),
            denied_domains: network.denied_domains.clone(),
            limits: [limits.memory_bytes, limits.processes, limits.file_size_bytes, limits.cpu_seconds],
            ..Self::default()
        };
        if trusted {
            part.allow_write = paths(&filesystem.allow_write);
            part.allowed_domains.clone_from(&network.allowed_domains);
            part.pass.clone_from(&environment.pass);
            part.env.clone_from(&shape.env);
            part.sockets = paths(&network.allow_unix_sockets);
            if network.allow_all_unix_sockets == Some(true) {
                part.sockets.push(AbsPath::root());
            }
            part.backend = shape.sandbox.backend;
            // How much of the machine may be used is for the person to say.
            part.shell.clone_from(&shape.shell);
            part.shown_output = shape.bash_output_max_chars.map(|most| most.clamp(4_000, 128_000));
        }
        part
    }
}

/// A path: absolute, from home with `~/`, or from where the file is anchored. `//` at the start means the root, as in
/// rules.
fn path(text: &str, origin: &Origin<'_>) -> AbsPath {
    match (text.strip_prefix("~/"), origin.home, text.strip_prefix("//")) {
        (Some(rest), Some(home), _) => home.join(rest),
        (_, _, Some(rest)) => origin.anchor.join(format!("/{rest}")),
        _ => origin.anchor.join(text),
    }
}

impl Settings {
    /// Puts what the settings say into the surroundings of commands.
    pub fn surround(&self, surroundings: &mut Surroundings) {
        let parts = || self.files.iter().map(|file| &file.sandbox);
        let says =
            |get: fn(&SandboxPart) -> Option<bool>, what: bool| parts().any(|part| get(part) == Some(what));
        let sandbox = &mut surroundings.sandbox;
        // Where files disagree, the tighter word stands.
        sandbox.enabled =
            says(|part| part.enabled, true) || sandbox.enabled && !says(|part| part.enabled, false);
        sandbox.required |= says(|part| part.required, true);
        sandbox.allow_unsandboxed &= !says(|part| part.allow_unsandboxed, false);
        sandbox.local_binding = !says(|part| part.local_binding, false)
            && (sandbox.local_binding || says(|part| part.local_binding, true));
        for part in parts() {
            sandbox.writable.extend(part.allow_write.iter().cloned());
            sandbox.protected.extend(part.deny_write.iter().cloned());
            sandbox.unreadable.extend(part.deny_read.iter().cloned());
            sandbox.hosts.extend(part.allowed_domains.iter().cloned());
            sandbox.denied_hosts.extend(part.denied_domains.iter().cloned());
            sandbox.sockets.extend(part.sockets.iter().cloned());
            surroundings.pass.extend(part.pass.iter().cloned());
        }
        // Weakest first, so that a stronger file's value stands.
        for part in self.files.iter().rev().map(|file| &file.sandbox) {
            surroundings.set.extend(part.env.clone());
            let size = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok());
            let shell = &part.shell;
            surroundings.shown_output = size(part.shown_output).unwrap_or(surroundings.shown_output);
            surroundings.most_output = shell.max_output_bytes.unwrap_or(surroundings.most_output);
            surroundings.most_tasks = size(shell.max_background_tasks).unwrap_or(surroundings.most_tasks);
            surroundings.on_timeout = match shell.on_timeout {
                Some(Lapse::Stop) => OnTimeout::Stop,
                Some(Lapse::Background) => OnTimeout::Background,
                None => surroundings.on_timeout,
            };
            surroundings.git = match shell.git_helpers {
                Some(true) => GitHelpers::On,
                Some(false) => GitHelpers::Off,
                None => surroundings.git,
            };
            sandbox.backend = match part.backend {
                Some(SandboxBackend::Landlock) => Backend::Landlock,
                Some(SandboxBackend::Bubblewrap) => Backend::Bubblewrap,
                None => sandbox.backend,
            };
        }
        // Of limits the smallest counts, whoever set it.
        let limits = &mut sandbox.limits;
        let slots =
            [&mut limits.memory, &mut limits.processes, &mut limits.file_size, &mut limits.cpu_seconds];
        for (index, slot) in slots.into_iter().enumerate() {
            *slot = parts().filter_map(|part| part.limits.get(index).copied().flatten()).min();
        }
    }
}
