"""Sends envelopes and follows what comes of them."""

import base64
import json
import time
import urllib.parse

import httpx

from bad import BAD
from canonical import Number, literal
from did import document_for, keys_of
from envelope import TERMINAL, Refusal, draft, fault_of_delta, now, parse, signed, verify
from jws import open_compact, seal_token
from net import code_of

MEDIA_TYPE = "application/uamp+json"  # as §11 registers it
FIELDS = ["reply_to", "context", "stream_id", "delta_window", "ext", "id", "ts", "content", "type"]


async def run_job(peer, text):
    """run_job does one job, an object of JSON text, and returns what came of it."""
    job = {name: v.plain() if isinstance(v, Number) and name != "delta_window" else v for name, v in literal(text).items()}
    if "get" in job:
        return await fetch_document(peer, job)
    envelope = draft(peer.signer, job.get("to", peer.to), job["intent"], **{name: job[name] for name in FIELDS if name in job})
    if "cap" in job:
        envelope["cap_token"] = capability(peer, envelope, job["cap"])
    wire = wire_of(peer.signer, envelope, job, peer.how | job.get("how", {}))
    base = job.get("url") or peer.url or await endpoint_of(peer, envelope["to"][0])
    reply = await post(peer, base, wire)
    if job.get("bad") == "replay":
        reply = await post(peer, base, wire)
    result = {"id": envelope["id"], "status": reply.status}
    result |= {name.replace("-", "_"): reply.headers[name] for name in ("location", "retry-after") if name in reply.headers}
    result |= await read_reply(peer, envelope, reply)
    if reply.status == 202 and "location" in reply.headers and job.get("follow") is not False:
        url = urllib.parse.urljoin(base, reply.headers["location"])
        result["stream"] = await Reader(peer, base, job, envelope).follow(url)
    return result


def wire_of(signer, envelope, job, how):
    """wire_of is the text that is sent."""
    kind = job.get("bad", "replay")
    if kind != "replay":
        return BAD[kind](envelope, signer, how)
    wire = signed(envelope, signer, how)
    if not job.get("escape"):
        return wire
    return "".join(c if " " <= c <= "~" else json.dumps(c)[1:-1] for c in wire).replace('","', '" ,\n "')


def capability(peer, envelope, claims):
    made = {"iss": peer.signer.did, "sub": peer.signer.did, "aud": envelope["to"][0], "scope": envelope["intent"], "exp": int(time.time()) + 300}
    return seal_token(made | {name: v.plain() if isinstance(v, Number) else v for name, v in claims.items()}, peer.signer)


async def endpoint_of(peer, did):
    """endpoint_of finds where a did:web takes envelopes: an entry of its document whose
    address has the path of §7, or that path at its host."""
    for service in (await document_for(did, peer.net)).get("service", []):
        at = service["serviceEndpoint"]
        if isinstance(at, str) and at.endswith("/v1/messages"):
            return at.removesuffix("/v1/messages")
    return f"{peer.net.scheme}://{urllib.parse.unquote(did.split(':')[2])}"


async def post(peer, base, wire):
    return await peer.net.request("POST", f"{base}/v1/messages", {"content-type": MEDIA_TYPE}, wire)


async def read_reply(peer, sent, reply):
    """read_reply reads the body of an answer: a signed envelope, or JSON with a code."""
    if not reply.body:
        return {}
    if reply.headers.get("content-type", "").partition(";")[0] != MEDIA_TYPE:
        return {"code": reply.code(), "text": reply.body.decode(errors="replace")}
    try:
        envelope, source = parse(reply.body)
        form = await verify(envelope, source, peer.net)
    except Refusal as e:
        return {"verified": False, "reason": str(e)}
    if envelope["from"] not in sent["to"] or envelope.get("reply_to", sent["id"]) != sent["id"]:
        return {"verified": False, "reason": f"{envelope['from']} answers {envelope.get('reply_to')}"}
    return {"verified": True, "form": form, "answer": envelope, "code": code_of(envelope["body"]["content"])}


class Reader:
    """Reads a stream to its end, over as many connections as it takes."""

    def __init__(self, peer, base, job, envelope):
        self.peer, self.base, self.job, self.envelope = peer, base, job, envelope
        window = job["delta_window"].plain() if "delta_window" in job else 64
        self.every = job.get("ack_every") or max(1, int(window) // 2)
        self.next, self.parts = 0, []
        self.seen = {"seqs": [], "types": [], "connections": 0, "acks": [], "repeats": 0, "gaps": 0}

    async def follow(self, url):
        seen, stalled = self.seen, 0
        self.stream = urllib.parse.unquote(url.rpartition("/")[2])
        while "last" not in seen and "fault" not in seen and stalled < 4:
            seen["connections"] += 1
            before = self.next
            try:
                await self.read(url)
            except httpx.HTTPError:
                pass  # a lost connection is made again
            except ValueError as e:
                seen["fault"] = str(e)
            stalled = stalled + 1 if self.next == before else 0
        return seen | {"chunks": b"".join(self.parts).decode()}

    async def read(self, url):
        headers = {"accept": "text/event-stream"} | ({"last-event-id": str(self.next - 1)} if self.next else {})
        async with self.peer.net.open() as http, http.stream("GET", url, headers=headers) as r:
            if r.status_code != 200:
                self.seen |= {"fault": f"the stream has status {r.status_code}", "code": code_of(await r.aread())}
                return
            async for data in events(r):
                if await self.take(json.loads(data)):
                    return

    async def take(self, delta):
        """take takes one delta. It returns true where this connection has nothing more to give."""
        if reason := fault_of_delta(delta):
            self.seen["fault"] = reason
            return True
        if delta["delta_seq"] < self.next:
            self.seen["repeats"] += 1
            return False
        if delta["delta_seq"] > self.next:
            self.seen["gaps"] += 1
            return True  # 4.09: what is missing is asked for again
        self.next += 1
        self.seen["seqs"].append(delta["delta_seq"])
        self.seen["types"].append(delta["type"])
        payload = delta.get("payload", {})
        self.parts.append(base64.b64decode(payload.get("chunk_b64", "")))
        if delta["type"] in TERMINAL:
            self.seen |= {"last": delta["type"], "payload": payload}
            return True
        return await self.reply(delta)

    async def reply(self, delta):
        job, stream = self.job, self.stream
        due = self.next % self.every == 0
        if self.next == job.get("cancel_after"):
            await self.tell("cancel", stream_id=stream, reply_to=self.envelope["id"])
        elif due and job.get("ack") not in ("none", "resume"):
            # The acknowledgement is a delta of the type progress in an envelope of that
            # intent: the document has both.
            ack = {"delta_seq": delta["delta_seq"], "stream_id": stream, "ts": now(), "type": "progress"}
            self.seen["acks"].append(await self.tell("progress", stream_id=stream, type="application/json", content=json.dumps(ack)))
        return self.next == job.get("drop_after") or due and job.get("ack") == "resume"

    async def tell(self, intent, **what):
        wire = signed(draft(self.peer.signer, self.envelope["to"], intent, **what), self.peer.signer, self.peer.how)
        return (await post(self.peer, self.base, wire)).status


async def events(response):
    """events yields the data of server-sent events."""
    rest, data = b"", []
    async for part in response.aiter_raw():
        *lines, rest = (rest + part).split(b"\n")
        for line in (line.removesuffix(b"\r") for line in lines):
            if not line and data:
                yield b"\n".join(data).decode()
                data = []
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))


async def fetch_document(peer, job):
    """fetch_document gets a manifest, a hub list or a DID document."""
    reply = await peer.net.request("GET", (job.get("url") or peer.url) + job["get"])
    result = {"status": reply.status, "type": reply.headers.get("content-type")}
    if "manifest+jws" not in result["type"]:
        return result | {"text": reply.body.decode(errors="replace")}
    try:
        manifest = await open_compact(reply.body.decode(), lambda kid, _: keys_of((kid or peer.to).partition("#")[0], kid, peer.net))
    except ValueError as e:
        return result | {"verified": False, "reason": str(e)}
    return result | {"verified": True, "manifest": manifest}
