//! Numbers with their noun in the right grammatical number.

/// `1 file`, `2 files`, `0 files`.
pub fn format_count(number: u64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {many}"),
    }
}

/// The same, but `None` for zero, so that a list of counts leaves out what did not occur.
pub fn format_nonzero_count(number: u64, one: &str, many: &str) -> Option<String> {
    (number > 0).then(|| format_count(number, one, many))
}
