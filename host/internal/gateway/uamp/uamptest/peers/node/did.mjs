// did:key and did:web: the names of agents. The document uses did:web without a word
// about it, and has no rule for other URIs.
import { ECDH, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { jose } from './libraries.mjs';
import { algorithmOf, newKey } from './jws.mjs';
import { fetchBody } from './http2.mjs';

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

function toBase58(buffer) {
  let n = BigInt(`0x${buffer.toString('hex')}`);
  let out = '';
  for (; n > 0n; n /= 58n) out = alphabet[n % 58n] + out;
  return out;
}

function fromBase58(text) {
  let n = 0n;
  for (const c of text) {
    if (!alphabet.includes(c)) throw new Error(`${c} is not in base58`);
    n = n * 58n + BigInt(alphabet.indexOf(c));
  }
  const hex = n.toString(16);
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
}

// toMultikey spells a public key: its multicodec and its bytes.
export function toMultikey(jwk) {
  const x = Buffer.from(jwk.x, 'base64url');
  if (jwk.crv === 'Ed25519') return `z${toBase58(Buffer.concat([Buffer.from([0xed, 1]), x]))}`;
  const odd = Buffer.from(jwk.y, 'base64url')[31] & 1;
  return `z${toBase58(Buffer.concat([Buffer.from([0x80, 0x24, 2 + odd]), x]))}`;
}

export function fromMultikey(text) {
  const all = fromBase58(text.slice(1));
  if (text[0] !== 'z') throw new Error('a multikey begins with z');
  if (all[0] === 0xed && all[1] === 1 && all.length === 34) return { kty: 'OKP', crv: 'Ed25519', x: all.subarray(2).toString('base64url') };
  if (all[0] !== 0x80 || all[1] !== 0x24 || all.length !== 35) throw new Error('a key of another kind');
  const point = ECDH.convertKey(all.subarray(2), 'prime256v1', undefined, undefined, 'uncompressed');
  return { kty: 'EC', crv: 'P-256', x: point.subarray(1, 33).toString('base64url'), y: point.subarray(33).toString('base64url') };
}

// newSigner is who signs: a key from a file or a new one, and its name.
export async function newSigner({ alg, keyFile, did, noKid }) {
  let pair;
  if (keyFile) {
    const jwk = JSON.parse(readFileSync(keyFile));
    alg = algorithmOf(jwk);
    const { d, ...rest } = jwk;
    pair = { privateKey: await jose.importJWK(jwk, alg), publicKey: await jose.importJWK(rest, alg, { extractable: true }) };
  } else {
    pair = await newKey(alg);
  }
  const jwk = await jose.exportJWK(pair.publicKey);
  const multikey = toMultikey(jwk);
  const name = did ?? `did:key:${multikey}`;
  const keyID = name.startsWith('did:key:') ? `${name}#${multikey}` : `${name}#key-1`;
  return { alg, key: pair.privateKey, publicKey: pair.publicKey, jwk, did: name, keyID, kid: noKid ? undefined : keyID };
}

// documentOf is the DID document of a signer.
export function documentOf(signer, service) {
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: signer.did,
    verificationMethod: [{ id: signer.keyID, type: 'JsonWebKey2020', controller: signer.did, publicKeyJwk: signer.jwk }],
    assertionMethod: [signer.keyID],
    authentication: [signer.keyID],
    ...(service && { service: [{ id: `${signer.did}#messages`, ...service }] }),
  };
}

// addressOf is where the document of a did:web is.
export function addressOf(did, scheme) {
  const [host, ...path] = did.slice('did:web:'.length).split(':').map(decodeURIComponent);
  return `${scheme}://${host}/${path.length ? path.join('/') : '.well-known'}/did.json`;
}

// documentFor fetches the document of a did:web.
export async function documentFor(did, net) {
  const { status, body } = await fetchBody(net, addressOf(did, net.plain ? 'http' : 'https'));
  const document = status === 200 ? JSON.parse(body) : {};
  if (document.id !== did) throw new Error(`the document of ${did} has status ${status} and names ${document.id}`);
  return document;
}

// keysOf returns the keys with which a DID may assert something; kid chooses one.
export async function keysOf(did, kid, net) {
  if (kid !== undefined && kid.split('#')[0] !== did) throw new Error(`the key ${kid} is not one of ${did}`);
  if (did.startsWith('did:key:')) return [fromMultikey(did.slice('did:key:'.length))];
  if (!did.startsWith('did:web:')) throw new Error(`${did} is neither did:web nor did:key`);
  const document = await documentFor(did, net);
  const full = (id) => (id.startsWith('#') ? did + id : id);
  const wanted = (document.assertionMethod ?? []).map((m) => full(m.id ?? m));
  const embedded = (document.assertionMethod ?? []).filter((m) => m.id);
  return [...(document.verificationMethod ?? []), ...embedded]
    .filter((m) => wanted.includes(full(m.id)) && (kid === undefined || full(m.id) === kid))
    .map((m) => m.publicKeyJwk ?? fromMultikey(m.publicKeyMultibase));
}

export const newID = () => `urn:uuid:${randomUUID()}`;
