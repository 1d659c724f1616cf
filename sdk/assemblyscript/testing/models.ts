// An agent for the test of actions, models, blobs and measures: its message says which of
// these it does, and its notes what came of it.

import * as skep from "../assembly/index";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

function said(t: skep.Turn): string {
  const f = t.failure;
  return f === null ? "ok" : `${skep.Code.name(f.code)} ${f.reason}`;
}

function question(): skep.ChatRequest {
  const call = new skep.ChatCall("1", "wave", "{\"hands\":2}"), before = new skep.ChatMessage("assistant", "a");
  before.toolCalls.push(call);
  before.carry = skep.Json.object().put("k", "v");
  const r = new skep.ChatRequest("m", [before, skep.ChatMessage.result("1", "done"), skep.ChatMessage.result("2", "no", true)]);
  r.tools.push(skep.Tool.of("wave", "", skep.Json.object()));
  r.toolChoice = "required";
  r.schema = skep.Json.object().put("type", "object");
  r.maxTokens = 9;
  r.temperature = 1;
  return r;
}

function answered(a: skep.ChatAnswer): string {
  const calls = a.toolCalls.map<string>((c) => `${c.id} ${c.name} ${c.args}`).join(",");
  return `${a.text}|${a.reasoning}|${calls}|${a.finish}|${a.inputTokens} ${a.outputTokens} ${a.microUsd}|${a.carry.text}`;
}

function models(t: skep.Turn): void {
  const answer = t.chat(question());
  t.note(answer === null ? said(t) : answered(answer));
  const stream = t.chatStream(question());
  t.note(`${t.waitAny([stream.op])}`);
  while (stream.next()) t.note(stream.delta + stream.reasoning);
  const whole = stream.answer;
  t.note(whole === null ? said(t) : answered(whole));
  t.note(t.chat(new skep.ChatRequest("", [])) === null ? said(t) : "answered");
  t.note(t.chat(new skep.ChatRequest("m", [])) === null ? said(t) : "answered");
  t.chatStream(question()).op.close();
}

function streams(t: skep.Turn): void {
  const stream = t.chatStream(new skep.ChatRequest("m", [new skep.ChatMessage("user", "x")]));
  while (stream.next()) t.note(stream.delta);
  const answer = stream.answer, f = stream.failure;
  t.note(answer !== null ? `all: ${answer.text}` : f !== null ? skep.Code.name(f.code) : "nothing");
}

function actions(t: skep.Turn): void {
  const answer = t.action("price_of", skep.Json.object().put("item", "tea"));
  t.note(answer === null ? said(t) : answer.text);
  const text = t.action("say", skep.Json.object());
  t.note(text === null ? said(t) : text.text);
  t.note(t.action("none", skep.Json.object()) === null ? said(t) : "answered");
}

function measures(t: skep.Turn): void {
  t.count("orders");
  t.count("orders", 2.5, skep.Json.object().put("item", "tea"));
  t.gauge("level", -3);
  t.note(t.count("orders", -1) === null ? "counted" : said(t));
  const id = t.span("look up", skep.Json.object().put("a", "b"));
  t.endSpan(id, "why", skep.Json.object().put("c", "d"));
  t.note(t.endSpan(id) === null ? "ended" : said(t));
  t.note(`${t.span("")} ${said(t)}`);
}

function blobs(t: skep.Turn): void {
  const bytes = new Uint8Array(3);
  bytes[1] = 0xff;
  const address = t.blobPut(bytes.buffer), back = t.blobGet(address === null ? "" : address);
  t.note(back === null ? said(t) : Uint8Array.wrap(back).join(","));
  t.note(t.blobGet("none") === null ? said(t) : "there");
}

class Does extends skep.Agent {
  turn(t: skep.Turn): skep.Failure | null {
    const what = t.message.body;
    if (what == "models") models(t);
    else if (what == "streams") streams(t);
    else if (what == "actions") actions(t);
    else if (what == "measures") measures(t);
    else if (what == "blobs") blobs(t);
    return null;
  }

  action(call: skep.ActionCall): skep.Failure | null {
    const id = call.host.random();
    const address = call.host.blobPut(String.UTF8.encode(call.name));
    call.answer = skep.Json.array([call.host.params, call.args, skep.Json.string(id === null ? "" : id), skep.Json.string(address === null ? "" : address)]);
    return null;
  }
}

skep.run(new skep.Descriptor("models", "1.0.0"), new Does());
