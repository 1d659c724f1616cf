"""Talks to the agents of a host by every binding that their cards list.

Prints what it got as JSON. Arguments: the host's address, a token.
"""

import asyncio
import json
import logging
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import AgentCard, CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, Role, SendMessageConfiguration, SendMessageRequest, TaskState
from a2a.utils.signing import create_signature_verifier
from jwt import PyJWK

logging.disable(logging.CRITICAL)
BASE, TOKEN = sys.argv[1:]


def request(text, immediately=False, **more):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **more)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=immediately))


def state(task):
    return TaskState.Name(task.status.state)


def text(parts):
    return "".join(p.text for p in parts)


async def card(http, agent, at=None):
    whole = await A2ACardResolver(http, f"{BASE}/a2a/hive/{agent}").get_agent_card()
    if at is None:
        return whole
    one = AgentCard()
    one.CopyFrom(whole)
    del one.supported_interfaces[:]
    one.supported_interfaces.extend(i for i in whole.supported_interfaces if (i.protocol_binding, i.protocol_version) == (at.protocol_binding, at.protocol_version))
    return one


async def send(client, message):
    """Returns the task that a message without a stream leads to."""
    async for event in client.send_message(message):
        return event.task


async def drive(http, at):
    """Uses one binding."""

    async def client(agent, streaming=False):
        config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[at.protocol_binding])
        return ClientFactory(config).create(await card(http, agent, at))

    out = {}
    echo = await client("echo")
    task = await send(echo, request("hello"))
    out["echo"] = [state(task), text(task.artifacts[0].parts)]
    out["again"] = state(await echo.get_task(GetTaskRequest(id=task.id)))
    asks = await client("asks")
    question = await send(asks, request("hi"))
    out["question"] = [state(question), text(question.status.message.parts)]
    reply = await send(asks, request("Ann", task_id=question.id, context_id=question.context_id))
    out["reply"] = [state(reply), text(reply.artifacts[0].parts)]
    out["stream"] = []
    async for event in (await client("spoken", streaming=True)).send_message(request("go")):
        kind = event.WhichOneof("payload")
        value = getattr(event, kind)
        if kind == "artifact_update":
            out["stream"].append(("+" if value.append else "=") + text(value.artifact.parts))
        else:
            out["stream"].append(state(value))
    slow = await client("slow")
    begun = await send(slow, request("go", immediately=True))
    out["cancel"] = [state(begun), state(await slow.cancel_task(CancelTaskRequest(id=begun.id)))]
    try:
        await echo.get_task(GetTaskRequest(id="none"))
        out["missing"] = "found"
    except Exception as e:  # noqa: BLE001
        out["missing"] = True if type(e).__name__ == "TaskNotFoundError" or "no such task" in str(e) else repr(e)
    if at.protocol_version == "1.0":
        out["list"] = len((await echo.list_tasks(ListTasksRequest(context_id=task.context_id))).tasks)
    return out


async def main():
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        signed = await card(http, "echo")
        keys = (await http.get(f"{BASE}/a2a/keys.json")).json()["keys"]
        create_signature_verifier(lambda kid, jku: PyJWK(next(k for k in keys if k["kid"] == kid)), ["EdDSA"])(signed)
        result = {"signed": True}
        for at in signed.supported_interfaces:
            result[f"{at.protocol_binding} {at.protocol_version}"] = await drive(http, at)
    print(json.dumps(result))


asyncio.run(main())
