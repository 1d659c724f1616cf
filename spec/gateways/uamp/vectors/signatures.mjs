// Writes vectors of signatures by npm's jose and canonicalize:
// node signatures.mjs > signatures-node.json
import { createHash, randomUUID } from 'node:crypto'
import { CompactSign, importJWK } from 'jose'
import canonicalize from 'canonicalize'

const keys = {
  // RFC 8037, appendix A.1, and RFC 7515, appendix A.3.
  EdDSA: { kty: 'OKP', crv: 'Ed25519', d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
  ES256: { kty: 'EC', crv: 'P-256', x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU', y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0', d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI' },
}
const from = 'did:web:client.example'
const contents = ['2+2', 'ä "quoted" \\ / \b\u0007\u001f\u007f\u2028 😀', '', '{"a":[1,2]}']
const exts = [
  undefined,
  { '！': 1, '😀': 1e21, 'ﬀ': -0, a: 1e-7, B: 0.1, '': null },
  { 'x-trace': 'b3:1', nested: { b: [true, { z: 1, a: 9007199254740993 }], a: 1.50 } },
  { n: [333333333.3333333, 5e-324, 1.7976931348623157e308, 123456789012345680000, 1e23] },
]

const public_ = ({ d, ...jwk }) => jwk
const out = []
for (const alg of Object.keys(keys)) {
  for (const [i, ext] of exts.entries()) {
    const env = {
      to: ['did:web:calc.example'], id: 'urn:uuid:' + randomUUID(), ts: '2025-07-10T10:00:00Z', from, intent: 'ask',
      body: { type: 'text/plain', content: contents[i] }, delta_window: 1 + i, ...(ext && { ext }),
    }
    const sum = createHash('sha256').update(canonicalize(env)).digest('hex')
    const jws = await new CompactSign(new TextEncoder().encode(JSON.stringify({ sha256: sum })))
      .setProtectedHeader({ alg, kid: from + '#k1' }).sign(await importJWK(keys[alg], alg))
    const [header, , signature] = jws.split('.')
    out.push({ by: 'jose and canonicalize', alg, sum, key: public_(keys[alg]), envelope: JSON.stringify({ ...env, sig: header + '..' + signature }, null, i) })
  }
}
// What signs an envelope with a list of names in place of a replacer leaves the body out.
const env = { id: 'urn:uuid:' + randomUUID(), ts: '2025-07-10T10:00:00Z', from, to: ['did:web:calc.example'], intent: 'ask', body: { type: 'text/plain', content: '2+2' } }
const sum = createHash('sha256').update(JSON.stringify(env, Object.keys(env).sort())).digest('hex')
const jws = await new CompactSign(new TextEncoder().encode(JSON.stringify({ sha256: sum })))
  .setProtectedHeader({ alg: 'EdDSA', kid: from + '#k1' }).sign(await importJWK(keys.EdDSA, 'EdDSA'))
const [header, , signature] = jws.split('.')
out.push({ by: 'a hash without the body', alg: 'EdDSA', sum: '', key: public_(keys.EdDSA), envelope: JSON.stringify({ ...env, sig: header + '..' + signature }) })
console.log(JSON.stringify(out, null, 1))
