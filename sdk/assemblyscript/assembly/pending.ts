import * as host from "./host";
import { Failure } from "./failure";
import { Json } from "./json";
import { Code } from "./names";

/**
 * An op that was started with Turn.submit, and its answer as far as it is not read
 * yet.
 */
export class Pending {
  /** Why the op failed, as far as its reader knows; null otherwise. */
  failure: Failure | null = null;
  private handle: i32;
  private over: bool = false; // the reader has seen the end, or the failure
  private refused: Failure | null;

  constructor(op: i32, request: string) {
    this.handle = host.submit(op, request);
    this.refused = host.failure;
    host.failure = null;
  }

  /** What to wait for: a handle, 0 if it is ready already, -1 if nothing is left. */
  get waitsFor(): i32 {
    return this.over ? -1 : this.handle;
  }

  /**
   * Reads the next bytes, at most 16 KiB, and waits until there are some; null at the
   * end, and when the op failed. A piece has no boundaries of its own.
   */
  read(): ArrayBuffer | null {
    const piece = new ArrayBuffer(16 << 10);
    if (this.handle != 0) {
      const n = host.read(this.handle, piece);
      if (n > 0) return piece.slice(0, n);
      this.refused = host.failure;
    }
    this.close();
    this.failure = this.refused;
    host.failure = this.failure;
    return null;
  }

  /** Reads the rest of the answer; null when the op failed. */
  text(): string | null {
    const all: u8[] = [];
    for (let piece = this.read(); piece !== null; piece = this.read()) {
      const from = all.length;
      all.length = from + piece.byteLength;
      memory.copy(all.dataStart + from, changetype<usize>(piece), piece.byteLength);
    }
    return this.failure === null ? String.UTF8.decodeUnsafe(all.dataStart, all.length) : null;
  }

  /** Reads the rest of the answer, one JSON value; null when the op failed. */
  json(): Json | null {
    const text = this.text();
    if (text === null) return null;
    if (text.length == 0) return Json.null();
    const v = Json.parse(text);
    if (v === null) {
      this.failure = new Failure(Code.INTERNAL, "the answer is no JSON");
      host.failure = this.failure;
    }
    return v;
  }

  /**
   * Calls the op off if it still runs, and forgets its answer. The end of the turn
   * does the same.
   */
  close(): void {
    if (this.handle != 0) host.close(this.handle);
    this.handle = 0;
    this.over = true;
  }
}

/** Is Turn.waitAny. */
export function waitAny(ops: Pending[], timeoutMs: i32): i32 {
  const handles: i32[] = [], index: i32[] = [];
  host.failure = null;
  for (let i = 0; i < ops.length; i++) {
    const handle = ops[i].waitsFor;
    if (handle == 0) return i; // not started, and the reader does not know yet
    if (handle < 0) continue;
    handles.push(handle);
    index.push(i);
  }
  if (handles.length == 0) return -1;
  const ready = host.wait(handles, timeoutMs);
  return ready < 0 ? -1 : index[ready];
}

/** Is Turn.waitAll. */
export function waitAll(ops: Pending[], timeoutMs: i32): Failure | null {
  const left = ops.slice(0), end = host.now() + <i64>timeoutMs * 1000000;
  while (true) {
    const rest = timeoutMs < 0 ? -1 : <i32>max<i64>(0, (end - host.now() + 999999) / 1000000);
    const ready = waitAny(left, rest);
    if (ready < 0) return host.failure;
    left.splice(ready, 1);
  }
}
