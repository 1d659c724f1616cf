/// Why a message cannot be read or written, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageError(String);

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MessageError {}

/// Bytes, which are base64 in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

const MAX_TEXT: usize = 1048576; // bytes
const MAX_NESTING: usize = 64;

fn refused<T>(reason: &str) -> Result<T, MessageError> {
    Err(MessageError(format!("the text {reason}")))
}

/// Where in a message a value is.
enum Place<'a> {
    Root(&'a str),
    Field(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
    Key(&'a Place<'a>, &'a str),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root(name) => f.write_str(name),
            Place::Field(of, name) => write!(f, "{of}.{name}"),
            Place::Index(of, i) => write!(f, "{of}[{i}]"),
            Place::Key(of, name) => write!(f, "{of}[{}]", quoted(name)),
        }
    }
}

impl Place<'_> {
    fn failed<T>(&self, reason: &str) -> Result<T, MessageError> {
        Err(MessageError(format!("{self}: {reason}")))
    }
}

/// A value of JSON. A number is as it is written.
enum Value {
    Null,
    Boolean(bool),
    Numeral(String),
    Text(String),
    Items(Vec<Value>),
    Members(Members),
}

/// The members of an object in their order, with the place of each name.
struct Members {
    list: Vec<(String, Value)>,
    index: BTreeMap<String, usize>,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

fn parse_text(text: &[u8]) -> Result<Value, MessageError> {
    if text.len() > MAX_TEXT {
        return refused("has more than 1048576 bytes");
    }
    let text = std::str::from_utf8(text).or_else(|_| refused("is not UTF-8"))?;
    let mut p = Parser { text, at: 0, depth: 0 };
    p.space();
    let v = p.value()?;
    p.space();
    if p.at < text.len() {
        return refused("is no JSON");
    }
    Ok(v)
}

impl Parser<'_> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn take(&mut self, c: u8) -> bool {
        let found = self.at < self.text.len() && self.peek() == c;
        if found {
            self.at += 1;
        }
        found
    }

    fn want(&mut self, c: u8) -> Result<(), MessageError> {
        if self.take(c) { Ok(()) } else { refused("is no JSON") }
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, MessageError> {
        match self.peek() {
            c @ (b'{' | b'[') => {
                self.depth += 1;
                if self.depth > MAX_NESTING {
                    return refused("is nested deeper than 64");
                }
                let v = if c == b'{' { Value::Members(self.members()?) } else { Value::Items(self.items()?) };
                self.depth -= 1;
                Ok(v)
            }
            b'"' => Ok(Value::Text(self.string()?)),
            b't' => self.word("true", Value::Boolean(true)),
            b'f' => self.word("false", Value::Boolean(false)),
            b'n' => self.word("null", Value::Null),
            _ => self.numeral(),
        }
    }

    fn word(&mut self, word: &str, v: Value) -> Result<Value, MessageError> {
        if !self.text[self.at..].starts_with(word) {
            return refused("is no JSON");
        }
        self.at += word.len();
        Ok(v)
    }

    fn digits(&mut self) -> Result<(), MessageError> {
        if !self.peek().is_ascii_digit() {
            return refused("is no JSON");
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn numeral(&mut self) -> Result<Value, MessageError> {
        let begin = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(Value::Numeral(self.text[begin..self.at].to_owned()))
    }

    fn items(&mut self) -> Result<Vec<Value>, MessageError> {
        let mut items = Vec::new();
        self.want(b'[')?;
        self.space();
        if self.take(b']') {
            return Ok(items);
        }
        loop {
            self.space();
            items.push(self.value()?);
            self.space();
            if self.take(b']') {
                return Ok(items);
            }
            self.want(b',')?;
        }
    }

    fn members(&mut self) -> Result<Members, MessageError> {
        let mut o = Members { list: Vec::new(), index: BTreeMap::new() };
        self.want(b'{')?;
        self.space();
        if self.take(b'}') {
            return Ok(o);
        }
        loop {
            self.space();
            let name = self.string()?;
            if o.index.insert(name.clone(), o.list.len()).is_some() {
                return refused("has a member twice");
            }
            self.space();
            self.want(b':')?;
            self.space();
            let v = self.value()?;
            o.list.push((name, v));
            self.space();
            if self.take(b'}') {
                return Ok(o);
            }
            self.want(b',')?;
        }
    }

    fn string(&mut self) -> Result<String, MessageError> {
        self.want(b'"')?;
        let mut s = String::new();
        loop {
            let begin = self.at;
            while !matches!(self.peek(), 0..=0x1f | b'"' | b'\\') {
                self.at += 1;
            }
            s.push_str(&self.text[begin..self.at]);
            if self.take(b'"') {
                return Ok(s);
            }
            self.want(b'\\')?;
            s.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, MessageError> {
        let c = self.peek();
        self.at += 1;
        Ok(match c {
            b'"' | b'\\' | b'/' => char::from(c),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return refused("is no JSON"),
        })
    }

    fn unicode(&mut self) -> Result<char, MessageError> {
        let high = self.hex()?;
        if let Some(c) = char::from_u32(high) {
            return Ok(c);
        }
        if high >= 0xdc00 || !self.take(b'\\') || !self.take(b'u') {
            return refused("has an unpaired surrogate");
        }
        let low = self.hex()?;
        if !(0xdc00..=0xdfff).contains(&low) {
            return refused("has an unpaired surrogate");
        }
        match char::from_u32(0x10000 + (high - 0xd800) * 0x400 + low - 0xdc00) {
            Some(c) => Ok(c),
            None => refused("has an unpaired surrogate"),
        }
    }

    fn hex(&mut self) -> Result<u32, MessageError> {
        let mut unit = 0;
        for _ in 0..4 {
            match char::from(self.peek()).to_digit(16) {
                Some(digit) => unit = unit * 16 + digit,
                None => return refused("is no JSON"),
            }
            self.at += 1;
        }
        Ok(unit)
    }
}

impl Value {
    fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn members(&self, at: &Place) -> Result<&Members, MessageError> {
        match self {
            Value::Members(o) => Ok(o),
            _ => at.failed("is no object"),
        }
    }
}

impl Members {
    fn find(&self, name: &str) -> Option<&Value> {
        self.index.get(name).map(|i| &self.list[*i].1)
    }

    fn field<T: Wire>(&self, name: &str, at: &Place) -> Result<T, MessageError> {
        let place = Place::Field(at, name);
        match self.find(name) {
            Some(v) => T::read(v, &place),
            None => place.failed("is missing"),
        }
    }

    fn optional<T: Wire>(&self, name: &str, at: &Place) -> Result<Option<T>, MessageError> {
        match self.find(name) {
            None | Some(Value::Null) => Ok(None),
            Some(v) => T::read(v, &Place::Field(at, name)).map(Some),
        }
    }

    /// The members that are not declared, each with its text.
    fn others(&self, declared: &[&str]) -> Result<BTreeMap<String, String>, MessageError> {
        let mut extra = BTreeMap::new();
        for (name, v) in &self.list {
            if !declared.contains(&name.as_str()) {
                let mut w = Writer { text: String::new(), depth: 0 };
                w.value(v)?;
                extra.insert(name.clone(), w.text);
            }
        }
        Ok(extra)
    }

    fn no_others(&self, at: &Place, declared: &[&str]) -> Result<(), MessageError> {
        match self.list.iter().find(|(name, _)| !declared.contains(&name.as_str())) {
            Some((name, _)) => Place::Key(at, name).failed("is not declared"),
            None => Ok(()),
        }
    }
}

/// A type that messages have.
trait Wire: Sized {
    fn read(v: &Value, at: &Place) -> Result<Self, MessageError>;
    fn write(&self, w: &mut Writer, at: &Place) -> Result<(), MessageError>;
}

fn decode<T: Wire>(text: &[u8], name: &str) -> Result<T, MessageError> {
    T::read(&parse_text(text)?, &Place::Root(name))
}

fn encode<T: Wire>(t: &T, name: &str) -> Result<String, MessageError> {
    let mut w = Writer { text: String::new(), depth: 0 };
    t.write(&mut w, &Place::Root(name))?;
    if w.text.len() > MAX_TEXT {
        return refused("has more than 1048576 bytes");
    }
    Ok(w.text)
}

fn quoted(text: &str) -> String {
    let mut s = String::with_capacity(text.len() + 2);
    s.push('"');
    for c in text.chars() {
        match c {
            '"' => s.push_str("\\\""),
            '\\' => s.push_str("\\\\"),
            '\u{8}' => s.push_str("\\b"),
            '\u{c}' => s.push_str("\\f"),
            '\n' => s.push_str("\\n"),
            '\r' => s.push_str("\\r"),
            '\t' => s.push_str("\\t"),
            '\0'..='\u{1f}' => s.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => s.push(c),
        }
    }
    s.push('"');
    s
}

struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    fn open(&mut self, c: char) -> Result<(), MessageError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return refused("is nested deeper than 64");
        }
        self.text.push(c);
        Ok(())
    }

    fn close(&mut self, c: char) {
        self.depth -= 1;
        self.text.push(c);
    }

    fn comma(&mut self) {
        if !self.text.ends_with(['{', '[']) {
            self.text.push(',');
        }
    }

    fn name(&mut self, name: &str) {
        self.comma();
        self.text.push_str(&quoted(name));
        self.text.push(':');
    }

    fn field<T: Wire>(&mut self, name: &str, t: &T, at: &Place) -> Result<(), MessageError> {
        self.name(name);
        t.write(self, &Place::Field(at, name))
    }

    fn optional<T: Wire>(&mut self, name: &str, t: &Option<T>, at: &Place) -> Result<(), MessageError> {
        match t {
            Some(t) => self.field(name, t, at),
            None => Ok(()),
        }
    }

    fn others(&mut self, extra: &BTreeMap<String, String>, at: &Place, declared: &[&str]) -> Result<(), MessageError> {
        for (name, text) in extra {
            if declared.contains(&name.as_str()) {
                return Place::Key(at, name).failed("is declared and cannot be there twice");
            }
            self.name(name);
            self.value(&parse_text(text.as_bytes())?)?;
        }
        Ok(())
    }

    fn value(&mut self, v: &Value) -> Result<(), MessageError> {
        match v {
            Value::Null => self.text.push_str("null"),
            Value::Boolean(b) => self.text.push_str(if *b { "true" } else { "false" }),
            Value::Numeral(text) => self.text.push_str(text),
            Value::Text(text) => self.text.push_str(&quoted(text)),
            Value::Items(items) => {
                self.open('[')?;
                for item in items {
                    self.comma();
                    self.value(item)?;
                }
                self.close(']');
            }
            Value::Members(o) => {
                self.open('{')?;
                for (name, part) in &o.list {
                    self.name(name);
                    self.value(part)?;
                }
                self.close('}');
            }
        }
        Ok(())
    }
}

impl Wire for String {
    fn read(v: &Value, at: &Place) -> Result<String, MessageError> {
        match v.text() {
            Some(text) => Ok(text.to_owned()),
            None => at.failed("is no string"),
        }
    }

    fn write(&self, w: &mut Writer, _: &Place) -> Result<(), MessageError> {
        w.text.push_str(&quoted(self));
        Ok(())
    }
}

impl Wire for bool {
    fn read(v: &Value, at: &Place) -> Result<bool, MessageError> {
        match v {
            Value::Boolean(b) => Ok(*b),
            _ => at.failed("is neither true nor false"),
        }
    }

    fn write(&self, w: &mut Writer, _: &Place) -> Result<(), MessageError> {
        w.value(&Value::Boolean(*self))
    }
}

impl Wire for i32 {
    fn read(v: &Value, at: &Place) -> Result<i32, MessageError> {
        match v {
            Value::Numeral(text) => text.parse().or_else(|_| at.failed("is no whole number of 32 bits")),
            _ => at.failed("is no whole number of 32 bits"),
        }
    }

    fn write(&self, w: &mut Writer, _: &Place) -> Result<(), MessageError> {
        w.text.push_str(&self.to_string());
        Ok(())
    }
}

impl Wire for i64 {
    fn read(v: &Value, at: &Place) -> Result<i64, MessageError> {
        match v {
            Value::Numeral(text) => text.parse().or_else(|_| at.failed("is no whole number of 64 bits")),
            _ => at.failed("is no whole number of 64 bits"),
        }
    }

    fn write(&self, w: &mut Writer, _: &Place) -> Result<(), MessageError> {
        w.text.push_str(&self.to_string());
        Ok(())
    }
}

impl Wire for f64 {
    fn read(v: &Value, at: &Place) -> Result<f64, MessageError> {
        let n = match v {
            Value::Numeral(text) => text.parse().unwrap_or(f64::INFINITY),
            _ => f64::INFINITY,
        };
        if n.is_finite() { Ok(n) } else { at.failed("is no number of 64 bits") }
    }

    fn write(&self, w: &mut Writer, at: &Place) -> Result<(), MessageError> {
        if !self.is_finite() {
            return at.failed("is no number of 64 bits");
        }
        w.text.push_str(&format!("{self:?}"));
        Ok(())
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(raw: &[u8]) -> String {
    let mut s = String::new();
    for part in raw.chunks(3) {
        let bits = part.iter().fold(0, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - part.len()));
        for i in 0..4 {
            let sextet = bits >> (18 - 6 * i) & 63;
            s.push(if i <= part.len() { char::from(BASE64[sextet as usize]) } else { '=' });
        }
    }
    s
}

/// Decodes base64 in its one form: with padding, and without bits that are lost.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    let mut bits = 0;
    let digits = text.trim_end_matches('=');
    for (i, c) in digits.bytes().enumerate() {
        bits = bits << 6 | BASE64.iter().position(|b| *b == c)? as u32;
        if i % 4 > 0 {
            raw.push((bits >> (6 - 2 * (i % 4))) as u8);
        }
    }
    (to_base64(&raw) == text).then_some(raw)
}

impl Wire for Bytes {
    fn read(v: &Value, at: &Place) -> Result<Bytes, MessageError> {
        match v.text().and_then(from_base64) {
            Some(raw) => Ok(Bytes(raw)),
            None => at.failed("is no base64"),
        }
    }

    fn write(&self, w: &mut Writer, _: &Place) -> Result<(), MessageError> {
        w.text.push_str(&quoted(&to_base64(&self.0)));
        Ok(())
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn read(v: &Value, at: &Place) -> Result<Vec<T>, MessageError> {
        match v {
            Value::Items(items) => items.iter().enumerate().map(|(i, v)| T::read(v, &Place::Index(at, i))).collect(),
            _ => at.failed("is no list"),
        }
    }

    fn write(&self, w: &mut Writer, at: &Place) -> Result<(), MessageError> {
        w.open('[')?;
        for (i, t) in self.iter().enumerate() {
            w.comma();
            t.write(w, &Place::Index(at, i))?;
        }
        w.close(']');
        Ok(())
    }
}

impl<T: Wire> Wire for BTreeMap<String, T> {
    fn read(v: &Value, at: &Place) -> Result<BTreeMap<String, T>, MessageError> {
        let list = &v.members(at)?.list;
        list.iter().map(|(name, v)| Ok((name.clone(), T::read(v, &Place::Key(at, name))?))).collect()
    }

    fn write(&self, w: &mut Writer, at: &Place) -> Result<(), MessageError> {
        w.open('{')?;
        for (name, t) in self {
            w.name(name);
            t.write(w, &Place::Key(at, name))?;
        }
        w.close('}');
        Ok(())
    }
}

impl<T: Wire> Wire for Box<T> {
    fn read(v: &Value, at: &Place) -> Result<Box<T>, MessageError> {
        T::read(v, at).map(Box::new)
    }

    fn write(&self, w: &mut Writer, at: &Place) -> Result<(), MessageError> {
        (**self).write(w, at)
    }
}
