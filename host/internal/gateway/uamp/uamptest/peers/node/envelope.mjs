// The envelope of §4 and the delta of §5, as the schemas of Appendix A have them.
import { repeated } from './canonical.mjs';
import { keysOf, newID } from './did.mjs';
import { open, seal } from './jws.mjs';

export const intents = ['ask', 'inform', 'propose', 'confirm', 'deny', 'progress', 'cancel', 'subscribe', 'notify', 'error'];
const types = ['patch', 'chunk', 'progress', 'done', 'cancel', 'error'];
export const terminal = ['done', 'cancel', 'error'];
const members = ['id', 'ts', 'from', 'to', 'intent', 'reply_to', 'context', 'stream_id', 'delta_window', 'body', 'cap_token', 'sig', 'ext'];

// now is the time without fractions, as the document prints it.
export const now = (ms = Date.now()) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

// uuid: §4 writes urn:uuid: and version 4, the schema's format has the bare UUID. This
// peer takes both and wants the version.
const uuid = (v) => typeof v === 'string' && /^(urn:uuid:)?[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(v);
const time = (v) => typeof v === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(v) && !Number.isNaN(Date.parse(v));
const uri = (v) => typeof v === 'string' && /^[a-z][a-z0-9+.-]*:[^\s]+$/i.test(v);
const text = (v) => typeof v === 'string';
const object = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);

const checks = {
  id: uuid, ts: time, from: uri, to: (v) => Array.isArray(v) && v.length > 0 && v.every(uri), intent: (v) => intents.includes(v),
  reply_to: uuid, stream_id: text, delta_window: (v) => Number.isInteger(v) && v >= 1, cap_token: text, sig: text, ext: object,
  context: (v) => Array.isArray(v) && v.every((c) => object(c) && uuid(c.id) && /^sha256:[0-9a-f]{64}$/.test(c.hash)),
  body: (v) => object(v) && text(v.type) && text(v.content) && text(v.encoding ?? '') && text(v.compression ?? ''),
};

// fault returns what is wrong with an envelope.
export function fault(e) {
  if (!object(e)) return 'an envelope is an object';
  const unknown = Object.keys(e).find((name) => !members.includes(name));
  if (unknown !== undefined) return `an envelope has no member ${unknown}`;
  const absent = ['id', 'ts', 'from', 'to', 'intent', 'body', 'sig'].find((name) => e[name] === undefined);
  if (absent) return `the envelope has no ${absent}`;
  const wrong = Object.keys(e).find((name) => !checks[name](e[name]));
  return wrong && `${wrong} is ${JSON.stringify(e[wrong])}`;
}

// faultOfDelta is strict: the example in C.2 leaves stream_id and ts out, the schema
// requires them.
export function faultOfDelta(d) {
  if (!object(d)) return 'a delta is an object';
  const unknown = Object.keys(d).find((name) => !['delta_seq', 'stream_id', 'ts', 'type', 'payload'].includes(name));
  if (unknown !== undefined) return `a delta has no member ${unknown}`;
  if (!Number.isInteger(d.delta_seq) || d.delta_seq < 0) return `delta_seq is ${d.delta_seq}`;
  if (!text(d.stream_id) || !time(d.ts) || !types.includes(d.type)) return 'stream_id, ts or type is missing or wrong';
  return d.payload === undefined || object(d.payload) ? undefined : 'payload is no object';
}

// draft is an envelope without its sig.
export function draft(signer, { to, intent, content = '', type = 'text/plain', ...more }) {
  const { reply_to, context, stream_id, delta_window, cap_token, ext } = more;
  return { id: more.id ?? newID(), ts: more.ts ?? now(), from: signer.did, to: [].concat(to), intent, reply_to, context, stream_id, delta_window, body: { type, content }, cap_token, ext };
}

// signed returns the text of an envelope with its sig.
export async function signed(envelope, signer, how, header) {
  const sig = await seal(JSON.stringify(envelope), signer, how, header);
  return JSON.stringify({ ...envelope, sig });
}

class Refusal extends Error {
  constructor(status, code, reason, envelope) {
    super(reason);
    Object.assign(this, { status, code, envelope });
  }
}
export const refusal = (...args) => new Refusal(...args);

// parse reads the bytes of an envelope and checks all but its signature.
export function parse(bytes) {
  let envelope, source, twice;
  try {
    source = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    envelope = JSON.parse(source);
    twice = repeated(source);
  } catch (e) {
    throw refusal(400, '4.00', e.message);
  }
  const reason = twice === undefined ? fault(envelope) : `the member ${twice} comes twice`;
  if (reason) throw refusal(400, '4.00', reason, fault({ ...envelope, sig: '' }) ? undefined : envelope);
  return { envelope, source };
}

// verify checks the signature of a parsed envelope and returns how it was made.
export async function verify({ envelope, source }, net) {
  try {
    return await open(source, envelope.sig, (kid) => keysOf(envelope.from, kid, net));
  } catch (e) {
    throw refusal(401, '4.01', e.message, envelope);
  }
}
