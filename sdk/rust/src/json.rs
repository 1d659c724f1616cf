use std::fmt;

use crate::{Code, Error};

/// One JSON value, kept as its own text without the space between its tokens:
/// `1e3` stays `1e3`. What is not there reads as null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(String);

/// An object that grows, in less code than a list of members takes.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Object {
        Object("{".into())
    }

    #[inline(never)]
    pub(crate) fn set(&mut self, name: &str, v: &Json) -> &mut Object {
        add(&mut self.0, &(quote(name) + ":"), v);
        self
    }

    #[inline(never)]
    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Object {
        self.set(name, &Json::from(value))
    }

    #[inline(never)]
    pub(crate) fn int(&mut self, name: &str, n: i64) -> &mut Object {
        self.set(name, &Json::from(n))
    }

    /// Sets a value but null.
    #[inline(never)]
    pub(crate) fn given(&mut self, name: &str, v: &Json) -> &mut Object {
        if v.is_null() {
            return self;
        }
        self.set(name, v)
    }

    /// Sets a value that is not empty: no text, no list, not false and not 0.
    #[inline(never)]
    pub(crate) fn some(&mut self, name: &str, v: Json) -> &mut Object {
        match v.as_text() {
            "\"\"" | "[]" | "{}" | "false" | "0" => self,
            _ => self.set(name, &v),
        }
    }

    #[inline(never)]
    pub(crate) fn json(&mut self) -> Json {
        Json(std::mem::take(&mut self.0) + "}")
    }
}

/// How deep values lie in values.
const DEPTH: usize = 500;

impl Json {
    /// Checks a text and takes its one value.
    pub fn parse(text: &str) -> Result<Json, Error> {
        let bytes = text.as_bytes();
        let start = space(bytes, 0);
        let end = value_end(bytes, start, DEPTH).filter(|end| space(bytes, *end) == bytes.len());
        match end {
            Some(end) => Ok(Json(compact(cut(text, start, end)))),
            None => Err(Error::new(Code::INVALID, "this is no JSON")),
        }
    }

    pub(crate) fn parse_bytes(bytes: &[u8]) -> Result<Json, Error> {
        Json::parse(&String::from_utf8_lossy(bytes))
    }

    pub fn null() -> Json {
        Json("null".into())
    }

    /// An array of values.
    pub fn array(items: impl IntoIterator<Item = Json>) -> Json {
        let mut text = String::from("[");
        items.into_iter().for_each(|v| add(&mut text, "", &v));
        text.push(']');
        Json(text)
    }

    /// An object, with its members in the order given.
    pub fn object<N: AsRef<str>>(members: impl IntoIterator<Item = (N, Json)>) -> Json {
        let mut text = String::from("{");
        members.into_iter().for_each(|(name, v)| add(&mut text, &(quote(name.as_ref()) + ":"), &v));
        text.push('}');
        Json(text)
    }

    /// A number, to nine places at most: exact is `Json::from`, and ten times the code.
    /// What is none in JSON is null.
    pub(crate) fn decimal(n: f64) -> Json {
        if !n.is_finite() {
            return Json::null();
        }
        let sign = if n < 0.0 { "-" } else { "" };
        let (mut n, mut tens) = (n.abs(), 0);
        while n >= 1e18 {
            n /= 10.0;
            tens += 1;
        }
        let mut whole = n as u64;
        let mut rest = ((n - whole as f64) * 1e9 + 0.5) as u64;
        if rest == 1_000_000_000 {
            whole += 1;
            rest = 0;
        }
        let mut text = format!("{sign}{whole}");
        if rest > 0 {
            text += format!(".{rest:09}").trim_end_matches('0');
        }
        if tens > 0 {
            text += &format!("e{tens}");
        }
        Json(text)
    }

    /// The value's text.
    pub fn as_text(&self) -> &str {
        &self.0
    }

    pub fn is_null(&self) -> bool {
        self.0 == "null"
    }

    pub fn is_string(&self) -> bool {
        self.0.starts_with('"')
    }

    pub fn is_array(&self) -> bool {
        self.0.starts_with('[')
    }

    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// A string, decoded; anything else is empty.
    pub fn as_str(&self) -> String {
        if self.is_string() {
            unquote(&self.0)
        } else {
            String::new()
        }
    }

    /// A whole number; what stands behind it (a fraction, an exponent) is
    /// ignored, and anything else is 0.
    pub fn as_i64(&self) -> i64 {
        let digits = self.0.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(self.0.len());
        cut(&self.0, 0, digits).parse().unwrap_or(0)
    }

    /// A number, 0 for anything else.
    pub fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(0.0)
    }

    pub fn as_bool(&self) -> bool {
        self.0 == "true"
    }

    /// A member of an object, the last one of that name.
    pub fn get(&self, name: &str) -> Json {
        if !self.is_object() {
            return Json::null();
        }
        let called = |quoted: &str| match quoted.contains('\\') {
            true => unquote(quoted) == name,
            false => cut(quoted, 1, quoted.len() - 1) == name,
        };
        self.walk().filter(|(n, _)| called(n)).last().map_or_else(Json::null, |(_, v)| Json(v.into()))
    }

    /// A member that is a string.
    pub fn get_str(&self, name: &str) -> String {
        self.get(name).as_str()
    }

    /// The values of an array; anything else has none.
    pub fn items(&self) -> Vec<Json> {
        if self.is_array() {
            self.walk().map(|(_, v)| Json(v.into())).collect()
        } else {
            Vec::new()
        }
    }

    /// The members of an object; anything else has none.
    pub fn members(&self) -> Vec<(String, Json)> {
        if self.is_object() {
            self.walk().map(|(n, v)| (unquote(n), Json(v.into()))).collect()
        } else {
            Vec::new()
        }
    }

    fn walk(&self) -> Walk<'_> {
        Walk { text: &self.0, at: 1, named: self.is_object() }
    }
}

impl Default for Json {
    fn default() -> Json {
        Json::null()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Json {
    fn from(s: &str) -> Json {
        Json(quote(s))
    }
}

impl From<String> for Json {
    fn from(s: String) -> Json {
        Json(quote(&s))
    }
}

impl From<&String> for Json {
    fn from(s: &String) -> Json {
        Json(quote(s))
    }
}

impl From<i64> for Json {
    fn from(n: i64) -> Json {
        Json(n.to_string())
    }
}

impl From<f64> for Json {
    /// What is no number in JSON (infinities, NaN) is null.
    fn from(n: f64) -> Json {
        if n.is_finite() {
            Json(n.to_string())
        } else {
            Json::null()
        }
    }
}

impl From<bool> for Json {
    fn from(b: bool) -> Json {
        Json(b.to_string())
    }
}

/// Walk goes over a compact list.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    named: bool,
}

impl<'a> Iterator for Walk<'a> {
    /// The name, with its quotes, and the value.
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        if self.at + 1 >= bytes.len() {
            return None;
        }
        let (mut start, mut name) = (self.at, "");
        if self.named {
            let end = value_end(bytes, start, DEPTH)?;
            name = cut(self.text, start, end);
            start = end + 1;
        }
        let end = value_end(bytes, start, DEPTH)?;
        self.at = end + 1;
        Some((name, cut(self.text, start, end)))
    }
}

/// A part of a text whose ends are known to be good. Indexing brings along the code that
/// would say why they are not.
fn cut(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

fn space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Where a value ends; None if it is none.
fn value_end(text: &[u8], at: usize, depth: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at),
        b'{' => list_end(text, at, b'}', depth),
        b'[' => list_end(text, at, b']', depth),
        b't' => word_end(text, at, b"true"),
        b'f' => word_end(text, at, b"false"),
        b'n' => word_end(text, at, b"null"),
        _ => number_end(text, at),
    }
}

fn word_end(text: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    text[at..].starts_with(word).then(|| at + word.len())
}

fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            0..=0x1f => return None,
            b'\\' => at = escape_end(text, at + 1)?,
            _ => at += 1,
        }
    }
}

fn escape_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'u' => {
            let digits = text.get(at + 1..at + 5)?;
            digits.iter().all(u8::is_ascii_hexdigit).then(|| at + 5)
        }
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        _ => None,
    }
}

fn list_end(text: &[u8], at: usize, close: u8, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    let mut at = space(text, at + 1);
    if text.get(at) == Some(&close) {
        return Some(at + 1);
    }
    loop {
        if close == b'}' {
            if text.get(at) != Some(&b'"') {
                return None;
            }
            at = space(text, string_end(text, at)?);
            if text.get(at) != Some(&b':') {
                return None;
            }
            at = space(text, at + 1);
        }
        at = space(text, value_end(text, at, depth)?);
        match text.get(at)? {
            b',' => at = space(text, at + 1),
            c if *c == close => return Some(at + 1),
            _ => return None,
        }
    }
}

fn digits_end(text: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    while matches!(text.get(end), Some(b'0'..=b'9')) {
        end += 1;
    }
    (end > at).then(|| end)
}

fn number_end(text: &[u8], mut at: usize) -> Option<usize> {
    if text.get(at) == Some(&b'-') {
        at += 1;
    }
    let mut end = digits_end(text, at)?;
    if text[at] == b'0' && end > at + 1 {
        return None;
    }
    if text.get(end) == Some(&b'.') {
        end = digits_end(text, end + 1)?;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        end += 1;
        if matches!(text.get(end), Some(b'+' | b'-')) {
            end += 1;
        }
        end = digits_end(text, end)?;
    }
    Some(end)
}

/// Takes the space between tokens out of a good value.
fn compact(text: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        if !quoted && matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        if escaped {
            escaped = false;
        } else if c == '"' {
            quoted = !quoted;
        } else if c == '\\' {
            escaped = true;
        }
        out.push(c);
    }
    out
}

/// Adds a value to a list that has begun. It is not generic, as its callers are.
#[inline(never)]
fn add(list: &mut String, name: &str, v: &Json) {
    if list.len() > 1 {
        list.push(',');
    }
    list.push_str(name);
    list.push_str(&v.0);
}

fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // The last two end lines for some readers.
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Decodes a good string.
fn unquote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = cut(text, 1, text.len() - 1);
    while let Some(at) = rest.find('\\') {
        out.push_str(cut(rest, 0, at));
        let escape = rest.as_bytes()[at + 1];
        rest = cut(rest, at + 2, rest.len());
        match escape {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let (c, used) = unicode(rest);
                out.push(c);
                rest = cut(rest, used, rest.len());
            }
            other => out.push(other as char),
        }
    }
    out + rest
}

/// Decodes four digits, or the pair of them that is one character. Half a pair is
/// none.
fn unicode(rest: &str) -> (char, usize) {
    let unit = |at: usize| rest.get(at..at + 4).and_then(|s| u32::from_str_radix(s, 16).ok()).unwrap_or(0xfffd);
    let high = unit(0);
    if (0xd800..0xdc00).contains(&high) && cut(rest, 4, 6) == "\\u" {
        let low = unit(6);
        if (0xdc00..0xe000).contains(&low) {
            let c = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            return (char::from_u32(c).unwrap_or('\u{fffd}'), 10);
        }
    }
    (char::from_u32(high).unwrap_or('\u{fffd}'), 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let v = Json::parse(" { \"a\" : [ 1 , -2.50e3, \"x\\u00fc\\ud83d\\udc1d\\n\" ] , \"b\":{ } } ").unwrap();
        assert_eq!(v.as_text(), "{\"a\":[1,-2.50e3,\"x\\u00fc\\ud83d\\udc1d\\n\"],\"b\":{}}");
        let a = v.get("a").items();
        assert_eq!((a[0].as_i64(), a[1].as_f64(), a[2].as_str()), (1, -2500.0, "xü🐝\n".to_string()));
        assert!(v.get("b").is_object() && v.get("b").members().is_empty() && v.get("c").is_null());
        assert_eq!(Json::from("a\"\\\u{1}\u{2028}").as_text(), "\"a\\\"\\\\\\u0001\\u2028\"");
        let made = Json::object([("n", Json::from(-7)), ("l", Json::array([Json::from(true), Json::null()]))]);
        assert_eq!(made.as_text(), "{\"n\":-7,\"l\":[true,null]}");
        assert_eq!(Json::parse(made.as_text()).unwrap(), made);
    }

    #[test]
    fn refuses_what_is_none() {
        let deep = "[".repeat(501) + &"]".repeat(501);
        for bad in [
            "", " ", "{", "[1,]", "[1 2]", "{\"a\"}", "{a:1}", "01", "1.", "-", "+1", ".5", "1e", "\"", "\"\n\"", "\"\\x\"",
            "\"\\u12g4\"", "nul", "truex", "[] []", "'a'", &deep,
        ] {
            assert!(Json::parse(bad).is_err(), "{:.40}", bad);
        }
        assert!(Json::parse(&("[".repeat(500) + &"]".repeat(500))).is_ok());
    }

    #[test]
    fn half_a_pair_is_no_character() {
        let v = Json::parse("\"a\\ud83d b\\udc1d c\\ud83d\\u0041 d\\ud83d\\ud83d\\udc1d e\\ud83d\"").unwrap();
        assert_eq!(v.as_str(), "a\u{fffd} b\u{fffd} c\u{fffd}A d\u{fffd}🐝 e\u{fffd}");
    }
}
