//! Pagination of long lists.
//!
//! A cursor names the last entry that was shown, not a number: an entry that comes or goes between two pages makes
//! neither a gap nor a repetition.

use rmcp::ErrorData;

/// Entries of one page. Few servers have more tools, so few clients ever see a cursor.
pub(crate) const DEFAULT_PAGE_SIZE: usize = 200;

/// One page of what is sorted by name, and the cursor of the next.
pub(crate) fn paginate<T>(
    items: Vec<T>,
    name: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    size: usize,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let after = match cursor {
        Some(cursor) => Some(decode_cursor(cursor).ok_or_else(|| {
            ErrorData::invalid_params("the cursor is not one of ours; list again from the start", None)
        })?),
        None => None,
    };
    let mut items: Vec<T> = items
        .into_iter()
        .skip_while(|item| after.as_deref().is_some_and(|after| name(item) <= after))
        .collect();
    let more = items.len() > size;
    items.truncate(size);
    let next = items.last().filter(|_| more).map(|last| encode_cursor(name(last)));
    Ok((items, next))
}

/// Encodes a name as a cursor; hexadecimal, so that clients treat it as opaque and any name fits.
fn encode_cursor(name: &str) -> String {
    name.bytes().fold("after-".to_owned(), |out, byte| format!("{out}{byte:02x}"))
}

/// Decodes a cursor; `None` for text that `encode_cursor` cannot have produced.
fn decode_cursor(cursor: &str) -> Option<String> {
    // Parsing takes a sign as well as digits, and a sign is never ours.
    let hex = cursor.strip_prefix("after-").filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let bytes: Option<Vec<u8>> = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| pair.len() == 2))
        .collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_cursor_is_refused() {
        for cursor in ["", "2", "after-zz", "after-6", "after-ff", "after-+1"] {
            assert!(paginate(vec!["a"], |name| name, Some(cursor), 1).is_err(), "{cursor}");
        }
    }

    proptest::proptest! {
        /// Page by page every entry is seen once, in order, whatever is removed on the way.
        #[test]
        fn pages_have_no_gaps_and_no_repetitions(
            names in proptest::collection::btree_set("[a-z_é]{1,6}", 0..40),
            size in 1usize..7,
            gone in 0usize..40,
        ) {
            let mut left: Vec<String> = names.iter().cloned().collect();
            let mut seen: Vec<String> = Vec::new();
            let mut cursor = None;
            loop {
                let (shown, next) = paginate(left.clone(), |name| name, cursor.as_deref(), size).unwrap();
                proptest::prop_assert!(shown.len() <= size);
                seen.extend(shown);
                // One that was seen goes away: it may be the very one that the cursor names.
                if gone < seen.len() {
                    left.retain(|name| *name != seen[gone]);
                }
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            proptest::prop_assert_eq!(seen, names.into_iter().collect::<Vec<_>>());
        }
    }
}
