// The commands that use the boundary itself.

import { Code, Json } from "../assembly/index";
import * as env from "../assembly/env";

/** Does one of them; null for another name. */
export function boundary(name: string, args: Json): string | null {
  if (name == "input") return input(number(args, "page"));
  if (name == "short") return short(args);
  if (name == "submit") return submit(args);
  if (name == "race") return race(args);
  if (name == "stream") return stream(args);
  if (name == "drop") return dropped(args);
  if (name == "wait") return wait();
  if (name == "pointer") return pointer();
  return null;
}

function number(args: Json, name: string): i32 {
  return <i32>args.get(name).asInteger();
}

function address(b: ArrayBuffer): usize {
  return changetype<usize>(b);
}

const SEED: u32 = 2166136261;

function mix(h: u32, at: usize, size: i32): u32 {
  for (let i = 0; i < size; i++) h = (h ^ load<u8>(at + i)) * 16777619;
  return h;
}

function hex(h: u32): string {
  return h.toString(16).padStart(8, "0");
}

/** The hash of bytes. */
export function digest(b: ArrayBuffer): string {
  return hex(mix(SEED, address(b), b.byteLength));
}

function input(page: i32): string {
  const b = new ArrayBuffer(page);
  let off = 0, h = SEED;
  while (true) {
    const n = env.input_read(off, address(b), page);
    if (n <= 0) return `${off} ${hex(h)}`;
    h = mix(h, address(b), n);
    off += n;
  }
}

function short(args: Json): string {
  const cap = number(args, "cap"), page = number(args, "page");
  const request = String.UTF8.encode(args.get("request").text), first = new ArrayBuffer(cap), b = new ArrayBuffer(page);
  const r = env.call(number(args, "op"), address(request), request.byteLength, address(first), cap);
  if (r < 0) return r.toString();
  const size = <i32>r, handle = <i32>(r >> 32);
  let h = mix(SEED, address(first), handle == 0 ? size : cap);
  if (handle == 0) return `${size} ${hex(h)}`;
  let reads = 0;
  while (true) {
    const n = <i32>env.read(handle, address(b), page);
    if (n <= 0) break;
    h = mix(h, address(b), n);
    reads++;
  }
  const closed = env.close(handle), after = env.read(handle, address(b), page);
  return `${size} ${reads} ${hex(h)} ${closed} ${after}`;
}

function start(args: Json, request: Json): i32 {
  const text = String.UTF8.encode(request.text);
  return <i32>env.submit(number(args, "op"), address(text), text.byteLength);
}

function race(args: Json): string {
  const requests = args.get("requests").items(), timeout = number(args, "timeout");
  const handles: i32[] = [], waiting: i32[] = [], numbers: i32[] = [], words: string[] = [];
  for (let i = 0; i < requests.length; i++) {
    handles.push(start(args, requests[i]));
    waiting.push(handles[i]);
    numbers.push(i);
  }
  while (waiting.length > 0) {
    const ready = env.wait(waiting.dataStart, waiting.length, timeout);
    words.push((ready < 0 ? ready : numbers[ready]).toString());
    if (ready < 0 && ready != -Code.DEADLINE) break;
    if (ready < 0) continue;
    waiting.splice(ready, 1);
    numbers.splice(ready, 1);
  }
  for (let i = 0; i < handles.length; i++) env.close(handles[i]);
  return words.join(" ");
}

function stream(args: Json): string {
  const handle = start(args, args.get("request")), page = number(args, "page"), b = new ArrayBuffer(page);
  const words: string[] = [];
  let h = SEED;
  while (true) {
    const n = <i32>env.read(handle, address(b), page);
    words.push(n.toString());
    if (n <= 0) break;
    h = mix(h, address(b), n);
  }
  env.close(handle);
  words.push(hex(h));
  return words.join(" ");
}

function dropped(args: Json): string {
  const handle = start(args, args.get("request"));
  return `${env.close(handle)} ${env.read(handle, 0, 0)}`;
}

function submit(args: Json): string {
  const requests = args.get("requests").items();
  const handles = new StaticArray<i32>(requests.length), waiting = new StaticArray<i32>(requests.length);
  for (let i = 0; i < requests.length; i++) {
    handles[i] = waiting[i] = start(args, requests[i]);
  }
  for (let left = requests.length; left > 0; ) {
    const ready = env.wait(changetype<usize>(waiting), left, -1);
    if (ready < 0) return ready.toString();
    waiting[ready] = waiting[--left];
  }
  const answers: string[] = [];
  for (let i = 0; i < handles.length; i++) answers.push(collect(handles[i]));
  return answers.join(" ");
}

/** Reads one answer to its end. */
function collect(handle: i32): string {
  const b = new ArrayBuffer(16), all: u8[] = [];
  while (true) {
    const n = <i32>env.read(handle, address(b), 16);
    if (n <= 0) {
      env.close(handle);
      return n < 0 ? n.toString() : String.UTF8.decodeUnsafe(all.dataStart, all.length);
    }
    for (let i = 0; i < n; i++) all.push(load<u8>(address(b) + i));
  }
}

function wait(): string {
  const b = new ArrayBuffer(16);
  store<i32>(address(b), 99);
  const none = env.wait(address(b), 0, 0), unknown = env.wait(address(b), 1, 0);
  return `${none} ${unknown} ${env.read(99, address(b), 16)} ${env.close(99)}`;
}

function pointer(): string {
  const wild: usize = 4294967280;
  const words = [
    result(env.input_read(0, wild, 32)),
    result(env.output_write(wild, 32)),
    result(env.call(1, wild, 32, 0, 0)),
    result(env.submit(1, wild, 32)),
  ];
  return words.join(" ");
}

/** A result and the reason of the last error. */
function result(r: i64): string {
  const b = new ArrayBuffer(1024);
  const n = <i32>env.call(0, 0, 0, address(b), b.byteLength);
  const why = Json.parse(String.UTF8.decodeUnsafe(address(b), n));
  return `${r} ` + (why === null ? "" : why.getString("reason"));
}
