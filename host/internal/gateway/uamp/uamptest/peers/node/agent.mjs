// What the agent does with an accepted envelope. The first word of an ask chooses:
//   count N     N chunks and then done
//   slow        one progress, then nothing until it is cancelled
//   fail        the delta error
//   direct T    a signed confirm with T as the reply itself
//   callback T  a signed confirm with T to the asker's endpoint
// Anything else is its own answer.
import { draft } from './envelope.mjs';
import { runJob } from './client.mjs';

export async function act(peer, envelope, open) {
  const { intent, body } = envelope;
  const answer = (what) => draft(peer.signer, { to: envelope.from, reply_to: envelope.id, ...what });
  switch (intent) {
    case 'ask':
      return ask(peer, envelope, answer, open);
    case 'subscribe':
      return { stream: begin(open(), (s) => ticks(s, body.content)) };
    case 'propose':
      return { envelope: answer({ intent: body.content.startsWith('no') ? 'deny' : 'confirm', content: body.content }) };
    case 'cancel':
      cancel(peer, envelope);
      return {};
    case 'progress':
      progress(peer, envelope);
      return {};
    default:
      return {};
  }
}

function ask(peer, envelope, answer, open) {
  const [verb, ...rest] = envelope.body.content.split(' ');
  const words = rest.join(' ');
  if (verb === 'direct') return { envelope: answer({ intent: 'confirm', content: words }) };
  if (verb === 'callback') {
    const job = { to: envelope.from, intent: 'confirm', reply_to: envelope.id, content: words };
    runJob({ ...peer, url: undefined }, JSON.stringify(job)).then((r) => peer.report({ event: 'called back', status: r.status }), (e) => peer.report({ event: 'called back', reason: e.message }));
    return {};
  }
  return { stream: begin(open(), (s) => answerOn(s, verb, words, envelope.body.content)) };
}

function begin(stream, run) {
  run(stream);
  return stream;
}

const chunk = (text) => ({ chunk_b64: Buffer.from(text).toString('base64') });

async function answerOn(stream, verb, words, content) {
  if (verb === 'fail') return stream.emit('error', { code: '5.04', message: 'busy' });
  if (verb === 'slow') return stream.emit('progress', { pct: 1 });
  if (verb === 'count') {
    for (let n = 0; n < Number(words); n++) await stream.emit('chunk', chunk(`${n} `));
    return stream.emit('done', { answer: Number(words) });
  }
  await stream.emit('progress', { pct: 50 });
  await stream.emit('chunk', chunk(content));
  return stream.emit('done', { answer: content });
}

async function ticks(stream, topic) {
  for (let n = 0; n < 3; n++) await stream.emit('chunk', chunk(`${topic} ${n} `));
}

function cancel(peer, envelope) {
  for (const s of peer.streams.values()) {
    if (s.owner === envelope.from && (s.id === envelope.stream_id || s.asked === envelope.reply_to)) s.end('cancel', {});
  }
}

// progress acknowledges deltas: the body of the envelope is read as JSON with delta_seq,
// or with ack.
function progress(peer, envelope) {
  const stream = peer.streams.get(envelope.stream_id);
  if (!stream || stream.owner !== envelope.from) return;
  try {
    const { delta_seq, ack = delta_seq } = JSON.parse(envelope.body.content);
    stream.acknowledge(ack);
    peer.report({ event: 'acknowledged', stream_id: stream.id, seq: ack });
  } catch {
    peer.report({ event: 'progress', content: envelope.body.content });
  }
}
