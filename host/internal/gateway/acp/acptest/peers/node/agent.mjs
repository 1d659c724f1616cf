// An ACP agent, written from the protocol's document and host/docs/gateway-acp.md.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const [self, url] = process.argv.slice(2);
const token = process.env.ACP_TOKEN;
const answerType = { REQUEST: "RESPONSE", QUERY: "INFORM" };
const types = ["REQUEST", "RESPONSE", "INFORM", "QUERY", "ACKNOWLEDGE", "ERROR"];
const required = ["version", "sender", "receiver", "type", "id", "timestamp", "content_type"];
const answerBytes = Number(process.env.ACP_ANSWER_BYTES ?? 0); // of an answer's body, 0 for the question's
const limit = 4 << 20; // bytes of one message
const open = new Map(); // our questions without an answer, by id

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");

function fail(reason) {
  process.stderr.write(reason + "\n");
  process.exit(1);
}

// check holds a message against the document's declarations.
function check(message) {
  const { header, body } = message;
  if (Object.keys(message).sort().join() !== "body,header") fail("members " + Object.keys(message));
  if (typeof body !== "string") fail("body is no string");
  for (const name of required) {
    if (typeof header[name] !== "string" || header[name] === "") fail(`header.${name}: ${header[name]}`);
  }
  for (const name of ["reply_to", "conversation_id"]) {
    if (header[name] !== undefined && typeof header[name] !== "string") fail(`header.${name}: ${header[name]}`);
  }
  if (header.version !== "1.0") fail("version " + header.version);
  if (!types.includes(header.type)) fail("type " + header.type);
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(header.timestamp)) fail("timestamp " + header.timestamp);
}

function make({ receiver, type, body, ...fields }) {
  const header = {
    version: "1.0",
    sender: self,
    receiver,
    type,
    id: randomUUID(),
    timestamp: new Date().toISOString(),
    content_type: "text/plain",
    ...fields,
  };
  return { header, body };
}

function answer({ header, body }) {
  const { sender, receiver, type, id, content_type, conversation_id } = header;
  const fields = { content_type, reply_to: id, ...(conversation_id === undefined ? {} : { conversation_id }) };
  const text = body.repeat(Math.ceil(answerBytes / body.length) || 1).slice(0, answerBytes || undefined);
  return make({ receiver: sender, type: answerType[type], body: text, ...fields, sender: receiver });
}

// receive takes a message and returns the answer that it is owed.
function receive(text) {
  const message = JSON.parse(text);
  check(message);
  print({ received: message });
  const { header } = message;
  const question = open.get(header.reply_to);
  if (question !== undefined && header.type !== "ACKNOWLEDGE") {
    if (![answerType[question.header.type], "ERROR"].includes(header.type)) {
      fail(`${question.header.type} was answered by ${header.type}`);
    }
    if (header.sender !== question.header.receiver) fail("an answer of " + header.sender);
    const { conversation_id } = question.header;
    if (conversation_id !== undefined && header.conversation_id !== conversation_id) {
      fail(`the conversation ${conversation_id} became ${header.conversation_id}`);
    }
    open.delete(header.reply_to);
  }
  return header.type in answerType ? answer(message) : undefined;
}

// overWebSocket has one connection for both directions.
async function overWebSocket() {
  const { WebSocket } = createRequire(process.env.ACP_CLIENTS + "/")("ws");
  const socket = new WebSocket(url, "acp.v1", { headers: { authorization: `Bearer ${token}` } });
  await new Promise((ok, failed) => socket.once("open", ok).once("error", failed)).catch((e) => fail(e.message));
  if (socket.protocol !== "acp.v1") fail("subprotocol " + socket.protocol);
  const send = (message) => {
    print({ sent: message });
    socket.send(JSON.stringify(message));
  };
  socket.on("message", (data, isBinary) => {
    if (isBinary) fail("a binary frame");
    const reply = receive(data.toString());
    if (reply !== undefined) send(reply);
    ended();
  });
  socket.on("close", (code, reason) => {
    if (!closing) fail(`closed with ${code} ${reason}`);
    process.exit(0);
  });
  return { send, close: () => socket.close(1000) };
}

async function read(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > limit) fail("a message of more than 4 MiB");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

// overHTTP posts messages, and has a server for the ones of others.
async function overHTTP() {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const send = async (message) => {
    print({ sent: message });
    const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify(message) });
    const text = await reply.text();
    if (![200, 202].includes(reply.status) && text[0] !== "{") fail(`${reply.status} ${text}`);
    if (text !== "") receive(text);
    ended();
  };
  const server = createServer(async (request, response) => {
    const reply = receive(await read(request));
    if (reply !== undefined && process.env.ACP_ANSWER !== "later") {
      print({ sent: reply });
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply));
      return;
    }
    response.writeHead(202).end();
    if (reply !== undefined) await send(reply);
  });
  await new Promise((ok) => server.listen(0, "127.0.0.1", ok));
  print({ listening: `http://127.0.0.1:${server.address().port}/` });
  return { send, close: () => process.exit(0) };
}

let closing = false;
let connection;

function ended() {
  if (!input.closed || open.size > 0 || closing) return;
  closing = true;
  connection.close();
}

connection = url.startsWith("ws") ? await overWebSocket() : await overHTTP();
print({ ready: true });
const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  const message = make(JSON.parse(line));
  if (message.header.type in answerType) open.set(message.header.id, message);
  connection.send(message);
});
input.on("close", ended);
