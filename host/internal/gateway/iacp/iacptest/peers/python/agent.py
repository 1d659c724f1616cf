"""The agent of a peer: what it does with requests of others (§4)."""

import asyncio
import time

from message import Refusal, requires_response

KNOWN = "task_request, task_response, context_share, knowledge_update, tool_request, tool_response, agent_register, agent_discover, workflow_start, event_notification, error_response"
SILENT = {"context_share", "knowledge_update", "event_notification", "task_response", "tool_response"}


async def act(node, connection, m):
    """act handles a message that has come once, and answers it."""
    kind, payload = m["message_type"], m["payload"]

    async def respond(kind, **body):
        if requires_response(m):
            await node.reply(connection, m, kind, body)

    if kind == "task_request":
        await _do_task(node, payload, respond)
    elif kind == "tool_request":
        await _run_tool(payload, respond)
    elif kind == "workflow_start":
        await _do_workflow(payload, respond)
    elif kind not in SILENT:
        await connection.refuse(Refusal("INVALID_MESSAGE_FORMAT", f"{kind} is not known", KNOWN, kind), m["message_id"])


def _fault(code, text):
    return {"code": code, "message": text}


async def _do_task(node, payload, respond):
    """_do_task answers by the task's type: fail, reject, slow, hold, count; others are echoed."""
    kind, parameters = payload.get("task_type"), payload.get("parameters") or {}
    if kind == "reject":
        return await respond("task_response", status="rejected", error=_fault("PERMISSION_DENIED", "tasks of this type are refused"))
    await respond("task_response", status="accepted")
    if kind == "fail":
        text = "the task failed as it was told"
        return await respond("task_response", status="failed", error=text if parameters.get("as_text") else _fault("TIMEOUT", text))
    if kind == "slow":
        await asyncio.sleep(float(parameters.get("seconds", 1)))
    if kind == "hold":
        await node.released.acquire()
    if kind == "count":
        for i in range(1, 4):
            await respond("task_response", status="in_progress", progress=i / 4)
    await respond("task_response", status="completed", result={"description": payload.get("description"), "parameters": parameters}, progress=1.0)


async def _run_tool(payload, respond):
    began = time.monotonic()
    if not payload.get("callback_required", True):
        return
    if payload.get("tool_name") != "add":
        return await respond("tool_response", status="error", error=_fault("AGENT_NOT_FOUND", f"no tool is called {payload.get('tool_name')}"))
    if "read" not in payload.get("execution_context", {}).get("permissions", ["read"]):
        return await respond("tool_response", status="permission_denied", error=_fault("PERMISSION_DENIED", "add needs read"))
    output = sum(payload.get("parameters", {}).get("numbers", []))
    spent = time.monotonic() - began
    await respond("tool_response", status="success", output=output, execution_time=spent, resources_used={"cpu_time": spent, "memory": "1MB"})


async def _do_workflow(payload, respond):
    """_do_workflow lists the steps in their order, as a coordinator that does them all."""
    steps = payload.get("execution_plan", {}).get("steps", [])
    await respond("task_response", status="accepted")
    for i in range(len(steps)):
        await respond("task_response", status="in_progress", progress=(i + 1) / len(steps))
    await respond("task_response", status="completed", result={"workflow_id": payload.get("workflow_id"), "steps": len(steps)})
