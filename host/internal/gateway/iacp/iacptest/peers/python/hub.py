"""A hub: takes spokes, knows who is registered, relays between them (§7.2)."""

import asyncio

import control
from connection import Connection, tls_context
from message import Refusal
from node import Node


class Hub(Node):
    def __init__(self, options):
        super().__init__(options)
        self.connections = {}  # by the id of a registered agent

    async def run(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.options.port, ssl=tls_context(self.options, server=True), limit=1 << 20)
        self.report("listens", port=server.sockets[0].getsockname()[1])
        await server.serve_forever()

    async def _serve(self, reader, writer):
        connection = Connection(self, reader, writer)
        connection.trusted = not (self.options.api_key or self.options.token)
        reason = await connection.run()
        self.connections = {agent: c for agent, c in self.connections.items() if c is not connection}
        self.report("disconnected", reason=reason, agents=list(connection.agents))

    def route(self, m):
        return self.connections.get(m["recipient"].get("agent_id"))

    async def take(self, connection, m):
        """take answers what opens a connection, and hands on or does the rest."""
        kind, payload, parent = m["message_type"], m["payload"], m["message_id"]
        methods = [] if connection.trusted else ["token" if self.options.token else "api_key"]
        if kind == control.HANDSHAKE:
            if not control.common_version(payload):
                await connection.refuse(Refusal("UNSUPPORTED_VERSION", "only version 1.0 is spoken", "1.0", payload.get("versions")), parent)
                return connection.writer.close()
            return await connection.tell(control.HANDSHAKE_REPLY, control.handshake_reply(self.options.agent_id[0], methods), parent)
        if kind == control.AUTH:
            if connection.trusted or control.secret_of(payload) == (self.options.token or self.options.api_key):
                connection.trusted = True
                return await connection.tell(control.AUTH_REPLY, {"authenticated": True}, parent)
            await connection.refuse(Refusal("AUTHENTICATION_FAILED", "the credential is not known"), parent)
            return connection.writer.close()
        if not connection.trusted:
            return await connection.refuse(Refusal("AUTHENTICATION_FAILED", "the connection is not authenticated"), parent)
        if kind == control.REGISTER:
            return await self._register(connection, m)
        if kind == control.DISCOVER:
            agents = [info for c in self.connections.values() for info in c.agents.values()]
            return await connection.tell(control.DISCOVER_REPLY, {"agents": agents}, parent)
        await self._hand_on(connection, m)

    async def _register(self, connection, m):
        info = m["payload"].get("agent_info", {})
        agent = info.get("agent_id")
        other = self.connections.get(agent)
        if not agent or (other and other is not connection and not other.writer.is_closing()):
            return await connection.refuse(Refusal("PERMISSION_DENIED", f"{agent} is registered by another connection"), m["message_id"])
        known = agent in connection.agents
        connection.agents[agent], self.connections[agent] = info, connection
        self.report("registered", agent=agent, info=info)
        local = connection.writer.get_extra_info("sockname")
        own = control.registration(self.options.agent_id[0], "Hub in Python", f"{local[0]}:{local[1]}")
        await connection.tell(control.REGISTER_REPLY, {"status": "accepted", "agent_id": agent}, m["message_id"])
        if not known and len(connection.agents) == 1:
            await connection.tell(control.REGISTER, own)
        await self.resend(connection)

    async def _hand_on(self, connection, m):
        recipient = m.get("recipient", {})
        target = recipient.get("agent_id")
        if recipient.get("broadcast"):
            await super().take(connection, m)
            for other in {c for c in self.connections.values() if c is not connection}:
                await other.send(m)
        elif target in self.options.agent_id or not target or m.get("parent_message_id") in self.questions:
            await super().take(connection, m)
        elif other := self.connections.get(target):
            await connection.tell(control.ACK, {"message_id": m["message_id"]}, m["message_id"])
            await other.send(m)
            self.report("relayed", id=m["message_id"], to=target)
        else:
            await connection.refuse(Refusal("AGENT_NOT_FOUND", f"{target} is not registered here"), m["message_id"])
