import * as env from "./env";
import { Code, Op } from "./names";
import { Failure } from "./failure";

let answer = new ArrayBuffer(16 << 10); // reused by every call, as large as the largest answer

function address(b: ArrayBuffer): usize {
  return changetype<usize>(b);
}

function decode(b: ArrayBuffer, size: i32): string {
  return String.UTF8.decodeUnsafe(address(b), size);
}

function encode(s: string): ArrayBuffer {
  return String.UTF8.encode(s, false, String.UTF8.ErrorMode.REPLACE);
}

/** Reads the whole input of a call. */
export function input(size: u32): string {
  const b = new ArrayBuffer(size);
  const n = env.input_read(0, address(b), size);
  return n > 0 ? decode(b, n) : "";
}

/** Appends to the output. */
export function output(text: string): Failure | null {
  const b = encode(text);
  const n = env.output_write(address(b), b.byteLength);
  if (n >= 0) return null;
  return new Failure(-n, "the host refused an output of " + b.byteLength.toString() + " bytes");
}

/** Why the last call was refused; null when it was not. */
export let failure: Failure | null = null;

function callOnce(op: i32, request: ArrayBuffer): i64 {
  return env.call(op, address(request), request.byteLength, address(answer), answer.byteLength);
}

/** Reads what of an answer did not fit, and closes its handle. */
function rest(size: i32, handle: i32): i32 {
  const whole = new ArrayBuffer(size);
  let have = answer.byteLength;
  memory.copy(address(whole), address(answer), have);
  answer = whole;
  let n: i64 = 1;
  while (have < size && n > 0) {
    n = env.read(handle, address(whole) + have, size - have);
    have += <i32>n;
  }
  env.close(handle);
  return n > 0 ? 0 : n < 0 ? <i32>-n : Code.INTERNAL;
}

/** Asks why the host refused. */
function lastError(code: i32): Failure {
  const n = callOnce(Op.LAST_ERROR, new ArrayBuffer(0));
  return Failure.fromHost(code, n > 0 ? decode(answer, min(<i32>n, answer.byteLength)) : "");
}

/** Runs an op; null when it was refused, and failure says why. */
export function call(op: i32, request: string): string | null {
  const r = callOnce(op, encode(request));
  failure = null;
  if (r < 0) {
    failure = lastError(<i32>-r);
    return null;
  }
  const size = <i32>r, handle = <i32>(r >> 32);
  const code = handle == 0 ? 0 : rest(size, handle);
  if (code != 0) {
    failure = new Failure(code, "the answer could not be read");
    return null;
  }
  return decode(answer, size);
}

/** Starts an op: a handle, 0 when it was refused, and failure says why. */
export function submit(op: i32, request: string): i32 {
  const b = encode(request), r = env.submit(op, address(b), b.byteLength);
  failure = r < 0 ? lastError(<i32>-r) : null;
  return r < 0 ? 0 : <i32>r;
}

/** Waits for the first of several handles; negative when it was refused. */
export function wait(handles: i32[], timeoutMs: i32): i32 {
  const r = env.wait(handles.dataStart, handles.length, timeoutMs);
  failure = r < 0 ? lastError(-r) : null;
  return r;
}

/** Reads the next bytes of an answer, 0 at the end; negative when the op failed. */
export function read(handle: i32, to: ArrayBuffer): i32 {
  const r = <i32>env.read(handle, address(to), to.byteLength);
  failure = r < 0 ? lastError(-r) : null;
  return r;
}

/** Forgets a handle. */
export function close(handle: i32): void {
  env.close(handle);
}

/** Reads the turn's clock, in nanoseconds since 1970. */
export function now(): i64 {
  const b = new ArrayBuffer(8);
  env.clock_time_get(0, 1, address(b));
  return load<i64>(address(b));
}

/** Waits, and moves the turn's clock. */
export function sleep(nanoseconds: i64): void {
  const subscription = new ArrayBuffer(48), event = new ArrayBuffer(40);
  store<u32>(address(subscription), 1, 16); // the monotonic clock
  store<i64>(address(subscription), max<i64>(nanoseconds, 0), 24);
  env.poll_oneoff(address(subscription), address(event), 1, address(event) + 32);
}

/** Ends the turn with a message. */
export function giveUp(code: i32, message: string): void {
  const b = encode(message);
  env.host_abort(code, address(b), b.byteLength);
}
