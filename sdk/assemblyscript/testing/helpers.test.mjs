import assert from "node:assert/strict";
import { test } from "node:test";

import { load, Refusal, turn, World } from "./host.mjs";

const helpers = await load("build/helpers.wasm");

function play(body, world, more = {}) {
  const out = turn(helpers, { body, world, ...more });
  assert.equal(out.error, null);
  return { ...out, said: out.calls.map((c) => JSON.stringify(c.request)) };
}

test("values are the turn's until it ends", () => {
  const world = new World({ kv: "agent" });
  const out = play("values", world);
  assert.deepEqual(out.notes, [
    "none NOT_FOUND key", "ü", 'a"b next a"b', 'a"b,c', "false CONFLICT staged", "true false true ok", "DENIED grant",
  ]);
  assert.deepEqual(out.said.slice(0, 4), [
    '{"key":"a","scope":"task"}', '{"key":"a\\"b","value":"ü","scope":"task"}', '{"key":"a\\"b","scope":"task"}',
    '{"key":"c","value":"","scope":"task"}',
  ]);
  assert.equal(out.said[5], '{"prefix":"","after":"","limit":1,"scope":"task"}');
  assert.equal(out.said[8], '{"key":"c","expect":null,"value":"1","scope":"task"}');
  assert.deepEqual([...world.values("task")], [['a"b', "ü"]]);
});

test("timers fire", () => {
  const world = new World();
  assert.equal(world.fire(), null);
  const out = play("timers", world);
  assert.deepEqual(out.notes, ["ok", "NOT_FOUND timer", "none INVALID after", "false"]);
  assert.equal(out.said[0], '{"after":90000,"body":"x"}');
  const before = world.now, next = world.fire();
  assert.equal(world.now - before, 60000000000n);
  assert.deepEqual(play(next.body, world, next).notes, ["true tea"]);
  assert.equal(world.fire(), null);
});

test("requests and answers have bodies of text and of bytes", () => {
  const http = ({ method, url, headers, body }) => {
    if (url === "http://off/") throw new Refusal("UNAVAILABLE", "no answer", "connect");
    return { status: method === "PUT" ? 404 : 200, headers: { "X-A": headers.A ?? "" }, body };
  };
  const out = play("web", new World({ secrets: ["key"], http }));
  assert.deepEqual(out.notes, [
    '404 {"x-a":"b"} ', '404 {"x-a":"b"} 0', '404 {"x-a":"b"} 0,255', '404 {"x-a":"b"} 0,255,251', '404 {"x-a":"b"} 0,255,251,34',
    "<é> 4", "UNAVAILABLE connect", "true false",
  ]);
  assert.equal(out.said[2], '{"method":"PUT","url":"http://a/","headers":{"A":"b"},"body_base64":"AP8="}');
  assert.equal(out.said[5], '{"method":"POST","url":"http://a/","body":"<é>"}');
  assert.equal(out.said[6], '{"method":"GET","url":"http://off/"}');
  assert.equal(play("web").notes[0], "DENIED grant");
});

test("capabilities have constraints", () => {
  assert.deepEqual(play("capabilities").notes, [
    '{"id":"translation","version":"1.0"}', '{"id":"translation","version":"1.0","constraints":{"language":"en"}}',
  ]);
});

test("a world has the limits of a host", () => {
  const world = new World({ kv: "task" });
  const values = world.values("task");
  const ask = (op, request) => {
    try {
      return world.visit("5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90", false).reply(op, request, world.now);
    } catch (e) {
      return `${e.code} ${e.reason}`;
    }
  };
  const put = (key, value) => ask(21, { key, value, scope: "task" });
  for (let i = 0; i < 63; i++) values.set(`${i}`, "x".repeat(65536));
  assert.deepEqual(
    [put("", ""), put("k".repeat(513), ""), put("a", "x".repeat(65537)), put("a", "x".repeat(65536)), put("a"), put("a", 1)],
    ["INVALID key", "LIMIT key", "LIMIT value", "LIMIT bytes", "INVALID value", "INVALID value"],
  );
  assert.deepEqual(
    [ask(20, { Key: "a" }), ask(20, "a"), ask(20, { key: "a", scope: "swarm" }), ask(23, { limit: -1, scope: "task" }), ask(99, {})],
    ["INVALID json", "INVALID json", "INVALID scope", "INVALID range", undefined],
  );
  assert.deepEqual(
    [ask(60, { after: "1s" }), ask(60, { after: 31 * 86400000 }), ask(60, { after: 1, body: "x".repeat(262145) })],
    ["INVALID after", "INVALID after", "LIMIT body"],
  );
  assert.deepEqual(
    [ask(30, { method: "get", url: "http://a" }), ask(30, { method: "GET", url: "a" }), ask(30, { method: "GET", url: "http://a", body: "x".repeat(1 << 21) })],
    ["INVALID request", "INVALID request", "LIMIT size"],
  );
  for (let i = 0; i < 1000; i++) values.set(`${i}`, "");
  assert.deepEqual([put("999", "x"), put("1000", "")], [{}, "LIMIT keys"]);
  const visit = world.visit("t", false);
  for (let i = 0; i < 16; i++) visit.reply(60, { after: 1 }, world.now);
  assert.throws(() => visit.reply(60, { after: 1 }, world.now), { code: "LIMIT", reason: "timers" });
});

test("the example reminds", async () => {
  const reminder = await load("build/reminder.wasm"), world = new World({ kv: "agent" });
  const say = (input) => turn(reminder, { world, ...input }).mail[0];
  assert.equal(say({ task: "tea", body: "in 10m drink tea" }).tool, "await_message");
  assert.equal(say({ task: "other", body: "list" }).finish_message, "Pending: drink tea");
  assert.equal(say(world.fire()).finish_message, "It is time: drink tea");
  assert.equal(say({ task: "other", body: "list" }).finish_message, "Pending: ");
  assert.equal(say({ body: "in 10 tea" }).finish_message, 'I know "in 10m tea" and "list".');
  assert.equal(turn(reminder, { body: "list" }).error.code, "DENIED");
});
