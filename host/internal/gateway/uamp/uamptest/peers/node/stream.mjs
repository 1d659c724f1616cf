// A stream of deltas: §5. Its producer waits while delta_window frames are not
// acknowledged.
import { now, terminal } from './envelope.mjs';

export class Stream {
  constructor(stream) {
    Object.assign(this, stream, { frames: [], acked: -1, ended: false, waiting: [] });
  }

  changed() {
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  change() {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  // emit adds a delta as soon as the window has room for it.
  async emit(type, payload) {
    while (!this.ended && this.frames.length - this.acked > this.window && !this.quirks.has('overrun')) await this.change();
    if (this.ended) return;
    this.frames.push({ delta_seq: this.frames.length, stream_id: this.id, ts: now(), type, payload });
    this.ended = terminal.includes(type);
    this.changed();
  }

  // end adds a last delta without regard to the window.
  end(type, payload) {
    this.acked = this.frames.length - 1;
    return this.emit(type, payload);
  }

  acknowledge(seq) {
    if (!Number.isInteger(seq) || seq >= this.frames.length) return false;
    this.acked = Math.max(this.acked, seq);
    this.changed();
    return true;
  }

  // write sends the deltas from one on to a response, as it is told to.
  async write(response, from) {
    for (let at = from; !response.destroyed; at++) {
      while (at >= this.frames.length && !this.ended && !response.destroyed) await this.change();
      if (at >= this.frames.length || (this.quirks.has('no-terminal') && terminal.includes(this.frames[at].type))) break;
      this.writeFrame(response, this.frames[at]);
      if (this.quirks.has('cut') && !this.wasCut && at === from + 1) {
        this.wasCut = true;
        break;
      }
    }
    response.end();
  }

  writeFrame(response, frame) {
    const { quirks } = this;
    if (quirks.has('gap') && frame.delta_seq === 1) return;
    if (quirks.has('bare')) frame = { delta_seq: frame.delta_seq, type: frame.type, payload: frame.payload };
    if (quirks.has('extra-member')) frame = { ...frame, sender: 'x' };
    let text = JSON.stringify(frame, null, quirks.has('many-lines') ? 1 : 0);
    if (quirks.has('bad-json')) text = text.slice(1);
    const end = quirks.has('many-lines') ? '\r\n' : '\n';
    const lines = [...(quirks.has('many-lines') ? [': still here'] : []), ...(quirks.has('no-ids') ? [] : [`id: ${frame.delta_seq}`]), ...text.split('\n').map((line) => `data: ${line}`), '', ''];
    const event = lines.join(end);
    response.write(quirks.has('repeat') ? event + event : event);
    if (quirks.has('after-done') && terminal.includes(frame.type)) {
      response.write(`data: ${JSON.stringify({ ...frame, delta_seq: frame.delta_seq + 1, type: 'chunk', payload: { chunk_b64: 'bGF0ZQ==' } })}\n\n`);
    }
  }
}
