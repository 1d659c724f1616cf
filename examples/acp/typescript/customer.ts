// Orders some pieces of one thing from an agent over ACP: the modules acp and orders are
// made by skep acp compile.
import * as acp from "./acp/messages.js";
import * as orders from "./orders/messages.js";

declare const process: { argv: string[]; env: Record<string, string | undefined>; exit(code: number): never }; // of node

/** The REQUEST with a body for the agent stock. */
function request(body: string): acp.Message {
  return {
    header: {
      version: "1.0",
      sender: acp.AgentID("customer"),
      receiver: acp.AgentID("stock"),
      type: "REQUEST",
      id: acp.MessageID(crypto.randomUUID()),
      timestamp: acp.Timestamp(new Date().toISOString()),
      contentType: "application/json",
    },
    body,
  };
}

/** Sends a message and reads the one that answers it. */
async function post(message: acp.Message): Promise<acp.Message> {
  const address = `${variable("SKEP_URL")}/acp/v1/messages`;
  const reply = await fetch(address, {
    method: "POST",
    headers: { Authorization: `Bearer ${variable("SKEP_TOKEN")}`, "Content-Type": "application/json" },
    body: acp.encodeMessage(message),
  }).catch((away: Error) => {
    throw new Error(`no answer from ${address}: ${String(away.cause ?? away)}`);
  });
  const text = await reply.text();
  try {
    return acp.decodeMessage(text);
  } catch {
    throw new Error(`${reply.status}: ${text.trim()}`); // refused before it was read as a message, as for a wrong token
  }
}

/** A variable of the environment. */
function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`not set: ${name}`);
  return value;
}

async function main(item = "", count = "", ...more: string[]): Promise<void> {
  if (!/^[0-9]+$/.test(count) || more.length > 0) throw new Error("usage: customer.js ITEM COUNT, as in: customer.js screws 5");
  const question = request(orders.encodeOrder({ item, count: Number(count) }));
  const answer = await post(question);
  if (answer.header.type !== "RESPONSE" || answer.header.replyTo !== question.header.id) {
    throw new Error(`${answer.header.type}: ${answer.body}`);
  }
  const receipt = orders.decodeReceipt(answer.body);
  console.log(`${receipt.count} ${receipt.item}: ${(Number(receipt.cents) / 100).toFixed(2)}`);
}

main(...process.argv.slice(2)).catch((wrong: Error) => {
  console.error(wrong.message);
  process.exit(1);
});
