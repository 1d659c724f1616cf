// Talks to the agents of a host by every binding that their cards list, and prints what
// it got as JSON. Arguments: the host's address, a token.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.A2A_CLIENTS + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Message, SendMessageRequest, GetTaskRequest, CancelTaskRequest, ListTasksRequest, AgentCard, taskStateToJSON, verifyAgentCardSignature } = (await load('@a2a-js/sdk')).default ?? (await load('@a2a-js/sdk'));
const { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } = await load('@a2a-js/sdk/client');

const [base, token] = process.argv.slice(2);
const fetchImpl = (url, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('Authorization', `Bearer ${token}`);
  return fetch(url, { ...init, headers });
};
const legacyCompat = { enabled: true };
const resolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat });
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat }), new RestTransportFactory({ fetchImpl, legacyCompat })],
  cardResolver: resolver,
}));

// card returns an agent's card; its only interface is the given one, if any.
async function card(agent, at) {
  const whole = await resolver.resolve(`${base}/a2a/hive/${agent}/`, '.well-known/agent-card.json');
  return at ? { ...whole, supportedInterfaces: whole.supportedInterfaces.filter((i) => i.protocolBinding === at.protocolBinding && i.protocolVersion === at.protocolVersion) } : whole;
}

const request = (text, more = {}) => SendMessageRequest.fromJSON({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
});
const state = (task) => taskStateToJSON(task.status.state);
const text = (parts) => parts.map((p) => p.content.value).join('');

// drive uses one binding.
async function drive(at) {
  const out = {};
  const echo = await factory.createFromAgentCard(await card('echo', at));
  const task = await echo.sendMessage(request('hello'));
  out.echo = [state(task), text(task.artifacts[0].parts)];
  out.again = state(await echo.getTask(GetTaskRequest.fromJSON({ id: task.id })));
  const asks = await factory.createFromAgentCard(await card('asks', at));
  const question = await asks.sendMessage(request('hi'));
  out.question = [state(question), text(question.status.message.parts)];
  const reply = await asks.sendMessage(request('Ann', { taskId: question.id, contextId: question.contextId }));
  out.reply = [state(reply), text(reply.artifacts[0].parts)];
  const chunks = await factory.createFromAgentCard(await card('spoken', at));
  out.stream = [];
  for await (const event of chunks.sendMessageStream(request('go'))) {
    const { $case, value } = event.payload;
    out.stream.push($case === 'artifactUpdate' ? `${value.append ? '+' : '='}${text(value.artifact.parts)}` : state(value));
  }
  const slow = await factory.createFromAgentCard(await card('slow', at));
  const begun = await slow.sendMessage({ ...request('go'), configuration: { acceptedOutputModes: [], returnImmediately: true } });
  out.cancel = [state(begun), state(await slow.cancelTask(CancelTaskRequest.fromJSON({ id: begun.id })))];
  try {
    await echo.getTask(GetTaskRequest.fromJSON({ id: 'none' }));
    out.missing = 'found';
  } catch (e) {
    out.missing = /not found|no such task/i.test(String(e)) || e.name;
  }
  if (at.protocolVersion === '1.0') {
    out.list = (await echo.listTasks(ListTasksRequest.fromJSON({ contextId: task.contextId }))).tasks.length;
  }
  return out;
}

const result = {};
const signed = await card('echo');
await verifyAgentCardSignature(async (kid, jku) => (await (await fetch(jku)).json()).keys.find((k) => k.kid === kid))(signed);
result.signed = true;
for (const at of signed.supportedInterfaces) {
  result[`${at.protocolBinding} ${at.protocolVersion}`] = await drive(at);
}
console.log(JSON.stringify(result));
