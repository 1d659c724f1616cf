/** Why a message cannot be read or written, with its place. */
export class MessageError extends Error {}

const maxText = 1048576; // bytes
const maxNesting = 64;

/** A number as it is written. */
class Numeral {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | boolean | null | Numeral | Value[] | Map<string, Value>;
type Read<T> = (v: Value, at: string) => T;
type Write<T> = (w: Writer, t: T, at: string) => void;

declare const TextDecoder: new (label: string, options: { fatal: boolean; ignoreBOM: boolean }) => { decode(raw: Uint8Array): string };

function fail(at: string, reason: string): never {
  throw new MessageError(at + ": " + reason);
}

function refuse(reason: string): never {
  throw new MessageError("the text " + reason);
}

function isSurrogate(c: number): boolean {
  return c >= 0xd800 && c <= 0xdfff;
}

/** The position of a surrogate without its other half, -1 for none. */
function unpaired(text: string): number {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (isSurrogate(c)) {
      const low = i + 1 < text.length ? text.charCodeAt(i + 1) : 0;
      if (c >= 0xdc00 || low < 0xdc00 || low > 0xdfff) {
        return i;
      }
      i++;
    }
  }
  return -1;
}

function checkSize(text: string): void {
  let n = text.length;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    n += c < 0x80 ? 0 : c < 0x800 || isSurrogate(c) ? 1 : 2;
  }
  if (n > maxText) {
    refuse("has more than 1048576 bytes");
  }
}

function parseText(text: string | Uint8Array): Value {
  if (typeof text !== "string") {
    if (text.length > maxText) {
      refuse("has more than 1048576 bytes");
    }
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
    } catch {
      refuse("is not UTF-8");
    }
  }
  checkSize(text);
  if (unpaired(text) >= 0) {
    refuse("has an unpaired surrogate");
  }
  return new Parser(text).all();
}

class Parser {
  private readonly text: string;
  private at = 0;
  private depth = 0;

  constructor(text: string) {
    this.text = text;
  }

  all(): Value {
    this.space();
    const v = this.value();
    this.space();
    if (this.at < this.text.length) {
      this.noJSON();
    }
    return v;
  }

  private noJSON(): never {
    return refuse("is no JSON");
  }

  private take(c: string): boolean {
    if (this.text.charAt(this.at) === c) {
      this.at++;
      return true;
    }
    return false;
  }

  private space(): void {
    while (this.at < this.text.length && " \t\n\r".includes(this.text.charAt(this.at))) {
      this.at++;
    }
  }

  private value(): Value {
    switch (this.text.charAt(this.at)) {
      case "{":
      case "[": {
        if (++this.depth > maxNesting) {
          refuse("is nested deeper than 64");
        }
        const v = this.take("{") ? this.object() : this.list();
        this.depth--;
        return v;
      }
      case '"':
        return this.string();
      case "t":
        return this.word("true", true);
      case "f":
        return this.word("false", false);
      case "n":
        return this.word("null", null);
    }
    return this.number();
  }

  private word(word: string, v: Value): Value {
    if (!this.text.startsWith(word, this.at)) {
      this.noJSON();
    }
    this.at += word.length;
    return v;
  }

  private number(): Value {
    const numeral = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
    numeral.lastIndex = this.at;
    const found = numeral.exec(this.text);
    if (found === null) {
      return this.noJSON();
    }
    this.at = numeral.lastIndex;
    return new Numeral(found[0]);
  }

  private list(): Value {
    const all: Value[] = [];
    this.take("[");
    this.space();
    if (this.take("]")) {
      return all;
    }
    for (;;) {
      this.space();
      all.push(this.value());
      this.space();
      if (this.take("]")) {
        return all;
      }
      if (!this.take(",")) {
        this.noJSON();
      }
    }
  }

  private object(): Value {
    const all = new Map<string, Value>();
    this.space();
    if (this.take("}")) {
      return all;
    }
    for (;;) {
      this.space();
      if (this.text.charAt(this.at) !== '"') {
        this.noJSON();
      }
      const name = this.string();
      if (all.has(name)) {
        refuse("has a member twice");
      }
      this.space();
      if (!this.take(":")) {
        this.noJSON();
      }
      this.space();
      all.set(name, this.value());
      this.space();
      if (this.take("}")) {
        return all;
      }
      if (!this.take(",")) {
        this.noJSON();
      }
    }
  }

  private string(): string {
    let out = "";
    this.take('"');
    for (let begin = this.at; ; this.at++) {
      const c = this.text.charAt(this.at);
      if (c === '"') {
        out += this.text.slice(begin, this.at++);
        return out;
      }
      if (c < " ") {
        this.noJSON();
      }
      if (c === "\\") {
        out += this.text.slice(begin, this.at++);
        out += this.escape();
        begin = this.at--;
      }
    }
  }

  private escape(): string {
    const c = this.text.charAt(this.at++);
    const i = '"\\/bfnrt'.indexOf(c);
    if (c !== "" && i >= 0) {
      return '"\\/\b\f\n\r\t'.charAt(i);
    }
    if (c !== "u") {
      this.noJSON();
    }
    const unit = this.hex();
    if (!isSurrogate(unit)) {
      return String.fromCharCode(unit);
    }
    if (unit >= 0xdc00 || !this.take("\\") || !this.take("u")) {
      refuse("has an unpaired surrogate");
    }
    const low = this.hex();
    if (low < 0xdc00 || low > 0xdfff) {
      refuse("has an unpaired surrogate");
    }
    return String.fromCharCode(unit, low);
  }

  private hex(): number {
    const digits = this.text.slice(this.at, this.at + 4);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) {
      this.noJSON();
    }
    this.at += 4;
    return parseInt(digits, 16);
  }
}

function readObject(v: Value, at: string): Map<string, Value> {
  return v instanceof Map ? v : fail(at, "is no object");
}

function field<T>(o: Map<string, Value>, name: string, at: string, read: Read<T>): T {
  const v = o.get(name);
  return v === undefined ? fail(at + "." + name, "is missing") : read(v, at + "." + name);
}

function optional<T>(o: Map<string, Value>, name: string, at: string, read: Read<T>): T | undefined {
  const v = o.get(name);
  return v === undefined || v === null ? undefined : read(v, at + "." + name);
}

/** The members that are not declared, each with its text. */
function others(o: Map<string, Value>, declared: (name: string) => boolean): Map<string, string> {
  const extra = new Map<string, string>();
  for (const [name, v] of o) {
    if (!declared(name)) {
      const w = new Writer();
      writeValue(w, v);
      extra.set(name, w.out);
    }
  }
  return extra;
}

function noOthers(o: Map<string, Value>, at: string, declared: (name: string) => boolean): void {
  for (const name of o.keys()) {
    if (!declared(name)) {
      fail(at + "[" + quoted(name) + "]", "is not declared");
    }
  }
}

function readString(v: Value, at: string): string {
  return typeof v === "string" ? v : fail(at, "is no string");
}

function readBoolean(v: Value, at: string): boolean {
  return typeof v === "boolean" ? v : fail(at, "is neither true nor false");
}

function readInt(v: Value, at: string): number {
  if (v instanceof Numeral && /^-?[0-9]{1,10}$/.test(v.text)) {
    const n = Number(v.text);
    if (n >= -2147483648 && n <= 2147483647) {
      return n === 0 ? 0 : n;
    }
  }
  return fail(at, "is no whole number of 32 bits");
}

function readLong(v: Value, at: string): bigint {
  if (v instanceof Numeral && /^-?[0-9]{1,19}$/.test(v.text)) {
    const n = BigInt(v.text);
    if (BigInt.asIntN(64, n) === n) {
      return n;
    }
  }
  return fail(at, "is no whole number of 64 bits");
}

function readFloat(v: Value, at: string): number {
  const n = v instanceof Numeral ? Number(v.text) : NaN;
  return Number.isFinite(n) ? n : fail(at, "is no number of 64 bits");
}

const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function readBytes(v: Value, at: string): Uint8Array {
  if (typeof v !== "string" || !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$/.test(v) || v.endsWith("\n")) {
    return fail(at, "is no base64");
  }
  const plain = v.replace(/=+$/, "");
  const raw = new Uint8Array(Math.floor((plain.length * 3) / 4));
  let bits = 0;
  let n = 0;
  let i = 0;
  for (const c of plain) {
    bits = ((bits << 6) | base64.indexOf(c)) & 0xffff;
    n += 6;
    if (n >= 8) {
      n -= 8;
      raw[i++] = (bits >> n) & 0xff;
    }
  }
  return raw;
}

function readList<T>(read: Read<T>): Read<T[]> {
  return (v, at) => (Array.isArray(v) ? v.map((item, i) => read(item, at + "[" + i + "]")) : fail(at, "is no list"));
}

function readMap<T>(read: Read<T>): Read<Map<string, T>> {
  return (v, at) => {
    const all = new Map<string, T>();
    for (const [name, part] of readObject(v, at)) {
      all.set(name, read(part, at + "[" + quoted(name) + "]"));
    }
    return all;
  };
}

function readEnum<T extends string>(v: Value, at: string, known: (text: string) => boolean, list: string): T {
  return typeof v === "string" && known(v) ? (v as T) : fail(at, "is none of " + list);
}

class Writer {
  out = "";
  private depth = 0;

  open(c: string): void {
    if (++this.depth > maxNesting) {
      refuse("is nested deeper than 64");
    }
    this.out += c;
  }

  close(c: string): void {
    this.depth--;
    this.out += c;
  }

  comma(): void {
    if (!this.out.endsWith("{") && !this.out.endsWith("[")) {
      this.out += ",";
    }
  }

  name(name: string): void {
    this.comma();
    this.out += quoted(name) + ":";
  }
}

function encode<T>(t: T, at: string, write: Write<T>): string {
  const w = new Writer();
  write(w, t, at);
  checkSize(w.out);
  return w.out;
}

function quoted(text: string): string {
  let out = '"';
  for (let i = 0; i < text.length; i++) {
    const c = text.charAt(i);
    const short = '"\\\b\f\n\r\t'.indexOf(c);
    if (short >= 0) {
      out += "\\" + '"\\bfnrt'.charAt(short);
    } else if (c < " ") {
      out += "\\u00" + c.charCodeAt(0).toString(16).padStart(2, "0");
    } else {
      out += c;
    }
  }
  return out + '"';
}

function writeField<T>(w: Writer, name: string, t: T, at: string, write: Write<T>): void {
  w.name(name);
  write(w, t, at + "." + name);
}

function writeOptional<T>(w: Writer, name: string, t: T | undefined | null, at: string, write: Write<T>): void {
  if (t !== undefined && t !== null) {
    writeField(w, name, t, at, write);
  }
}

function writeOthers(w: Writer, extra: ReadonlyMap<string, string> | undefined, at: string, declared: (name: string) => boolean): void {
  for (const [name, text] of extra ?? []) {
    const place = at + "[" + quoted(name) + "]";
    if (declared(name)) {
      fail(place, "is declared and cannot be there twice");
    }
    checkPaired(name, place);
    w.name(name);
    writeValue(w, parseText(text));
  }
}

function writeValue(w: Writer, v: Value): void {
  if (typeof v === "string") {
    w.out += quoted(v);
  } else if (v instanceof Numeral) {
    w.out += v.text;
  } else if (Array.isArray(v)) {
    w.open("[");
    for (const item of v) {
      w.comma();
      writeValue(w, item);
    }
    w.close("]");
  } else if (v instanceof Map) {
    w.open("{");
    for (const [name, part] of v) {
      w.name(name);
      writeValue(w, part);
    }
    w.close("}");
  } else {
    w.out += String(v);
  }
}

function checkPaired(text: string, at: string): void {
  if (unpaired(text) >= 0) {
    fail(at, "has an unpaired surrogate");
  }
}

function writeString(w: Writer, t: string, at: string): void {
  if (typeof t !== "string") {
    fail(at, "is no string");
  }
  checkPaired(t, at);
  w.out += quoted(t);
}

function writeBoolean(w: Writer, t: boolean, at: string): void {
  if (typeof t !== "boolean") {
    fail(at, "is neither true nor false");
  }
  w.out += String(t);
}

function writeInt(w: Writer, t: number, at: string): void {
  if (!Number.isInteger(t) || t < -2147483648 || t > 2147483647) {
    fail(at, "is no whole number of 32 bits");
  }
  w.out += String(t);
}

function writeLong(w: Writer, t: bigint, at: string): void {
  if (typeof t !== "bigint" || BigInt.asIntN(64, t) !== t) {
    fail(at, "is no whole number of 64 bits");
  }
  w.out += String(t);
}

function writeFloat(w: Writer, t: number, at: string): void {
  if (!Number.isFinite(t)) {
    fail(at, "is no number of 64 bits");
  }
  w.out += String(t);
}

function writeBytes(w: Writer, t: Uint8Array, at: string): void {
  if (!(t instanceof Uint8Array)) {
    fail(at, "is no base64");
  }
  let out = "";
  for (let i = 0; i < t.length; i += 3) {
    const bits = ((t[i] ?? 0) << 16) | ((t[i + 1] ?? 0) << 8) | (t[i + 2] ?? 0);
    out += base64.charAt(bits >> 18) + base64.charAt((bits >> 12) & 63);
    out += i + 1 < t.length ? base64.charAt((bits >> 6) & 63) : "=";
    out += i + 2 < t.length ? base64.charAt(bits & 63) : "=";
  }
  w.out += '"' + out + '"';
}

function writeList<T>(write: Write<T>): Write<readonly T[]> {
  return (w, all, at) => {
    w.open("[");
    all.forEach((item, i) => {
      w.comma();
      write(w, item, at + "[" + i + "]");
    });
    w.close("]");
  };
}

function writeMap<T>(write: Write<T>): Write<ReadonlyMap<string, T>> {
  return (w, all, at) => {
    w.open("{");
    for (const [name, part] of all) {
      const place = at + "[" + quoted(name) + "]";
      checkPaired(name, place);
      w.name(name);
      write(w, part, place);
    }
    w.close("}");
  };
}

function writeEnum(w: Writer, t: string, at: string, known: (text: string) => boolean, list: string): void {
  if (typeof t !== "string" || !known(t)) {
    fail(at, "is none of " + list);
  }
  w.out += quoted(t);
}
