// An agent on the JavaScript library: it sells what it is asked for, asks back on "ask",
// and fails on "fail". Prints its address.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.A2A_CLIENTS + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { AgentCard, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } = await load('@a2a-js/sdk');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = await load('@a2a-js/sdk/server');
const { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } = await load('@a2a-js/sdk/server/express');
const express = (await load('express')).default;

const executor = {
  async execute({ taskId, contextId, userMessage, task }, bus) {
    const text = userMessage.parts[0].content.value;
    const status = (state, more) => bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({
      taskId, contextId, status: { state, message: more && { messageId: crypto.randomUUID(), role: 'ROLE_AGENT', taskId, contextId, parts: [{ text: more }] } },
    })));
    bus.publish(AgentEvent.task(task ?? Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_SUBMITTED' } })));
    if (text === 'ask') {
      status('TASK_STATE_INPUT_REQUIRED', 'which one?');
    } else if (text === 'fail') {
      status('TASK_STATE_FAILED', 'sold out');
    } else {
      status('TASK_STATE_WORKING', 'looking');
      for (const [i, piece] of ['sold ', text].entries()) {
        bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({
          taskId, contextId, append: i > 0, lastChunk: i > 0, artifact: { artifactId: 'sale', parts: [{ text: piece }] },
        })));
      }
      status('TASK_STATE_COMPLETED');
    }
    bus.finished();
  },
  async cancelTask() {},
};

const app = express();
const server = app.listen(0, '127.0.0.1', () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const card = AgentCard.fromJSON({
    name: 'shop', description: 'sells', version: '1', capabilities: { streaming: true },
    defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 'sell', name: 'sell', description: 'sells', tags: ['x'] }],
    supportedInterfaces: [{ url: `${base}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }, { url: `${base}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }],
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  const userBuilder = UserBuilder.noAuthentication;
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder }));
  app.use('/rest', restHandler({ requestHandler, userBuilder }));
  console.log(base);
});
process.stdin.on('end', () => process.exit()).resume(); // ends with the test
