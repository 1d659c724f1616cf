/**
 * Agents in a mesh of AMP 1.0: what asks (Client), what answers (Agent), what is registered
 * (Membership). One file without dependencies, for Node 20 or later; what does not serve runs
 * wherever fetch does. README.md has the use.
 */

export const VERSION = "1.0";
const MAX_BODY = 1 << 20; // bytes of a message, in and out
const MAX_AGE = 300_000; // milliseconds between the time of a signed message and now
const MAX_KEPT = 1024; // answers that an agent keeps for repeats
const MAX_LEASE = 1e9; // seconds
const MAX_DELAY = 2 ** 31 - 1; // milliseconds of a timer
const READ_TIMEOUT = 30_000; // milliseconds for a caller to write a request

export type Json = null | boolean | number | string | Json[] | Members;
export interface Members {
  [name: string]: Json;
}

/** The HTTP status of each code of the protocol. */
const STATUS = new Map([
  ["AGENT_NOT_FOUND", 404],
  ["CAPABILITY_NOT_FOUND", 404],
  ["AUTHENTICATION_FAILED", 401],
  ["RATE_LIMIT_EXCEEDED", 429],
  ["TIMEOUT", 504],
  ["INVALID_SCHEMA", 400],
  ["CONTEXT_NOT_FOUND", 404],
  ["INSUFFICIENT_RESOURCES", 503],
]);

/** An error message of the protocol, sent or received. status is 0 for one made here. */
export class AMPError extends Error {
  constructor(
    readonly code: string,
    readonly text: string,
    readonly details: Members = {},
    readonly status = 0,
  ) {
    super(`${code}: ${text}`);
    this.name = "AMPError";
  }

  /** The finer reason, empty for none. */
  get reason(): string {
    return typeof this.details.reason === "string" ? this.details.reason : "";
  }
}

/** A message without its wrapper. */
export interface Message {
  id: string;
  type: "request" | "response" | "event" | "error";
  timestamp: string;
  source: Members;
  destination: Members;
  headers: Members;
  payload: Members;
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function tooLarge(): AMPError {
  return new AMPError("INVALID_SCHEMA", `the message has more than ${MAX_BODY} bytes`, { reason: "TOO_LARGE" }, 413);
}

function text(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** The form of RFC 8785 of a JSON value. Throws a RangeError for what has none. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
  if (isMembers(value)) {
    const members = Object.keys(value).sort().map((name) => JSON.stringify(name) + ":" + canonical(value[name] as Json));
    return "{" + members.join(",") + "}";
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError("JSON has no such number");
  return JSON.stringify(value);
}

async function signature(message: Members, key: string): Promise<string> {
  const bare = { ...message };
  if (isMembers(bare.headers)) {
    const { signature: _, ...headers } = bare.headers;
    bare.headers = headers;
  }
  const encoder = new TextEncoder();
  const secret = await crypto.subtle.importKey("raw", encoder.encode(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return base64(await crypto.subtle.sign("HMAC", secret, encoder.encode(canonical(bare))));
}

function base64(bytes: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}

async function digest(of: string): Promise<string> {
  return base64(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(of)));
}

/** Whether two texts are the same, in a time that does not depend on where they differ. */
async function same(a: string, b: string): Promise<boolean> {
  const [one, other] = [await digest(a), await digest(b)];
  let differs = 0;
  for (let i = 0; i < one.length; i++) differs |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return differs === 0;
}

/** Adds the signature of a message. */
export async function sign(message: Message, key: string): Promise<void> {
  message.headers.signature = { algorithm: "HMAC-SHA256", value: await signature({ ...message }, key) };
}

/** Throws an AMPError unless the message was signed with the key in the last five minutes. */
export async function verify(message: Members, key: string): Promise<void> {
  const shown = isMembers(message.headers) ? message.headers.signature : undefined;
  let genuine = false;
  try {
    genuine = isMembers(shown) && shown.algorithm === "HMAC-SHA256" && (await same(String(shown.value), await signature(message, key)));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  if (!genuine) {
    throw new AMPError("AUTHENTICATION_FAILED", "headers.signature is missing or of another key", { reason: "SIGNATURE" });
  }
  const stamp = String(message.timestamp);
  const age = /T.*(Z|[+-]\d\d:\d\d)$/i.test(stamp) ? Math.abs(Date.now() - Date.parse(stamp)) : NaN;
  if (!(age <= MAX_AGE)) {
    throw new AMPError("AUTHENTICATION_FAILED", `timestamp must be within ${MAX_AGE / 1000} s of now`, { reason: "EXPIRED" });
  }
}

/** The text of a message; signed if there is a key. */
export async function encode(message: Message, key = ""): Promise<string> {
  if (key) await sign(message, key);
  return JSON.stringify({ protocol: "AMP/" + VERSION, message });
}

/** The message of a text. With a key it must be signed. Throws an AMPError. */
export async function decode(given: string, key = ""): Promise<Message> {
  const malformed = new AMPError("INVALID_SCHEMA", "this is no message of AMP", { reason: "MALFORMED" });
  let outer: unknown;
  try {
    outer = JSON.parse(given);
  } catch {
    throw malformed;
  }
  if (!isMembers(outer) || !isMembers(outer.message) || typeof outer.protocol !== "string") throw malformed;
  const [token, version = ""] = outer.protocol.split("/");
  const { id = "", type, timestamp = "", source = {}, destination = {}, headers = {}, payload } = outer.message;
  const known = type === "request" || type === "response" || type === "event" || type === "error";
  if ((token !== "AMP" && token !== "AIP") || !known || typeof id !== "string" || typeof timestamp !== "string") throw malformed;
  if (!isMembers(source) || !isMembers(destination) || !isMembers(headers) || !isMembers(payload)) throw malformed;
  if (version.split(".")[0] !== "1") {
    throw new AMPError("INVALID_SCHEMA", "only version 1 is spoken here", { reason: "VERSION_UNSUPPORTED", supported_versions: [VERSION] });
  }
  if (key) await verify(outer.message, key);
  return { id, type, timestamp, source, destination, headers, payload };
}

/** url is the mesh's invoke, token the bearer token, key a shared HMAC key, timeout in seconds. */
export interface ClientOptions {
  url: string;
  agentId: string;
  token?: string;
  key?: string;
  timeout?: number;
}

export interface AskOptions {
  agent?: string;
  session?: string;
  timeout?: number; // seconds
}

interface Reply {
  message?: Message; // absent where an event was taken
  location?: string; // where the whole answer will be
}

/** Asks a mesh in the name of an agent. */
export class Client {
  private readonly timeout: number;

  constructor(private readonly options: ClientOptions) {
    this.timeout = options.timeout ?? 60;
  }

  /** Asks an agent, or without one any with the capability. Returns the result. */
  async invoke(capability: string, parameters: Members, options: AskOptions = {}): Promise<Json> {
    return member(await this.request({ capability, parameters }, { ...options, capability }), "result");
  }

  /** Hands on a subtask of a task. With a callback the payload is a partial answer, and the answer
   * is posted to that address: Agent.onAnswer gets it. */
  async delegate(task: string, capability: string, parameters: Members, options: { agent?: string; callback?: string } = {}): Promise<Members> {
    const { callback, ...asked } = options;
    const subtask: Members = { capability, parameters, ...(callback ? { completion_callback: callback } : {}) };
    return this.request({ delegation: { parent_task_id: task, subtask } }, asked, !callback);
  }

  /** The agents that have all of the capabilities, with what their mesh tells of them. */
  async discover(capabilities: string[], constraints: Members = {}): Promise<Json> {
    return member(await this.control("registry", "discovery", { query: { capabilities, constraints } }), "agents");
  }

  /** What the mesh answers to a negotiation: capability_check or protocol_version. */
  async negotiate(kind = "protocol_version", requirements: Members = {}): Promise<Json> {
    const answer = await this.request({ negotiation_type: kind, requirements, supported: [VERSION] });
    return member(answer, "result");
  }

  /** An operation of a shared context: create, get, update, fork or merge. Returns the context. */
  async context(operation: string, members: Members): Promise<Json> {
    return member(await this.control("context", "context-management", { operation, ...members }), "context");
  }

  /** Sends an event, which has no answer. */
  async tell(eventType: string, members: Members = {}, agent = ""): Promise<void> {
    const message = this.message("event", agent ? { agent_id: agent } : {}, { event_type: eventType, ...members });
    await this.exchange(message, Date.now() + this.timeout * 1000);
  }

  /** Asks the mesh itself, as its registry. Returns the result. */
  async control(agent: string, capability: string, payload: Members): Promise<Json> {
    return member(await this.request(payload, { agent, capability }), "result");
  }

  /** Sends a request and returns the payload of its response. Throws an AMPError, or what fetch
   * throws where the mesh cannot be reached. With wait a partial answer is asked for until it is whole. */
  async request(payload: Members, options: AskOptions & { capability?: string } = {}, wait = true): Promise<Members> {
    const seconds = options.timeout ?? this.timeout;
    const end = Date.now() + seconds * 1000;
    const destination: Members = {};
    if (options.agent) destination.agent_id = options.agent;
    if (options.capability) destination.capability = options.capability;
    const message = this.message("request", destination, payload);
    if (options.session) message.source.session_id = options.session;
    message.headers.timeout_ms = Math.trunc(seconds * 1000);
    let reply = await this.exchange(message, end);
    while (wait && reply.location) {
      if (Date.now() >= end) throw new AMPError("TIMEOUT", `there is no answer after ${seconds} s`);
      await delay(200);
      reply = await this.get(reply.location, end);
    }
    if (reply.message?.headers.correlation_id !== message.id) {
      throw new AMPError("INVALID_SCHEMA", "the answer is to another message");
    }
    const answer = reply.message.payload;
    if (answer.status === "failed") throw new AMPError("FAILED", JSON.stringify(answer.result ?? null), answer);
    return answer;
  }

  private message(type: Message["type"], destination: Members, payload: Members): Message {
    return { id: crypto.randomUUID(), type, timestamp: new Date().toISOString(), source: { agent_id: this.options.agentId }, destination, headers: {}, payload };
  }

  /** Posts a message, again under its id while the mesh is busy or away, until end. */
  private async exchange(message: Message, end: number): Promise<Reply> {
    const body = await encode(message, this.options.key);
    for (let pause = 200; ; pause = Math.min(pause * 2, 5000)) {
      let wait = pause;
      try {
        return await this.call(this.options.url, end, body);
      } catch (error) {
        const busy = error instanceof AMPError ? [429, 502, 503].includes(error.status) : true;
        const after = error instanceof AMPError ? error.details.retry_after_ms : 0;
        if (typeof after === "number") wait = Math.max(wait, after);
        if (!busy || Date.now() + wait >= end) throw error;
      }
      await delay(wait);
    }
  }

  private get(location: string, end: number): Promise<Reply> {
    const url = new URL(location, this.options.url);
    if (url.origin !== new URL(this.options.url).origin) {
      throw new AMPError("INVALID_SCHEMA", `the answer is said to be at another host: ${url.host}`);
    }
    return this.call(url.href, end);
  }

  private async call(url: string, end: number, body?: string): Promise<Reply> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.options.token) headers["Authorization"] = "Bearer " + this.options.token; // for the mesh alone: no redirect is followed
    const signal = AbortSignal.timeout(Math.max(end - Date.now(), 100));
    const reply = await fetch(url, { method: body === undefined ? "GET" : "POST", headers, redirect: "manual", signal, ...(body === undefined ? {} : { body }) });
    const given = await readBounded(reply);
    if (!given && reply.ok) return {}; // an event was taken
    let message: Message;
    try {
      message = await decode(given, this.options.key);
    } catch (error) {
      throw error instanceof AMPError ? new AMPError(error.code, error.text, error.details, reply.status) : error;
    }
    if (message.type === "error") {
      const error = isMembers(message.payload.error) ? message.payload.error : {};
      const details = isMembers(error.details) ? error.details : {};
      throw new AMPError(String(error.code ?? "INVALID_SCHEMA"), String(error.message ?? ""), details, reply.status);
    }
    if (!reply.ok) throw new AMPError("INVALID_SCHEMA", `the mesh answered ${reply.status} without an error`, {}, reply.status);
    const location = reply.status === 202 ? reply.headers.get("Location") : null;
    return location ? { message, location } : { message };
  }
}

async function readBounded(reply: Response): Promise<string> {
  const decoder = new TextDecoder();
  let [given, size] = ["", 0];
  const reader = reply.body?.getReader();
  for (let part = await reader?.read(); reader && part?.value; part = await reader.read()) {
    size += part.value.length;
    if (size > MAX_BODY) {
      await reader.cancel();
      throw tooLarge();
    }
    given += decoder.decode(part.value, { stream: true });
  }
  return given + decoder.decode();
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, milliseconds));
}

function member(value: Json, name: string): Json {
  const found = isMembers(value) ? value[name] : undefined;
  if (found === undefined) throw new AMPError("INVALID_SCHEMA", `the answer has no ${name}`);
  return found;
}

/** token is what callers must show, key a shared HMAC key. parallel messages are answered at once. */
export interface AgentOptions {
  id: string;
  name?: string;
  version?: string;
  framework?: string;
  token?: string;
  key?: string;
  parallel?: number;
}

export type Handler = (parameters: Members) => Json | Promise<Json>;

/** The status and the text that answer a message. */
export interface Answer {
  status: number;
  body: string;
}

interface Given {
  digest: string;
  payload: Promise<Members | undefined>; // undefined for what has no answer
}

/** Answers a mesh. A repeat of a message, under its id, gets the first answer. */
export class Agent {
  readonly identity: Members;
  readonly described: Members[] = [];
  /** Gets responses and errors, as to a delegated subtask. If it throws, the message is sent again. */
  onAnswer: (message: Message) => void | Promise<void> = () => {};
  /** Gets events. If it throws, the event is sent again. */
  onEvent: (message: Message) => void | Promise<void> = () => {};
  private readonly handlers = new Map<string, Handler>();
  private readonly underWay = new Map<string, Given>();
  private readonly given = new Map<string, Given>();

  constructor(readonly options: AgentOptions) {
    const { id, name = id, version = "1.0.0", framework = "custom" } = options;
    this.identity = { id, name, version, framework, protocol_version: VERSION };
  }

  /** Declares a capability. described are members of the declaration: version, description,
   * input_schema, output_schema, constraints. */
  capability(id: string, handler: Handler, described: Members = {}): void {
    this.described.push({ id, version: "1.0", ...described });
    this.handlers.set(id, handler);
  }

  /** Whether a credential is this agent's token, or none is wanted. */
  async admits(shown: string): Promise<boolean> {
    return !this.options.token || same(shown, this.options.token);
  }

  /** Answers a message, whose sender has shown a credential. */
  async answer(given: string, shown = ""): Promise<Answer> {
    let id = "";
    try {
      if (!(await this.admits(shown))) {
        throw new AMPError("AUTHENTICATION_FAILED", "the credential is not of this agent", { reason: "CREDENTIAL" });
      }
      const message = await decode(given, this.options.key);
      id = message.id;
      const payload = await this.once(message);
      return payload ? { status: 200, body: await this.reply("response", payload, id) } : { status: 202, body: "" };
    } catch (error) {
      return this.refuse(error instanceof AMPError ? error : new AMPError("INSUFFICIENT_RESOURCES", text(error), { reason: "INTERNAL" }, 500), id);
    }
  }

  /** What tells the sender of a message an error. */
  async refuse(error: AMPError, id = ""): Promise<Answer> {
    const payload = { error: { code: error.code, message: error.text, details: error.details } };
    return { status: error.status >= 400 ? error.status : (STATUS.get(error.code) ?? 500), body: await this.reply("error", payload, id) };
  }

  private reply(type: Message["type"], payload: Members, id: string): Promise<string> {
    const source = { agent_id: this.options.id };
    const headers: Members = id ? { correlation_id: id } : {};
    return encode({ id: crypto.randomUUID(), type, timestamp: new Date().toISOString(), source, destination: {}, headers, payload }, this.options.key);
  }

  /** What take returns for a message: for a repeat the same. A message is under way until it has
   * an answer, which is kept until MAX_KEPT others have one. */
  private async once(message: Message): Promise<Members | undefined> {
    let form: string;
    try {
      form = canonical(message.payload);
    } catch {
      throw new AMPError("INVALID_SCHEMA", "the payload has no canonical form", { reason: "MALFORMED" });
    }
    const name = JSON.stringify([message.source.agent_id ?? null, message.id]);
    const sum = await digest(form);
    const first = this.underWay.get(name) ?? this.given.get(name);
    if (first && first.digest !== sum) throw new AMPError("INVALID_SCHEMA", "the id is of another message", { reason: "CONFLICT" }, 409);
    if (first) return first.payload;
    const mine: Given = { digest: sum, payload: this.take(message) };
    if (!message.id) return mine.payload;
    this.underWay.set(name, mine);
    try {
      await mine.payload;
      this.keep(name, mine);
    } catch {
      if (message.type === "request") this.keep(name, mine);
    }
    this.underWay.delete(name);
    return mine.payload;
  }

  private keep(name: string, mine: Given): void {
    this.given.set(name, mine);
    for (const oldest of this.given.keys()) {
      if (this.given.size <= MAX_KEPT) break;
      this.given.delete(oldest);
    }
  }

  private async take(message: Message): Promise<Members | undefined> {
    if (message.type === "request") return this.work(message);
    await (message.type === "event" ? this.onEvent : this.onAnswer)(message);
    return undefined;
  }

  private async work(message: Message): Promise<Members> {
    const delegation = message.payload.delegation;
    const task = delegation === undefined ? message.payload : isMembers(delegation) ? delegation.subtask : undefined;
    if (!isMembers(task)) throw new AMPError("INVALID_SCHEMA", "the payload asks for no capability", { reason: "VIOLATIONS" });
    const wanted = task.capability ?? message.destination.capability ?? "";
    const handler = typeof wanted === "string" ? this.handlers.get(wanted) : undefined;
    if (!handler) {
      throw new AMPError("CAPABILITY_NOT_FOUND", `${JSON.stringify(wanted)} is not offered here`, { available_capabilities: [...this.handlers.keys()] });
    }
    const parameters = task.parameters ?? {};
    if (!isMembers(parameters)) throw new AMPError("INVALID_SCHEMA", "parameters must be an object", { reason: "VIOLATIONS" });
    try {
      const result = await handler(parameters);
      return { status: "success", result: typeof result === "object" && result !== null ? result : { text: String(result) } };
    } catch (error) {
      if (error instanceof AMPError) throw error;
      return { status: "failed", result: { text: text(error) } }; // its caller hears of it, and the server goes on
    }
  }

  /** Serves over HTTP in Node. tls are options of https.createServer. Without a token or a key,
   * anyone must be true. */
  async serve(options: { host?: string; port?: number; tls?: object; anyone?: boolean } = {}): Promise<Serving> {
    if (!this.options.token && !this.options.key && !options.anyone) {
      throw new Error("an agent without token and key answers anyone: say so by anyone: true");
    }
    const name: string = options.tls ? "node:https" : "node:http"; // not resolved by the compiler: there is no type of Node here
    const http = (await import(name)) as { createServer(options: object, handle: (request: Incoming, reply: Outgoing) => void): Server };
    const parallel = this.options.parallel ?? 16;
    const places = { free: parallel };
    const server = http.createServer({ ...options.tls, requestTimeout: READ_TIMEOUT, connectionsCheckingInterval: 1000 }, (request, reply) => {
      void this.handle(request, reply, places).catch(() => request.destroy()); // a caller that left
    });
    server.maxConnections = 4 * parallel;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(options.port ?? 0, options.host ?? "127.0.0.1", resolve);
    });
    const close = (): Promise<void> => new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
    return { port: server.address().port, close };
  }

  private async handle(request: Incoming, reply: Outgoing, places: { free: number }): Promise<void> {
    const send = ({ status, body }: Answer): void => {
      reply.writeHead(status, { "Content-Type": "application/json" });
      reply.end(body);
    };
    if (request.method !== "POST") {
      return send({ status: 200, body: JSON.stringify({ status: "healthy", protocol_version: VERSION, agent: this.identity, timestamp: new Date().toISOString() }) });
    }
    const header = (name: string): string => String(request.headers[name] ?? "");
    const shown = header("authorization").replace(/^Bearer /, "") || header("x-api-key");
    if (!(await this.admits(shown))) return send(await this.answer("", shown));
    const length = header("content-length");
    if (!/^\d{1,15}$/.test(length)) {
      return send(await this.refuse(new AMPError("INVALID_SCHEMA", "Content-Length is missing", { reason: "MALFORMED" }, 411)));
    }
    if (Number(length) > MAX_BODY) return send(await this.refuse(tooLarge()));
    if (places.free === 0) {
      return send(await this.refuse(new AMPError("INSUFFICIENT_RESOURCES", "all places are taken", { reason: "FULL" })));
    }
    places.free--;
    try {
      const decoder = new TextDecoder();
      let given = "";
      for await (const part of request) given += decoder.decode(part, { stream: true });
      send(await this.answer(given + decoder.decode(), shown));
    } finally {
      places.free++;
    }
  }
}

/** A server that runs. */
export interface Serving {
  port: number;
  close(): Promise<void>;
}

interface Incoming extends AsyncIterable<Uint8Array> {
  method?: string;
  headers: { [name: string]: string | string[] | undefined };
  destroy(): void;
}

interface Outgoing {
  writeHead(status: number, headers: Record<string, string>): void;
  end(body: string): void;
}

interface Server {
  maxConnections: number;
  listen(port: number, host: string, listening: () => void): void;
  once(event: "error", handle: (error: Error) => void): void;
  address(): { port: number };
  close(closed: () => void): void;
  closeAllConnections(): void;
}

/** every is in seconds, a third of the lease without it; report gets what a heartbeat met. */
export interface MembershipOptions {
  health?: string;
  every?: number;
  report?: (error: unknown) => void;
}

/** Keeps an agent registered in a mesh, until close: with heartbeats, and anew where the mesh has
 * forgotten it or was away. */
export class Membership {
  /** What the last heartbeat met: undefined while the agent is registered. */
  lastError: unknown;
  private ended = false;
  private wake = (): void => {};
  private readonly renewing: Promise<void>;

  private constructor(
    private readonly client: Client,
    private readonly payload: Members,
    private readonly options: MembershipOptions,
    private lease: number,
  ) {
    this.renewing = this.renew();
  }

  /** Registers an agent, whose messages are posted to invoke. Throws what refuses it. */
  static async join(client: Client, agent: Agent, invoke: string, options: MembershipOptions = {}): Promise<Membership> {
    const endpoints: Members = options.health ? { invoke, health: options.health } : { invoke };
    const payload: Members = { agent: agent.identity, capabilities: agent.described, endpoints };
    if (agent.options.token) payload.authentication = { type: "bearer", credentials: agent.options.token };
    return new Membership(client, payload, options, await ask(client, "registration", payload));
  }

  /** Ends the heartbeats and the registration. */
  async close(): Promise<void> {
    this.ended = true;
    this.wake();
    await this.renewing;
    await this.client.control("registry", "deregistration", { agent: this.payload.agent ?? {} });
  }

  /** Heartbeats. Whatever one meets, the next one is sent. */
  private async renew(): Promise<void> {
    for (await this.pause(); !this.ended; await this.pause()) {
      try {
        await this.beat();
        this.lastError = undefined;
      } catch (error) {
        this.lastError = error;
        try {
          this.options.report?.(error);
        } catch {
          // a program's report ends no membership
        }
      }
    }
  }

  private pause(): Promise<void> {
    const seconds = this.options.every ?? Math.max(this.lease / 3, 1);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(seconds * 1000, MAX_DELAY));
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.ended) this.wake();
    });
  }

  private async beat(): Promise<void> {
    try {
      this.lease = await ask(this.client, "heartbeat", { agent: this.payload.agent ?? {} });
    } catch (error) {
      if (!(error instanceof AMPError) || error.reason !== "NOT_REGISTERED") throw error;
      this.lease = await ask(this.client, "registration", this.payload);
    }
  }
}

/** The lease that the mesh grants, in seconds. */
async function ask(client: Client, capability: string, payload: Members): Promise<number> {
  const result = await client.control("registry", capability, payload);
  const lease = isMembers(result) ? (result.lease_seconds ?? 60) : 60;
  if (typeof lease !== "number" || !(lease > 0 && lease <= MAX_LEASE)) {
    throw new AMPError("INVALID_SCHEMA", `the mesh grants a lease of ${JSON.stringify(lease)} seconds`);
  }
  return lease;
}
