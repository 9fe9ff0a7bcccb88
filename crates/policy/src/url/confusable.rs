//! Hosts with look-alike characters (homoglyphs): IDN homographs such as a Cyrillic `а` in a Latin name.

/// Letters of other scripts that look like Latin letters in most typefaces.
const LATIN_LOOKALIKES: &str = "абвгеѕіїјкӏмнорстухћһԁԛԝѵәɡɑοαεικνρτυχγωѡєзьᴄᴏᴠᴡᴢ";

/// Whether a label of the host mixes scripts as no language does, or consists of letters that all look like Latin ones.
pub(crate) fn is_confusable_host(host: &str) -> bool {
    if !host.split('.').any(|label| label.starts_with("xn--")) {
        return false;
    }
    let (text, valid) = idna::domain_to_unicode(host);
    valid.is_err() || text.split('.').any(is_suspicious_label)
}

/// Whether a decoded label could be mistaken for another one. A label that cannot be decoded counts.
fn is_suspicious_label(label: &str) -> bool {
    if label.is_ascii() {
        return label.starts_with("xn--");
    }
    let letters = || label.chars().filter(|c| c.is_alphabetic());
    let has_latin = letters().any(|c| script(c) == UnicodeScript::Latin);
    let has_similar_script = letters().any(|c| {
        matches!(script(c), UnicodeScript::Cyrillic | UnicodeScript::Greek | UnicodeScript::OtherAlphabet)
    });
    (has_latin && has_similar_script) || letters().all(|c| LATIN_LOOKALIKES.contains(c))
}

/// The scripts that matter for look-alike characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnicodeScript {
    Latin,
    Greek,
    Cyrillic,
    /// Another alphabet with letters that can be mistaken for Latin ones.
    OtherAlphabet,
    /// A script without such letters, which some languages mix with Latin ones.
    Other,
}

/// The script of a letter, by its Unicode block.
fn script(c: char) -> UnicodeScript {
    match u32::from(c) {
        0x0041..=0x024f | 0x1e00..=0x1eff | 0xa720..=0xa7ff | 0xff21..=0xff5a => UnicodeScript::Latin,
        0x0370..=0x03ff | 0x1f00..=0x1fff => UnicodeScript::Greek,
        0x0400..=0x052f | 0x1c80..=0x1c8f | 0x2de0..=0x2dff | 0xa640..=0xa69f => UnicodeScript::Cyrillic,
        0x0250..=0x02af
        | 0x0530..=0x058f
        | 0x10a0..=0x10ff
        | 0x13a0..=0x13ff
        | 0x1400..=0x167f
        | 0x1d00..=0x1dbf
        | 0x2c80..=0x2cff
        | 0xab70..=0xabbf => UnicodeScript::OtherAlphabet,
        _ => UnicodeScript::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_and_look_alike_labels_are_detected() {
        let ascii = |host: &str| idna::domain_to_ascii(host).unwrap();
        for host in ["dоcs.example.com", "аррӏе.com", "gооgle.com", "ѕсоре.example"] {
            assert!(is_confusable_host(&ascii(host)), "{host}");
        }
        for host in
            ["bücher.example", "日本語.example", "пример.example", "docs.example.com", "ελλάδα.example"]
        {
            assert!(!is_confusable_host(&ascii(host)), "{host}");
        }
    }
}
