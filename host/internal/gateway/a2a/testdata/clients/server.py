"""An agent on the Python library.

It sells what it is asked for, asks back on "ask", and fails on "fail". Prints its
address.
"""

import asyncio
import socket
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette


class Shop(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if text == "ask":
            await updater.requires_input(new_text_message("which one?", task_id=task.id, context_id=task.context_id))
        elif text == "fail":
            await updater.failed(new_text_message("sold out", task_id=task.id, context_id=task.context_id))
        else:
            await updater.start_work(new_text_message("looking", task_id=task.id, context_id=task.context_id))
            await updater.add_artifact([Part(text="sold ")], artifact_id="sale", append=False)
            await updater.add_artifact([Part(text=text)], artifact_id="sale", append=True, last_chunk=True)
            await updater.complete()

    async def cancel(self, context, event_queue):
        pass


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="shop", description="sells", version="1", capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"], default_output_modes=["text/plain"],
        skills=[AgentSkill(id="sell", name="sell", description="sells", tags=["x"])],
        supported_interfaces=[
            AgentInterface(url=f"{base}/rpc", protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(url=f"{base}/rest", protocol_binding="HTTP+JSON", protocol_version="1.0"),
        ],
    )
    handler = DefaultRequestHandler(agent_executor=Shop(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc") + create_rest_routes(handler, path_prefix="/rest")
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off"))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    print(base, flush=True)
    await asyncio.to_thread(sys.stdin.read)  # ends with the test
    server.should_exit = True
    await running


asyncio.run(main())
