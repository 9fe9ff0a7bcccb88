//! The policy that follows from the settings: rules, mode and switches.

use super::LoadedSettings;
use super::merge::is_stricter;
use super::read::read_rules;
use super::values::{DisableSwitch, PreApprovalProfile, RiskProfileSetting, SettingsValues};
use toolgate_policy::url::{COMMON_HOSTS, DOCUMENTATION_HOSTS};
use toolgate_policy::{LayerRules, RawPolicy};
use toolgate_proto::{AbsPath, Mode};

impl LoadedSettings {
    /// The input of the policy compiler. `mode` is the mode of the command line: it overrides the files, but a managed
    /// mode only if it is stricter.
    ///
    /// ```
    /// use toolgate::settings::{LoadedSettings, SettingsOptions};
    /// use toolgate::{AbsPath, Mode};
    ///
    /// let mut options = SettingsOptions::new(AbsPath::new("/project").unwrap());
    /// options.managed_dirs.clear();
    /// options.sources.clear();
    /// options.extra = Some(r#"{ "permissions": { "defaultMode": "plan" } }"#.to_owned());
    /// let settings = LoadedSettings::load(&options)?;
    /// assert_eq!(settings.policy(None).mode, Mode::Plan);
    /// assert_eq!(settings.policy(Some(Mode::Deny)).mode, Mode::Deny);
    /// # Ok::<(), toolgate::settings::SettingsError>(())
    /// ```
    pub fn policy(&self, mode: Option<Mode>) -> RawPolicy {
        let merged = self.merged();
        let permissions = &merged.permissions;
        let on = |switch: Option<DisableSwitch>| switch.is_some_and(DisableSwitch::disables);
        let mut policy = RawPolicy::default()
            .with_layers(self.files.iter().map(|file| file.rules.clone()).collect())
            .with_books(self.files.iter().filter_map(|file| file.book.clone()).collect())
            .with_mode(self.mode(mode));
        policy.auto_allow_read_only_commands = permissions.auto_allow_read_only_commands.unwrap_or(true);
        policy.block_reads_outside = permissions.block_reads_outside_working_directories == Some(true);
        policy.block_writes_outside = permissions.block_writes_outside_working_directories == Some(true);
        policy.allow_unsandboxed = merged.sandbox.allow_unsandboxed_commands.unwrap_or(true);
        policy.protected_paths = self.protected_paths();
        policy.deny_questions = self.denies_instead_of_asking();
        policy.deny_dangers_from = permissions.risk_profile.and_then(RiskProfileSetting::deny_from);
        // Not a file of the project: there it would need trust, and a change to it would end the trust there is.
        policy.allow_place = self.user_file.as_ref().map(|file| format!("to `permissions.allow` in {file}"));
        policy.untrusted_allow = self.untrusted_allow_rules();
        policy.setting_places = self.setting_places();
        policy.unmatchable_rules = permissions.unmatchable_rules.map(Into::into).unwrap_or_default();
        // A mode of the command line or of the session is in no file.
        if mode == Some(policy.mode) {
            policy.setting_places.remove("permissions.defaultMode");
        }
        policy.books.extend(self.wide_book());
        policy.managed.disabled_tools = self.disabled_tools();
        policy.managed.disable_bypass_permissions_mode = self.is_bypass_disabled();
        policy.managed.require_plan_mode = configured_mode(&self.managed) == Some(Mode::Plan);
        policy.managed.allow_managed_permission_rules_only = self.is_managed_rules_only();
        policy.managed.disable_skill_shell_execution =
            on(merged.disable_skill_shell_execution) || on(merged.managed.disable_skill_shell_execution);
        policy.managed.disable_remote_control =
            on(merged.disable_remote_control) || on(merged.managed.disable_remote_control);
        policy.managed.disable_agent_view =
            on(merged.disable_agent_view) || on(merged.managed.disable_agent_view);
        let fetch = &merged.pre_approval;
        policy.fetch.auto_approve_https = fetch.auto_approve_https.unwrap_or(false);
        policy.fetch.allowed_domains.clone_from(&fetch.allowed_domains);
        let profile: &[&str] = match fetch.profile {
            Some(PreApprovalProfile::Documentation) => DOCUMENTATION_HOSTS,
            Some(PreApprovalProfile::Common) => COMMON_HOSTS,
            None => &[],
        };
        policy.fetch.allowed_domains.extend(profile.iter().map(|host| (*host).to_owned()));
        policy.fetch.blocked_domains.clone_from(&fetch.blocked_domains);
        policy.fetch.allow_private.clone_from(&fetch.allow_private);
        policy
    }

    /// The allow rules of a project that is not trusted, without those that the user granted.
    fn untrusted_allow_rules(&self) -> Vec<LayerRules> {
        let mut found = Vec::new();
        for file in self.files.iter().filter(|file| !file.trusted) {
            let mut rules = file.rules.clone();
            (rules.ask, rules.deny) = (Vec::new(), Vec::new());
            rules.allow = read_rules(&file.node, "allow");
            rules.allow.retain(|rule| !file.rules.allow.contains(rule));
            if !rules.allow.is_empty() {
                found.push(rules);
            }
        }
        found
    }

    /// The mode that applies.
    fn mode(&self, given: Option<Mode>) -> Mode {
        match (given, configured_mode(&self.managed), configured_mode(&self.merged)) {
            (Some(given), Some(managed), _) if !is_stricter(given, managed) => managed,
            (Some(given), _, _) => given,
            (None, _, merged) => merged.unwrap_or_default(),
        }
    }

    /// Directories that belong to the workspace besides the working directory.
    pub fn additional_directories(&self) -> Vec<AbsPath> {
        let named = &self.merged().permissions.additional_directories;
        named.iter().filter_map(|dir| AbsPath::new(dir).ok()).collect()
    }

    /// Tools that are hidden and cannot be called.
    pub fn disabled_tools(&self) -> Vec<String> {
        let merged = self.merged();
        merged.disabled_tools.iter().chain(&merged.managed.disabled_tools).cloned().collect()
    }

    /// Whether allow rules that are not managed are ignored. Any file can set this, because it only restricts.
    pub fn is_managed_rules_only(&self) -> bool {
        let merged = self.merged();
        merged.allow_managed_permission_rules_only == Some(true)
            || merged.managed.allow_managed_permission_rules_only == Some(true)
    }

    /// Whether mode bypass is forbidden. Any file can set this, because it only restricts.
    pub fn is_bypass_disabled(&self) -> bool {
        let merged = self.merged();
        [merged.permissions.disable_bypass_permissions_mode, merged.managed.disable_bypass_permissions_mode]
            .into_iter()
            .flatten()
            .any(DisableSwitch::disables)
    }

    /// Whether calls that would need approval are denied without asking.
    pub fn denies_instead_of_asking(&self) -> bool {
        self.merged().permissions.deny_instead_of_prompting == Some(true)
    }
}

/// The mode that settings name, if they do.
fn configured_mode(values: &SettingsValues) -> Option<Mode> {
    values.permissions.default_mode.as_deref().and_then(|mode| mode.parse().ok())
}
