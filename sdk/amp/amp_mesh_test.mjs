// Tests of amp_mesh.mts without a mesh: node --test amp_mesh_test.mjs, beside the compiled
// amp_mesh.mjs. SIGNATURES is the file spec/gateways/amp/signatures.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { Agent, AMPError, canonical, Client, decode, encode, Membership, sign, verify } from "./amp_mesh.mjs";

function message(payload, changed = {}) {
  return { id: "m-1", type: "request", timestamp: new Date().toISOString(), source: {}, destination: {}, headers: {}, payload, ...changed };
}

async function ask(agent, payload, changed = {}, shown = "secret", key = "") {
  const { status, body } = await agent.answer(await encode(message(payload, changed), key), shown);
  return { status, ...(body && JSON.parse(body).message) };
}

function echo(options = {}) {
  const agent = new Agent({ id: "agent-7", token: "secret", ...options });
  agent.calls = [];
  agent.capability("echo", (parameters) => (agent.calls.push(parameters), parameters));
  return agent;
}

/** A promise, and what fulfils it. */
function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { opened, open };
}

test("canonical forms", () => {
  assert.equal(canonical({ "\ue000": 1e21, "\u{1f600}": [true, null], "a\n": "é\x7f", 1: -0 }), '{"1":0,"a\\n":"é\x7f","\u{1f600}":[true,null],"\ue000":1e+21}');
  assert.throws(() => canonical(JSON.parse("1e999")), RangeError);
});

test("signatures of others", async () => {
  const vectors = JSON.parse(readFileSync(process.env.SIGNATURES, "utf8")).filter(({ by }) => by.includes("canonicalize"));
  let tried = 0;
  for (const { message: { message }, key } of vectors) {
    const want = message.headers.signature.value;
    if (want.length !== 44) continue; // hex
    await sign(message, key);
    assert.equal(message.headers.signature.value, want);
    await assert.rejects(verify(message, key), /timestamp/);
    tried++;
  }
  assert.ok(tried > 0);
});

test("what is no message", async () => {
  const of = (message) => JSON.stringify({ protocol: "AMP/1.0", message });
  const deep = '{"protocol":"AMP/1.0","message":{"type":"event","payload":{"x":' + "[".repeat(100000);
  for (const text of ["", "[]", '{"protocol":1}', of({ type: "x", payload: {} }), of({ type: "event", payload: {}, id: [] }), of({ type: "event", payload: [] }),
    '{"protocol":"AMP/2.0","message":{"type":"event","payload":{}}}', '{"protocol":"XYZ/1.0","message":{"type":"event","payload":{}}}', deep]) {
    await assert.rejects(decode(text), { code: "INVALID_SCHEMA" }, text.slice(0, 100));
  }
  const nested = { type: "request", id: "m-1", payload: { capability: "echo", x: 0 } };
  for (const odd of ["1e999", "[".repeat(100000) + "]".repeat(100000)]) {
    const { status, body } = await echo().answer(of(nested).replace('"x":0', '"x":' + odd), "secret");
    assert.equal(status, 400, body);
  }
});

test("a repeat gets the first answer, one that is under way too", async () => {
  const agent = echo();
  const [begun, end] = [gate(), gate()];
  let ran = 0;
  agent.capability("slow", async () => {
    ran++;
    begun.open();
    await end.opened;
    return { ran };
  });
  const slow = { capability: "slow", parameters: {} };
  const first = ask(agent, slow);
  await begun.opened;
  for (let n = 0; n < 1030; n++) await ask(agent, { capability: "echo", parameters: { n } }, { id: `other-${n}` });
  const second = ask(agent, slow);
  end.open();
  assert.deepEqual((await first).payload, { status: "success", result: { ran: 1 } });
  assert.deepEqual((await second).payload, (await first).payload);
  assert.equal((await ask(agent, { capability: "echo" })).payload.error.details.reason, "CONFLICT");
  for (const n of [1029, 0]) await ask(agent, { capability: "echo", parameters: { n } }, { id: `other-${n}` });
  assert.equal(agent.calls.length, 1031); // the oldest was given up
});

test("an event whose handler throws is taken when it is sent again", async () => {
  const [agent, came] = [echo(), []];
  agent.onEvent = ({ id }) => {
    if (came.push(id) === 1) throw new Error("busy");
  };
  for (const want of [500, 202, 202]) assert.equal((await ask(agent, { event_type: "x" }, { type: "event" })).status, want);
  assert.deepEqual(came, ["m-1", "m-1"]);
});

test("refusals", async () => {
  const agent = echo();
  agent.capability("breaks", () => undefined.nothing);
  agent.capability("refuses", () => {
    throw new AMPError("TIMEOUT", "too late");
  });
  for (const [payload, shown, status, word] of [
    [{ capability: "echo" }, "guess", 401, "CREDENTIAL"], [{ capability: "none" }, "secret", 404, "available_capabilities"],
    [{ capability: "breaks" }, "secret", 200, "failed"], [{ capability: "refuses" }, "secret", 504, "too late"],
    [{ delegation: 1 }, "secret", 400, "VIOLATIONS"], [{ capability: "echo", parameters: [] }, "secret", 400, "parameters"],
    [{ delegation: { subtask: { capability: "echo", parameters: { x: 3 } } } }, "secret", 200, "success"],
  ]) {
    const got = await ask(agent, payload, { id: word }, shown);
    assert.equal(got.status, status);
    assert.match(JSON.stringify(got), new RegExp(word));
  }
  await assert.rejects(new Agent({ id: "agent-8" }).serve(), /anyone/);
});

test("signed messages", async () => {
  const agent = echo({ token: "", key: "shared" });
  for (const [key, timestamp, word] of [["other", undefined, "SIGNATURE"], ["", undefined, "SIGNATURE"], ["shared", undefined, "success"],
    ["shared", "2020-01-01T00:00:00Z", "EXPIRED"], ["shared", "now", "EXPIRED"]]) {
    const got = await ask(agent, { capability: "echo", parameters: { x: 1 } }, { id: word, ...(timestamp && { timestamp }) }, "", key);
    assert.match(JSON.stringify(got), new RegExp(word));
    const { status: _, ...answer } = got;
    await verify(answer, "shared");
  }
});

test("a caller is refused before its message is read", async (t) => {
  const server = await echo().serve();
  t.after(() => server.close());
  const shown = "Authorization: Bearer secret";
  for (const [fields, want] of [[["Content-Length: 100"], "401"], [["Content-Length: 100", "X-API-Key: guess"], "401"],
    [[shown, "Transfer-Encoding: chunked"], "411"], [[shown, "Content-Length: 1048577"], "413"], [[shown, "Content-Length: " + "9".repeat(15)], "413"]]) {
    const got = await new Promise((resolve, reject) => {
      const socket = connect(server.port, "127.0.0.1", () => socket.write(["POST /invoke HTTP/1.1", "Host: x", ...fields, "", ""].join("\r\n")));
      socket.on("error", reject).once("data", (data) => (socket.destroy(), resolve(String(data))));
    });
    assert.equal(got.split(" ")[1], want);
  }
});

/** A mesh that answers each POST as its list has it: a status, header fields and a payload. */
async function mesh(t, ...replies) {
  const seen = [];
  const server = createServer(async (request, reply) => {
    let text = "";
    for await (const part of request) text += part;
    const asked = JSON.parse(text).message;
    seen.push(asked);
    const [status, fields, payload] = replies.shift();
    reply.writeHead(status, fields);
    reply.end(await encode(message(payload, { type: "error" in payload ? "error" : "response", headers: { correlation_id: asked.id } })));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => (server.closeAllConnections(), server.close()));
  return { seen, client: new Client({ url: `http://127.0.0.1:${server.address().port}/invoke`, agentId: "agent-1", token: "token" }) };
}

test("a busy mesh is asked again under the same id", async (t) => {
  const busy = { error: { code: "RATE_LIMIT_EXCEEDED", message: "later", details: { retry_after_ms: 1 } } };
  const { client, seen } = await mesh(t, [429, {}, busy], [503, {}, busy], [200, {}, { status: "success", result: { x: 1 } }]);
  assert.deepEqual(await client.invoke("echo", {}), { x: 1 });
  assert.equal(new Set(seen.map(({ id }) => id)).size, 1);
});

test("odd answers", async (t) => {
  const other = { Location: "http://localhost:9/answer" };
  const { client } = await mesh(t, [202, other, { status: "partial", result: {} }], [307, other, { status: "success", result: {} }],
    [200, {}, { status: "success" }], [200, {}, { status: "success", result: [] }], [200, {}, { error: 1 }],
    [200, {}, { error: { code: "TIMEOUT", details: [1] } }], [200, {}, { status: "success", result: "x".repeat(1 << 20) }]);
  for (const want of [/another host/, /307/, /no result/, /no agents/, /INVALID_SCHEMA/, /TIMEOUT/, /more than 1048576 bytes/]) {
    await assert.rejects(client.discover(["echo"]), want);
  }
});

/** What Membership meets whose client has these answers after the registration. */
async function join(...answers) {
  const [asked, reported, ended] = [[], [], gate()];
  answers = [{ lease_seconds: 60 }, ...answers, { lease_seconds: 60 }];
  const client = new Client({ url: "http://127.0.0.1:1", agentId: "agent-7" });
  client.control = async (_, capability) => {
    if (asked.push(capability) === answers.length) ended.open();
    const answer = answers[Math.min(asked.length, answers.length) - 1];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const report = (error) => {
    reported.push(String(error));
    throw new Error("a fault of the program");
  };
  const membership = await Membership.join(client, echo(), "http://127.0.0.1:1", { every: 0.001, report });
  await ended.opened;
  await membership.close();
  return { membership, asked, reported };
}

test("a membership goes on whatever a heartbeat meets", async () => {
  const odd = ["x", -1, 0, true, null, 1e300, Infinity, NaN].map((lease) => ({ lease_seconds: lease }));
  const { membership, asked, reported } = await join(new TypeError("odd"), ...odd, [], new Error("away"));
  assert.equal(reported.length, 9, reported.join("; "));
  assert.match(reported[0], /odd/);
  assert.match(reported.at(-1), /away/);
  assert.deepEqual([asked[0], [...new Set(asked.slice(1, -1))], asked.at(-1)], ["registration", ["heartbeat"], "deregistration"]);
  assert.equal(membership.lastError, undefined);
});

test("a membership that is forgotten registers anew", async () => {
  const forgotten = new AMPError("AUTHENTICATION_FAILED", "not registered", { reason: "NOT_REGISTERED" });
  const { asked, reported } = await join(forgotten, new Error("away"), forgotten);
  assert.deepEqual(asked.slice(0, 5), ["registration", "heartbeat", "registration", "heartbeat", "registration"]);
  assert.deepEqual(reported, ["Error: away"]);
});
