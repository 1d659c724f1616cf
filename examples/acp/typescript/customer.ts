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
  const reply = await fetch(`${process.env["SKEP_URL"]}/acp/v1/messages`, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env["SKEP_TOKEN"]}`, "Content-Type": "application/json" },
    body: acp.encodeMessage(message),
  });
  return acp.decodeMessage(await reply.text());
}

async function main(item = "", count = ""): Promise<void> {
  const question = request(orders.encodeOrder({ item, count: Number(count) }));
  const answer = await post(question);
  if (answer.header.type !== "RESPONSE" || answer.header.replyTo !== question.header.id) {
    console.error(`${answer.header.type}: ${answer.body}`);
    process.exit(1);
  }
  const receipt = orders.decodeReceipt(answer.body);
  console.log(`${receipt.count} ${receipt.item}: ${(Number(receipt.cents) / 100).toFixed(2)}`);
}

void main(...process.argv.slice(2));
