import assert from "node:assert/strict";
import { test } from "node:test";

import { load, Refusal, Stream, turn } from "./host.mjs";

const script = {
  slow: { after: 3000, chunks: ['"slow"'] },
  fast: { after: 1000, chunks: ['"fa', 'st"'] },
  late: { after: 2000, chunks: ["{"], error: "UPSTREAM" },
  lines: { chunks: ["one\ntw", "", "o"] },
  off: { after: 1000, error: "CANCELLED" },
};

function answer(op, request) {
  if (op === 12) return ["busy", "closed"].includes(request.chunk) ? { status: request.chunk } : undefined;
  if (op !== 30) return undefined;
  if (script[request]) return new Stream(script[request]);
  throw new Refusal("DENIED", "no");
}

async function play(body) {
  const out = turn(await load("build/pending.wasm"), { body, answer });
  assert.equal(out.error, null);
  return out;
}

test("ops beside each other come as they are ready", async () => {
  const out = await play("beside");
  assert.deepEqual(out.notes, ["DENIED ", '"fast"', "UPSTREAM ", '"slow"']);
  assert.deepEqual(out.calls.map((c) => c.closed), [false, false, false, false]);
});

test("waits have timeouts", async () => {
  const out = await play("timeouts");
  const notes = ["-1 DEADLINE ", "1 ok", "DEADLINE ", "ok", "-1 ok", "ok", "63 true LIMIT "];
  assert.deepEqual(out.notes, notes);
  assert.equal(out.calls[0].closed, false);
  assert.equal(out.calls[1].closed, true);
});

test("an answer is read as it comes", async () => {
  const out = await play("streams");
  assert.deepEqual(out.notes, ["one\ntw", "o", "ok", "true INTERNAL "]);
});

test("a turn that is called off may still end well", async () => {
  const out = await play("off");
  const refused = "true CANCELLED ";
  assert.deepEqual(out.notes, ["-1 CANCELLED ", '"fa', refused, refused, refused, refused, "-1 CANCELLED "]);
  assert.deepEqual([out.logs, out.emits], [["still here"], []]);
});

test("a turn shows what it does", async () => {
  const out = await play("emits");
  assert.deepEqual(out.notes, ["0 1 2"]);
  const shown = [{ chunk: "a" }, { progress: { text: "half", fraction: 0.5 } }, { progress: { text: "begun" } }, { note: "n" }];
  assert.deepEqual(out.emits, shown);
});

/** Pages that come late, never in time, and not at all. */
function web(op, request) {
  if (op !== 30) return undefined;
  const pages = {
    slow: { after: 2000, chunks: ['{"status":200,', '"body":"hello"}'] },
    stuck: { after: 3600000 },
    off: { after: 1000, error: "CANCELLED" },
  };
  if (pages[request.url]) return new Stream(pages[request.url]);
  throw new Refusal("DENIED", "not granted");
}

test("the example gathers pages", async () => {
  const gather = await load("build/gather.wasm");
  const out = turn(gather, { body: "slow stuck no", answer: web });
  assert.equal(out.mail[0].finish_message, "slow: 200, 5 bytes\nstuck: no answer\nno: DENIED: not granted");
  assert.deepEqual(out.emits.map((e) => e.progress), [{ text: "no", fraction: 1 / 3 }, { text: "slow", fraction: 2 / 3 }]);
  const off = turn(gather, { body: "slow off", answer: web });
  assert.equal(off.error.code, "CANCELLED");
  assert.deepEqual(off.mail, []);
});
