"""A connection: acknowledges, keeps alive, finds the answer to a question, closes."""

import asyncio
import ssl

import control
import frame
from message import Refusal, check, new


class Closed(Exception):
    """The connection has ended, with its reason."""


def tls_context(options, server):
    """tls_context is None for plain TCP."""
    if not (options.tls or (server and options.cert)):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    if options.ca:
        context.load_verify_locations(options.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    if options.cert:
        context.load_cert_chain(options.cert, options.cert_key)
    return context


class Connection:
    """One TCP connection. node holds what outlives it: the outbox, the questions, and
    take, which handles a message that is new."""

    def __init__(self, node, reader, writer):
        self.node, self.reader, self.writer = node, reader, writer
        self.replies = {}  # of control messages, by the id of the question or by type
        self.agents = {}  # that the other side has registered: id to agent_info
        self.closing = None
        self.tasks = [asyncio.ensure_future(self._beat())]

    async def send(self, message):
        if self.writer.is_closing():
            raise Closed("the connection is closed")
        self.writer.write(frame.encode(message))
        await self.writer.drain()
        return message

    async def tell(self, kind, payload, parent=None):
        """tell sends a control message."""
        more = {"parent_message_id": parent} if parent else {}
        return await self.send(new(kind, self.node.sender(), {"agent_id": next(iter(self.agents), "")}, payload, **more))

    async def ask(self, kind, payload, *replies):
        """ask sends a control message and waits for its reply, whose type is one of
        replies."""
        waiting = asyncio.get_running_loop().create_future()
        for reply in replies:
            self.replies[reply] = waiting
        question = new(kind, self.node.sender(), {"agent_id": next(iter(self.agents), "")}, payload)
        self.replies[question["message_id"]] = waiting
        await self.send(question)
        try:
            return await asyncio.wait_for(waiting, self.node.options.patience)
        finally:
            self.replies = {key: w for key, w in self.replies.items() if w is not waiting}

    async def refuse(self, refusal, parent=None):
        self.node.report("refused", code=refusal.code, reason=str(refusal), of=parent)
        await self.tell(control.ERROR, refusal.payload(), parent)

    async def run(self):
        """run reads until the connection ends, and returns why."""
        try:
            while True:
                try:
                    async with asyncio.timeout(self.node.options.idle):
                        message = await frame.read(self.reader)
                except frame.Malformed as e:
                    await self.refuse(Refusal("INVALID_MESSAGE_FORMAT", str(e), "a JSON object", "other bytes"))
                    continue
                await self._handle(message)
        except asyncio.IncompleteReadError:
            return self.closing or "the other side has closed the connection"
        except TimeoutError:
            return f"nothing came in {self.node.options.idle} s"
        except frame.FrameFault as e:
            await self.refuse(Refusal("INVALID_MESSAGE_FORMAT", str(e)))
            return str(e)
        except (OSError, Closed) as e:
            return str(e)
        finally:
            self.abort()

    def abort(self):
        for task in self.tasks:
            task.cancel()
        for waiting in self.replies.values():
            if not waiting.done():
                waiting.set_exception(Closed("the connection ended before a reply"))
        self.writer.close()

    async def close(self, reason):
        """close tells the other side and lets it close (§5.3.3)."""
        self.closing = reason
        await self.tell(control.CLOSE, {"reason": reason})
        self.writer.write_eof() if self.writer.can_write_eof() else None

    async def _beat(self):
        while True:
            await asyncio.sleep(self.node.options.heartbeat)
            await self.tell(control.HEARTBEAT, {})

    async def _handle(self, m):
        try:
            check(m)
        except Refusal as e:
            return None if m.get("message_type") == control.ERROR else await self.refuse(e, m.get("message_id"))
        kind, parent = m["message_type"], m.get("parent_message_id")
        waiting = self.replies.get(parent) or (self.replies.get(kind) if not parent else None)
        if kind == control.ACK:
            return self.node.acknowledged(parent or m["payload"].get("message_id"))
        if waiting and not waiting.done():
            waiting.set_result(m)
            if kind != control.REGISTER:
                return None
        if kind == control.HEARTBEAT:
            return await self.tell(control.HEARTBEAT_REPLY, {}, m["message_id"])
        if kind == control.CLOSE:
            self.closing = f"the other side closes: {m['payload'].get('reason')}"
            self.tasks.append(asyncio.ensure_future(self._finish()))
            return None
        if kind == control.ERROR and parent in self.node.kept and self._stops(m["payload"]):
            return None  # the next connection sends it again, in order
        if kind == control.ERROR:
            return self.node.answered(m) or self.node.report("error", message=m)
        if kind in (control.HEARTBEAT_REPLY, control.HANDSHAKE_REPLY, control.AUTH_REPLY, control.REGISTER_REPLY):
            return None
        await self.node.take(self, m)

    @staticmethod
    def _stops(payload):
        """_stops finds whether an error refuses a message because the other side stops, and
        allows it to be sent again."""
        return payload.get("retry_allowed") and payload.get("details", {}).get("reason") == "stopping"

    async def _finish(self):
        """_finish ends the connection after what is pending."""
        await self.node.settled()
        self.writer.close()
