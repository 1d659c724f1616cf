"""Uses a gateway through the Python SDK and writes what it got as one line of JSON.
Arguments: the URL and a token."""

import asyncio
import json
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult


async def answer(context, params):
    return ElicitResult(action="accept", content={"answer": "forty-two"})


async def main(url, token):
    progress = []

    async def on_progress(done, total, message):
        progress.append(message)

    async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + token}) as http:
        async with Client(streamable_http_client(url, http_client=http), elicitation_callback=answer) as client:

            async def call(**args):
                res = await client.call_tool("calc", args, progress_callback=on_progress)
                made = res.structured_content or {"status": "error"}
                return res.content[0].text, made["status"], made.get("task_id")

            report = {"tools": [t.name for t in (await client.list_tools()).tools]}
            text, status, task = await call(message="hello")
            report["first"] = [text, status]
            report["second"] = (await call(message="hello", task_id=task))[:2]
            report["question"] = (await call(message="ask"))[:2]
            report["failure"] = (await call(message="fail"))[:2]
            try:
                await client.call_tool("other", {})
            except MCPError as e:
                report["unknown"] = e.error.code
            report["resources"] = len((await client.list_resources()).resources)
            report["prompts"] = [p.name for p in (await client.list_prompts()).prompts]
            report["progress"] = "thinks" in progress
            print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
