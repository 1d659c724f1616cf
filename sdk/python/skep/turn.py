"""A turn and a call of an action, as an agent sees them."""

from collections import namedtuple

from . import text
from .host import Host
from .ops import OPS

Address = namedtuple("Address", "type name")
Entry = namedtuple("Entry", "seq turn kind value")


def _address(raw):
    return Address(raw.get("address_type", ""), raw.get("address", ""))


class Message:
    """The message of a turn. type is request, response, broadcast, interrupt or
    broadcast_complete; ref is the id of what it belongs to."""

    def __init__(self, raw):
        inner = raw.get("message") or {}
        self.id, self.type = raw.get("id", ""), raw.get("msg_type", "")
        self.ref = inner.get("request_id") or inner.get("broadcast_id") or inner.get("interrupt_id") or ""
        self.sender = _address(inner.get("sender") or {})
        many = inner["recipients"] if "recipients" in inner else [inner["recipient"]] if "recipient" in inner else []
        self.recipients = [_address(one) for one in many]
        self.subject, self.body = inner.get("subject", ""), inner.get("body", "")


def _entries(raw):
    for one in text.items(raw):
        entry, parts = text.decode(one), text.members(one)
        kind = entry["kind"]
        value = entry.get("message" if kind == "in" else kind)
        if kind == "in":
            value = Message(value)
        elif kind == "call":
            value = {**value, "args_text": text.members(parts["call"]).get("args", "")}
        yield Entry(entry["seq"], entry["turn"], kind, value)


class Turn(Host):
    """One message's handling. input is all that the host says; see ABI.md, section 8.
    state and params are values; texts has all members as they were written."""

    def __init__(self, stub, session, clock, raw):
        super().__init__(stub, session, clock)
        self.raw = raw
        self.texts = text.members(raw.decode())
        self.input = text.decode(raw)
        self.message = Message(self.input["message"])
        self.state, self.params = self.input.get("state"), self.input.get("params")
        self._after, self._notes = None, []

    def set_state(self, value):
        """Keeps a value for the next turn; None clears it."""
        self.set_state_text(text.encode(value).decode())

    def set_state_text(self, raw):
        """Keeps a value as it is written."""
        self._after, self.state = raw, text.decode(raw)
        self.texts["state"] = raw

    def note(self, line):
        """Adds a line to the agent's history."""
        self._notes.append(line)

    def result(self):
        """The turn's result, as the host reads it."""
        members = []
        if self._after is not None:
            members.append(b'"state":' + text.compact(self._after).encode())
        if self._notes:
            members.append(b'"notes":' + text.encode(self._notes))
        return b"{" + b",".join(members) + b"}" if members else b""

    def history(self):
        """The newest entries, oldest first."""
        return list(_entries(text.members(self.texts["history"]).get("tail", "[]")))

    def history_after(self, after, limit=50):
        """A page of entries, and where the next begins; 0 at the end."""
        body = self.call(OPS["history"], text.encode({"after": after, "limit": limit})).decode()
        page = text.members(body)
        return list(_entries(page.get("entries", "[]"))), int(page.get("next", 0))

    def send_request(self, target, subject, body):
        """Asks another agent; the answer is a message of a later turn."""
        return self.tool("send_request", {"target": target, "subject": subject, "body": body})

    def ask(self, target, subject, body):
        """Asks another agent and gives the request's id. The answer has it as its
        ref, and so has the host's report that there will be none. A host that does
        not give it leaves it empty."""
        return self.send_request(target, subject, body).get("request_id", "")

    def send_response(self, target, subject, body):
        """Answers another agent."""
        return self.tool("send_response", {"target": target, "subject": subject, "body": body})

    def send_interrupt(self, target, subject, body):
        """Goes before what another agent does."""
        return self.tool("send_interrupt", {"target": target, "subject": subject, "body": body})

    def send_broadcast(self, targets, subject, body):
        """Tells several agents; ["all"] is every one."""
        return self.tool("send_broadcast", {"targets": targets, "subject": subject, "body": body})

    def acknowledge_broadcast(self, note=""):
        """Takes a broadcast to the notes."""
        return self.tool("acknowledge_broadcast", {"note": note or None})

    def ignore_broadcast(self, reason=""):
        """Does nothing about a broadcast."""
        return self.tool("ignore_broadcast", {"reason": reason or None})

    def await_message(self, reason=""):
        """Ends the turn's mail; the next message wakes the agent."""
        return self.tool("await_message", {"reason": reason or None})

    def task_complete(self, finish_message):
        """Ends the task."""
        return self.tool("task_complete", {"finish_message": finish_message})


class ActionCall(Host):
    """One call of an action: its name, what its caller asks, and what the operator's
    file says to it. texts has all three as they were written."""

    def __init__(self, stub, session, clock, raw):
        super().__init__(stub, session, clock)
        self.texts = text.members(raw.decode())
        given = text.decode(raw)
        self.name, self.args, self.params = given["name"], given.get("args"), given.get("params")
