//! Where the browser is.

use std::collections::BTreeMap;
use toolgate_files::DEFAULT_SEARCH_PATH;
use toolgate_process::find_programs;
use toolgate_proto::{AbsPath, Code, Refusal};

/// Browsers that speak the protocol, in the order in which they are tried. The program itself comes before a distribution's
/// wrapper of it, which takes switches from files.
const KNOWN_BROWSERS: &[&str] = &[
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "microsoft-edge",
];
/// The program of the browser: the one that settings name, or the first that is installed outside of the workspace.
pub(super) fn find_browser(
    configured: Option<&str>,
    environment: &BTreeMap<String, String>,
    roots: &[AbsPath],
) -> Result<AbsPath, Refusal> {
    let search_path = environment.get("PATH").map_or(DEFAULT_SEARCH_PATH, String::as_str);
    let names: Vec<String> = match configured {
        Some(configured) => vec![configured.to_owned()],
        None => KNOWN_BROWSERS.iter().map(|&name| name.to_owned()).collect(),
    };
    let found = find_programs(&names, search_path, &AbsPath::root(), roots).into_iter().next();
    found.map(|program| program.file).ok_or_else(|| match configured {
        Some(configured) => Refusal::new(
            Code::Fetch,
            format!("`web.browser` is `{configured}`, which is not a program outside of the workspace"),
        )
        .hint("name the program of a Chromium, or remove the setting (`toolgate settings show` names its file)"),
        None => Refusal::new(Code::Fetch, "there is no browser on this machine: a page cannot be rendered")
            .hint(
                "install Chromium (Debian: `apt-get install chromium`), or name the program in `web.browser` of \
                 `~/.config/toolgate/settings.json`",
            ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_browser_is_refused_with_the_package() {
        let nowhere = BTreeMap::from([("PATH".to_owned(), "/nonexistent".to_owned())]);
        // Every place is distrusted, so that an installed browser does not count.
        let refusal = find_browser(None, &nowhere, &[AbsPath::root()]).unwrap_err();
        assert!(refusal.hint.contains("apt-get install chromium"), "{refusal:?}");
        let refusal = find_browser(Some("/nonexistent/chrome"), &nowhere, &[]).unwrap_err();
        assert!(refusal.reason.contains("`/nonexistent/chrome`"), "{refusal}");
    }

    #[test]
    fn a_configured_program_is_taken() {
        let found = find_browser(Some("/bin/sh"), &BTreeMap::new(), &[]).unwrap();
        assert!(found.to_string().starts_with('/'), "{found}");
    }
}
