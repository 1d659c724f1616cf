"""An agent that takes envelopes over HTTP/2."""

import asyncio
import json
import os
import socket
import ssl
import uuid
from urllib.parse import unquote, urlsplit

import hypercorn.asyncio
import hypercorn.config

from agent import act
from did import address_of, document_of, keys_of
from envelope import INTENTS, Refusal, draft, now, parse, signed, time_of, verify
from jws import compact, open_token
from net import LIMIT
from stream import Stream

SKEW = 300


class Config(hypercorn.config.Config):
    """TLS 1.3 with the ALPN h2 only (§6.1)."""

    alpn_protocols = ["h2"]
    loglevel = "CRITICAL"

    def create_ssl_context(self):
        context = super().create_ssl_context()
        if context:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context


def listen(options):
    """listen returns what serve needs, and its address."""
    listener = socket.create_server(("127.0.0.1", int(options.port)))
    port = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{os.dup(listener.fileno())}"]
    if options.cert:
        config.certfile, config.keyfile = options.cert, options.cert_key
    if options.client_ca:
        config.ca_certs, config.verify_mode = options.client_ca, ssl.CERT_REQUIRED
    return config, f"{'https' if options.cert else 'http'}://{options.host}:{port}"


async def serve(peer, config):
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await Request(peer, scope, receive, send).handle()
        else:
            raise ValueError("only HTTP is served")

    await hypercorn.asyncio.serve(app, config, shutdown_trigger=asyncio.Event().wait)


class Request:
    def __init__(self, peer, scope, receive, send):
        self.peer, self.receive, self.send = peer, receive, send
        self.method, self.path = scope["method"], scope["path"]
        self.headers = {name.decode(): value.decode() for name, value in scope["headers"]}

    async def respond(self, status, body=b"", **headers):
        pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": body})

    async def json(self, status, value, **headers):
        await self.respond(status, json.dumps(value).encode(), content_type="application/json", **headers)

    async def handle(self):
        peer = self.peer
        if peer.signer.did.startswith("did:web:") and self.path == urlsplit(address_of(peer.signer.did, "https")).path:
            other = {"id": "did:web:other.example"} if "other-document" in peer.quirks else {}
            return await self.json(200, document_of(peer.signer, peer.service) | other)
        if self.path == "/.well-known/agent-manifest.json":
            return await self.manifest()
        if self.path == "/.well-known/agent-hub.json":
            return await self.json(200, {"manifests": [f"{peer.base}/.well-known/agent-manifest.json"], "trust_anchors": [peer.signer.did]})
        try:
            self.authenticate()
            if self.path == "/v1/messages" and self.method == "POST":
                return await self.take()
            stream = peer.streams.get(unquote(self.path.removeprefix("/v1/stream/")))
            if not stream or not self.path.startswith("/v1/stream/"):
                raise Refusal(404, "4.04", f"nothing is at {self.path}")
            await self.read(stream)
        except Refusal as e:
            await self.refuse(e)

    def authenticate(self):
        """A bearer token, if one is asked for; TLS checks the certificate (§6.2)."""
        bearer = self.peer.options.bearer
        if bearer and self.headers.get("authorization") != f"Bearer {bearer}":
            raise Refusal(401, "4.01", "no bearer token")

    async def take(self):
        """take takes an envelope in."""
        peer, quirks = self.peer, self.peer.quirks
        if "hang" in quirks:
            return await asyncio.Event().wait()
        if "busy" in quirks and "was-busy" not in quirks:
            quirks.add("was-busy")
            await self.read_body(LIMIT)
            raise Refusal(503, "5.04", "busy", headers=[("retry_after", "1")])
        if "redirect" in quirks:
            await self.read_body(LIMIT)
            return await self.respond(307, location=f"{peer.base}/elsewhere")
        envelope, source = await self.read_envelope()
        form = await verify(envelope, source, peer.net)
        await self.admit(envelope, source)
        peer.report({"event": "accepted", "form": form, "envelope": envelope})
        if "forget-answer" in quirks:
            raise RuntimeError("the answer is lost")
        result = await act(peer, envelope, lambda: self.open_stream(envelope))
        if isinstance(result, dict):
            return await self.send_envelope(200, result)
        await self.respond(202, **({"location": f"/v1/stream/{result.name}"} if result else {}))

    async def read_envelope(self):
        kind, *parameters = (part.strip() for part in self.headers.get("content-type", "").split(";"))
        if kind != "application/uamp+json" or any(p != "v=1" for p in parameters):
            raise Refusal(415, "4.15", "the media type is another one")
        envelope, source = parse(await self.read_body(min(self.peer.max_kb * 1024, LIMIT)))
        if self.peer.signer.did not in envelope["to"]:
            raise Refusal(403, "4.03", "this agent is no recipient", envelope)
        return envelope, source

    async def read_body(self, limit):
        """read_body reads to the end what it does not keep, too: the library has no answer
        while a body comes."""
        body, size, more = b"", 0, True
        while more:
            event = await self.receive()
            size += len(event.get("body", b""))
            body += event.get("body", b"") if size <= limit else b""
            more = event.get("more_body", False)
        if size > limit:
            raise Refusal(413, "4.13", f"more than {limit} bytes")
        return body

    async def admit(self, envelope, source):
        """admit checks what the document leaves open: how old an envelope may be and
        whether it may come again."""
        peer, name = self.peer, (envelope["from"], envelope["id"])
        if abs((time_of(now()) - time_of(envelope["ts"])).total_seconds()) > SKEW:
            raise Refusal(401, "4.01", f"ts is {envelope['ts']}", envelope)
        if name in peer.seen and (not peer.options.take_repeats or peer.seen[name] != source):
            raise Refusal(401, "4.01", f"{envelope['id']} came before", envelope)
        if peer.options.require_cap:
            await self.check_capability(envelope)
        peer.seen[name] = source

    async def check_capability(self, envelope):
        peer = self.peer
        try:
            scope = await open_token(envelope.get("cap_token", ""), peer.signer.did, lambda kid, claims: keys_of(claims["iss"], kid, peer.net))
            if not any(s.endswith((envelope["intent"], "*")) for s in scope.split()):
                raise ValueError(f"the scope is {scope}")
        except (ValueError, KeyError, AttributeError, TypeError) as e:
            raise Refusal(403, "4.03", f"cap_token: {e}", envelope) from e

    def open_stream(self, envelope):
        """open_stream begins a stream, by the name that the sender chose if it is free."""
        wanted, streams = envelope.get("stream_id"), self.peer.streams
        name = wanted if wanted and wanted not in streams else f"str-{uuid.uuid4()}"
        streams[name] = Stream(name, envelope, self.peer.quirks)
        return streams[name]

    async def read(self, stream):
        last = self.headers.get("last-event-id")
        if last is not None and not (last.isdecimal() and stream.acknowledge(int(last))):
            raise Refusal(409, "4.09", f"no delta {last} was sent")
        gone = asyncio.Event()
        self.peer.start(self.wait_until_gone(stream, gone))
        await self.send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]})
        async for event in stream.read(0 if last is None else int(last) + 1, gone):
            await self.send({"type": "http.response.body", "body": event, "more_body": True})
        await self.send({"type": "http.response.body", "body": b""})

    async def wait_until_gone(self, stream, gone):
        while (await self.receive())["type"] != "http.disconnect":
            pass
        gone.set()
        stream.changed()

    async def refuse(self, refusal):
        """refuse answers with a signed error envelope. The document has no recipient for
        one whose sender could not be read, so that is plain JSON."""
        told = {"code": refusal.code, "message": str(refusal)}
        self.peer.report({"event": "refused", "status": refusal.status, "code": refusal.code, "reason": str(refusal)})
        if refusal.envelope is None:
            return await self.json(refusal.status, told, **dict(refusal.headers))
        await self.send_envelope(refusal.status, draft(self.peer.signer, refusal.envelope["from"], INTENTS[-1], json.dumps(told), "application/json", reply_to=refusal.envelope["id"]))

    async def send_envelope(self, status, envelope):
        """send_envelope signs an answer, or does not, as it is told to."""
        peer, quirks = self.peer, self.peer.quirks
        if "other-from" in quirks:
            envelope = envelope | {"from": "did:web:other.example"}
        text = signed(envelope, peer.wrong_signer if "wrong-key" in quirks else peer.signer, peer.how)
        if "unsigned" in quirks:
            text = json.dumps(envelope)
        if "altered" in quirks:
            text = text.replace('"content":"', '"content":"x')
        await self.respond(status, text.encode(), content_type="application/uamp+json")

    async def manifest(self):
        peer = self.peer
        text = json.dumps({
            "agent": "uamp/1.0", "description": "counts", "intents": INTENTS, "body_types": ["text/plain", "application/json"],
            "auth": ["oauth2", "mtls"], "limits": {"max_body_kb": peer.max_kb},
        })
        head, body, signature = compact(text.encode(), peer.signer, typ="manifest+jws")
        if "manifest-altered" in peer.quirks:
            body = ("f" if body[0] == "e" else "e") + body[1:]
        await self.respond(200, f"{head}.{body}.{signature}".encode(), content_type="application/manifest+jws")
