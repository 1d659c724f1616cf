// Envelopes that a receiver must refuse. Each is wrong in one thing only and otherwise
// properly signed.
import { newSigner } from './did.mjs';
import { now, signed } from './envelope.mjs';
import { confused, newKey, seal } from './jws.mjs';

const hour = 3_600_000;
const unsigned = (e) => JSON.stringify(e);
const withSig = (e, sig) => JSON.stringify({ ...e, sig });

// other is a stranger that uses the sender's kid, or its own.
async function other(signer, kid) {
  const stranger = await newSigner({ alg: signer.alg });
  return { ...stranger, kid: kid ?? stranger.kid };
}

export const bad = {
  altered: async (e, s, how) => (await signed({ ...e, body: { ...e.body, content: 'a' } }, s, how)).replace('"content":"a"', '"content":"b"'),
  'wrong-key': async (e, s, how) => signed(e, await other(s, s.keyID), how),
  'other-kid': async (e, s, how) => signed(e, await other(s), how),
  none: async (e, s, how) => withSig(e, await confused('none', unsigned(e), s, how)),
  hs256: async (e, s, how) => withSig(e, await confused('HS256', unsigned(e), s, how)),
  swapped: async (e, s, how) => withSig(e, await confused('swapped', unsigned(e), s, how)),
  es384: async (e, s, how) => {
    const { privateKey } = await newKey('ES384');
    return signed(e, { ...s, alg: 'ES384', key: privateKey }, how);
  },
  critical: (e, s, how) => signed(e, s, how, { crit: ['x-uamp'], 'x-uamp': true }),
  // The signature leaves the body out, which then is nobody's word.
  'body-left-out': async (e, s, how) => withSig(e, await seal(unsigned(e), s, how, {}, ['sig', 'body'])),
  attached: (e, s, how) => signed(e, s, { ...how, form: 'attached' }),
  unsigned: (e) => unsigned(e),
  past: (e, s, how) => signed({ ...e, ts: now(Date.now() - hour) }, s, how),
  future: (e, s, how) => signed({ ...e, ts: now(Date.now() + hour) }, s, how),
  duplicate: async (e, s, how) => (await signed(e, s, how)).replace('"to":', `"to":["did:web:first.example"],"to":`),
  extra: (e, s, how) => signed({ ...e, priority: 1 }, s, how),
  missing: (e, s, how) => signed({ ...e, intent: undefined }, s, how),
  surrogate: async (e, s, how) => (await signed({ ...e, body: { ...e.body, content: '\ufffd' } }, s, how)).replace('\ufffd', '\\ud800'),
  utf8: async (e, s, how) => Buffer.from((await signed({ ...e, body: { ...e.body, content: '\u00ff' } }, s, how)).replace('\u00ff', '\u0001'), 'utf8').map((b) => (b === 1 ? 0xff : b)),
  deep: async (e, s, how) => (await signed({ ...e, ext: { x: 0 } }, s, how)).replace('"x":0', `"x":${'['.repeat(20000)}${']'.repeat(20000)}`),
  large: (e, s, how) => signed({ ...e, body: { ...e.body, content: 'x'.repeat(2 << 20) } }, s, how),
  misrouted: (e, s, how) => signed({ ...e, to: ['did:web:elsewhere.example'] }, s, how),
};
