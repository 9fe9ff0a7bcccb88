//! Other names of keys of settings: those of older versions, of other products, and common guesses.

/// Keys under other names. Case, `_` and `-` in them do not matter.
pub(super) const RENAMED_KEYS: &[(&str, &str)] = &[
    ("allowedTools", "permissions.allow"),
    ("disallowedTools", "permissions.deny"),
    ("mode", "permissions.defaultMode"),
    ("permissionMode", "permissions.defaultMode"),
    ("permissions.allowedTools", "permissions.allow"),
    ("permissions.disabledTools", "permissions.deny"),
    ("permissions.disallowedTools", "permissions.deny"),
    ("permissions.mode", "permissions.defaultMode"),
    ("permissions.preApproval", "preApproval"),
    ("policies", "policy"),
    ("allowedDomains", "preApproval.allowedDomains"),
    ("blockedDomains", "preApproval.blockedDomains"),
];

/// Guesses for keys that grant, each with its section. They are only reported.
pub(super) const GRANTING_SYNONYMS: &[(&str, &str)] = &[
    ("preApproval.allow", "preApproval.allowedDomains"),
    ("preApproval.allowDomains", "preApproval.allowedDomains"),
    ("preApproval.allowlist", "preApproval.allowedDomains"),
    ("sandbox.filesystem.allow", "sandbox.filesystem.allowWrite"),
    ("sandbox.network.allow", "sandbox.network.allowedDomains"),
    ("sandbox.network.allowDomains", "sandbox.network.allowedDomains"),
    ("sandbox.network.allowedHosts", "sandbox.network.allowedDomains"),
    ("sandbox.network.allowlist", "sandbox.network.allowedDomains"),
];

/// What other products and guesses call a key that restricts.
pub(super) struct KeySynonyms {
    /// The sections in which the names mean this key; the top level is empty.
    pub(super) sections: &'static [&'static str],
    /// The names, in lower case and without `_` and `-`.
    pub(super) names: &'static [&'static str],
    /// The key. `deny` in a section that has several such lists can be meant for each of them.
    pub(super) keys: &'static [&'static str],
}

/// The other names of keys that restrict.
pub(super) const RESTRICTING_SYNONYMS: &[KeySynonyms] = &[
    KeySynonyms {
        sections: &["permissions", "", "managed"],
        names: &[
            "blacklist",
            "block",
            "blocked",
            "blockedcommands",
            "blockedtools",
            "blocklist",
            "blocktools",
            "denied",
            "deniedcommands",
            "deniedtools",
            "denycommands",
            "denylist",
            "denyrules",
            "denytools",
            "disallow",
            "disallowed",
            "disallowedcommands",
            "disallowedtools",
            "excludedtools",
            "excludetools",
            "forbid",
            "forbidden",
            "prohibit",
            "prohibited",
            "reject",
        ],
        keys: &["permissions.deny"],
    },
    KeySynonyms {
        // At the top level, `exclude` is about files of other programs.
        sections: &["permissions", "managed"],
        names: &["disabledtools", "exclude", "excluded"],
        keys: &["permissions.deny"],
    },
    KeySynonyms {
        sections: &["permissions", "", "managed"],
        names: &["disablebypass", "disablebypassmode", "disablebypasspermissions"],
        keys: &["permissions.disableBypassPermissionsMode"],
    },
    KeySynonyms {
        sections: &["", "permissions"],
        names: &["blockedmcpservers", "disabledmcpservers", "excludedmcpservers", "excludemcpservers"],
        // The first is about servers of `.mcp.json` only.
        keys: &["disabledMcpjsonServers", "permissions.deny"],
    },
    KeySynonyms {
        sections: &["permissions", "", "managed"],
        names: &["asklist", "askrules", "confirm", "confirmtools", "requireapproval", "requireconfirmation"],
        keys: &["permissions.ask"],
    },
    KeySynonyms {
        sections: &["sandbox.network", "sandbox"],
        names: &[
            "blockeddomains",
            "blockedhosts",
            "blockdomains",
            "blockhosts",
            "deniedhosts",
            "denydomains",
            "denyhosts",
        ],
        keys: &["sandbox.network.deniedDomains"],
    },
    KeySynonyms {
        sections: &["sandbox.network"],
        names: &["blacklist", "block", "blocked", "blocklist", "denied", "deny", "denylist"],
        keys: &["sandbox.network.deniedDomains"],
    },
    KeySynonyms {
        sections: &["sandbox.filesystem"],
        names: &[
            "blacklist",
            "block",
            "blocked",
            "blocklist",
            "denied",
            "deniedpaths",
            "deny",
            "denylist",
            "denypaths",
        ],
        keys: &["sandbox.filesystem.denyRead", "sandbox.filesystem.denyWrite"],
    },
    KeySynonyms {
        sections: &["sandbox.filesystem", "sandbox"],
        names: &["deniedread", "deniedreads", "hidden", "hide", "noread", "unreadable"],
        keys: &["sandbox.filesystem.denyRead"],
    },
    KeySynonyms {
        sections: &["sandbox.filesystem", "sandbox"],
        names: &["deniedwrite", "deniedwrites", "nowrite", "readonly"],
        keys: &["sandbox.filesystem.denyWrite"],
    },
    KeySynonyms {
        sections: &["preApproval"],
        names: &[
            "blacklist",
            "block",
            "blocked",
            "blockedhosts",
            "blocklist",
            "deny",
            "denied",
            "denieddomains",
            "deniedhosts",
            "denydomains",
            "denylist",
        ],
        keys: &["preApproval.blockedDomains"],
    },
];
