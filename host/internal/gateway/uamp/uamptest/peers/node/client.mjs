// Sends envelopes and follows what comes of them.
import { documentFor, keysOf } from './did.mjs';
import { bad } from './bad.mjs';
import { literal } from './canonical.mjs';
import { draft, faultOfDelta, parse, signed, terminal, verify } from './envelope.mjs';
import { fetchBody, readAll, send } from './http2.mjs';
import { openManifest, sealToken } from './jws.mjs';

const mediaType = 'application/uamp+json;v=1'; // as the example writes it

// runJob does one job, an object of JSON text, and returns what came of it.
export async function runJob(peer, text) {
  const job = literal(text);
  for (const name of ['delta_window', 'cancel_after', 'drop_after', 'ack_every']) {
    if (job[name] !== undefined) job[name] = Number(job[name].rawJSON);
  }
  if (job.get) return fetchDocument(peer, job);
  const envelope = draft(peer.signer, { ...job, to: job.to ?? peer.to });
  if (job.cap) envelope.cap_token = await capability(peer, envelope, job.cap);
  const wire = await wireOf(peer.signer, envelope, job, { ...peer.how, ...job.how });
  const base = job.url ?? peer.url ?? await endpointOf(peer, envelope.to[0]);
  let reply = await post(peer, base, wire);
  if (job.bad === 'replay') reply = await post(peer, base, wire);
  const result = { id: envelope.id, status: reply.status, ...(reply.head.location && { location: reply.head.location }), ...(reply.head['retry-after'] && { retry_after: reply.head['retry-after'] }) };
  Object.assign(result, await readReply(peer, envelope, reply));
  if (reply.status === 202 && reply.head.location && job.follow !== false) {
    result.stream = await follow(peer, new URL(reply.head.location, base).href, { base, job, envelope });
  }
  return result;
}

// wireOf is the text that is sent.
async function wireOf(signer, envelope, job, how) {
  if (job.bad && job.bad !== 'replay') {
    if (!bad[job.bad]) throw new Error(`no bad kind ${job.bad}`);
    return bad[job.bad](envelope, signer, how);
  }
  const wire = await signed(envelope, signer, how);
  if (!job.escape) return wire;
  return wire.replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).replaceAll('","', '" ,\n "');
}

const capability = (peer, envelope, claims) => sealToken({
  iss: peer.signer.did, sub: peer.signer.did, aud: envelope.to[0], scope: envelope.intent, exp: Math.floor(Date.now() / 1000) + 300,
  ...Object.fromEntries(Object.entries(claims).map(([name, v]) => [name, JSON.isRawJSON(v) ? Number(v.rawJSON) : v])),
}, peer.signer);

// endpointOf finds where a did:web takes envelopes: an entry of its document whose
// address has the path of §7, or that path at its host.
async function endpointOf(peer, did) {
  const services = (await documentFor(did, peer.net)).service ?? [];
  const found = services.map((s) => s.serviceEndpoint).find((at) => typeof at === 'string' && new URL(at).pathname.endsWith('/v1/messages'));
  const host = decodeURIComponent(did.split(':')[2]);
  return found ? found.slice(0, -'/v1/messages'.length) : `${peer.net.plain ? 'http' : 'https'}://${host}`;
}

const post = (peer, base, wire) => fetchBody(peer.net, `${base}/v1/messages`, { method: 'POST', headers: { 'content-type': mediaType }, body: wire });

// readReply reads the body of an answer: a signed envelope, or JSON with a code.
async function readReply(peer, sent, reply) {
  if (reply.body.length === 0) return {};
  if (!/^application\/uamp\+json\b/.test(reply.head['content-type'])) return plainReply(reply.body);
  try {
    const parsed = parse(reply.body);
    const { envelope } = parsed;
    const form = await verify(parsed, peer.net);
    if (!sent.to.includes(envelope.from)) throw new Error(`${envelope.from} was not asked`);
    if (envelope.reply_to !== undefined && envelope.reply_to !== sent.id) throw new Error(`the answer is one to ${envelope.reply_to}`);
    return { verified: true, form, answer: envelope, code: codeOf(envelope.body.content) };
  } catch (e) {
    return { verified: false, reason: e.message };
  }
}

function plainReply(body) {
  const text = body.toString();
  return { code: codeOf(text), text };
}

function codeOf(text) {
  try {
    return JSON.parse(text).code;
  } catch {
    return undefined;
  }
}

// follow reads a stream to its end, over as many connections as it takes.
async function follow(peer, url, { base, job, envelope }) {
  const seen = { seqs: [], types: [], connections: 0, acks: [], repeats: 0, gaps: 0, chunks: '' };
  const state = { next: 0, stalled: 0, every: job.ack_every ?? Math.max(1, Math.floor((job.delta_window ?? 64) / 2)), base, job, envelope, parts: [] };
  while (!seen.last && !seen.fault && state.stalled < 4) {
    seen.connections++;
    const before = state.next;
    const headers = { accept: 'text/event-stream', ...(state.next > 0 && { 'last-event-id': String(state.next - 1) }) };
    const { status, stream } = await send(peer.net, url, { headers });
    if (status !== 200) {
      seen.fault = `the stream has status ${status}`;
      seen.code = codeOf((await readAll(stream)).toString());
      break;
    }
    await readStream(peer, stream, seen, state);
    state.stalled = state.next === before ? state.stalled + 1 : 0;
  }
  seen.chunks = Buffer.concat(state.parts).toString();
  return seen;
}

async function readStream(peer, stream, seen, state) {
  try {
    for await (const data of events(stream)) {
      if (await take(peer, JSON.parse(data), seen, state)) return;
    }
  } catch (e) {
    if (e instanceof SyntaxError) seen.fault = e.message; // a lost connection is made again
  } finally {
    stream.close();
  }
}

// take takes one delta. It returns true where this connection has nothing more to give.
async function take(peer, delta, seen, state) {
  seen.fault = faultOfDelta(delta);
  if (seen.fault) return true;
  if (delta.delta_seq < state.next) {
    seen.repeats++;
    return false;
  }
  if (delta.delta_seq > state.next) {
    seen.gaps++;
    return true; // 4.09: what is missing is asked for again
  }
  state.next++;
  seen.seqs.push(delta.delta_seq);
  seen.types.push(delta.type);
  if (delta.payload?.chunk_b64) state.parts.push(Buffer.from(delta.payload.chunk_b64, 'base64'));
  if (terminal.includes(delta.type)) {
    Object.assign(seen, { last: delta.type, payload: delta.payload });
    return true;
  }
  const { job } = state;
  if (state.next === job.cancel_after) await tell(peer, state, { intent: 'cancel', reply_to: state.envelope.id, stream_id: delta.stream_id });
  else if (state.next % state.every === 0 && job.ack !== 'none' && job.ack !== 'resume') seen.acks.push(await acknowledge(peer, state, delta));
  return state.next === job.drop_after || (job.ack === 'resume' && state.next % state.every === 0);
}

// acknowledge sends the intent progress. Its body is this peer's reading: delta_seq is
// the only name that the document has for a place in a stream.
const acknowledge = (peer, state, delta) => tell(peer, state, {
  intent: 'progress', stream_id: delta.stream_id, reply_to: state.envelope.id, type: 'application/json', content: JSON.stringify({ delta_seq: delta.delta_seq }),
});

async function tell(peer, state, what) {
  const wire = await signed(draft(peer.signer, { to: state.envelope.to, ...what }), peer.signer, peer.how);
  return (await post(peer, state.base, wire)).status;
}

// events yields the data of server-sent events.
async function* events(stream) {
  const decoder = new TextDecoder();
  let rest = '';
  let data = [];
  for await (const part of stream) {
    rest += decoder.decode(part, { stream: true });
    const lines = rest.split(/\r\n|\n|\r(?=[^\n])/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '' && data.length > 0) {
        yield data.join('\n');
        data = [];
      } else if (line.startsWith('data:')) {
        data.push(line.slice(5).replace(/^ /, ''));
      }
    }
  }
}

// fetchDocument gets a manifest, a hub list or a DID document.
async function fetchDocument(peer, job) {
  const { status, head, body } = await fetchBody(peer.net, (job.url ?? peer.url) + job.get);
  const result = { status, type: head['content-type'] };
  if (!/manifest\+jws/.test(result.type)) return { ...result, text: body.toString() };
  try {
    const text = await openManifest(body.toString(), (kid) => keysOf((kid ?? peer.to).split('#')[0], kid, peer.net));
    return { ...result, verified: true, manifest: JSON.parse(text) };
  } catch (e) {
    return { ...result, verified: false, reason: e.message };
  }
}
