"""What the host refuses, and what an agent gives up with."""

import json

from . import text

CODES = (
    "OK", "INVALID", "DENIED", "NOT_FOUND", "UNAVAILABLE", "DEADLINE", "CANCELLED",
    "LIMIT", "CONFLICT", "UPSTREAM", "UNSUPPORTED", "INTERNAL",
)


def name(code):
    """The name of a code, also of one that nobody knows."""
    return CODES[code] if 0 <= code < len(CODES) else "CODE_%d" % code


class Error(Exception):
    """A call that the host refused, or a failure of the agent's own.

    code is a number of CODES; reason is a short word for programs. An Error that
    leaves an agent's turn or action ends it as failed: nothing of it happens.
    """

    def __init__(self, code, message, op="", reason="", retry_after_ms=0):
        super().__init__("%s: %s" % (name(code), message))
        self.code, self.message, self.op, self.reason, self.retry_after_ms = code, message, op, reason, retry_after_ms

    def body(self):
        """The error as the host reads it, in JSON."""
        members = {"code": name(self.code), "op": self.op, "reason": self.reason, "retry_after_ms": self.retry_after_ms}
        kept = {key: value for key, value in members.items() if value}
        return text.encode({**kept, "message": self.message})


class Abort(Exception):
    """Ends the turn at once, with a code of the agent's own and a message."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


def told(code, body):
    """The Error that a body of the host's describes."""
    try:
        said = json.loads(body)
    except ValueError:
        said = {}
    return Error(
        code, said.get("message") or "the host gave no message", said.get("op", ""), said.get("reason", ""), said.get("retry_after_ms", 0)
    )
