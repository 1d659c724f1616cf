/**
 * One JSON value, kept as its own text without the space between its tokens: 1e3
 * stays 1e3. What is not there reads as null.
 */
export class Json {
  private constructor(
    /** The value's text. */
    public text: string,
  ) {}

  /** Checks a text and takes its one value; null if it is not one. */
  static parse(text: string): Json | null {
    const start = space(text, 0);
    const end = valueEnd(text, start, DEPTH);
    if (end < 0 || space(text, end) != text.length) return null;
    return new Json(compact(text.substring(start, end)));
  }

  static null(): Json {
    return new Json("null");
  }

  static string(s: string): Json {
    return new Json(quote(s));
  }

  static strings(list: string[]): Json {
    return new Json("[" + list.map<string>((s) => quote(s)).join(",") + "]");
  }

  static integer(n: i64): Json {
    return new Json(n.toString());
  }

  /** A number; what is none in JSON (infinities, NaN) is null. */
  static number(n: f64): Json {
    const text = isFinite(n) ? n.toString() : "null";
    return new Json(text.endsWith(".0") ? text.substring(0, text.length - 2) : text);
  }

  static boolean(b: bool): Json {
    return new Json(b ? "true" : "false");
  }

  static array(items: Json[]): Json {
    return new Json("[" + items.map<string>((v) => v.text).join(",") + "]");
  }

  /** Begins an object: Json.object().set("a", …).set("b", …). */
  static object(): Json {
    return new Json("{}");
  }

  /** Returns the object with one more member at its end. */
  set(name: string, value: Json): Json {
    // One join: large values are copied once.
    const head = this.text.length > 2 ? this.text.substring(0, this.text.length - 1) : "";
    return new Json([head, head == "" ? "{" : ",", quote(name), ":", value.text, "}"].join(""));
  }

  /** Is set for a string. */
  put(name: string, value: string): Json {
    return this.set(name, Json.string(value));
  }

  get isNull(): bool {
    return this.text == "null";
  }

  get isString(): bool {
    return this.text.charCodeAt(0) == QUOTE;
  }

  get isArray(): bool {
    return this.text.charCodeAt(0) == 0x5b;
  }

  get isObject(): bool {
    return this.text.charCodeAt(0) == 0x7b;
  }

  /** A string, decoded; anything else is empty. */
  asString(): string {
    return this.isString ? unquote(this.text) : "";
  }

  /** A whole number; what stands behind it is ignored, and anything else is 0. */
  asInteger(): i64 {
    const negative = this.text.charCodeAt(0) == 0x2d;
    let n: i64 = 0;
    for (let i = negative ? 1 : 0; i < this.text.length && isDigit(this.text.charCodeAt(i)); i++) {
      n = n * 10 + (this.text.charCodeAt(i) - 0x30);
    }
    return negative ? -n : n;
  }

  /** A number, 0 for anything else. */
  asNumber(): f64 {
    const n = F64.parseFloat(this.text);
    return isNaN(n) ? 0 : n;
  }

  asBoolean(): bool {
    return this.text == "true";
  }

  /** A member of an object, the last one of that name. */
  get(name: string): Json {
    let from = 0, to = 0;
    if (!this.isObject) return Json.null();
    for (let at = 1; at + 1 < this.text.length; ) {
      const colon = valueEnd(this.text, at, DEPTH);
      const end = valueEnd(this.text, colon + 1, DEPTH);
      if (isNamed(this.text, at, colon, name)) {
        from = colon + 1;
        to = end;
      }
      at = end + 1;
    }
    return to == 0 ? Json.null() : new Json(this.text.substring(from, to));
  }

  /** Reports whether an object has a member, be it null. */
  has(name: string): bool {
    return this.names().includes(name);
  }

  /** A member that is a string. */
  getString(name: string): string {
    return this.get(name).asString();
  }

  /** The values of an array; anything else has none. */
  items(): Json[] {
    const list: Json[] = [];
    if (!this.isArray) return list;
    for (let at = 1; at + 1 < this.text.length; ) {
      const end = valueEnd(this.text, at, DEPTH);
      list.push(new Json(this.text.substring(at, end)));
      at = end + 1;
    }
    return list;
  }

  /** The names of an object's members; anything else has none. */
  names(): string[] {
    const list: string[] = [];
    if (!this.isObject) return list;
    for (let at = 1; at + 1 < this.text.length; ) {
      const colon = valueEnd(this.text, at, DEPTH);
      list.push(unquote(this.text.substring(at, colon)));
      at = valueEnd(this.text, colon + 1, DEPTH) + 1;
    }
    return list;
  }

  /** The strings of an array. */
  asStrings(): string[] {
    return this.items().map<string>((v) => v.asString());
  }
}

/** How deep values lie in values. */
const DEPTH: i32 = 500;

const QUOTE: i32 = 0x22;
const BACKSLASH: i32 = 0x5c;

function isSpace(c: i32): bool {
  return c == 0x20 || c == 0x09 || c == 0x0a || c == 0x0d;
}

function isDigit(c: i32): bool {
  return c >= 0x30 && c <= 0x39;
}

/** Compares a name, as it stands between its quotes from at to end, with another. */
function isNamed(s: string, at: i32, end: i32, name: string): bool {
  for (let i = at + 1; i < end - 1; i++) {
    const c = s.charCodeAt(i);
    if (c == BACKSLASH) return unquote(s.substring(at, end)) == name;
    if (c != name.charCodeAt(i - at - 1)) return false;
  }
  return end - at - 2 == name.length;
}

function space(s: string, at: i32): i32 {
  while (isSpace(s.charCodeAt(at))) at++;
  return at;
}

/** Where a value ends; -1 if it is none. Beyond the end of a text is character -1. */
function valueEnd(s: string, at: i32, depth: i32): i32 {
  switch (s.charCodeAt(at)) {
    case QUOTE: return stringEnd(s, at);
    case 0x7b: return listEnd(s, at, 0x7d, depth);
    case 0x5b: return listEnd(s, at, 0x5d, depth);
    case 0x74: return wordEnd(s, at, "true");
    case 0x66: return wordEnd(s, at, "false");
    case 0x6e: return wordEnd(s, at, "null");
  }
  return numberEnd(s, at);
}

function wordEnd(s: string, at: i32, word: string): i32 {
  return s.substr(at, word.length) == word ? at + word.length : -1;
}

function isHex(c: i32): bool {
  return isDigit(c) || ((c | 32) >= 0x61 && (c | 32) <= 0x66);
}

function stringEnd(s: string, at: i32): i32 {
  for (at++; at < s.length; at++) {
    const c = s.charCodeAt(at);
    if (c == QUOTE) return at + 1;
    if (c < 0x20) return -1;
    if (c != BACKSLASH) continue;
    const e = s.charCodeAt(++at);
    if (e == 0x75) {
      for (let i = 0; i < 4; i++) if (!isHex(s.charCodeAt(++at))) return -1;
    } else if (e < 0 || !"\"\\/bfnrt".includes(String.fromCharCode(e))) {
      return -1;
    }
  }
  return -1;
}

function listEnd(s: string, at: i32, close: i32, depth: i32): i32 {
  if (depth == 0) return -1;
  at = space(s, at + 1);
  if (s.charCodeAt(at) == close) return at + 1;
  while (true) {
    if (close == 0x7d) {
      if (s.charCodeAt(at) != QUOTE) return -1;
      at = stringEnd(s, at);
      if (at < 0) return -1;
      at = space(s, at);
      if (s.charCodeAt(at) != 0x3a) return -1;
      at = space(s, at + 1);
    }
    at = valueEnd(s, at, depth - 1);
    if (at < 0) return -1;
    at = space(s, at);
    if (s.charCodeAt(at) == close) return at + 1;
    if (s.charCodeAt(at) != 0x2c) return -1;
    at = space(s, at + 1);
  }
}

function digitsEnd(s: string, at: i32): i32 {
  const from = at;
  while (isDigit(s.charCodeAt(at))) at++;
  return at > from ? at : -1;
}

function numberEnd(s: string, at: i32): i32 {
  if (s.charCodeAt(at) == 0x2d) at++;
  let end = digitsEnd(s, at);
  if (end < 0 || (s.charCodeAt(at) == 0x30 && end > at + 1)) return -1;
  if (s.charCodeAt(end) == 0x2e) {
    end = digitsEnd(s, end + 1);
    if (end < 0) return -1;
  }
  if ((s.charCodeAt(end) | 32) == 0x65) {
    end++;
    if (s.charCodeAt(end) == 0x2b || s.charCodeAt(end) == 0x2d) end++;
    end = digitsEnd(s, end);
  }
  return end;
}

/** Takes the space between tokens out of a good value. */
function compact(s: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < s.length; ) {
    const c = s.charCodeAt(at);
    if (c == QUOTE) {
      at = stringEnd(s, at);
    } else if (isSpace(c)) {
      parts.push(s.substring(from, at));
      from = at = space(s, at);
    } else {
      at++;
    }
  }
  if (parts.length == 0) return s;
  parts.push(s.substring(from));
  return parts.join("");
}

/** Text that grows by single characters: joining a part for each takes too long. */
class Units {
  private size: i32 = 0;
  constructor(private units: StaticArray<u16>) {}

  add(c: i32): void {
    this.units[this.size++] = <u16>c;
  }

  /** Adds four hexadecimal digits. */
  addHex(c: i32): void {
    for (let shift = 12; shift >= 0; shift -= 4) {
      const digit = c >> shift & 15;
      this.add(digit + (digit > 9 ? 0x57 : 0x30));
    }
  }

  text(): string {
    return String.UTF16.decodeUnsafe(changetype<usize>(this.units), this.size << 1);
  }
}

/** The letter of a short escape, 0x75 for a long one, 0 for what needs none. */
function escape(c: i32): i32 {
  switch (c) {
    case QUOTE: return QUOTE;
    case BACKSLASH: return BACKSLASH;
    case 0x08: return 0x62;
    case 0x0c: return 0x66;
    case 0x0a: return 0x6e;
    case 0x0d: return 0x72;
    case 0x09: return 0x74;
  }
  // The last two end lines for some readers.
  return c < 0x20 || c == 0x2028 || c == 0x2029 ? 0x75 : 0;
}

function quote(s: string): string {
  let size = 2;
  for (let at = 0; at < s.length; at++) {
    const e = escape(s.charCodeAt(at));
    size += e == 0 ? 1 : e == 0x75 ? 6 : 2;
  }
  const out = new Units(new StaticArray<u16>(size));
  out.add(QUOTE);
  for (let at = 0; at < s.length; at++) {
    const c = s.charCodeAt(at), e = escape(c);
    if (e == 0) {
      out.add(c);
      continue;
    }
    out.add(BACKSLASH);
    out.add(e);
    if (e == 0x75) out.addHex(c);
  }
  out.add(QUOTE);
  return out.text();
}

/** Decodes a good string. */
function unquote(s: string): string {
  const end = s.length - 1;
  if (s.indexOf("\\") < 0) return s.substring(1, end);
  const out = new Units(new StaticArray<u16>(s.length));
  for (let at = 1; at < end; at++) {
    if (s.charCodeAt(at) != BACKSLASH) {
      out.add(s.charCodeAt(at));
      continue;
    }
    const e = s.charCodeAt(++at);
    if (e != 0x75) {
      out.add(unescape(e));
      continue;
    }
    const c = unit(s, at + 1);
    at += 4;
    const low = isHalf(c, 0xd800) && s.charCodeAt(at + 1) == BACKSLASH && s.charCodeAt(at + 2) == 0x75 ? unit(s, at + 3) : 0;
    if (isHalf(low, 0xdc00)) {
      out.add(c);
      out.add(low);
      at += 6;
    } else { // half a pair is no character
      out.add(isHalf(c, 0xd800) || isHalf(c, 0xdc00) ? 0xfffd : c);
    }
  }
  return out.text();
}

/** What a short escape stands for. */
function unescape(letter: i32): i32 {
  switch (letter) {
    case 0x62: return 0x08;
    case 0x66: return 0x0c;
    case 0x6e: return 0x0a;
    case 0x72: return 0x0d;
    case 0x74: return 0x09;
  }
  return letter;
}

function unit(s: string, at: i32): i32 {
  let n = 0;
  for (let i = at; i < at + 4; i++) {
    const c = s.charCodeAt(i);
    n = n << 4 | (isDigit(c) ? c - 0x30 : (c | 32) - 0x57);
  }
  return n;
}

function isHalf(c: i32, first: i32): bool {
  return c >= first && c < first + 0x400;
}
