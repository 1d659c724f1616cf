"""HTTP/3 requests."""

import asyncio

import httpx
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

PATIENCE = 30  # seconds
HOP_BY_HOP = {b"host", b"connection", b"transfer-encoding"}


class _Connection(QuicConnectionProtocol):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.http, self.answers = H3Connection(self._quic), {}

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            for answer in self.answers.values():
                answer.put_nowait(None)
        elif isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id].put_nowait(None)
        for e in self.http.handle_event(event):
            if isinstance(e, HeadersReceived | DataReceived) and e.stream_id in self.answers:
                self.answers[e.stream_id].put_nowait(e)

    def send(self, request, body):
        """send sends a request and returns the queue of what answers it."""
        stream = self._quic.get_next_available_stream_id()
        answer = self.answers[stream] = asyncio.Queue()
        headers = [(b":method", request.method.encode()), (b":scheme", b"https"), (b":authority", request.headers["host"].encode()), (b":path", request.url.raw_path)]
        headers += [(name.lower(), value) for name, value in request.headers.raw if name.lower() not in HOP_BY_HOP]
        self.http.send_headers(stream, headers, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()
        return answer


async def _next(answer):
    event = await asyncio.wait_for(answer.get(), PATIENCE)
    if event is None:
        raise httpx.ReadError("the connection or its stream has ended")
    return event


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer, ended):
        self.answer, self.ended = answer, ended

    async def __aiter__(self):
        while not self.ended:
            event = await _next(self.answer)
            self.ended = event.stream_ended
            if isinstance(event, DataReceived):
                yield event.data


class Transport(httpx.AsyncBaseTransport):
    """Has one connection for each host, and leads names to the addresses of a table."""

    def __init__(self, table, ca, cert, key):
        self.table, self.ca, self.cert, self.key = table, ca, cert, key
        self.connections = {}

    async def _connection(self, url):
        host, _, port = self.table.get(url.host, f"{url.host}:{url.port or 443}").rpartition(":")
        if url.host not in self.connections:
            config = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name=url.host)
            if self.ca:
                config.load_verify_locations(self.ca)
            if self.cert:
                config.load_cert_chain(self.cert, self.key)
            context = connect(host, int(port), configuration=config, create_protocol=_Connection)
            self.connections[url.host] = context, await context.__aenter__()
        return self.connections[url.host][1]

    async def handle_async_request(self, request):
        body = await request.aread()
        try:
            connection = await self._connection(request.url)
        except ConnectionError as e:
            raise httpx.ConnectError(str(e)) from e
        answer = connection.send(request, body)
        head = await _next(answer)
        headers = dict(head.headers)
        status = int(headers.pop(b":status"))
        return httpx.Response(status, headers=list(headers.items()), stream=_Body(answer, head.stream_ended), extensions={"http_version": b"HTTP/3"})

    async def aclose(self):
        for context, _ in self.connections.values():
            await context.__aexit__(None, None, None)
        self.connections = {}
