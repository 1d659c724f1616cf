"""A hub and a spoke of IaCP that were written from the document, on the standard library.
control.py has the names that the document does not give.

    peer.py spoke [flags] --connect HOST:PORT
    peer.py hub   [flags]

Each event is a line of JSON on standard output. Jobs come on standard input, one a line;
the peer ends with it. README.md has the flags, the events and the members of a job.
"""

import argparse
import asyncio
import os

from hub import Hub
from node import read_jobs
from spoke import Spoke


def flags():
    p = argparse.ArgumentParser()
    p.add_argument("mode", choices=["spoke", "hub"])
    for name in ("connect", "to", "token", "api-key", "ca", "cert", "cert-key", "server-name"):
        p.add_argument("--" + name)
    for name in ("tls", "bare", "once"):
        p.add_argument("--" + name, action="store_true")
    p.add_argument("--agent-id", action="append")
    p.add_argument("--port", type=int, default=0)
    for name, seconds in {"heartbeat": 30, "idle": 90, "backoff": 1, "patience": 60}.items():
        p.add_argument("--" + name, type=float, default=seconds)
    options = p.parse_args()
    options.agent_id = options.agent_id or ["peer-" + options.mode]
    return options


async def main():
    options = flags()
    node = Spoke(options) if options.mode == "spoke" else Hub(options)
    running = asyncio.ensure_future(node.run())
    running.add_done_callback(lambda done: done.cancelled() or done.exception() is None or os.abort())
    await read_jobs(node)
    os._exit(0)  # without waiting for who still reads


asyncio.run(main())
