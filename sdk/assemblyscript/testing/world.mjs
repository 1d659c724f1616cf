// What lasts from one turn of a test to the next, beside the agent's state: values,
// timers and the clock; and what the operator has granted. It must not know how a
// module is run.

import { createHash } from "node:crypto";

/** What an answer function throws to refuse an op. */
export class Refusal extends Error {
  constructor(code, message, reason = "") {
    super(message);
    Object.assign(this, { code, reason });
  }
}

/** The agent and task of an input that names none. */
export const unnamed = { agent: "agent", task: "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90" };

const scopes = ["task", "agent", "instance"];
const minute = 60000, day = 24 * 60 * minute, mib = 1 << 20;
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const members = {
  20: ["key", "scope"], 21: ["key", "value", "scope"], 22: ["key", "scope"],
  23: ["prefix", "after", "limit", "scope"], 24: ["key", "expect", "value", "scope"],
  11: ["name", "args"], 30: ["method", "url", "headers", "body", "body_base64"],
  40: ["model", "messages", "tools", "tool_choice", "response_schema", "max_tokens", "temperature"],
  50: ["name"], 60: ["after", "body"], 61: ["id"], 80: ["sha256"], 81: ["data"],
};
const size = (text) => Buffer.byteLength(text);
const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

const blobSize = 3000000, blobsOfTurn = 64, blobBytes = 16 * mib;

/** The address of a blob. */
function addressOf(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * kv is the widest scope granted ("" none), secrets the names of those that exist, and
 * http(request) answers requests: { status, headers, body } with a body that is a string
 * or bytes, or throws a Refusal; none is granted without it. llm(request) answers for
 * models, also where the agent reads pieces: { text, reasoning, tool_calls, finish, usage,
 * carry }, all but one optional. actions has a function of the args for each name. blobs
 * are those that are kept, by their address.
 */
export class World {
  now = BigInt(Date.parse("2026-01-01T12:00:00Z")) * 1000000n;
  timers = [];
  blobs = new Map();
  #values = new Map();
  #ended = new Set();
  #made = 0;

  constructor({ kv = "", secrets = [], http = null, llm = null, actions = {} } = {}) {
    Object.assign(this, { kv, secrets, http, llm, actions });
  }

  /** Keeps a blob that the next turn finds, and returns its address. */
  keep(bytes) {
    this.blobs.set(addressOf(bytes), Buffer.from(bytes));
    return addressOf(bytes);
  }

  /** The committed values of a scope, a Map: what is set there, the next turn sees. */
  values(scope, { agent = unnamed.agent, task = unnamed.task } = {}) {
    const key = JSON.stringify([scope, scope === "instance" ? "" : agent, scope === "task" ? task : ""]);
    if (!this.#values.has(key)) this.#values.set(key, new Map());
    return this.#values.get(key);
  }

  /**
   * Takes the next timer of a task that is not complete, and moves the clock to where it
   * is due: the input of its turn, null if there is none.
   */
  fire() {
    const i = this.timers.findIndex((t) => !this.#ended.has(t.task));
    if (i < 0) return null;
    const [{ id, task, body, due }] = this.timers.splice(i, 1);
    if (this.now < due) this.now = due;
    return { world: this, id, task, body, type: "response", senderType: "system", subject: "::timer::" };
  }

  /** Begins a turn. A message that is not the system's reopens its task. */
  visit(task, fromSystem) {
    if (!fromSystem) this.#ended.delete(task);
    return new Visit(this, task);
  }

  /** Takes over what a turn that ended well has staged. */
  commit(visit, complete) {
    for (const [scope, staged] of visit.staged) {
      const values = this.values(scope, { task: visit.task });
      for (const [key, value] of staged) value === null ? values.delete(key) : values.set(key, value);
    }
    for (const [address, bytes] of visit.blobs) this.blobs.set(address, bytes);
    this.timers = visit.pending().sort((a, b) => (a.due < b.due ? -1 : a.due > b.due ? 1 : 0));
    if (complete) this.#ended.add(visit.task);
  }

  newID() {
    return `00000000-0000-4000-9000-${(++this.#made).toString(16).padStart(12, "0")}`;
  }
}

/** What one turn reaches of its world, and leaves to it if it ends well. */
class Visit {
  staged = new Map(scopes.map((scope) => [scope, new Map()])); // of values; null deletes
  timers = [];
  cancelled = new Set();
  blobs = []; // pairs of address and bytes

  constructor(world, task) {
    Object.assign(this, { world, task });
  }

  /** Answers an op; undefined if it is another's. */
  reply(op, request, now) {
    if (!members[op]) return undefined;
    if (typeof request !== "object" || request === null) throw new Refusal("INVALID", "the request must be an object", "json");
    const strange = Object.keys(request).find((name) => !members[op].includes(name));
    if (strange) throw new Refusal("INVALID", `${strange} is no member; the members are ${members[op].join(", ")}`, "json");
    if (op !== 81 && size(JSON.stringify(request)) > 2 * mib) throw new Refusal("LIMIT", "a request has at most 2 MiB", "size");
    switch (op) {
      case 11: return this.#action(request);
      case 40: return this.#chat(request);
      case 80: return this.#blob(request);
      case 81: return this.#keep(request);
      case 30: return this.#fetch(request);
      case 50: return { exists: this.world.secrets.includes(request.name) };
      case 60: return this.#set(request, now);
      case 61: return this.#cancel(request.id);
    }
    return this.#kv(op, request);
  }

  #action({ name, args }) {
    if (!this.world.actions[name]) throw new Refusal("UNSUPPORTED", `there is no action ${name}; give the World actions`, "action");
    return this.world.actions[name](args) ?? null;
  }

  #chat(request) {
    if (!request.model) throw new Refusal("INVALID", "model is missing", "model");
    if (!request.messages?.length) throw new Refusal("INVALID", "messages are missing", "messages");
    if (!this.world.llm) throw new Refusal("DENIED", `the model ${request.model} is not granted; give the World llm`, "grant");
    const usage = { input_tokens: 1, output_tokens: 1 };
    return { text: "", tool_calls: [], finish: "stop", usage, ...this.world.llm(request) };
  }

  #keep({ data }) {
    if (typeof data !== "string") throw new Refusal("INVALID", "data is missing; it must be base64", "data");
    const bytes = Buffer.from(data, "base64");
    const staged = this.blobs.reduce((sum, [, b]) => sum + b.length, bytes.length);
    if (bytes.length > blobSize) throw new Refusal("LIMIT", `a blob has at most ${blobSize} bytes`, "size");
    if (this.blobs.length === blobsOfTurn) throw new Refusal("LIMIT", `a turn puts at most ${blobsOfTurn} blobs`, "blobs");
    if (staged > blobBytes) throw new Refusal("LIMIT", `the blobs of a turn have at most ${blobBytes} bytes`, "bytes");
    this.blobs.push([addressOf(bytes), bytes]);
    return { sha256: addressOf(bytes) };
  }

  #blob({ sha256 }) {
    const bytes = new Map([...this.world.blobs, ...this.blobs]).get(sha256);
    if (!bytes) throw new Refusal("NOT_FOUND", `the tenant has no blob ${sha256}`, "blob");
    return { data: bytes.toString("base64") };
  }

  pending() {
    return [...this.world.timers, ...this.timers].filter((t) => !this.cancelled.has(t.id));
  }

  #set({ after, body = "" }, now) {
    if (typeof after !== "number") throw new Refusal("INVALID", "in a test, after must be a number of milliseconds", "after");
    if (after < 1 || after > 30 * day) throw new Refusal("INVALID", `after is ${after} ms; it must be from 1 ms to 30 days`, "after");
    if (size(body) > mib / 4) throw new Refusal("LIMIT", "body has at most 262144 bytes", "body");
    if (this.pending().filter((t) => t.task === this.task).length >= 16) {
      throw new Refusal("LIMIT", "the task has 16 timers pending, its limit; cancel one first", "timers");
    }
    const id = this.world.newID();
    this.timers.push({ id, task: this.task, body, due: now + BigInt(after) * 1000000n });
    return { id };
  }

  #cancel(id) {
    if (!this.pending().some((t) => t.id === id && t.task === this.task)) {
      throw new Refusal("NOT_FOUND", `no timer ${id} is pending in this task`, "timer");
    }
    this.cancelled.add(id);
    return {};
  }

  #fetch({ method, url, headers = {}, body = "", body_base64 = "" }) {
    if (!methods.includes(method)) throw new Refusal("INVALID", `${method} is no method`, "request");
    if (!/^https?:\/\/./.test(url)) throw new Refusal("INVALID", `${url} is no absolute URL of http or https`, "request");
    if (body && body_base64) throw new Refusal("INVALID", "body and body_base64 are both set", "request");
    if (!this.world.http) throw new Refusal("DENIED", `${url} is not granted; give the World http`, "grant");
    const sent = body_base64 ? Buffer.from(body_base64, "base64") : body;
    const answer = { status: 200, headers: {}, body: "", ...this.world.http({ method, url, headers, body: sent }) };
    const bytes = Buffer.from(answer.body), text = bytes.toString();
    if (bytes.length > 8 * mib) throw new Refusal("LIMIT", "an answer has at most 8 MiB", "response_bytes");
    const lower = Object.entries(answer.headers).map(([name, value]) => [name.toLowerCase(), value]);
    const whole = { status: answer.status, headers: Object.fromEntries(lower), body: "" };
    return Buffer.from(text).equals(bytes) ? { ...whole, body: text } : { ...whole, body_base64: bytes.toString("base64") };
  }

  #scope(name) {
    const scope = name || "agent", asked = scopes.indexOf(scope);
    if (asked < 0) throw new Refusal("INVALID", `the scope must be task, agent or instance, not ${name}`, "scope");
    if (asked > scopes.indexOf(this.world.kv)) {
      throw new Refusal("DENIED", `the scope ${scope} is not granted; give the World kv: "${scope}"`, "grant");
    }
    return scope;
  }

  /** The values of a scope as the turn sees them. */
  #seen(scope) {
    const all = new Map(this.world.values(scope, { task: this.task }));
    for (const [key, value] of this.staged.get(scope)) value === null ? all.delete(key) : all.set(key, value);
    return all;
  }

  #kv(op, request) {
    const scope = this.#scope(request.scope), { key = "", value } = request;
    if (op === 23) return this.#list(scope, request);
    if (key === "") throw new Refusal("INVALID", "the key must not be empty", "key");
    if (size(key) > 512) throw new Refusal("LIMIT", "a key has at most 512 bytes", "key");
    if (op === 24) return this.#cas(scope, request);
    if (op === 20) {
      const found = this.#seen(scope).get(key);
      if (found === undefined) throw new Refusal("NOT_FOUND", `there is no key ${key} in the scope ${scope}`, "key");
      return { value: found };
    }
    if (op === 21 && typeof value !== "string") throw new Refusal("INVALID", "value must be a text", "value");
    if (op === 21) fits(this.#seen(scope), key, value);
    this.staged.get(scope).set(key, op === 21 ? value : null);
    return {};
  }

  #list(scope, { prefix = "", after = "", limit = 0 }) {
    if (limit < 0) throw new Refusal("INVALID", "limit must not be negative", "range");
    const most = Math.min(limit || 100, 1000);
    const all = [...this.#seen(scope).keys()].filter((key) => key.startsWith(prefix) && byBytes(key, after) > 0).sort(byBytes);
    const keys = all.slice(0, most);
    return all.length > most ? { keys, next: keys[most - 1] } : { keys };
  }

  #cas(scope, { key, expect = null, value = null }) {
    if (this.staged.get(scope).has(key)) throw new Refusal("CONFLICT", `the turn has already put or deleted the key ${key}`, "staged");
    const values = this.world.values(scope, { task: this.task });
    if (value !== null) fits(values, key, value);
    if ((values.get(key) ?? null) !== expect) return { ok: false };
    value === null ? values.delete(key) : values.set(key, value);
    return { ok: true };
  }
}

/** Refuses a value that would exceed a quota. */
function fits(values, key, value) {
  if (size(value) > mib / 16) throw new Refusal("LIMIT", "a value has at most 65536 bytes", "value");
  const is = new Map(values).set(key, value);
  if (is.size > Math.max(1000, values.size)) throw new Refusal("LIMIT", `the scope would hold ${is.size} keys, at most 1000`, "keys");
  const total = (all) => [...all].reduce((sum, [k, v]) => sum + size(k) + size(v), 0);
  if (total(is) > Math.max(4 * mib, total(values))) throw new Refusal("LIMIT", "the scope would hold more than 4 MiB", "bytes");
}
