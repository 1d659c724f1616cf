// A pretended host, so that an agent's turns can be tested with `node --test`:
//
//   const agent = await load("agent.wasm");
//   const out = turn(agent, { body: "bees" });
//   assert.equal(out.mail[0].finish_message, "Hello, bees!");
//
// It must not know how a real host routes or stores anything.

import { readFile } from "node:fs/promises";

/** Why the host refuses a call; the position is the number. */
export const codes = [
  "OK", "INVALID", "DENIED", "NOT_FOUND", "UNAVAILABLE", "DEADLINE", "CANCELLED", "LIMIT", "CONFLICT", "UPSTREAM",
  "UNSUPPORTED", "INTERNAL",
];

const ops = { last_error: 0, log: 1, clock: 2, random: 3, history: 4, mail: 10 };

const tools = [
  "send_request", "send_response", "send_interrupt", "send_broadcast", "acknowledge_broadcast", "ignore_broadcast",
  "await_message", "help", "task_complete",
];

const started = "2026-01-01T12:00:00.000000+00:00";
const encoder = new TextEncoder(), decoder = new TextDecoder();

/** Reads a module, once for any number of turns. */
export async function load(file) {
  return WebAssembly.compile(await readFile(file));
}

/** What an answer function throws to refuse an op. */
export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

class Abort extends Error {}

/** The turn's input as a host writes it. */
function encodeTurn(input) {
  return {
    v: 1, turn: 1, priority: 4,
    task: { id: "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90", owner: "user:test@test", contributors: [], completed: false },
    agent: {
      address: "agent", swarm: "test", instance: "user:test@test",
      comm_targets: input.commTargets ?? [], can_complete_tasks: input.canComplete ?? true,
    },
    tools: tools.map((name) => ({ name, description: "", parameters: {} })),
    message: {
      id: "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11", timestamp: started, msg_type: input.type ?? "request",
      message: {
        task_id: "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90", request_id: "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21",
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
  mail = [];
  logs = [];
  now = BigInt(Date.parse(started)) * 1000000n;
  #made = 0;
  #ended = false;
  #why = "";
  #open = new Map();

  constructor(module, input, answer) {
    this.input = encoder.encode(JSON.stringify(input));
    this.answer = answer;
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
      wait: () => 0,
      read: (handle, ptr, cap) => this.#read(handle, ptr, cap),
      close: (handle) => (this.#open.delete(handle) ? 0 : -3),
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

  /** Runs an op: its answer, or minus the code of its refusal. */
  #run(op, text) {
    const call = { op, request: text === "" ? null : JSON.parse(text) };
    this.calls.push(call);
    try {
      const answer = this.answer?.(op, call.request) ?? this.#reply(op, call.request);
      return encoder.encode(typeof answer === "string" ? answer : JSON.stringify(answer));
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      call.refused = e.code;
      this.#why = JSON.stringify({ code: e.code, message: e.message });
      return -codes.indexOf(e.code);
    }
  }

  #keep(bytes) {
    const handle = ++this.#made;
    this.#open.set(handle, bytes);
    return handle;
  }

  #call(op, text, rsp, cap) {
    const answer = op === ops.last_error ? encoder.encode(this.#why) : this.#run(op, text);
    if (typeof answer === "number") return BigInt(answer);
    this.#bytes(rsp, cap).set(answer.subarray(0, cap));
    const handle = answer.length > cap >>> 0 ? this.#keep(answer.subarray(cap)) : 0;
    return (BigInt(handle) << 32n) | BigInt(answer.length);
  }

  #submit(op, text) {
    return BigInt(this.#keep(this.#run(op, text)));
  }

  #read(handle, ptr, cap) {
    const rest = this.#open.get(handle);
    if (rest === undefined) return -3n;
    if (typeof rest === "number") return BigInt(rest);
    const page = rest.subarray(0, cap);
    this.#bytes(ptr, cap).set(page);
    this.#open.set(handle, rest.subarray(page.length));
    return BigInt(page.length);
  }

  #reply(op, request) {
    switch (op) {
      case ops.log:
        this.logs.push(request.message);
        return {};
      case ops.clock:
        return { time: started };
      case ops.random:
        return { value: (++this.#made).toString(16).padStart(32, "0") };
      case ops.history:
        return { entries: [] };
      case ops.mail:
        return this.#tool(request);
    }
    throw new Refusal("UNSUPPORTED", `this host has no op ${op}`);
  }

  /** Records a MAIL tool call, and refuses what a turn may no longer do. */
  #tool({ tool, args }) {
    if (!tools.includes(tool)) throw new Refusal("NOT_FOUND", `no tool ${tool}`);
    if (this.#ended) throw new Refusal("CONFLICT", "the turn has awaited or completed");
    this.#ended = tool === "await_message" || tool === "task_complete";
    this.mail.push({ tool, ...args });
    return { id: `00000000-0000-4000-8000-${(++this.#made).toString(16).padStart(12, "0")}`, text: "SUCCESS" };
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
 * Runs one turn. Input: type, senderType, sender, subject, body, state, params,
 * history, commTargets, canComplete, and answer(op, request), which is asked first:
 * it returns an answer, throws a Refusal, or returns nothing to leave the op to the
 * default. The outcome has error (null when the turn would be committed), mail,
 * logs, notes, calls and the state a later turn sees.
 */
export function turn(module, input = {}) {
  const host = new Host(module, encodeTurn(input), input.answer);
  const { status, aborted } = host.run("skep_turn", host.input.length);
  const out = {
    error: null, mail: host.mail, logs: host.logs, calls: host.calls, notes: [], state: input.state ?? null, end: host.now,
  };
  if (aborted) return { ...out, error: { code: "INTERNAL", message: aborted } };
  const result = host.output === "" ? {} : JSON.parse(host.output);
  if (status !== 0) return { ...out, error: result };
  return { ...out, notes: result.notes ?? [], state: "state" in result ? result.state : out.state };
}

/** Runs one call of an action: { answer } or { error }. */
export function action(module, name, args) {
  const host = new Host(module, { name, args });
  const { status } = host.run("skep_action", host.input.length);
  return status === 0 ? { answer: JSON.parse(host.output) } : { error: JSON.parse(host.output) };
}

/** Returns what the module says of itself. */
export function describe(module) {
  const host = new Host(module, {});
  host.run("skep_describe");
  return JSON.parse(host.output);
}
