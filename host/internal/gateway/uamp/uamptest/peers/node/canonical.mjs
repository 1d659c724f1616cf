// JSON as §4.2 has it. "Keys sorted lexicographically, UTF-8, no extra whitespace" leaves
// the order of keys and the spelling of numbers open: jcs is RFC 8785, literal sorts by
// code point and keeps numbers as they came.
import { createHash } from 'node:crypto';
import { canonicalize } from './libraries.mjs';

const keep = (_, value, { source }) => (typeof value === 'number' ? JSON.rawJSON(source) : value);

// literal parses text and keeps how its numbers are spelled.
export const literal = (text) => JSON.parse(text, keep);

const token = /("(?:[^"\\]|\\.)*")|([{}[\]:])/g;

const depth = 500;

// repeated returns the first member that an object of text has twice. It refuses what is
// nested too deep for the functions here.
export function repeated(text) {
  const open = [];
  let last = '';
  for (const [, string, mark] of text.matchAll(token)) {
    if (mark === '{') open.push(new Set());
    else if (mark === '[') open.push(null);
    if (open.length > depth) throw new Error(`nested more than ${depth} deep`);
    if (mark === '}' || mark === ']') open.pop();
    else if (mark === ':') {
      const name = JSON.parse(last);
      if (open.at(-1).has(name)) return name;
      open.at(-1).add(name);
    }
    last = string;
  }
}

function byCodePoint(a, b) {
  const [x, y] = [[...a], [...b]];
  const i = x.findIndex((c, n) => c !== y[n]);
  if (i < 0) return x.length - y.length;
  return i >= y.length ? 1 : x[i].codePointAt(0) - y[i].codePointAt(0);
}

function string(value) {
  if (!value.isWellFormed()) throw new Error('an unpaired surrogate');
  return JSON.stringify(value);
}

function write(value) {
  if (typeof value === 'string') return string(value);
  if (value === null || typeof value !== 'object' || JSON.isRawJSON(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  const members = Object.keys(value).sort(byCodePoint).map((name) => `${string(name)}:${write(value[name])}`);
  return `{${members.join(',')}}`;
}

// forms makes the bytes that are hashed, of a parsed envelope's text.
export const forms = {
  jcs: (text, leave) => canonicalize(without(JSON.parse(text), leave)),
  literal: (text, leave) => write(without(literal(text), leave)),
};

function without(value, names) {
  for (const name of names) delete value[name];
  return value;
}

// digest hashes the text of an envelope in a form, without the named members.
export const digest = (form, text, leave = ['sig']) => createHash('sha256').update(forms[form](text, leave)).digest();
