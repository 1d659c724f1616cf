// Asks an agent of a mesh: ask.mjs AGENT TEXT. MESH_URL is the mesh's invoke, MESH_TOKEN its token.

import { Client } from "./amp_mesh.mjs";

const [agent, body] = process.argv.slice(2);
const { MESH_URL, MESH_TOKEN } = process.env;
if (!body || !MESH_URL) {
  console.error("ask.mjs AGENT TEXT, with MESH_URL and MESH_TOKEN in the environment");
  process.exit(1);
}
const client = new Client({ url: MESH_URL, agentId: "agent-1", token: MESH_TOKEN });
try {
  console.log(JSON.stringify(await client.invoke("mail.message", { body }, { agent })));
} catch (error) {
  console.error(`ask.mjs: ${error}`);
  process.exitCode = 1;
}
