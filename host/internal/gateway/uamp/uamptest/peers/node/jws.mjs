// Signatures of envelopes and manifests: §6.3 and §8. The detached payload is not sent,
// so its bytes are a guess: the document prints it with spaces and leaves the digest's
// spelling out.
import { createHmac } from 'node:crypto';
import { digest } from './canonical.mjs';
import { jose } from './libraries.mjs';

const digests = {
  hex: (d) => d.toString('hex'),
  prefixed: (d) => `sha256:${d.toString('hex')}`,
  base64url: (d) => d.toString('base64url'),
};
const payloads = {
  compact: (h) => `{"sha256":"${h}"}`,
  spaced: (h) => `{"sha256": "${h}"}`,
  printed: (h) => `{ "sha256": "${h}" }`,
};
const bytes = (text) => new TextEncoder().encode(text);
const encode = (text) => Buffer.from(text).toString('base64url');
const algorithms = ['ES256', 'EdDSA'];

export const newKey = (alg) => jose.generateKeyPair(alg, { extractable: true, ...(alg === 'EdDSA' && { crv: 'Ed25519' }) });

// compact signs a payload. Header members may replace the signer's.
async function compact(payload, signer, header = {}) {
  const critical = Object.fromEntries((header.crit ?? []).map((name) => [name, true]));
  const jws = await new jose.FlattenedSign(bytes(payload))
    .setProtectedHeader({ alg: signer.alg, ...(signer.kid && { kid: signer.kid }), ...header })
    .sign(signer.key, { crit: critical });
  return [jws.protected, jws.payload, jws.signature];
}

// seal returns the sig of an envelope's text. how has canonical, hash, payload and form.
export async function seal(text, signer, how, header, leave) {
  const payload = payloads[how.payload](digests[how.hash](digest(how.canonical, text, leave)));
  if (how.form === 'unencoded') header = { ...header, b64: false, crit: ['b64'] };
  const [head, body, signature] = await compact(payload, signer, header);
  return [head, how.form === 'attached' ? body : '', signature].join('.');
}

// confused is a sig whose algorithm is none, HS256 with the public key as its secret, or
// the other one's name.
export async function confused(alg, text, signer, how) {
  const payload = encode(payloads[how.payload](digests[how.hash](digest(how.canonical, text))));
  if (alg === 'swapped') {
    const [, , signature] = (await seal(text, signer, how)).split('.');
    return `${encode(JSON.stringify({ alg: signer.alg === 'ES256' ? 'EdDSA' : 'ES256', kid: signer.kid }))}..${signature}`;
  }
  const head = encode(JSON.stringify({ alg, kid: signer.kid }));
  const secret = await jose.exportSPKI(signer.publicKey);
  return `${head}..${alg === 'none' ? '' : createHmac('sha256', secret).update(`${head}.${payload}`).digest('base64url')}`;
}

// open verifies the sig of an envelope's text with the keys that keysFor returns for its
// kid, and returns which spelling it was made with.
export async function open(text, sig, keysFor) {
  const [head, payload, signature, more] = sig.split('.');
  if (payload !== '' || !signature || more !== undefined) throw new Error('sig is no detached JWS with a signature');
  const { alg, kid } = jose.decodeProtectedHeader({ protected: head });
  if (!algorithms.includes(alg)) throw new Error(`the algorithm ${alg} is not allowed`);
  let reason = 'no key of the sender';
  for (const jwk of await keysFor(kid)) {
    const key = await jose.importJWK(jwk, alg);
    for (const spelling of spellings(text)) {
      try {
        await jose.flattenedVerify({ protected: head, payload: forB64(head, spelling.text), signature }, key, { algorithms });
        return { canonical: spelling.canonical, hash: spelling.hash, payload: spelling.payload };
      } catch (e) {
        reason = e.message;
      }
    }
  }
  throw new Error(reason);
}

const forB64 = (head, text) => (jose.decodeProtectedHeader({ protected: head }).b64 === false ? bytes(text) : encode(text));

function* spellings(text) {
  for (const canonical of ['jcs', 'literal']) {
    const d = digest(canonical, text);
    for (const hash in digests) for (const payload in payloads) yield { canonical, hash, payload, text: payloads[payload](digests[hash](d)) };
  }
}

// sealManifest signs what is sent with its signature.
export const sealManifest = async (text, signer) => (await compact(text, signer, { typ: 'manifest+jws' })).join('.');

// openManifest verifies a signed manifest and returns its text.
export async function openManifest(jws, keysFor) {
  const { kid } = jose.decodeProtectedHeader(jws);
  for (const jwk of await keysFor(kid)) {
    try {
      const { payload } = await jose.compactVerify(jws, await jose.importJWK(jwk, algorithmOf(jwk)), { algorithms });
      return new TextDecoder().decode(payload);
    } catch {
      // another key may have made it
    }
  }
  throw new Error('no key of the agent has signed the manifest');
}

export const algorithmOf = (jwk) => (jwk.crv === 'P-256' ? 'ES256' : 'EdDSA');

// sealToken makes a capability token, openToken verifies one.
export const sealToken = (claims, signer) => new jose.SignJWT(claims).setProtectedHeader({ alg: signer.alg, kid: signer.kid }).sign(signer.key);

export async function openToken(token, audience, keysFor) {
  const { iss } = jose.decodeJwt(token);
  const { kid } = jose.decodeProtectedHeader(token);
  let reason = 'no key of the issuer';
  for (const jwk of await keysFor(iss, kid)) {
    try {
      const { payload } = await jose.jwtVerify(token, await jose.importJWK(jwk, algorithmOf(jwk)), { algorithms, audience, requiredClaims: ['aud', 'scope', 'exp'] });
      return payload;
    } catch (e) {
      reason = e.message;
    }
  }
  throw new Error(reason);
}
