// A UAMP agent that was written from the document alone.
//
//   peer.mjs client [flags] --url BASE --to DID --job JSON [--job JSON …]
//   peer.mjs serve  [flags]
//
// A line of JSON is printed for each job, and for what a server sees; the first one is
// who the peer is. A server takes jobs on its standard input, one a line, and ends with
// it. README.md has the flags and the members of a job.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { documentOf, newSigner } from './did.mjs';
import { runJob } from './client.mjs';
import { closeAll } from './http2.mjs';
import { newKey } from './jws.mjs';
import { serve } from './server.mjs';

const flag = (type, more) => ({ type, ...more });
const { values: options, positionals: [mode] } = parseArgs({
  allowPositionals: true,
  options: {
    key: flag('string'), alg: flag('string', { default: 'ES256' }), did: flag('string'), 'no-kid': flag('boolean'),
    canonical: flag('string', { default: 'jcs' }), payload: flag('string', { default: 'compact' }), hash: flag('string', { default: 'hex' }), form: flag('string', { default: 'detached' }),
    ca: flag('string'), cert: flag('string'), 'cert-key': flag('string'), 'client-ca': flag('string'), connect: flag('string', { multiple: true, default: [] }), plain: flag('boolean'), bearer: flag('string'),
    url: flag('string'), to: flag('string'), job: flag('string', { multiple: true, default: [] }),
    port: flag('string'), host: flag('string'), 'max-kb': flag('string', { default: '256' }), 'require-cap': flag('boolean'), 'take-repeats': flag('boolean'), service: flag('string'), quirk: flag('string', { multiple: true, default: [] }),
  },
});

const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const file = (path) => path && readFileSync(path);

const peer = {
  options: { ...options, certKey: options['cert-key'], clientCA: options['client-ca'], requireCap: options['require-cap'], takeRepeats: options['take-repeats'] },
  how: { canonical: options.canonical, payload: options.payload, hash: options.hash, form: options.form },
  net: { plain: options.plain, ca: file(options.ca), bearer: options.bearer, connect: Object.fromEntries(options.connect.map((c) => c.split('='))) },
  quirks: new Set(options.quirk), maxKB: Number(options['max-kb']), url: options.url, to: options.to,
};
if (mode === 'client') Object.assign(peer.net, { cert: file(options.cert), key: file(options['cert-key']) });

async function identify(did) {
  peer.signer = await newSigner({ alg: options.alg, keyFile: options.key, did, noKid: options['no-kid'] });
  peer.service = options.service && { type: options.service, serviceEndpoint: `${peer.base}/v1/messages` };
  print({ event: 'is', did: peer.signer.did, url: peer.base, document: documentOf(peer.signer, peer.service) });
}

async function run(job) {
  try {
    print({ event: 'did', ...(await runJob(peer, job)) });
  } catch (e) {
    print({ event: 'did', fault: e.message });
  }
}

if (mode === 'client') {
  await identify(options.did);
  for (const job of options.job) await run(job);
  closeAll(peer.net);
} else {
  peer.wrongKey = (await newKey(options.alg)).privateKey;
  peer.signer = { did: '' };
  peer.base = await serve(peer, print);
  await identify(options.did === 'web' ? `did:web:${new URL(peer.base).host.replace(':', '%3A')}` : options.did);
  for await (const line of createInterface({ input: process.stdin })) await run(line);
  process.exit();
}
