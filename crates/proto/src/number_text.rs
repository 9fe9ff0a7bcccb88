//! The one text of a number, however JSON spells it: `2`, `2.0` and `0.2e1` are the same number.

use serde_json::Number;

/// The integers that JSON values hold exactly: those of `i64` and `u64`.
const EXACT_INTEGERS: std::ops::RangeInclusive<i128> = -(1 << 63)..=(1 << 64) - 1;

/// The integer that a number is, also if it is spelled with a fraction or an exponent. `None` for other numbers, and for
/// those that no `i64` and no `u64` holds.
///
/// ```
/// use toolgate_proto::whole_number;
///
/// assert_eq!(whole_number(&serde_json::from_str("1e3").unwrap()), Some(1000));
/// assert_eq!(whole_number(&serde_json::from_str("2.5").unwrap()), None);
/// ```
pub fn whole_number(number: &Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    exact.or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        // Rust saturates a float that is out of range, and every float in it is exactly one integer.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole, and what is out of range is dropped"
        )]
        let integer = float as i128;
        EXACT_INTEGERS.contains(&integer).then_some(integer)
    })
}

/// The text of a number that is the same for every spelling: an integer without fraction and exponent, and any other
/// number as the shortest text that is parsed as it.
///
/// ```
/// use toolgate_proto::number_text;
///
/// for spelling in ["1000", "1000.0", "1e3", "10E2"] {
///     assert_eq!(number_text(&serde_json::from_str(spelling).unwrap()), "1000");
/// }
/// assert_eq!(number_text(&serde_json::from_str("-0.0").unwrap()), "0");
/// ```
pub fn number_text(number: &Number) -> String {
    whole_number(number).map_or_else(|| number.to_string(), |integer| integer.to_string())
}

/// The [`number_text`] of the number that a text spells in JSON; `None` if it is not a number. Unlike a JSON value, the
/// text is not rounded to a float: neither `9007199254740993.0` nor `9007199254740991.5` is `9007199254740992`.
pub fn spelled_number_text(text: &str) -> Option<String> {
    let number: Number = serde_json::from_str(text).ok()?;
    Some(match (spelled_integer(text), whole_number(&number)) {
        (Some(integer), _) => integer.to_string(),
        // A fraction that the float has lost.
        (None, Some(_)) => text.trim().to_owned(),
        (None, None) => number_text(&number),
    })
}

/// The integer that the text of a JSON number spells.
fn spelled_integer(text: &str) -> Option<i128> {
    /// No integer of [`EXACT_INTEGERS`] has more digits.
    const MAX_DIGITS: usize = 20;
    let text = text.trim();
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{before}{after}");
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    // The value is `significant`, with this many zeros behind it; with fewer than none it is a fraction.
    let dropped = i64::try_from(digits.len() - significant.len()).ok()?;
    let exponent = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(after.len()).ok()?)?;
    let zeros = usize::try_from(exponent.checked_add(dropped)?).ok().filter(|zeros| *zeros <= MAX_DIGITS)?;
    let integer: i128 = format!("{sign}{significant}{}", "0".repeat(zeros)).parse().ok()?;
    EXACT_INTEGERS.contains(&integer).then_some(integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(spelling: &str) -> String {
        number_text(&serde_json::from_str(spelling).unwrap())
    }

    #[test]
    fn every_spelling_of_an_integer_has_one_text() {
        for integer in [1, -1, 2, 10, 1_000, 600_000, -4_096, 2_147_483_648_i64] {
            let plain = integer.to_string();
            for spelling in [
                plain.clone(),
                format!("{integer}.0"),
                format!("{integer}.000"),
                format!("{integer}e0"),
                format!("{integer}0E-1"),
                format!("{integer}.0e+0"),
            ] {
                assert_eq!(text_of(&spelling), plain, "{spelling}");
                assert_eq!(spelled_number_text(&spelling).as_ref(), Some(&plain), "{spelling}");
            }
        }
        for zero in ["-0", "-0.0", "0e5", "0.0e-3"] {
            assert_eq!(text_of(zero), "0", "{zero}");
            assert_eq!(spelled_number_text(zero).as_deref(), Some("0"), "{zero}");
        }
    }

    #[test]
    fn large_integers_and_fractions_stay_what_they_are() {
        for exact in ["9007199254740993", "-9223372036854775808", "18446744073709551615", "2.5", "-0.125"] {
            assert_eq!(text_of(exact), exact);
            assert_eq!(spelled_number_text(exact).as_deref(), Some(exact));
        }
        assert_eq!(text_of("1e18"), "1000000000000000000");
        assert_eq!(text_of("1e300"), serde_json::from_str::<Number>("1e300").unwrap().to_string());
        // A JSON value has only the float; the text of a rule says which integer was meant.
        assert_eq!(spelled_number_text("9007199254740993.0").as_deref(), Some("9007199254740993"));
        assert_eq!(spelled_number_text("9007199254740991.5").as_deref(), Some("9007199254740991.5"));
        for text in ["", "x", "NaN", "inf", "1e999", "0x10", "+1", "1.", "2*", "\"2\"", "true"] {
            assert_eq!(spelled_number_text(text), None, "{text}");
        }
    }
}
