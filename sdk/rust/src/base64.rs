//! Bytes as text of 64 characters, with padding.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + 4);
    for part in bytes.chunks(3) {
        let at = |i: usize| u32::from(part.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            match i <= part.len() {
                true => out.push(char::from(DIGITS[(bits >> (18 - 6 * i)) as usize & 63])),
                false => out.push('='),
            }
        }
    }
    out
}

fn digit(c: u8) -> Option<u32> {
    let at = match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(at.into())
}

/// Reads what a host writes; it ends at the first character that is none of them.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let (mut out, mut bits, mut have) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for digit in text.bytes().map_while(digit) {
        bits = bits << 6 | digit;
        have += 6;
        if have >= 8 {
            have -= 8;
            out.push((bits >> have) as u8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (bytes, text) in [(&b""[..], ""), (b"\0", "AA=="), (b"\0\xff", "AP8="), (b"\xfb\xef\xff", "++//"), (b"abcd", "YWJjZA==")] {
            assert_eq!((encode(bytes).as_str(), decode(text).as_slice()), (text, bytes));
        }
    }
}
