// The conformance guest of the AssemblyScript SDK: spec/conformance/GUEST.md says
// what it does.

import * as skep from "../assembly/index";
import { boundary, digest } from "./boundary";
import { answered, question } from "./chat";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

let turns = 0;
let warmed = 0;

class Command {
  constructor(
    public name: string,
    public args: skep.Json,
  ) {}
}

class Conform extends skep.Agent {
  warm(): skep.Failure | null {
    warmed++;
    return null;
  }

  action(call: skep.ActionCall): skep.Failure | null {
    call.answer = skep.Json.object().put("action", call.name).set("args", call.args);
    if (call.name != "run") return null;
    const list: string[] = [], failed = notes(call.host, call.args.get("commands"), list);
    call.answer = skep.Json.strings(list);
    return failed;
  }

  turn(t: skep.Turn): skep.Failure | null {
    turns++;
    const list: string[] = [], failed = notes(t, skep.Json.parse(t.message.body), list);
    for (let i = 0; i < list.length; i++) t.note(list[i]);
    return failed;
  }
}

const about = new skep.Descriptor("conform", "1.0.0");
about.description = "Does what the message says, the same in every language.";
about.agents.push(new skep.AgentInfo("conform", "Send it a command list."));
about.actions.push(new skep.ActionInfo("echo", "Answers with what it was given.", skep.Json.object().put("type", "object")));
about.actions.push(new skep.ActionInfo("run", "Answers with the notes of a command list.", skep.Json.object().put("type", "object")));
skep.run(about, new Conform());

/** Runs a command list. */
function notes(t: skep.Turn, body: skep.Json | null, to: string[]): skep.Failure | null {
  const list = parse(body);
  if (list === null) return new skep.Failure(skep.Code.INVALID, "no command list");
  for (let i = 0; i < list.length; i++) {
    const name = list[i].name, args = list[i].args;
    if (name == "fail") return new skep.Failure(<i32>args.get("code").asInteger(), args.getString("message"));
    const note = run(t, name, args);
    if (name == "must" && t.failure !== null) return t.failure;
    to.push(note);
  }
  return null;
}

/** Takes the command list apart. */
function parse(list: skep.Json | null): Command[] | null {
  if (list === null || !list.isArray) return null;
  const pairs = list.items(), commands: Command[] = [];
  for (let i = 0; i < pairs.length; i++) {
    const pair = pairs[i].items();
    if (pair.length != 2 || !pair[0].isString || !pair[1].isObject) return null;
    commands.push(new Command(pair[0].asString(), pair[1]));
  }
  return commands;
}

/** What a note says of an error. */
function refusal(f: skep.Failure): string {
  const reason = f.reason == "" ? "-" : f.reason;
  return `ERROR ${skep.Code.name(f.code)} ${f.op} ${reason} ${f.retryAfterMs}: ${f.message}`;
}

/** ok, or why not. */
function said(f: skep.Failure | null): string {
  return f === null ? "ok" : refusal(f);
}

/** A text, or why there is none. */
function text(t: skep.Turn, s: string | null): string {
  return s === null ? said(t.failure) : s;
}

/** Does one command. */
function run(t: skep.Turn, name: string, args: skep.Json): string {
  if (name == "echo") return args.getString("text");
  if (name == "look") return look(t).text;
  if (name == "params") return t.params.text;
  if (name == "state") return t.state.text;
  if (name == "count") return `${turns} ${warmed}`;
  if (name == "set") {
    t.state = args.get("value");
    return "ok";
  }
  if (name == "abort") skep.giveUp(<i32>args.get("code").asInteger(), args.getString("message"));
  return host(t, name, args);
}

/** Does the commands that ask the host for something. */
function host(t: skep.Turn, name: string, args: skep.Json): string {
  if (name == "call" || name == "must") return call(t, args);
  if (name == "random") return text(t, t.random());
  if (name == "wall") return text(t, t.wallTime());
  if (name == "clock") return t.now().toString();
  if (name == "sleep") {
    const before = t.now();
    t.sleep(args.get("ms").asInteger() * 1000000);
    return (t.now() - before).toString();
  }
  if (name == "log") {
    t.log(args.getString("message"), args.getString("level"));
    return "ok";
  }
  if (name == "tail") return [t.historyCount.toString()].concat(lines(t.history())).join("; ");
  if (name == "history") {
    const page = t.historyAfter(args.get("after").asInteger(), <i32>args.get("limit").asInteger());
    return page === null ? said(t.failure) : lines(page.entries).concat([`next ${page.next}`]).join("; ");
  }
  return asks(t, name, args);
}

/** Does the commands that ask actions and models, and those that show something. */
function asks(t: skep.Turn, name: string, args: skep.Json): string {
  const shows = args.getString("text");
  if (name == "action") {
    const answer = t.action(args.getString("name"), args.get("args"));
    return answer === null ? said(t.failure) : answer.text;
  }
  if (name == "chat") return chat(t, args);
  if (name == "chat_stream") return chatStream(t, args);
  if (name == "emit_progress") {
    return emitted(t, args.has("fraction") ? t.emitProgress(shows, args.get("fraction").asNumber()) : t.emitProgress(shows));
  }
  if (name == "emit_chunk") return emitted(t, t.emitChunk(shows));
  if (name == "emit_note") return emitted(t, t.emitNote(shows));
  return keeps(t, name, args);
}

/** Does the commands that measure, and those that keep bytes. */
function keeps(t: skep.Turn, name: string, args: skep.Json): string {
  const called = args.getString("name"), attributes = args.get("attributes");
  if (name == "metric") {
    const value = args.get("value").asNumber(), labels = args.get("labels");
    return said(args.getString("kind") == "gauge" ? t.gauge(called, value, labels) : t.count(called, value, labels));
  }
  if (name == "span") {
    const id = t.span(called, attributes);
    return id == 0 ? said(t.failure) : id.toString();
  }
  if (name == "end_span") return said(t.endSpan(args.get("id").asInteger(), args.getString("error"), attributes));
  if (name == "blob_put") return text(t, t.blobPut(String.UTF8.encode(args.getString("text"))));
  if (name == "blob_get") {
    const bytes = t.blobGet(args.getString("sha256"));
    return bytes === null ? said(t.failure) : `${bytes.byteLength} ${digest(bytes)}`;
  }
  return mail(t, name, args);
}

function emitted(t: skep.Turn, status: i32): string {
  return status < 0 ? said(t.failure) : status == skep.Emitted.OK ? "ok" : status == skep.Emitted.BUSY ? "busy" : "closed";
}

function call(t: skep.Turn, args: skep.Json): string {
  const request = args.has("request") ? args.get("request").text : "";
  const answer = t.call(<i32>args.get("op").asInteger(), request);
  return answer === null ? said(t.failure) : answer.text;
}

function chat(t: skep.Turn, args: skep.Json): string {
  const answer = t.chat(question(args));
  return answer === null ? said(t.failure) : answered(answer).text;
}

function chatStream(t: skep.Turn, args: skep.Json): string {
  const stream = t.chatStream(question(args)), parts: string[] = [];
  while (stream.next()) parts.push(stream.reasoning != "" ? "reasoning " + stream.reasoning : "delta " + stream.delta);
  const answer = stream.answer;
  return parts.concat([answer === null ? said(stream.failure) : answered(answer).text]).join("; ");
}

/** Does the commands that are MAIL's tools. */
function mail(t: skep.Turn, name: string, args: skep.Json): string {
  const target = args.getString("target"), subject = args.getString("subject"), body = args.getString("body");
  if (name == "ask") {
    const id = t.ask(target, subject, body);
    return id === null ? said(t.failure) : id == "" ? "-" : id;
  }
  if (name == "send_request") return said(t.sendRequest(target, subject, body));
  if (name == "send_response") return said(t.sendResponse(target, subject, body));
  if (name == "send_interrupt") return said(t.sendInterrupt(target, subject, body));
  if (name == "send_broadcast") return said(t.sendBroadcast(args.get("targets").asStrings(), subject, body));
  if (name == "acknowledge_broadcast") return said(t.acknowledgeBroadcast(args.getString("note")));
  if (name == "ignore_broadcast") return said(t.ignoreBroadcast(args.getString("reason")));
  if (name == "await_message") return said(t.awaitMessage(args.getString("reason")));
  if (name == "task_complete") return said(t.taskComplete(args.getString("finish_message")));
  if (name == "help") return text(t, t.help(true, ["help"]));
  if (name == "tool") {
    const reply = t.tool(args.getString("name"), args.get("args"));
    if (reply === null) return said(t.failure);
    return (reply.id == "" ? "-" : reply.id) + " " + reply.text;
  }
  const note = boundary(name, args);
  return note === null ? `ERROR UNSUPPORTED ${name} - 0: no such command` : note;
}

function address(a: skep.Address): string {
  return a.kind + ":" + a.name;
}

function look(t: skep.Turn): skep.Json {
  const m = t.message;
  return skep.Json.object()
    .set("turn", skep.Json.integer(t.number))
    .set("priority", skep.Json.integer(t.priority))
    .put("task", t.task.id)
    .put("owner", t.task.owner)
    .set("contributors", skep.Json.strings(t.task.contributors))
    .set("completed", skep.Json.boolean(t.task.completed))
    .put("agent", t.agent.name)
    .put("swarm", t.agent.swarm)
    .put("instance", t.agent.instance)
    .set("targets", skep.Json.strings(t.agent.commTargets))
    .set("can_complete", skep.Json.boolean(t.agent.canComplete))
    .set("tools", skep.Json.strings(t.tools.map<string>((tool) => tool.name)))
    .put("id", m.id)
    .put("type", m.type)
    .put("ref", m.refId)
    .put("from", address(m.sender))
    .set("to", skep.Json.strings(m.recipients.map<string>((a) => address(a))))
    .put("subject", m.subject)
    .put("body", m.body)
    .set("deadline_ms", skep.Json.integer(t.deadlineMs))
    .set("host_calls", skep.Json.integer(t.budget.hostCalls))
    .set("output_bytes", skep.Json.integer(t.budget.outputBytes))
    .put("trace", t.trace);
}

function line(e: skep.Entry): string {
  const m = e.message;
  let what = `note ${e.text}`;
  if (m !== null) what = `in ${m.type} ${m.subject}`;
  else if (e.kind == "call") what = `call ${e.name} ${e.args.text}`;
  else if (e.kind == "result") what = `result ${e.ok ? "ok" : "error"} ${e.text}`;
  return `${e.seq} ${e.turn} ${what}`;
}

function lines(entries: skep.Entry[]): string[] {
  return entries.map<string>((e) => line(e));
}
