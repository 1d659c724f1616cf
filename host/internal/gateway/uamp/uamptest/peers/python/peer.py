"""A UAMP agent that was written from the document alone.

    peer.py client [flags] --url BASE --to DID --job JSON [--job JSON ...]
    peer.py serve  [flags]

A line of JSON is printed for each job, and for what a server sees; the first one is who
the peer is. A server takes jobs on its standard input, one a line, and ends with it.
README.md has the flags and the members of a job.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import sys

from client import run_job
from did import document_of, new_signer
from net import Net


def flags():
    p = argparse.ArgumentParser()
    p.add_argument("mode", choices=["client", "serve"])
    for name in ("key", "did", "ca", "cert", "cert-key", "client-ca", "bearer", "url", "to", "service"):
        p.add_argument("--" + name)
    for name in ("no-kid", "plain", "http3", "require-cap", "take-repeats"):
        p.add_argument("--" + name, action="store_true")
    for name in ("connect", "job", "quirk"):
        p.add_argument("--" + name, action="append", default=[])
    defaults = {"alg": "ES256", "canonical": "literal", "payload": "spaced", "hash": "hex", "form": "detached", "port": "0", "host": "127.0.0.1", "max-kb": "256"}
    for name, value in defaults.items():
        p.add_argument("--" + name, default=value)
    return p.parse_args()


class Peer:
    def __init__(self, options):
        self.options, self.base, self.url, self.to = options, None, options.url, options.to
        self.how = {name: getattr(options, name) for name in ("canonical", "payload", "hash", "form")}
        own = (options.cert, options.cert_key) if options.mode == "client" else (None, None)
        self.net = Net(options.plain, options.ca, *own, options.bearer, options.connect, options.http3)
        self.quirks, self.max_kb = set(options.quirk), int(options.max_kb)
        self.streams, self.seen, self.tasks = {}, {}, set()

    def identify(self, did):
        o = self.options
        self.signer = new_signer(o.alg, o.key, did, o.no_kid)
        self.wrong_signer = dataclasses.replace(new_signer(o.alg), did=self.signer.did, kid=self.signer.kid)
        self.service = {"type": o.service, "serviceEndpoint": f"{self.base}/v1/messages"} if o.service else None
        self.report({"event": "is", "did": self.signer.did, "url": self.base, "document": document_of(self.signer, self.service)})

    def report(self, value):
        print(json.dumps(value), flush=True)

    def start(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def run(self, job):
        try:
            self.report({"event": "did"} | await run_job(self, job))
        except Exception as e:  # a job of any kind may fail in any way
            self.report({"event": "did", "fault": f"{type(e).__name__}: {e}"})


async def main():
    peer = Peer(flags())
    if peer.options.mode == "client":
        peer.identify(peer.options.did)
        for job in peer.options.job:
            await peer.run(job)
        return
    from server import listen, serve  # a client needs no server's library

    config, peer.base = listen(peer.options)
    web = "did:web:" + peer.base.partition("://")[2].replace(":", "%3A")
    peer.identify(web if peer.options.did == "web" else peer.options.did)
    peer.start(serve(peer, config))
    while line := await asyncio.to_thread(sys.stdin.readline):
        await peer.run(line)
    os._exit(0)  # without waiting for who still reads


asyncio.run(main())
