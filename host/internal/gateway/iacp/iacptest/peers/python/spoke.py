"""A spoke: dials a hub, shakes hands, authenticates, registers, and dials again."""

import asyncio
import random

import control
from connection import Closed, Connection, tls_context
from node import Node


class Unwanted(Exception):
    """The hub refuses this spoke for good."""


def accepted(m, what):
    """accepted refuses a reply that is an error."""
    payload = m["payload"]
    negative = payload.get("status") in ("error", "failed", "rejected") or False in (payload.get("authenticated"), payload.get("success"), payload.get("accepted"))
    if m["message_type"] == control.ERROR or negative:
        raise Unwanted(f"{what}: {payload.get('error_code') or payload}")
    return payload


class Spoke(Node):
    connection = None

    def route(self, m):
        return self.connection

    async def take(self, connection, m):
        """take notes what the hub registers in exchange (§5.3.1, 4)."""
        if m["message_type"] != control.REGISTER:
            return await super().take(connection, m)
        info = m["payload"].get("agent_info", {})
        connection.agents[info.get("agent_id")] = info
        self.report("exchanged", info=info)
        await connection.tell(control.REGISTER_REPLY, {"status": "accepted", "agent_id": info.get("agent_id")}, m["message_id"])

    async def run(self):
        """run keeps a connection, with exponential backoff between attempts (§5.3.2)."""
        delay = self.options.backoff
        while True:
            registered = False
            try:
                connection = await self._dial()
                reading = asyncio.ensure_future(connection.run())
                try:
                    await self._introduce(connection)
                    registered, delay = True, self.options.backoff
                    self.connection = connection
                    await self.resend(connection)
                    self.report("registered", unacknowledged=len(self.outbox))
                    reason = await reading
                finally:
                    self.connection = None
                    connection.abort()
            except Unwanted as e:
                return self.report("unwanted", reason=str(e))
            except (OSError, Closed, TimeoutError) as e:
                reason = f"{type(e).__name__}: {e}"
            self.report("disconnected", reason=reason, registered=registered)
            if self.options.once:
                return
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(delay * 2, 60)

    async def _dial(self):
        host, _, port = self.options.connect.rpartition(":")
        context = tls_context(self.options, server=False)
        name = (self.options.server_name or host) if context else None
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=name, limit=1 << 20)
        return Connection(self, reader, writer)

    async def _introduce(self, connection):
        """_introduce is §5.3.1, 2 to 4. A bare spoke has no handshake, as the document
        prints none."""
        if not self.options.bare:
            hello = accepted(await connection.ask(control.HANDSHAKE, control.handshake(self.options.agent_id[0]), control.HANDSHAKE_REPLY), "handshake")
            self.report("handshake", payload=hello)
            if credential := control.credential(self.options):
                accepted(await connection.ask(control.AUTH, credential, control.AUTH_REPLY), "authentication")
        for agent_id in self.options.agent_id:
            local = connection.writer.get_extra_info("sockname")
            payload = control.registration(agent_id, "Peer in Python", f"{local[0]}:{local[1]}")
            reply = await connection.ask(control.REGISTER, payload, control.REGISTER_REPLY, control.REGISTER)
            self.report("registration", payload=accepted(reply, "registration"))
