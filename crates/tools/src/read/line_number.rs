//! Line numbers of a `Read` result, in the format of `cat -n`.

/// Width of the number column, as in `cat -n`; a longer number widens its own line.
const MIN_NUMBER_WIDTH: usize = 6;

/// A line number, right-aligned. It increments its own decimal digits, because formatting a number for each line costs
/// more than finding the line.
pub(super) struct LineNumber {
    /// The number in ASCII, right-aligned and filled with spaces; 20 digits hold any `u64`.
    digits: [u8; 20],
    /// The number of digits.
    width: usize,
}

impl LineNumber {
    /// A number to start with.
    pub(super) fn new(first: u64) -> Self {
        let mut digits = [b' '; 20];
        let text = first.to_string();
        for (digit, from) in digits.iter_mut().rev().zip(text.bytes().rev()) {
            *digit = from;
        }
        Self { digits, width: text.len() }
    }

    /// The number with leading spaces.
    pub(super) fn as_str(&self) -> &str {
        let start = self.digits.len() - self.width.max(MIN_NUMBER_WIDTH);
        self.digits.get(start..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default()
    }

    /// Adds one, digit by digit from the right.
    pub(super) fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            match *digit {
                b'9' => *digit = b'0',
                b' ' => {
                    *digit = b'1';
                    self.width += 1;
                    return;
                }
                _ => {
                    *digit += 1;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LineNumber;

    #[test]
    fn numbers_are_formatted_as_cat_does() {
        for first in [0, 1, 9, 10, 12_345, 99_990, 999_990, u64::MAX - 20] {
            let mut number = LineNumber::new(first);
            for expected in (first..).take(20) {
                assert_eq!(number.as_str(), format!("{expected:>6}"));
                number.increment();
            }
        }
    }
}
