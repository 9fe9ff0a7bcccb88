//! Secret names: which files, variables and fields hold secrets, as far as their names tell.
//!
//! This is the one table, for the question before a read, the files that the sandbox hides, the environment of commands
//! and the redaction of records. File names are lower case, as policy folds paths before it compares them.

/// Patterns of files with secrets, in gitignore syntax: a read or write asks, with a warning.
pub const SECRET_PATTERNS: &[&str] = &[
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "credentials.*",
    "secrets.*",
    "**/credentials/**",
    "**/secrets/**",
    ".ssh",
    ".ssh/*",
    ".gnupg",
    ".gnupg/*",
    "id_rsa*",
    "id_ed25519*",
    "id_ecdsa*",
    "id_dsa*",
    "*.gpg",
    ".aws/*",
    ".azure/*",
    ".gcloud/*",
    ".config/gcloud/*",
    ".config/gh/hosts.yml",
    ".config/git/credentials",
    ".config/hub",
    ".kube/config",
    ".npmrc",
    ".pypirc",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".cargo/credentials",
    ".gem/credentials",
    ".docker/config.json",
    ".password-store/*",
    ".local/share/keyrings/*",
    "etc/shadow",
    "etc/gshadow",
    "proc/*/environ",
    "database.yml",
    "database.json",
];

/// Paths below a home directory that are hidden from commands, whatever the workspace is: keys, tokens, sign-ins.
pub const HOME_SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".gcloud",
    ".config/gcloud",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".vault-token",
    ".terraform.d/credentials.tfrc.json",
];

/// Well-known names that a shell glob may be written for. A glob that begins with enough of one of these and matches it
/// is judged as if it named it, even if no such file is known to exist.
pub const SECRET_FILE_NAMES: &[&str] = &[
    ".env",
    ".env.local",
    ".env.production",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".gcloud",
    ".kube",
    ".docker",
    ".git-credentials",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    "credentials.json",
    "secrets.yaml",
    "secrets.json",
    "secrets",
    "credentials",
    "database.yml",
];

/// The same for endings: a glob that spells out an extension and matches one of these is judged as if it named a key.
pub const SECRET_FILE_EXAMPLES: &[&str] =
    &["server.pem", "server.key", "server.p12", "server.pfx", "server.gpg"];

/// Directory and file names that mean secrets in data, but not in source code or documentation.
pub const SECRET_STEMS: [&str; 2] = ["secrets", "credentials"];

/// Extensions of text and source code: `docs/secrets.md` and `src/credentials.rs` are about secrets, and have none.
pub const TEXT_EXTENSIONS: &[&str] = &[
    "md", "rst", "adoc", "html", "rs", "go", "py", "ts", "tsx", "js", "jsx", "java", "kt", "c", "h", "cc",
    "cpp", "hpp", "rb", "php", "swift", "cs", "scala", "ex", "exs",
];

/// Last extensions of a `.env` file that is an example to copy.
pub const EXAMPLE_EXTENSIONS: &[&str] = &["example", "sample", "template", "dist", "tmpl", "defaults"];

/// Directories of installed packages. Their certificates and test keys are published with the package.
pub const PACKAGE_DIRECTORIES: &[&str] = &["node_modules", "site-packages", "dist-packages"];

/// Endings of key and certificate files.
pub const KEY_FILE_ENDINGS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".gpg"];

/// Where the system's trusted certificates are: they are named like keys, and no connection can be made without them.
/// Directories with keys beside them are left out.
pub const SYSTEM_CERTIFICATE_PATHS: &[&str] = &[
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/ca-certificates",
    "/usr/lib/ssl/certs",
    "/usr/lib/ssl/cert.pem",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/pki/ca-trust-source",
];

/// Texts that make the name of a variable or a field a secret's wherever they are in it; separators are left out.
const SECRET_SUBSTRINGS: &[&str] = &[
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "cookie",
];

/// The same for environment variables only: as the name of a field, `private` is a flag.
const SECRET_VARIABLE_SUBSTRINGS: &[&str] = &["private", "signing"];

/// Words between underscores that make the name of an environment variable a secret's. As names of fields they are too
/// common: a record that hides every `key` and `session` tells nothing.
const SECRET_VARIABLE_WORDS: &[&str] =
    &["key", "keys", "auth", "pat", "pwd", "pw", "pass", "dsn", "session", "jwt", "bearer", "salt"];

/// Whether the name of a field of JSON is that of a secret: `api_key`, `apiKey`, `Authorization`.
pub fn is_secret_field(name: &str) -> bool {
    let folded = fold_identifier(name);
    SECRET_SUBSTRINGS.iter().any(|text| folded.contains(text))
}

/// Whether the name of an environment variable is that of a secret: `GITHUB_TOKEN`, `PGPASSWORD`, `DEPLOY_KEY`.
pub fn is_secret_variable(name: &str) -> bool {
    let folded = fold_identifier(name);
    is_secret_field(name)
        || SECRET_VARIABLE_SUBSTRINGS.iter().any(|text| folded.contains(text))
        || name.to_lowercase().split('_').any(|word| SECRET_VARIABLE_WORDS.contains(&word))
}

/// Lower case, without separators.
fn fold_identifier(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Whether a text has a well-known form of key in it. A record has the hash of such a text, whole, and memory refuses it.
pub fn contains_secret(text: &str) -> bool {
    const PREFIXES: [&str; 14] = [
        "sk-",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "ASIA",
        "AIza",
        "hf_",
        "npm_",
        "eyJhbGci",
    ];
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return true;
    }
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .any(|word| word.len() >= 16 && PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in [
            "api_key",
            "apiKey",
            "API-KEY",
            "Authorization",
            "dbPassword",
            "client_secret",
            "AWS_ACCESS_KEY_ID",
        ] {
            assert!(is_secret_field(name) && is_secret_variable(name), "{name}");
        }
        for name in ["DEPLOY_KEY", "GITHUB_PAT", "PRIVATE_DATA", "SENTRY_DSN"] {
            assert!(!is_secret_field(name) && is_secret_variable(name), "{name}");
        }
        for name in ["HOME", "PATH", "KEYBOARD", "file_path", "command", "pattern", "MONKEY", "COMPASS"] {
            assert!(!is_secret_field(name) && !is_secret_variable(name), "{name}");
        }
    }
}
