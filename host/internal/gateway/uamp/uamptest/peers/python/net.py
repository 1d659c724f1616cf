"""Requests over HTTP/2, or over HTTP/3."""

import dataclasses
import json
import ssl

import httpx

import quic

LIMIT = 4 << 20


class _Transport(httpx.AsyncHTTPTransport):
    """Leads names to the addresses of a table."""

    def __init__(self, table, **more):
        super().__init__(**more)
        self.table = table

    async def handle_async_request(self, request):
        if at := self.table.get(request.url.host):
            host, _, port = at.partition(":")
            request.extensions["sni_hostname"] = request.url.host
            request.url = request.url.copy_with(host=host, port=int(port))
        return await super().handle_async_request(request)


@dataclasses.dataclass
class Reply:
    status: int
    headers: httpx.Headers
    body: bytes

    def code(self):
        return code_of(self.body)


def code_of(text):
    try:
        return json.loads(text).get("code")
    except (ValueError, AttributeError):
        return None


class Net:
    def __init__(self, plain=False, ca=None, cert=None, key=None, bearer=None, connect=(), http3=False):
        self.scheme = "http" if plain else "https"
        self.table = dict(c.split("=") for c in connect)
        self.headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.minimum_version = ssl.TLSVersion.TLSv1_3
        if ca:
            self.tls.load_verify_locations(ca)
        if cert:
            self.tls.load_cert_chain(cert, key)
        self.quic = (ca, cert, key) if http3 else None
        self.client = None

    def open(self):
        """open returns a client with connections of its own."""
        transport = quic.Transport(self.table, *self.quic) if self.quic else _Transport(self.table, verify=self.tls, http1=False, http2=True)
        return httpx.AsyncClient(transport=transport, headers=self.headers, timeout=30, trust_env=False)

    async def request(self, method, url, headers=None, content=None):
        self.client = self.client or self.open()
        body = b""
        async with self.client.stream(method, url, headers=headers, content=content) as r:
            async for part in r.aiter_raw():
                body += part
                if len(body) > LIMIT:
                    raise ValueError("more than 4 MiB")
            return Reply(r.status_code, r.headers, body)
