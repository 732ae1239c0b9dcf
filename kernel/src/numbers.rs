//! JSON numbers, in the forms for which these parsers certainly return what the twin's do.

/// Bytes of the longest number that is read here; the twin reads longer ones. Rust's parser ignores the last digits of
/// a very large exponent. That changes the result only if so many digits stand before the exponent that they cancel
/// it, as zeros after the point do.
pub const LONGEST: usize = 1000;

/// The double nearest to a JSON number; `None` if it is not finite, or longer than `LONGEST`.
#[inline(always)]
pub fn double(text: &[u8]) -> Option<f64> {
    const POWERS: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ];
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() <= 17 {
        let (mut whole, mut decimals, mut after_point, mut plain) = (0u64, 0, 0, true);
        for &byte in digits {
            match byte {
                b'.' => after_point = 1,
                b'0'..=b'9' => {
                    whole = whole * 10 + u64::from(byte - b'0');
                    decimals += after_point;
                }
                _ => {
                    plain = false;
                    break;
                }
            }
        }
        // Both operands are exact as doubles, so only their quotient is rounded, which gives the nearest double.
        if plain && whole < 1 << 53 {
            let number = whole as f64 / POWERS[decimals];
            return Some(if negative { -number } else { number });
        }
    }
    if text.len() > LONGEST {
        return None;
    }
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// A whole number that is not negative; `None` if it has a sign or more than 18 digits.
#[inline(always)]
pub fn small_integer(text: &[u8]) -> Option<i64> {
    if text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_nearest_double() {
        for text in
            ["0.1", "-0.30000000000000004", "9007199254740993", "5e-324", "1.7976931348623157e308", "123456789.125"]
        {
            assert_eq!(double(text.as_bytes()), text.parse().ok(), "{text}");
        }
        assert_eq!(double(b"1e400"), None);
    }

    #[test]
    fn digits_that_make_up_for_a_large_exponent_are_left_to_the_twin() {
        assert_eq!(double(format!("0.{}1e655360", "0".repeat(655_359)).as_bytes()), None);
        assert_eq!(double(format!("0.{}", "0".repeat(LONGEST - 2)).as_bytes()), Some(0.0));
    }
}
