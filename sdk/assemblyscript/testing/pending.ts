// An agent for the test of several ops at once: its message says which of these it
// does, and its notes what came of it.

import * as skep from "../assembly/index";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

function ask(t: skep.Turn, name: string): skep.Pending {
  return t.submit(skep.Op.HTTP_FETCH, skep.Json.string(name).text);
}

function said(f: skep.Failure | null): string {
  return f === null ? "ok" : `${skep.Code.name(f.code)} ${f.op}`;
}

function beside(t: skep.Turn): void {
  const asks = [ask(t, "slow"), ask(t, "fast"), ask(t, "late"), ask(t, "no")];
  for (let i = t.waitAny(asks); i >= 0; i = t.waitAny(asks)) {
    const text = asks[i].text();
    t.note(text === null ? said(asks[i].failure) : text);
    if (asks[i].read() !== null) t.note("something stands behind an answer");
    if (text === null && asks[i].failure === null) t.note("an error comes only once");
  }
}

function timeouts(t: skep.Turn): void {
  const slow = ask(t, "slow"), fast = ask(t, "fast");
  t.note(`${t.waitAny([slow, fast], 999)} ${said(t.failure)}`);
  t.note(`${t.waitAny([slow, fast], 1)} ${said(t.failure)}`);
  t.note(said(t.waitAll([slow, fast], 1999)));
  t.note(said(t.waitAll([slow, fast], 1)));
  fast.close();
  fast.close();
  t.note(`${t.waitAny([fast])} ${said(t.failure)}`);
  t.note(said(t.waitAll([])));
  const many: skep.Pending[] = [];
  for (let i = 0; i < 64; i++) many.push(ask(t, "slow"));
  const at = t.waitAny(many, 0);
  const text = many[at].json();
  t.note(`${at} ${text === null} ${said(many[at].failure)}`);
}

function streams(t: skep.Turn): void {
  const lines = ask(t, "lines");
  for (let piece = lines.read(); piece !== null; piece = lines.read()) t.note(String.UTF8.decode(piece));
  t.note(said(lines.failure));
  const bad = ask(t, "lines");
  t.note(`${bad.json() === null} ${said(bad.failure)}`);
}

function off(t: skep.Turn): void {
  const asks = [ask(t, "off"), ask(t, "slow")], fast = ask(t, "fast");
  t.note(`${t.waitAny(asks)} ${said(t.failure)}`);
  const piece = fast.read();
  t.note(piece === null ? "nothing" : String.UTF8.decode(piece));
  asks.push(fast);
  asks.push(ask(t, "fast"));
  for (let i = 0; i < asks.length; i++) t.note(`${asks[i].text() === null} ${said(asks[i].failure)}`);
  t.note(`${t.emitNote("x")} ${said(t.failure)}`);
  t.log("still here");
}

function emits(t: skep.Turn): void {
  t.note(`${t.emitChunk("a")} ${t.emitChunk("busy")} ${t.emitChunk("closed")}`);
  t.emitProgress("half", 0.5);
  t.emitProgress("begun");
  t.emitNote("n");
}

class Does extends skep.Agent {
  turn(t: skep.Turn): skep.Failure | null {
    const what = t.message.body;
    if (what == "beside") beside(t);
    else if (what == "timeouts") timeouts(t);
    else if (what == "streams") streams(t);
    else if (what == "off") off(t);
    else if (what == "emits") emits(t);
    return null;
  }
}

skep.run(new skep.Descriptor("pending", "1.0.0"), new Does());
