// The agent of translator.py in Node, with the same variables in its environment.

import { createInterface } from "node:readline";
import { Agent, AMPError, Client, Membership } from "./amp_mesh.mjs";

const WORDS = new Map([["good", "gut"], ["morning", "Morgen"]]);
const { MESH_URL, MESH_TOKEN, MESH_KEY, AGENT_ADDRESS, AGENT_TOKEN, RENEW } = process.env;

const agent = new Agent({ id: "agent-7", name: "Translator", token: AGENT_TOKEN, key: MESH_KEY });
const client = new Client({ url: MESH_URL, agentId: "agent-7", token: MESH_TOKEN, key: MESH_KEY });

agent.capability("translation", async ({ text }) => ({ text: text.split(" ").map((word) => WORDS.get(word) ?? word).join(" ") }), {
  description: "Translates from English to German.",
});
agent.capability("question-answering", ({ question }) => client.invoke("mail.message", { body: question }, { agent: "boss" }), {
  description: "Hands the question to another agent.",
});
agent.onAnswer = (message) => console.log(JSON.stringify({ called_back: message.payload }));

const calls = {
  discover: (capabilities) => client.discover([capabilities]),
  negotiate: (kind) => client.negotiate(kind),
  invoke: (capability, parameters, named) => client.invoke(capability, parameters, named),
  delegate: (task, capability, parameters, named) => client.delegate(task, capability, parameters, named),
  context: (operation, named) => client.context(operation, named),
  tell: async (eventType, { agent, ...members }) => (await client.tell(eventType, members, agent)) ?? null,
};

const [host, port] = AGENT_ADDRESS.split(":");
const server = await agent.serve({ host, port: Number(port) });
const membership = await Membership.join(client, agent, `http://${host}:${server.port}/invoke`, RENEW ? { every: Number(RENEW) } : {});
console.log("registered");
for await (const line of createInterface({ input: process.stdin })) {
  const [method, args, named] = JSON.parse(line); // a method of Client, its arguments and the named ones
  try {
    console.log(JSON.stringify(await calls[method](...args, named)));
  } catch (error) {
    if (!(error instanceof AMPError)) throw error;
    console.log(JSON.stringify({ code: error.code, reason: error.reason, details: error.details }));
  }
}
await membership.close();
await server.close();
