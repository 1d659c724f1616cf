import * as host from "./host";
import { fromBase64, toBase64 } from "./base64";
import { ChatAnswer, ChatRequest, ChatStream } from "./chat";
import { Code, Emitted, Op } from "./names";
import { Failure } from "./failure";
import { FetchRequest, FetchResponse } from "./fetch";
import { Entry, Page } from "./history";
import { Json } from "./json";
import { Kv } from "./kv";
import { Message } from "./message";
import { Pending, waitAll, waitAny } from "./pending";

/** The part of a task that its agents see. */
export class Task {
  id: string;
  /** Has the form role:id@swarm, as contributors have. */
  owner: string;
  contributors: string[];
  completed: bool;

  constructor(v: Json) {
    this.id = v.getString("id");
    this.owner = v.getString("owner");
    this.contributors = v.get("contributors").asStrings();
    this.completed = v.get("completed").asBoolean();
  }
}

/** Tells which agent this turn plays. */
export class Identity {
  name: string;
  swarm: string;
  instance: string;
  /** The addresses this agent may write to. */
  commTargets: string[];
  canComplete: bool;

  constructor(v: Json) {
    this.name = v.getString("address");
    this.swarm = v.getString("swarm");
    this.instance = v.getString("instance");
    this.commTargets = v.get("comm_targets").asStrings();
    this.canComplete = v.get("can_complete_tasks").asBoolean();
  }
}

/** One MAIL tool or action, in the form models take. */
export class Tool {
  name: string;
  description: string;
  /** A JSON Schema. */
  parameters: Json;

  constructor(v: Json) {
    this.name = v.getString("name");
    this.description = v.getString("description");
    this.parameters = v.get("parameters");
  }

  static of(name: string, description: string, parameters: Json): Tool {
    return new Tool(Json.object().put("name", name).put("description", description).set("parameters", parameters));
  }

  encode(): Json {
    return Json.object().put("name", this.name).put("description", this.description).set("parameters", this.parameters);
  }
}

/** What the turn may still use; 0 means no limit. */
export class Budget {
  fuel: i64;
  hostCalls: i64;
  outputBytes: i64;

  constructor(v: Json) {
    this.fuel = v.get("fuel").asInteger();
    this.hostCalls = v.get("host_calls").asInteger();
    this.outputBytes = v.get("output_bytes").asInteger();
  }
}

/** The host's answer to a MAIL tool. */
export class Reply {
  constructor(
    /** The id of the message the tool made, if it made one. */
    public id: string,
    public text: string,
    /** The request_id of a request: the response to it has it, too. */
    public requestId: string = "",
  ) {}
}

/**
 * One agent's handling of one message. What can be refused returns a Failure, or
 * null when it was not; what has an answer returns null when it was refused, and
 * failure says why.
 */
export class Turn {
  /** What this turn handles. */
  message: Message;
  /** Counts the task's turns from 1. */
  number: i64;
  /** The message's tier, 1 (highest) to 5. */
  priority: i64;
  task: Task;
  agent: Identity;
  /** The MAIL tools and actions this agent may call. */
  tools: Tool[];
  budget: Budget;
  /** The wall time left when the turn began, in milliseconds; 0 for none. */
  deadlineMs: i64;
  /** The W3C traceparent of the turn, if the host traces. */
  trace: string;
  /** params of the agent in swarm.toml, null without any. */
  params: Json;
  /** The length of the whole history as of the start of the turn. */
  historyCount: i64;

  private tail: Json;
  private kept: Json;
  private changed: bool = false;
  private notes: string[] = [];

  constructor(input: Json) {
    this.message = new Message(input.get("message"));
    this.number = input.get("turn").asInteger();
    this.priority = input.get("priority").asInteger();
    this.task = new Task(input.get("task"));
    this.agent = new Identity(input.get("agent"));
    this.tools = input.get("tools").items().map<Tool>((v) => new Tool(v));
    this.budget = new Budget(input.get("budget"));
    this.deadlineMs = input.get("deadline_ms").asInteger();
    this.trace = input.getString("trace");
    this.params = input.get("params");
    this.historyCount = input.get("history").get("count").asInteger();
    this.tail = input.get("history").get("tail");
    this.kept = input.get("state");
  }

  /** Why the last call was refused; null when it was not. */
  get failure(): Failure | null {
    return host.failure;
  }

  /**
   * What the last committed turn of this agent in this task left, or what this
   * turn has set; null at first. Set it, up to 64 KiB of JSON, for the next turn;
   * null forgets it. It counts only if the turn ends well.
   */
  get state(): Json {
    return this.kept;
  }

  set state(value: Json) {
    this.kept = value;
    this.changed = true;
  }

  /** Adds a line to the agent's history. Later turns see it there. */
  note(text: string): void {
    this.notes.push(text);
  }

  /** Runs any op. An empty request sends no bytes. */
  call(op: i32, request: string): Json | null {
    const answer = host.call(op, request);
    if (answer === null) return null;
    if (answer.length == 0) return Json.null();
    const v = Json.parse(answer);
    if (v === null) host.failure = new Failure(Code.INTERNAL, "the answer is no JSON");
    return v;
  }

  // ---- Several ops at once

  /**
   * Starts any op and does not wait for it. If the host refuses, reading tells: there
   * is one place for errors. Up to 64 may be open at once, of which 8 run beside each
   * other.
   */
  submit(op: i32, request: string): Pending {
    return new Pending(op, request);
  }

  /**
   * Waits until one of several ops has something to read, has ended or has failed,
   * and returns the lowest index of such a one. Those that were read to their end or
   * closed do not count any more. It returns -1 when none is left and failure is
   * null, or when failure says why: DEADLINE after the timeout (a negative one never
   * comes), CANCELLED when the turn is called off.
   */
  waitAny(ops: Pending[], timeoutMs: i32 = -1): i32 {
    return waitAny(ops, timeoutMs);
  }

  /**
   * Waits until each of several ops has something to read, has ended or has failed.
   * The timeout is for all of them together.
   */
  waitAll(ops: Pending[], timeoutMs: i32 = -1): Failure | null {
    return waitAll(ops, timeoutMs);
  }

  // ---- Actions and models

  /**
   * Calls an action of the operator's file. UNSUPPORTED is a name that was not given to
   * this agent, INVALID args that do not fit, UPSTREAM an action that has failed; the
   * turn goes on.
   */
  action(name: string, args: Json): Json | null {
    return this.call(Op.ACTION, Json.object().put("name", name).set("args", args).text);
  }

  /**
   * Asks a model and waits for the whole answer. The model must be granted, as in
   * allow = { llm = ["default"] }, else it is DENIED. LIMIT says that a budget is used up
   * or the question too long, UNAVAILABLE that the model may answer later.
   */
  chat(request: ChatRequest): ChatAnswer | null {
    const answer = this.call(Op.LLM_CHAT, request.encode().text);
    return answer === null ? null : new ChatAnswer(answer);
  }

  /** Asks a model and does not wait. If the host refuses, reading tells. */
  chatStream(request: ChatRequest): ChatStream {
    return new ChatStream(request);
  }

  // ---- What lasts beyond the turn, and HTTP

  /** The values of a Scope. It calls nothing. */
  kv(scope: string): Kv {
    return new Kv(this, scope);
  }

  /**
   * Has the host send this agent a message of this task after 1 ms to 30 days by the
   * turn's clock; its fromTimer tells. Returns the timer's id. It counts only if the
   * turn ends well, and then survives restarts. While a timer is pending, awaitMessage
   * succeeds. A task has at most 16 pending; one more is LIMIT.
   */
  setTimer(afterMs: i64, body: string): string | null {
    const answer = this.call(Op.TIMER_SET, Json.object().set("after", Json.integer(afterMs)).put("body", body).text);
    return answer === null ? null : answer.getString("id");
  }

  /**
   * Ends a timer that this agent has set in this task, as long as the turn on its
   * message has not begun; else it is NOT_FOUND. It counts only if the turn ends well.
   */
  cancelTimer(id: string): Failure | null {
    this.call(Op.TIMER_CANCEL, Json.object().put("id", id).text);
    return host.failure;
  }

  /**
   * Makes an HTTP request and waits for its answer. After 60 s, or what the operator's
   * [limits.http] says, it is DEADLINE. It goes where the operator's grants lead, as in allow = { http = ["https://api.example.com"] },
   * else it is DENIED. The host adds the secrets that are bound to the origin.
   * UNAVAILABLE means that no answer came; the request may have arrived.
   */
  fetch(request: FetchRequest): FetchResponse | null {
    const answer = this.call(Op.HTTP_FETCH, request.encode().text);
    return answer === null ? null : new FetchResponse(answer);
  }

  /**
   * Reports whether the host adds a secret to this agent's requests, by the name it has
   * in the operator's file. The agent never sees its value.
   */
  secretExists(name: string): bool {
    const answer = this.call(Op.SECRET_EXISTS, Json.object().put("name", name).text);
    return answer !== null && answer.get("exists").asBoolean();
  }

  /**
   * Keeps up to 3,000,000 bytes and returns their address, by which all agents of the
   * tenant read them. It counts only if the turn ends well. The blob goes with the last
   * task that has put it.
   */
  blobPut(bytes: ArrayBuffer): string | null {
    const answer = this.call(Op.BLOB_PUT, Json.object().put("data", toBase64(bytes)).text);
    return answer === null ? null : answer.getString("sha256");
  }

  /** Reads a blob by its address; NOT_FOUND when the tenant has none. */
  blobGet(sha256: string): ArrayBuffer | null {
    const answer = this.call(Op.BLOB_GET, Json.object().put("sha256", sha256).text);
    return answer === null ? null : fromBase64(answer.getString("data"));
  }

  // ---- What the operator measures; labels and attributes are objects of strings

  /**
   * Adds a value, 0 or more, to a counter of the operator's monitoring. Each set of
   * labels, at most 8, is a series of its own. It counts when the turn ends, once. Too
   * many series or calls are LIMIT.
   */
  count(name: string, value: f64 = 1, labels: Json = Json.null()): Failure | null {
    return this.metric(Json.object().put("name", name).set("value", Json.number(value)), labels);
  }

  /** Sets a value that goes up and down, else as count. */
  gauge(name: string, value: f64, labels: Json = Json.null()): Failure | null {
    return this.metric(Json.object().put("name", name).set("value", Json.number(value)).put("kind", "gauge"), labels);
  }

  private metric(v: Json, labels: Json): Failure | null {
    this.call(Op.METRIC, labels.isNull ? v.text : v.set("labels", labels).text);
    return host.failure;
  }

  /**
   * Begins a part of the turn that the operator sees with the time it took, and returns
   * its id, 0 when it was refused. It lies in the one that began last and has not ended.
   * What is open at the end of the turn ends with it.
   */
  span(name: string, attributes: Json = Json.null()): i64 {
    const v = Json.object().put("name", name);
    const answer = this.call(Op.SPAN, attributes.isNull ? v.text : v.set("attributes", attributes).text);
    return answer === null ? 0 : answer.get("id").asInteger();
  }

  /**
   * Ends one, with attributes beside those it began with, and why what it covers has
   * failed, if it has.
   */
  endSpan(id: i64, error: string = "", attributes: Json = Json.null()): Failure | null {
    let v = Json.object().set("id", Json.integer(id));
    if (!attributes.isNull) v = v.set("attributes", attributes);
    this.call(Op.SPAN, error == "" ? v.text : v.put("error", error).text);
    return host.failure;
  }

  // ---- What whoever follows the task sees at once; the result is of Emitted

  /**
   * Shows how far the turn has come: in words, at most 4 KiB, as a fraction from 0 to
   * 1, or both. An empty text and a negative fraction are left out.
   */
  emitProgress(text: string, fraction: f64 = -1): i32 {
    let v = Json.object();
    if (text != "") v = v.put("text", text);
    if (fraction >= 0) v = v.set("fraction", Json.number(fraction));
    return this.emit("progress", v);
  }

  /** Shows the next piece of a text, at most 16 KiB. */
  emitChunk(text: string): i32 {
    return this.emit("chunk", Json.string(text));
  }

  /** Shows a line, at most 4 KiB. The history does not have it, that is note's. */
  emitNote(text: string): i32 {
    return this.emit("note", Json.string(text));
  }

  private emit(member: string, what: Json): i32 {
    const answer = this.call(Op.EMIT, Json.object().set(member, what).text);
    if (answer === null) return Emitted.REFUSED;
    const status = answer.getString("status");
    return status == "busy" ? Emitted.BUSY : status == "closed" ? Emitted.CLOSED : Emitted.OK;
  }

  // ---- MAIL's tools. After awaitMessage or taskComplete every further one of the
  // turn is refused with CONFLICT.

  /** Calls a tool by name with the arguments its schema asks for. */
  tool(name: string, args: Json): Reply | null {
    const answer = this.call(Op.MAIL, Json.object().put("tool", name).set("args", args).text);
    return answer === null ? null : new Reply(answer.getString("id"), answer.getString("text"), answer.getString("request_id"));
  }

  private send(tool: string, args: Json): Failure | null {
    return this.tool(tool, args) === null ? host.failure : null;
  }

  private letter(tool: string, target: string, subject: string, body: string): Failure | null {
    return this.send(tool, Json.object().put("target", target).put("subject", subject).put("body", body));
  }

  /** Asks another agent. The answer comes as a message of a later turn. */
  sendRequest(target: string, subject: string, body: string): Failure | null {
    return this.letter("send_request", target, subject, body);
  }

  /**
   * Asks another agent and returns the request's id, or null where the host refuses.
   * The answer has it as its refId, and so has the host's report that there will be none.
   * A host that does not give it leaves it empty.
   */
  ask(target: string, subject: string, body: string): string | null {
    const reply = this.tool("send_request", Json.object().put("target", target).put("subject", subject).put("body", body));
    return reply === null ? null : reply.requestId;
  }

  /** Answers an agent. */
  sendResponse(target: string, subject: string, body: string): Failure | null {
    return this.letter("send_response", target, subject, body);
  }

  /** Writes to an agent ahead of everything that waits for it. */
  sendInterrupt(target: string, subject: string, body: string): Failure | null {
    return this.letter("send_interrupt", target, subject, body);
  }

  /** Writes to several agents, or with the target "all" to every local one but this. */
  sendBroadcast(targets: string[], subject: string, body: string): Failure | null {
    const args = Json.object().set("targets", Json.strings(targets)).put("subject", subject).put("body", body);
    return this.send("send_broadcast", args);
  }

  private remark(tool: string, name: string, text: string): Failure | null {
    return this.send(tool, Json.object().set(name, text == "" ? Json.null() : Json.string(text)));
  }

  /** Takes note of the broadcast in hand. */
  acknowledgeBroadcast(note: string = ""): Failure | null {
    return this.remark("acknowledge_broadcast", "note", note);
  }

  /** Leaves the broadcast in hand. */
  ignoreBroadcast(reason: string = ""): Failure | null {
    return this.remark("ignore_broadcast", "reason", reason);
  }

  /** Ends the agent's part until another message arrives. */
  awaitMessage(reason: string = ""): Failure | null {
    return this.remark("await_message", "reason", reason);
  }

  /** Answers the user and ends the task. */
  taskComplete(finish: string): Failure | null {
    return this.send("task_complete", Json.object().put("finish_message", finish));
  }

  /** The host's own words about MAIL and this agent: a summary, the help of tools. */
  help(summary: bool, tools: string[]): string | null {
    const args = Json.object().set("get_summary", Json.boolean(summary)).set("get_identity", Json.boolean(false))
      .set("get_tool_help", Json.strings(tools)).set("get_full_protocol", Json.boolean(false));
    const reply = this.tool("help", args);
    return reply === null ? null : reply.text;
  }

  // ---- Log, time, randomness, history

  /** Writes a line to the operator's log. A line the host refuses is lost. */
  log(message: string, level: string = "info", fields: Json = Json.null()): void {
    let line = Json.object().put("level", level).put("message", message);
    if (!fields.isNull) line = line.set("fields", fields);
    const before = host.failure;
    this.call(Op.LOG, line.text);
    host.failure = before;
  }

  /**
   * Reads the turn's clock, in nanoseconds since 1970. It stands still while the
   * agent computes and moves with calls and sleeps.
   */
  now(): i64 {
    return host.now();
  }

  /** Waits, and moves the turn's clock by exactly that span. */
  sleep(nanoseconds: i64): void {
    host.sleep(nanoseconds);
  }

  /** Asks the host for the real time, as 2026-03-01T09:30:00.120000+00:00. */
  wallTime(): string | null {
    const answer = this.call(Op.CLOCK_NOW, "");
    return answer === null ? null : answer.getString("time");
  }

  /** 32 hexadecimal digits that differ between turns and repeat when one runs again. */
  random(): string | null {
    const answer = this.call(Op.RANDOM, "");
    return answer === null ? null : answer.getString("value");
  }

  /** The newest entries, oldest first: at most the last 50 or 64 KiB. */
  history(): Entry[] {
    return this.tail.items().map<Entry>((v) => new Entry(v));
  }

  /** Reads entries with a seq above after, oldest first. */
  historyAfter(after: i64, limit: i32): Page | null {
    const answer = this.call(Op.HISTORY, Json.object().set("after", Json.integer(after)).set("limit", Json.integer(limit)).text);
    if (answer === null) return null;
    return new Page(answer.get("entries").items().map<Entry>((v) => new Entry(v)), answer.get("next").asInteger());
  }

  /** What the turn leaves behind; empty when nothing changed. */
  result(): string {
    let v = Json.object();
    if (this.changed) v = v.set("state", this.kept);
    if (this.notes.length > 0) v = v.set("notes", Json.strings(this.notes));
    return v.text == "{}" ? "" : v.text;
  }
}
