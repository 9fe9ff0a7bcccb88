//! Secret names: which files, variables and fields hold secrets, as far as their names tell.
//!
//! One table of files serves the question before a read, the check of shell globs and the files that the sandbox withholds;
//! one list of words serves the environment of commands and the redaction of records. File names are lower case, as policy
//! folds paths before it compares them.

/// One row of the table of files with secrets. Policy, the sandbox and the check of shell globs each use a part of it, so
/// that a name which one of them knows is not missing in another.
struct SecretFile {
    /// The name, path or pattern, in gitignore syntax. Without wildcards it means the file, or the directory with
    /// everything below it. A read or write asks, with a warning.
    pattern: &'static str,
    /// The path of this name below the home directory is withheld from commands.
    is_in_home: bool,
    /// Names that a shell glob is compared with. None means the pattern itself.
    examples: &'static [&'static str],
}

/// Every file with secrets.
const SECRET_FILES: &[SecretFile] = &[
    in_home(".env"),
    in_home(".ssh"),
    in_home(".gnupg"),
    in_home(".aws"),
    in_home(".azure"),
    in_home(".gcloud"),
    in_home(".config/gcloud"),
    in_home(".config/gh/hosts.yml"),
    in_home(".config/git/credentials"),
    in_home(".config/hub"),
    // These two directories have little else in them, so a glob that abbreviates the directory is enough.
    SecretFile { examples: &[".kube/config", ".kube"], ..in_home(".kube/config") },
    SecretFile { examples: &[".docker/config.json", ".docker"], ..in_home(".docker/config.json") },
    in_home(".npmrc"),
    in_home(".pypirc"),
    in_home(".netrc"),
    in_home(".pgpass"),
    in_home(".my.cnf"),
    in_home(".htpasswd"),
    in_home(".git-credentials"),
    in_home(".vault-token"),
    in_home(".cargo/credentials"),
    in_home(".cargo/credentials.toml"),
    in_home(".gem/credentials"),
    in_home(".terraform.d/credentials.tfrc.json"),
    in_home(".claude/.credentials.json"),
    in_home(".codex/auth.json"),
    in_home(".config/rclone/rclone.conf"),
    in_home(".password-store"),
    in_home(".local/share/keyrings"),
    // Files of the system and of web projects: the home directory has none of them.
    elsewhere("etc/shadow", &[]),
    elsewhere("etc/gshadow", &[]),
    elsewhere("proc/*/environ", &["proc/self/environ"]),
    elsewhere("database.yml", &[]),
    elsewhere("database.json", &[]),
    // Patterns: a sandbox withholds by path only what can be named in full.
    elsewhere(".env.*", &[".env.local", ".env.production"]),
    elsewhere("credentials.*", &["credentials.json"]),
    elsewhere("secrets.*", &["secrets.yaml", "secrets.json"]),
    elsewhere("**/credentials/**", &["credentials"]),
    elsewhere("**/secrets/**", &["secrets"]),
    elsewhere("id_rsa*", &["id_rsa"]),
    elsewhere("id_ed25519*", &["id_ed25519"]),
    elsewhere("id_ecdsa*", &["id_ecdsa"]),
    elsewhere("id_dsa*", &["id_dsa"]),
    elsewhere("*.pem", &["server.pem"]),
    elsewhere("*.key", &["server.key"]),
    elsewhere("*.p12", &["server.p12"]),
    elsewhere("*.pfx", &["server.pfx"]),
    elsewhere("*.gpg", &["server.gpg"]),
];

/// A name that is also withheld from commands in the home directory.
const fn in_home(name: &'static str) -> SecretFile {
    SecretFile { pattern: name, is_in_home: true, examples: &[] }
}

/// A name or pattern that is not withheld by its path in the home directory.
const fn elsewhere(pattern: &'static str, examples: &'static [&'static str]) -> SecretFile {
    SecretFile { pattern, is_in_home: false, examples }
}

impl SecretFile {
    /// The extension with its dot, if the pattern is `*` and an extension.
    fn extension(&self) -> Option<&'static str> {
        self.pattern.strip_prefix('*').filter(|rest| rest.starts_with('.'))
    }

    /// The names that a shell glob is compared with.
    fn glob_names(&self) -> impl Iterator<Item = &'static str> {
        let own = self.examples.is_empty().then_some(self.pattern);
        self.examples.iter().copied().chain(own)
    }
}

/// Patterns of files with secrets, in gitignore syntax: a read or write asks, with a warning.
pub fn secret_patterns() -> impl Iterator<Item = &'static str> {
    SECRET_FILES.iter().map(|file| file.pattern)
}

/// Paths below a home directory that are withheld from commands, whatever the workspace is: keys, tokens, sign-ins.
pub fn home_secrets() -> impl Iterator<Item = &'static str> {
    SECRET_FILES.iter().filter(|file| file.is_in_home).map(|file| file.pattern)
}

/// Names and paths that a shell glob may be written for. A glob that begins with enough of one of these and matches it is
/// judged as if it named it, even if no such file is known to exist.
pub fn secret_glob_names() -> impl Iterator<Item = &'static str> {
    SECRET_FILES.iter().filter(|file| file.extension().is_none()).flat_map(SecretFile::glob_names)
}

/// The same for extensions: a glob that spells out an extension and matches one of these is judged as if it named a key.
pub fn secret_extension_examples() -> impl Iterator<Item = &'static str> {
    SECRET_FILES.iter().filter(|file| file.extension().is_some()).flat_map(SecretFile::glob_names)
}

/// Endings of key and certificate files.
pub fn key_file_endings() -> impl Iterator<Item = &'static str> {
    SECRET_FILES.iter().filter_map(SecretFile::extension)
}

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
    use crate::wildcard::WildcardPattern;
    use std::collections::BTreeSet;

    /// Whether a glob matches a path name by name.
    fn matches_by_name(glob: &str, path: &str) -> bool {
        let (globs, names): (Vec<&str>, Vec<&str>) = (glob.split('/').collect(), path.split('/').collect());
        let matches = |(glob, name): (&&str, &&str)| WildcardPattern::parse_glob(glob).unwrap().matches(name);
        globs.len() == names.len() && globs.iter().zip(&names).all(matches)
    }

    /// The patterns without wildcards.
    fn concrete_names() -> impl Iterator<Item = &'static str> {
        secret_patterns().filter(|pattern| !pattern.contains('*'))
    }

    #[test]
    fn every_sensitive_name_is_found_by_a_glob_that_abbreviates_it() {
        for name in concrete_names() {
            let own = name.rfind('/').map_or(0, |slash| slash + 1);
            for cut in own + 1..name.len() {
                let glob = format!("{}*", name.split_at(cut).0);
                assert!(secret_glob_names().any(|known| matches_by_name(&glob, known)), "{glob}");
            }
        }
    }

    #[test]
    fn every_sensitive_pattern_has_an_example_that_it_matches() {
        for file in SECRET_FILES {
            let pattern = file.pattern.trim_start_matches("**/").trim_end_matches("/**");
            assert!(file.glob_names().any(|example| matches_by_name(pattern, example)), "{pattern}");
            assert!(file.glob_names().all(|example| !example.contains('*')), "{pattern}");
        }
    }

    #[test]
    fn every_sensitive_name_of_the_home_directory_is_withheld_from_commands() {
        let withheld: BTreeSet<&str> = home_secrets().collect();
        let dotted: BTreeSet<&str> = concrete_names().filter(|name| name.starts_with('.')).collect();
        assert_eq!(withheld, dotted);
        for name in [".env", ".netrc", ".pgpass", ".my.cnf", ".htpasswd", ".ssh"] {
            assert!(withheld.contains(name), "{name}");
        }
    }

    #[test]
    fn the_table_of_files_has_folded_names_and_none_twice() {
        let mut known = BTreeSet::new();
        for pattern in secret_patterns() {
            assert!(pattern == pattern.to_lowercase() && known.insert(pattern), "{pattern}");
        }
    }

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
