// Uses a gateway through the TypeScript SDK and writes what it got as one line of JSON.
// Arguments: the URL and a token.
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

async function main([url, token]) {
  const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { answer: "forty-two" } }));
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: "Bearer " + token } },
  });
  await client.connect(transport);
  const progress = [];
  const call = async (args) => {
    const res = await client.callTool({ name: "calc", arguments: args }, undefined, { onprogress: (p) => progress.push(p.message) });
    return [res.content[0].text, res.structuredContent?.status ?? "error", res.structuredContent?.task_id];
  };
  const report = { tools: (await client.listTools()).tools.map((t) => t.name) };
  const [text, status, task] = await call({ message: "hello" });
  report.first = [text, status];
  report.second = (await call({ message: "hello", task_id: task })).slice(0, 2);
  report.question = (await call({ message: "ask" })).slice(0, 2);
  report.failure = (await call({ message: "fail" })).slice(0, 2);
  try {
    await client.callTool({ name: "other", arguments: {} });
  } catch (e) {
    report.unknown = e.code;
  }
  report.resources = (await client.listResources()).resources.length;
  report.prompts = (await client.listPrompts()).prompts.map((p) => p.name);
  report.progress = progress.includes("thinks");
  await transport.terminateSession();
  await client.close();
  console.log(JSON.stringify(report));
}

main(process.argv.slice(2));
