// The conformance guest of the AssemblyScript SDK: spec/conformance/GUEST.md says
// what it does.

import * as skep from "../assembly/index";
import { boundary } from "./boundary";
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
    return null;
  }

  turn(t: skep.Turn): skep.Failure | null {
    turns++;
    const list = parse(t.message.body);
    if (list === null) return new skep.Failure(skep.Code.INVALID, "no command list");
    for (let i = 0; i < list.length; i++) {
      const name = list[i].name, args = list[i].args;
      if (name == "fail") return new skep.Failure(<i32>args.get("code").asInteger(), args.getString("message"));
      const note = run(t, name, args);
      if (name == "must" && t.failure !== null) return t.failure;
      t.note(note);
    }
    return null;
  }
}

const about = new skep.Descriptor("conform", "1.0.0");
about.description = "Does what the message says, the same in every language.";
about.agents.push(new skep.AgentInfo("conform", "Send it a command list."));
about.actions.push(new skep.ActionInfo("echo", "Answers with what it was given.", skep.Json.object().put("type", "object")));
skep.run(about, new Conform());

/** Takes the command list apart. */
function parse(body: string): Command[] | null {
  const list = skep.Json.parse(body);
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
  return mail(t, name, args);
}

function call(t: skep.Turn, args: skep.Json): string {
  const request = args.has("request") ? args.get("request").text : "";
  const answer = t.call(<i32>args.get("op").asInteger(), request);
  return answer === null ? said(t.failure) : answer.text;
}

/** Does the commands that are MAIL's tools. */
function mail(t: skep.Turn, name: string, args: skep.Json): string {
  const target = args.getString("target"), subject = args.getString("subject"), body = args.getString("body");
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
