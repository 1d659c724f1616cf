"""What the agent does with an accepted envelope. The first word of an ask chooses:

count N     N chunks and then done
slow        one progress, then nothing until it is cancelled
fail        the delta error
direct T    a signed confirm with T as the reply itself
callback T  a signed confirm with T to the asker's endpoint

Anything else is its own answer.
"""

import copy
import json

from client import run_job
from envelope import draft
from stream import chunk


async def act(peer, envelope, open_stream):
    """act returns an envelope, a stream or nothing."""
    content = envelope["body"]["content"]
    match envelope["intent"]:
        case "ask":
            return ask(peer, envelope, open_stream)
        case "subscribe":
            stream = open_stream()
            peer.start(ticks(stream, content))
            return stream
        case "propose":
            return answer(peer, envelope, "deny" if content.startswith("no") else "confirm", content)
        case "cancel":
            await cancel(peer, envelope)
        case "progress":
            progress(peer, envelope)
    return None


def answer(peer, envelope, intent, content):
    return draft(peer.signer, envelope["from"], intent, content, reply_to=envelope["id"])


def ask(peer, envelope, open_stream):
    content = envelope["body"]["content"]
    verb, _, words = content.partition(" ")
    if verb == "direct":
        return answer(peer, envelope, "confirm", words)
    if verb == "callback":
        peer.start(call_back(peer, envelope, words))
        return None
    stream = open_stream()
    peer.start(answer_on(stream, verb, words, content))
    return stream


async def call_back(peer, envelope, words):
    caller = copy.copy(peer)
    caller.url = None
    job = {"to": envelope["from"], "intent": "confirm", "reply_to": envelope["id"], "content": words}
    try:
        peer.report({"event": "called back", "status": (await run_job(caller, json.dumps(job)))["status"]})
    except Exception as e:
        peer.report({"event": "called back", "reason": str(e)})


async def answer_on(stream, verb, words, content):
    if verb == "fail":
        return await stream.emit("error", {"code": "5.04", "message": "busy"})
    if verb == "slow":
        return await stream.emit("progress", {"pct": 1})
    if verb == "count":
        for n in range(int(words)):
            await stream.emit("chunk", chunk(f"{n} "))
        return await stream.emit("done", {"answer": int(words)})
    await stream.emit("progress", {"pct": 50})
    await stream.emit("chunk", chunk(content))
    return await stream.emit("done", {"answer": content})


async def ticks(stream, topic):
    for n in range(3):
        await stream.emit("chunk", chunk(f"{topic} {n} "))


async def cancel(peer, envelope):
    for s in list(peer.streams.values()):
        if s.owner == envelope["from"] and (s.name == envelope.get("stream_id") or s.asked == envelope.get("reply_to")):
            await s.end("cancel", {})


def progress(peer, envelope):
    """progress acknowledges deltas: the body of the envelope is read as JSON with
    delta_seq, or with ack."""
    stream = peer.streams.get(envelope.get("stream_id"))
    if stream is None or stream.owner != envelope["from"]:
        return
    try:
        body = json.loads(envelope["body"]["content"])
        seq = body.get("ack", body.get("delta_seq"))
    except (ValueError, AttributeError):
        return peer.report({"event": "progress", "content": envelope["body"]["content"]})
    stream.acknowledge(seq)
    peer.report({"event": "acknowledged", "stream_id": stream.name, "seq": seq})
