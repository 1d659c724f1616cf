// HTTP/2 requests. net has ca, cert, key (PEM), bearer, plain and connect, which leads
// names to addresses.
import http2 from 'node:http2';
import { connect as connectPlain, isIP } from 'node:net';
import { connect as connectTLS } from 'node:tls';

const limit = 4 << 20;

// session returns the connection to a URL's origin.
function session(net, url) {
  const { origin, hostname, port, protocol } = new URL(url);
  net.sessions ??= new Map();
  const had = net.sessions.get(origin);
  if (had && !had.closed && !had.destroyed) return had;
  const [host, at] = (net.connect?.[hostname] ?? `${hostname}:${port || 443}`).split(':');
  const made = http2.connect(origin, {
    createConnection: () => protocol === 'http:' ? connectPlain(at, host) : connectTLS({
      host, port: at, ca: net.ca, cert: net.cert, key: net.key, minVersion: 'TLSv1.3', ALPNProtocols: ['h2'],
      ...(isIP(hostname) ? {} : { servername: hostname }),
    }),
  });
  made.on('error', () => {}); // each request has it, too
  net.sessions.set(origin, made);
  return made;
}

// send begins a request; it resolves when the head of the answer is there.
export function send(net, url, { method = 'GET', headers = {}, body } = {}) {
  const { pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const stream = session(net, url).request({ ':method': method, ':path': pathname + search, ...(net.bearer && { authorization: `Bearer ${net.bearer}` }), ...headers });
    stream.on('error', reject);
    stream.on('close', () => reject(new Error(`${url}: the connection ended`)));
    stream.on('response', (head) => resolve({ status: head[':status'], head, stream }));
    stream.end(body);
  });
}

export async function readAll(stream) {
  const parts = [];
  let size = 0;
  for await (const part of stream) {
    size += part.length;
    if (size > limit) throw Object.assign(new Error('more than 4 MiB'), { tooLarge: true });
    parts.push(part);
  }
  return Buffer.concat(parts);
}

export async function fetchBody(net, url, options) {
  const { status, head, stream } = await send(net, url, options);
  return { status, head, body: await readAll(stream) };
}

export function closeAll(net) {
  for (const s of net.sessions?.values() ?? []) s.destroy();
}
