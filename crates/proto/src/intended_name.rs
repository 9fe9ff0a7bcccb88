//! The known name that a misspelled one stands for.

/// The known name that a text probably misspells: one that differs only in case, `_` and `-`, or by one letter (two in
/// a long name).
///
/// ```
/// use toolgate_proto::find_intended_name;
///
/// assert_eq!(find_intended_name("permisions", ["permissions", "policy"]), Some("permissions"));
/// assert_eq!(find_intended_name("default_mode", ["defaultMode"]), Some("defaultMode"));
/// assert_eq!(find_intended_name("theme", ["permissions", "policy"]), None);
/// ```
pub fn find_intended_name<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    const LONG_NAME_CHARS: usize = 8;
    const SHORT_NAME_CHARS: usize = 3;
    let fold = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let folded = fold(given);
    let allowed = match folded.chars().count() {
        0..=SHORT_NAME_CHARS => 0,
        count if count < LONG_NAME_CHARS => 1,
        _ => 2,
    };
    // Of names at the same distance, one of the same length: two letters are exchanged more often than one is added.
    known
        .into_iter()
        .map(|name| {
            (strsim::damerau_levenshtein(&folded, &fold(name)), name.len().abs_diff(given.len()), name)
        })
        .filter(|(distance, _, name)| *distance <= allowed && *name != given)
        .min()
        .map(|(_, _, name)| name)
}
