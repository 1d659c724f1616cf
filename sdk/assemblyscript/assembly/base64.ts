const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Writes bytes as text of 64 characters, with padding. */
export function toBase64(bytes: ArrayBuffer): string {
  const data = Uint8Array.wrap(bytes), size = data.length;
  const out = new StaticArray<u16>((size + 2) / 3 * 4);
  for (let i = 0, at = 0; i < size; i += 3) {
    let bits: u32 = 0;
    for (let k = i; k < i + 3; k++) bits = bits << 8 | (k < size ? data[k] : 0);
    for (let k = 0; k < 4; k++) {
      out[at++] = <u16>(i + k > size ? 0x3d : DIGITS.charCodeAt(bits >> (18 - 6 * k) & 63));
    }
  }
  return String.UTF16.decodeUnsafe(changetype<usize>(out), out.length << 1);
}

function digit(c: i32): i32 {
  if (c >= 0x41 && c <= 0x5a) return c - 0x41;
  if (c >= 0x61 && c <= 0x7a) return c - 0x61 + 26;
  if (c >= 0x30 && c <= 0x39) return c - 0x30 + 52;
  return c == 0x2b ? 62 : c == 0x2f ? 63 : -1;
}

/** Reads what a host writes; it ends at the first character that is none of them. */
export function fromBase64(text: string): ArrayBuffer {
  const out = new Uint8Array(text.length / 4 * 3 + 3);
  let bits: u32 = 0, have = 0, at = 0;
  for (let i = 0; i < text.length; i++) {
    const d = digit(text.charCodeAt(i));
    if (d < 0) break;
    bits = bits << 6 | d;
    have += 6;
    if (have >= 8) {
      have -= 8;
      out[at++] = <u8>(bits >> have);
    }
  }
  return out.buffer.slice(0, at);
}
