// A pretended host, so that an agent's turns can be tested with `node --test`:
//
//   const agent = await load("agent.wasm");
//   const out = turn(agent, { body: "bees" });
//   assert.equal(out.mail[0].finish_message, "Hello, bees!");
//
// It must not know how a real host routes or stores anything.

import { readFile } from "node:fs/promises";

import { Refusal, unnamed, World } from "./world.mjs";

export { Refusal, World };

/** Why the host refuses a call; the position is the number. */
export const codes = [
  "OK", "INVALID", "DENIED", "NOT_FOUND", "UNAVAILABLE", "DEADLINE", "CANCELLED", "LIMIT", "CONFLICT", "UPSTREAM",
  "UNSUPPORTED", "INTERNAL",
];

const ops = { last_error: 0, log: 1, clock: 2, random: 3, history: 4, mail: 10, action: 11, emit: 12, chat: 40, metric: 70, span: 71 };

const tools = [
  "send_request", "send_response", "send_interrupt", "send_broadcast", "acknowledge_broadcast", "ignore_broadcast",
  "await_message", "help", "task_complete",
];

const encoder = new TextEncoder(), decoder = new TextDecoder();

/** Reads a module, once for any number of turns. */
export async function load(file) {
  return WebAssembly.compile(await readFile(file));
}

/**
 * An answer that takes its time, comes in pieces, or fails late: after says how many
 * milliseconds the turn's clock must move before there is something to read (waiting
 * and reading move it), chunks are read one by one, and error is a code that stands
 * at the end. An agent that calls the op gets it as one.
 */
export class Stream {
  constructor({ after = 0, chunks = [], error = "" } = {}) {
    Object.assign(this, { after, chunks, error });
  }
}

/** A model's answer as who submits the question reads it: word by word. */
function inWords({ text = "", reasoning = "", ...end }) {
  const lines = [];
  for (const [name, whole] of [["reasoning", reasoning], ["delta", text]]) {
    for (const word of whole.match(/[^ ]+ ?| /g) ?? []) lines.push({ [name]: word });
  }
  return [...lines, { end }].map((line) => `${JSON.stringify(line)}\n`);
}

class Abort extends Error {}

/** A time as a host writes it. */
function timestamp(ns) {
  const micro = (ns / 1000n % 1000000n).toString().padStart(6, "0");
  return `${new Date(Number(ns / 1000000n)).toISOString().slice(0, 19)}.${micro}+00:00`;
}

/** The turn's input as a host writes it. */
function encodeTurn(input, now) {
  const task = input.task ?? unnamed.task;
  return {
    v: 1, turn: 1, priority: 4,
    task: { id: task, owner: "user:test@test", contributors: [], completed: false },
    agent: {
      address: "agent", swarm: "test", instance: "user:test@test",
      comm_targets: input.commTargets ?? [], can_complete_tasks: input.canComplete ?? true,
    },
    tools: tools.map((name) => ({ name, description: "", parameters: {} })),
    message: {
      id: input.id ?? "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11", timestamp: timestamp(now), msg_type: input.type ?? "request",
      message: {
        task_id: task, request_id: "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21",
        sender: { address_type: input.senderType ?? "user", address: input.sender ?? "test" },
        recipient: { address_type: "agent", address: "agent" },
        subject: input.subject ?? "New Message", body: input.body ?? "",
      },
    },
    history: { count: input.history?.length ?? 0, tail: input.history ?? [] },
    state: input.state ?? null, params: input.params ?? null,
    deadline_ms: 600000, budget: { fuel: 0, host_calls: 1000, output_bytes: 1 << 20 },
  };
}

/** One instance of a module, for one call. */
class Host {
  output = "";
  calls = [];
  emits = [];
  metrics = [];
  spans = [];
  mail = [];
  logs = [];
  #made = 0;
  #ended = false;
  #why = "";
  #off = false;
  #open = new Map();

  constructor(module, input, { now, visit, answer } = {}) {
    this.input = encoder.encode(JSON.stringify(input));
    Object.assign(this, { now: now ?? new World().now, visit, answer });
    this.instance = new WebAssembly.Instance(module, { skep_v1: this.#imports(), wasi_snapshot_preview1: this.#wasi() });
    this.exports = this.instance.exports;
  }

  #bytes(ptr, size) {
    return new Uint8Array(this.exports.memory.buffer, ptr >>> 0, size >>> 0);
  }

  #imports() {
    return {
      input_read: (off, ptr, cap) => {
        const page = this.input.subarray(off, off + cap);
        this.#bytes(ptr, cap).set(page);
        return page.length;
      },
      output_write: (ptr, size) => {
        this.output += decoder.decode(this.#bytes(ptr, size));
        return this.output.length;
      },
      call: (op, req, size, rsp, cap) => this.#call(op, decoder.decode(this.#bytes(req, size)), rsp, cap),
      submit: (op, req, size) => this.#submit(op, decoder.decode(this.#bytes(req, size))),
      wait: (ptr, n, timeout) => this.#wait(Array.from(new Int32Array(this.exports.memory.buffer.slice(ptr, ptr + 4 * n))), timeout),
      read: (handle, ptr, cap) => BigInt(this.#read(this.#open.get(handle), ptr, cap)),
      close: (handle) => this.#close(handle),
      abort: (code, ptr, size) => {
        throw new Abort(`${codes[code]}: ${decoder.decode(this.#bytes(ptr, size))}`);
      },
    };
  }

  #wasi() {
    return {
      clock_time_get: (clock, precision, ptr) => {
        new DataView(this.exports.memory.buffer).setBigInt64(ptr, this.now, true);
        return 0;
      },
      poll_oneoff: (subscriptions, events, n, ready) => {
        const view = new DataView(this.exports.memory.buffer);
        this.now += view.getBigInt64(subscriptions + 24, true);
        view.setUint32(ready, 1, true);
        return 0;
      },
    };
  }

  /** Keeps why the host refused, and gives minus the code. */
  #fault(code, message, call, reason) {
    if (call) call.refused = code;
    if (call && code === "CANCELLED") this.#off = true;
    this.#why = JSON.stringify({ code, message, ...(reason && { reason }) });
    return -codes.indexOf(code);
  }

  #calledOff(call) {
    return this.#fault("CANCELLED", "the turn is called off", call);
  }

  /** Runs an op: its answer as it is read, or minus the code of its refusal. */
  #start(op, text, submitted) {
    const call = { op, request: text === "" ? null : JSON.parse(text), submitted, closed: false };
    this.calls.push(call);
    if (this.#off && op !== ops.log) return this.#calledOff(call);
    try {
      const answer = this.answer?.(op, call.request) ?? this.#reply(op, call.request);
      const inPieces = submitted && op === ops.chat;
      const text = (value) => (typeof value === "string" && op !== ops.action ? value : JSON.stringify(value));
      const whole = (value) => new Stream({ chunks: inPieces ? inWords(value) : [text(value)] });
      const { after, chunks, error } = answer instanceof Stream ? answer : whole(answer);
      const pieces = chunks.filter((c) => c !== "").map((c) => encoder.encode(c));
      return { call, error, pieces, ready: this.now + BigInt(after) * 1000000n };
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      return this.#fault(e.code, e.message, call, e.reason);
    }
  }

  #keep(answer) {
    const handle = ++this.#made;
    this.#open.set(handle, answer);
    return handle;
  }

  #call(op, text, rsp, cap) {
    const lastError = op === ops.last_error;
    const answer = lastError ? { pieces: [encoder.encode(this.#why)], ready: this.now } : this.#start(op, text, false);
    if (typeof answer === "number") return BigInt(answer);
    if (answer.ready > this.now) this.now = answer.ready;
    if (answer.error) return BigInt(this.#fault(answer.error, "failed by the test", answer.call));
    const whole = Uint8Array.from(answer.pieces.flatMap((p) => [...p]));
    this.#bytes(rsp, cap).set(whole.subarray(0, cap >>> 0));
    const rest = { ...answer, pieces: [whole.subarray(cap >>> 0)] };
    return (BigInt(whole.length > cap >>> 0 ? this.#keep(rest) : 0) << 32n) | BigInt(whole.length);
  }

  #submit(op, text) {
    if (this.#open.size === 64) return BigInt(this.#fault("LIMIT", "64 handles are open"));
    const answer = this.#start(op, text, true);
    return BigInt(typeof answer === "number" ? answer : this.#keep(answer));
  }

  /** Finds the first that is ready, and moves the clock to that time. */
  #wait(handles, timeout) {
    const list = handles.map((h) => this.#open.get(h));
    if (list.includes(undefined)) return this.#fault("NOT_FOUND", "no such handle is open");
    if (list.length === 0) return this.#fault("INVALID", "no handles");
    if (this.#off) return this.#calledOff();
    const due = (a) => (a.ready > this.now ? a.ready : this.now);
    const first = list.reduce((best, a) => (due(a) < due(best) ? a : best));
    const end = this.now + BigInt(timeout) * 1000000n;
    if (timeout >= 0 && due(first) > end) {
      this.now = end;
      return this.#fault("DEADLINE", "nothing is ready yet");
    }
    this.now = due(first);
    if (first.error === "CANCELLED" && first.pieces.length === 0) {
      this.#off = true;
      return this.#calledOff();
    }
    return list.indexOf(first);
  }

  #read(a, ptr, cap) {
    if (a === undefined) return this.#fault("NOT_FOUND", "no such handle is open");
    if (this.#off && (a.ready > this.now || a.pieces.length === 0)) return this.#calledOff(a.call);
    if (a.ready > this.now) this.now = a.ready;
    if (a.pieces.length === 0) return a.error ? this.#fault(a.error, "failed by the test", a.call) : 0;
    const page = a.pieces[0].subarray(0, cap >>> 0);
    this.#bytes(ptr, cap).set(page);
    a.pieces[0] = a.pieces[0].subarray(page.length);
    if (a.pieces[0].length === 0) a.pieces.shift();
    return page.length;
  }

  #close(handle) {
    const a = this.#open.get(handle);
    if (!this.#open.delete(handle)) return this.#fault("NOT_FOUND", "no such handle is open");
    const unread = a.pieces.length > 0 || a.error || a.ready > this.now;
    if (a.call) a.call.closed = Boolean(unread) && a.call.refused === undefined;
    return 0;
  }

  #reply(op, request) {
    switch (op) {
      case ops.log:
        this.logs.push(request.message);
        return {};
      case ops.emit:
        this.emits.push(request);
        return { status: "ok" };
      case ops.metric:
        return this.#measure(request);
      case ops.span:
        return this.#span(request);
      case ops.clock:
        return { time: timestamp(this.now) };
      case ops.random:
        return { value: (++this.#made).toString(16).padStart(32, "0") };
      case ops.history:
        return { entries: [] };
      case ops.mail:
        return this.#tool(request);
    }
    const said = this.visit?.reply(op, request, this.now);
    if (said === undefined) throw new Refusal("UNSUPPORTED", `this host has no op ${op}`);
    return said;
  }

  #measure({ name, value, kind = "counter", labels = {} }) {
    if (!name || typeof value !== "number" || (kind === "counter" && value < 0)) {
      throw new Refusal("INVALID", "a metric has a name, and a counter's value is not negative", "metric");
    }
    this.metrics.push({ name, value, kind, labels });
    return {};
  }

  /** Records a span that begins or ends. */
  #span({ name, id, attributes = {}, error = "" }) {
    if (id === undefined) {
      if (!name) throw new Refusal("INVALID", "a span has a name, or an id", "span");
      return { id: this.spans.push({ name, attributes, error: "", ended: false }) };
    }
    const span = this.spans[id - 1];
    if (!span || span.ended) throw new Refusal("NOT_FOUND", `no span ${id} is open`, "id");
    Object.assign(span, { error, ended: true, attributes: { ...span.attributes, ...attributes } });
    return { id };
  }

  /** Records a MAIL tool call, and refuses what a turn may no longer do. */
  #tool({ tool, args }) {
    if (!tools.includes(tool)) throw new Refusal("NOT_FOUND", `no tool ${tool}`);
    if (this.#ended) throw new Refusal("CONFLICT", "the turn has awaited or completed");
    this.#ended = tool === "await_message" || tool === "task_complete";
    this.mail.push({ tool, ...args });
    const id = () => `00000000-0000-4000-8000-${(++this.#made).toString(16).padStart(12, "0")}`;
    return { id: id(), ...(tool == "send_request" ? { request_id: id() } : {}), text: "SUCCESS" };
  }

  /** Calls an export. */
  run(name, ...params) {
    try {
      this.exports._initialize?.();
      if (name !== "skep_describe") this.exports.skep_warm?.();
      return { status: this.exports[name](...params) };
    } catch (e) {
      if (e instanceof Abort) return { status: 1, aborted: e.message };
      throw e;
    }
  }
}

/**
 * Runs one turn. Input: type, senderType, sender, subject, body, id, task, state, params,
 * history, commTargets, canComplete, world (what this turn shares with others: a World;
 * without one nothing is granted), and answer(op, request), which is asked first:
 * it returns an answer or a Stream, throws a Refusal, or returns nothing to leave the
 * op to the default. A code of CANCELLED calls the turn off: from then on the host
 * refuses as a real one does. The outcome has error (null when the turn would be
 * committed), mail, emits, metrics, spans, logs, notes, calls and the state a later turn sees.
 */
export function turn(module, input = {}) {
  const world = input.world ?? new World(), { now } = world;
  const visit = world.visit(input.task ?? unnamed.task, input.senderType === "system");
  const host = new Host(module, encodeTurn(input, now), { now, visit, answer: input.answer });
  const { status, aborted } = host.run("skep_turn", host.input.length);
  const out = {
    error: null, mail: host.mail, emits: host.emits, metrics: host.metrics, spans: host.spans, logs: host.logs, calls: host.calls,
    notes: [], state: input.state ?? null, end: host.now,
  };
  world.now = host.now;
  if (aborted) return { ...out, error: { code: "INTERNAL", message: aborted } };
  const result = host.output === "" ? {} : JSON.parse(host.output);
  if (status !== 0) return { ...out, error: result };
  world.commit(visit, host.mail.some((m) => m.tool === "task_complete"));
  return { ...out, notes: result.notes ?? [], state: "state" in result ? result.state : out.state };
}

/**
 * Runs one call of an action: { answer } or { error }. Of the input it takes params, world
 * and answer.
 */
export function action(module, name, args, input = {}) {
  const world = input.world ?? new World(), visit = world.visit(unnamed.task, true);
  const host = new Host(module, { name, args, params: input.params ?? {} }, { now: world.now, visit, answer: input.answer });
  const { status } = host.run("skep_action", host.input.length);
  if (status === 0) world.commit(visit, false);
  return status === 0 ? { answer: JSON.parse(host.output) } : { error: JSON.parse(host.output) };
}

/** Returns what the module says of itself. */
export function describe(module) {
  const host = new Host(module, {});
  host.run("skep_describe");
  return JSON.parse(host.output);
}
