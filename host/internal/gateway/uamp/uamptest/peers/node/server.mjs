// An agent that takes envelopes over HTTP/2.
import http2 from 'node:http2';
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { act } from './agent.mjs';
import { addressOf, documentOf, keysOf } from './did.mjs';
import { draft, intents, parse, refusal, signed, verify } from './envelope.mjs';
import { readAll } from './http2.mjs';
import { openToken, sealManifest } from './jws.mjs';
import { Stream } from './stream.mjs';

const skew = 300_000;

// serve starts the agent and returns its address. report gets what happens.
export async function serve(peer, report) {
  const { cert, certKey, clientCA } = peer.options;
  const server = cert
    ? http2.createSecureServer({ cert: readFileSync(cert), key: readFileSync(certKey), minVersion: 'TLSv1.3', ALPNProtocols: ['h2'], ...(clientCA && { ca: readFileSync(clientCA), requestCert: true, rejectUnauthorized: false }) })
    : http2.createServer();
  Object.assign(peer, { report, streams: new Map(), seen: new Map() });
  server.on('request', (request, response) => handle(peer, request, response).catch((e) => response.destroy(e)));
  await new Promise((resolve) => server.listen(peer.options.port ?? 0, '127.0.0.1', resolve));
  return `${cert ? 'https' : 'http'}://${peer.options.host ?? '127.0.0.1'}:${server.address().port}`;
}

async function handle(peer, request, response) {
  const { quirks } = peer;
  const { pathname } = new URL(request.url, 'http://x');
  const documentPath = peer.signer.did.startsWith('did:web:') && new URL(addressOf(peer.signer.did, 'https')).pathname;
  if (pathname === documentPath) return json(response, 200, { ...documentOf(peer.signer, peer.service), ...(quirks.has('other-document') && { id: 'did:web:other.example' }) });
  if (pathname === '/.well-known/agent-manifest.json') return manifest(peer, response);
  if (pathname === '/.well-known/agent-hub.json') return json(response, 200, { manifests: [`${peer.base}/.well-known/agent-manifest.json`], trust_anchors: [peer.signer.did] });
  try {
    authenticate(peer, request);
    if (pathname === '/v1/messages' && request.method === 'POST') return await receive(peer, request, response);
    const stream = pathname.startsWith('/v1/stream/') && peer.streams.get(decodeURIComponent(pathname.slice('/v1/stream/'.length)));
    if (!stream) throw refusal(404, '4.04', `nothing is at ${pathname}`);
    await read(stream, request, response);
  } catch (e) {
    if (!e.code || !e.status) throw e;
    await refuse(peer, response, e);
  }
}

// authenticate: a bearer token or a certificate, if any is asked for (§6.2).
function authenticate(peer, request) {
  const { bearer, clientCA } = peer.options;
  if (!bearer && !clientCA) return;
  if (bearer && request.headers.authorization === `Bearer ${bearer}`) return;
  if (clientCA && request.stream.session.socket.authorized) return;
  throw refusal(401, '4.01', 'neither a bearer token nor a certificate');
}

// receive takes an envelope in.
async function receive(peer, request, response) {
  const { quirks } = peer;
  if (quirks.has('hang')) return;
  if (quirks.has('busy') && !quirks.has('was-busy')) {
    quirks.add('was-busy');
    response.setHeader('retry-after', '1');
    throw refusal(503, '5.04', 'busy');
  }
  if (quirks.has('redirect')) {
    response.writeHead(307, { location: `${peer.base}/elsewhere` });
    return response.end();
  }
  const parsed = await readEnvelope(peer, request);
  const form = await verify(parsed, peer.net);
  const { envelope } = parsed;
  await admit(peer, envelope, parsed.source);
  peer.report({ event: 'accepted', form, envelope });
  if (quirks.has('forget-answer')) return request.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  const answer = await act(peer, envelope, () => open(peer, envelope));
  if (answer.envelope) return sendEnvelope(peer, response, 200, answer.envelope);
  response.writeHead(202, answer.stream ? { location: `/v1/stream/${answer.stream.id}` } : {});
  response.end();
}

async function readEnvelope(peer, request) {
  const [type, ...parameters] = (request.headers['content-type'] ?? '').split(';').map((s) => s.trim());
  if (type !== 'application/uamp+json' || parameters.some((p) => p !== 'v=1')) throw refusal(415, '4.15', `the media type is ${request.headers['content-type']}`);
  let bytes;
  try {
    bytes = await readAll(request);
  } catch (e) {
    throw e.tooLarge ? refusal(413, '4.13', e.message) : e;
  }
  if (bytes.length > peer.maxKB * 1024) throw refusal(413, '4.13', `more than ${peer.maxKB} KiB`);
  const parsed = parse(bytes);
  if (!parsed.envelope.to.includes(peer.signer.did)) throw refusal(403, '4.03', 'this agent is no recipient', parsed.envelope);
  return parsed;
}

// admit checks what the document leaves open: how old an envelope may be and whether it
// may come again.
async function admit(peer, envelope, source) {
  if (Math.abs(Date.now() - Date.parse(envelope.ts)) > skew) throw refusal(401, '4.01', `ts is ${envelope.ts}`, envelope);
  const name = `${envelope.from} ${envelope.id}`;
  if (peer.seen.has(name) && (!peer.options.takeRepeats || peer.seen.get(name) !== source)) throw refusal(401, '4.01', `${envelope.id} came before`, envelope);
  if (peer.options.requireCap) await checkCapability(peer, envelope);
  peer.seen.set(name, source);
}

async function checkCapability(peer, envelope) {
  try {
    const { scope } = await openToken(envelope.cap_token ?? '', peer.signer.did, (iss, kid) => keysOf(iss, kid, peer.net));
    if (!scope.split(' ').some((s) => s.endsWith(envelope.intent) || s.endsWith('*'))) throw new Error(`the scope is ${scope}`);
  } catch (e) {
    throw refusal(403, '4.03', `cap_token: ${e.message}`, envelope);
  }
}

// open begins a stream, by the name that the sender chose if it is free.
function open(peer, { id: asked, from: owner, stream_id: wanted, delta_window: window = 64 }) {
  const id = wanted && !peer.streams.has(wanted) ? wanted : `str-${randomUUID()}`;
  const stream = new Stream({ id, asked, owner, window, quirks: peer.quirks });
  peer.streams.set(id, stream);
  return stream;
}

async function read(stream, request, response) {
  const last = request.headers['last-event-id'];
  if (last !== undefined && (!/^\d+$/.test(last) || !stream.acknowledge(Number(last)))) throw refusal(409, '4.09', `no delta ${last} was sent`);
  response.on('close', () => stream.changed());
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  await stream.write(response, last === undefined ? 0 : Number(last) + 1);
}

// refuse answers with a signed error envelope. The document has no recipient for one
// whose sender could not be read, so that is plain JSON.
async function refuse(peer, response, { status, code, message, envelope }) {
  peer.report({ event: 'refused', status, code, reason: message });
  const content = JSON.stringify({ code, message });
  if (!envelope) return json(response, status, { code, message });
  await sendEnvelope(peer, response, status, draft(peer.signer, { to: envelope.from, intent: intents.at(-1), reply_to: envelope.id, type: 'application/json', content }));
}

// sendEnvelope signs an answer, or does not, as it is told to.
async function sendEnvelope(peer, response, status, envelope) {
  const { quirks, signer, how } = peer;
  if (quirks.has('other-from')) envelope = { ...envelope, from: 'did:web:other.example' };
  let text = await signed(envelope, quirks.has('wrong-key') ? { ...signer, key: peer.wrongKey } : signer, how);
  if (quirks.has('unsigned')) text = JSON.stringify(envelope);
  if (quirks.has('altered')) text = text.replace('"content":"', '"content":"x');
  response.writeHead(status, { 'content-type': 'application/uamp+json' });
  response.end(text);
}

async function manifest(peer, response) {
  let jws = await sealManifest(JSON.stringify({
    agent: 'uamp/1.0', description: 'counts', intents, body_types: ['text/plain', 'application/json'], auth: ['oauth2', 'mtls'], limits: { max_body_kb: peer.maxKB },
  }), peer.signer);
  if (peer.quirks.has('manifest-altered')) jws = jws.replace(/\.(.)/, (_, c) => `.${c === 'e' ? 'f' : 'e'}`);
  response.writeHead(200, { 'content-type': 'application/manifest+jws' });
  response.end(jws);
}

function json(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}
