// An agent for the test of the typed ops: its message says which of these it does, and
// its notes what came of it.

import * as skep from "../assembly/index";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

function said(t: skep.Turn): string {
  const f = t.failure;
  return f === null ? "ok" : `${skep.Code.name(f.code)} ${f.reason}`;
}

function text(s: string | null): string {
  return s === null ? "none" : s;
}

function bytes(size: i32): ArrayBuffer {
  const list: u8[] = [0, 0xff, 0xfb, 0x22], data = new Uint8Array(size);
  for (let i = 0; i < size; i++) data[i] = list[i];
  return data.buffer;
}

function values(t: skep.Turn): void {
  const kv = t.kv(skep.Scope.TASK);
  t.note(`${text(kv.get("a"))} ${said(t)}`);
  kv.put("a\"b", "ü");
  t.note(text(kv.get("a\"b")));
  kv.put("c", "");
  kv.delete("none");
  const page = kv.list("", "", 1);
  t.note(page === null ? said(t) : `${page.keys.join(",")} next ${page.next}`);
  const keys = kv.keys("");
  t.note(keys === null ? said(t) : keys.join(","));
  kv.delete("c");
  t.note(`${kv.cas("c", null, "1")} ${said(t)}`);
  t.note(`${kv.cas("n", null, "1")} ${kv.cas("n", null, "2")} ${kv.cas("n", "1", null)} ${said(t)}`);
  t.note(t.kv(skep.Scope.INSTANCE).keys("") === null ? said(t) : "granted");
}

function timers(t: skep.Turn): void {
  const id = t.setTimer(90000, "x");
  t.cancelTimer(text(id));
  t.note(said(t));
  t.cancelTimer(text(id));
  t.note(said(t));
  t.note(`${text(t.setTimer(0, "x"))} ${said(t)}`);
  t.setTimer(60000, "tea");
  t.note(`${t.message.fromTimer}`);
}

function web(t: skep.Turn): void {
  const r = new skep.FetchRequest("http://a/");
  r.method = "PUT";
  r.headers = skep.Json.object().put("A", "b");
  for (let size = 0; size < 5; size++) {
    r.bytes = bytes(size);
    const page = t.fetch(r);
    t.note(page === null ? said(t) : `${page.status} ${page.headers.text} ${Uint8Array.wrap(page.bytes()).join(",")}`);
  }
  const post = new skep.FetchRequest("http://a/");
  post.method = "POST";
  post.body = "<é>";
  const page = t.fetch(post);
  t.note(page === null ? said(t) : `${page.body} ${page.bytes().byteLength}`);
  t.note(t.fetch(new skep.FetchRequest("http://off/")) === null ? said(t) : "answered");
  t.note(`${t.secretExists("key")} ${t.secretExists("other")}`);
}

function capabilities(t: skep.Turn): void {
  const c = new skep.Capability("translation", "1.0");
  t.note(c.encode().text);
  c.constraints = skep.Json.object().put("language", "en");
  t.note(c.encode().text);
}

class Does extends skep.Agent {
  turn(t: skep.Turn): skep.Failure | null {
    const what = t.message.body;
    if (what == "values") values(t);
    else if (what == "timers") timers(t);
    else if (what == "web") web(t);
    else if (what == "capabilities") capabilities(t);
    else t.note(`${t.message.fromTimer} ${what}`);
    return null;
  }
}

skep.run(new skep.Descriptor("helpers", "1.0.0"), new Does());
