import assert from "node:assert/strict";
import { test } from "node:test";

import { action, load, Refusal, Stream, turn, World } from "./host.mjs";

const models = await load("build/models.wasm");

function play(body, world, answer) {
  const out = turn(models, { body, world, answer });
  assert.equal(out.error, null);
  return out;
}

test("models answer whole and in pieces", () => {
  const answer = {
    text: "Good day to you", reasoning: "be kind", tool_calls: [{ id: "1", name: "wave", arguments: "{}" }], finish: "tool_calls",
    usage: { input_tokens: 3, output_tokens: 4, micro_usd: 5 }, carry: { a: 1 },
  };
  const out = play("models", new World({ llm: () => answer }));
  const whole = 'Good day to you|be kind|1 wave {}|tool_calls|3 4 5|{"a":1}';
  assert.deepEqual(out.notes, [
    whole, "0", "be ", "kind", "Good ", "day ", "to ", "you", whole, "INVALID model", "INVALID messages",
  ]);
  assert.deepEqual(out.calls[0].request, {
    model: "m",
    messages: [
      { role: "assistant", content: "a", tool_calls: [{ id: "1", name: "wave", arguments: '{"hands":2}' }], carry: { k: "v" } },
      { role: "tool", content: "done", tool_call_id: "1" }, { role: "tool", content: "no", tool_call_id: "2", error: true },
    ],
    tools: [{ name: "wave", description: "", parameters: {} }], tool_choice: "required", response_schema: { type: "object" },
    max_tokens: 9, temperature: 1,
  });
  assert.deepEqual([out.calls[1].closed, out.calls.at(-1).closed], [false, true]);
  assert.deepEqual(play("models").notes.slice(0, 3), ["DENIED grant", "0", "DENIED grant"]);
});

test("streams that fail tell why", () => {
  const script = (stream) => play("streams", undefined, (op) => (op === 40 ? new Stream(stream) : undefined)).notes;
  const delta = '{"delta":"a"}\n';
  assert.deepEqual(script({ chunks: [delta, '{"delta":"\\u00', 'fc"}\n{"end":{}}'] }), ["a", "ü", "all: aü"]);
  assert.deepEqual(script({ chunks: [delta], error: "UPSTREAM" }), ["a", "UPSTREAM"]);
  assert.deepEqual(script({ error: "DENIED" }), ["DENIED"]);
  assert.deepEqual(script({ chunks: [delta] }), ["a", "INTERNAL"]);
  assert.deepEqual(script({ chunks: [`${delta}{"del`] }), ["a", "INTERNAL"]);
  assert.deepEqual(script({ chunks: ["delta\n"] }), ["INTERNAL"]);
  assert.deepEqual(script({}), ["INTERNAL"]);
});

test("actions are answered, and have a host of their own", () => {
  const actions = { price_of: ({ item }) => ({ item, cents: 250 }), say: () => "250" };
  assert.deepEqual(play("actions", new World({ actions })).notes, ['{"item":"tea","cents":250}', '"250"', "UNSUPPORTED action"]);
  actions.price_of = () => { throw new Refusal("UPSTREAM", "sold out", "failed"); };
  assert.equal(play("actions", new World({ actions })).notes[0], "UPSTREAM failed");
  const world = new World(), { answer } = action(models, "told", { n: 1 }, { world, params: { a: "b" } });
  assert.deepEqual(answer.slice(0, 3), [{ a: "b" }, { n: 1 }, "0".repeat(31) + "1"]);
  assert.equal(world.blobs.get(answer[3]).toString(), "told");
});

test("a turn measures", () => {
  const out = play("measures");
  assert.deepEqual(out.notes, ["INVALID metric", "NOT_FOUND id", "0 INVALID span"]);
  assert.deepEqual(out.metrics, [
    { name: "orders", value: 1, kind: "counter", labels: {} }, { name: "orders", value: 2.5, kind: "counter", labels: { item: "tea" } },
    { name: "level", value: -3, kind: "gauge", labels: {} },
  ]);
  assert.deepEqual(out.spans, [{ name: "look up", attributes: { a: "b", c: "d" }, error: "why", ended: true }]);
});

test("blobs are kept", () => {
  const world = new World();
  assert.deepEqual(play("blobs", world).notes, ["0,255,0", "NOT_FOUND blob"]);
  assert.deepEqual([...world.blobs.values()], [Buffer.from([0, 255, 0])]);
  const visit = world.visit("t", false);
  const put = (bytes) => {
    try {
      return visit.reply(81, { data: bytes?.toString("base64") }, world.now).sha256.length;
    } catch (e) {
      return `${e.code} ${e.reason}`;
    }
  };
  assert.deepEqual([put(), put(Buffer.alloc(3000001)), put(Buffer.alloc(0))], ["INVALID data", "LIMIT size", 64]);
  for (let i = 0; i < 5; i++) put(Buffer.alloc(3000000, i));
  assert.equal(put(Buffer.alloc(3000000)), "LIMIT bytes");
  for (let i = 6; i < 64; i++) put(Buffer.from([i]));
  assert.equal(put(Buffer.from("x")), "LIMIT blobs");
  assert.equal(world.visit("t", false).reply(80, { sha256: world.keep("tea") }, world.now).data, "dGVh");
});

/** Asks for a price first, and then answers with what it was told last. */
function mind({ messages }) {
  const last = messages.at(-1), call = (text) => ({ tool_calls: [{ id: "1", name: "price_of", arguments: text }] });
  if (last.role === "tool") return { text: `It is ${last.content}` };
  if (last.content === "hello") return { text: "Good day to you." };
  return call({ "odd": "{tea", "gold?": '{"item":"gold"}' }[last.content] ?? '{"item":"tea"}');
}

function price({ item }) {
  if (item !== "tea") throw new Refusal("UPSTREAM", "no price");
  return 250;
}

test("the example advises", async () => {
  const clerk = await load("build/clerk.wasm"), world = new World({ llm: mind, actions: { price_of: price } });
  const says = (body) => turn(clerk, { body, world }).mail[0].finish_message;
  assert.deepEqual(["hello", "tea?", "gold?", "odd"].map(says), [
    "Good day to you.", "It is 250", "It is no price", "It is the arguments are no JSON",
  ]);
  const out = turn(clerk, { body: "hello", world });
  assert.deepEqual(out.emits.map((e) => e.chunk), ["Good ", "day ", "to ", "you."]);
  assert.deepEqual([out.metrics[0].name, out.spans[0].ended], ["questions", true]);
  assert.equal(action(clerk, "advise", { question: "tea?" }, { world }).answer, "It is 250");
  assert.equal(action(clerk, "advise", { question: "tea?" }).error.code, "DENIED");
  assert.equal(turn(clerk, { body: "tea?" }).error.code, "DENIED");
  const endless = new World({ llm: () => ({ tool_calls: [{ id: "1", name: "x", arguments: "{}" }] }) });
  assert.equal(turn(clerk, { body: "tea?", world: endless }).mail[0].finish_message, "I cannot tell.");
});
