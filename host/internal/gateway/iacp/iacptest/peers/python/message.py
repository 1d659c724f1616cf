"""Messages: §2.1 and §10.1."""

import datetime
import uuid

VERSION = "1.0"
NESTING = 10  # levels of a payload, which is the first
AGENT_ID = 64  # characters
PRIORITIES = ("low", "normal", "high", "urgent")

# Retry by the table of §10.1. The second spelling of the first code is §5.4.2's.
RETRIED = {
    "INVALID_MESSAGE_FORMAT": False,
    "INVALID_FORMAT": False,
    "UNSUPPORTED_VERSION": False,
    "AUTHENTICATION_FAILED": False,
    "PERMISSION_DENIED": False,
    "AGENT_NOT_FOUND": True,
    "TIMEOUT": True,
}


class Refusal(Exception):
    """A message that is answered by an error_response."""

    def __init__(self, code, text, expected=None, received=None):
        super().__init__(text)
        self.code, self.expected, self.received = code, expected, received

    def payload(self):
        retried = RETRIED[self.code]
        p = {"error_code": self.code, "error_message": str(self), "retry_allowed": retried}
        if retried:
            p["retry_after"] = 5
        if self.expected is not None:
            p["details"] = {"expected": self.expected, "received": self.received}
        return p


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def new(kind, sender, recipient, payload, **more):
    """new makes a message; more are other members of the base message."""
    return {
        "iacp_version": VERSION,
        "message_id": str(uuid.uuid4()),
        "timestamp": now(),
        "sender": sender,
        "recipient": {"agent_id": recipient} if isinstance(recipient, str) else recipient,
        "message_type": kind,
        "payload": payload,
    } | more


def _depth(value):
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        v, level = waiting.pop()
        if isinstance(v, (dict, list)):
            deepest = max(deepest, level)
            waiting += [(inner, level + 1) for inner in (v.values() if isinstance(v, dict) else v)]
    return deepest


def _is_id(value):
    return isinstance(value, str) and 0 < len(value) <= AGENT_ID


def check(m):
    """check refuses what the base message does not allow."""

    def demand(holds, expected, received):
        if not holds:
            raise Refusal("INVALID_MESSAGE_FORMAT", f"{expected} is required", expected, received)

    major = str(m.get("iacp_version", "")).partition(".")[0]
    if major != "1":
        raise Refusal("UNSUPPORTED_VERSION", "only version 1.0 is spoken", VERSION, m.get("iacp_version"))
    try:
        uuid.UUID(m["message_id"])
    except (KeyError, ValueError, AttributeError, TypeError):
        demand(False, "message_id: a UUID", m.get("message_id"))
    demand(isinstance(m.get("message_type"), str), "message_type: a string", m.get("message_type"))
    demand(isinstance(m.get("sender"), dict) and _is_id(m["sender"].get("agent_id")), "sender.agent_id: 1 to 64 characters", m.get("sender"))
    demand(isinstance(m.get("payload"), dict), "payload: an object", type(m.get("payload")).__name__)
    demand(_depth(m["payload"]) <= NESTING, f"payload: at most {NESTING} levels", _depth(m["payload"]))
    metadata = m.get("metadata", {})
    demand(isinstance(metadata, dict), "metadata: an object", metadata)
    demand(metadata.get("priority", "normal") in PRIORITIES, "metadata.priority: " + "|".join(PRIORITIES), metadata.get("priority"))
    if text := metadata.get("expires_at"):
        try:
            at = datetime.datetime.fromisoformat(text)
        except (ValueError, TypeError):
            demand(False, "metadata.expires_at: ISO 8601", text)
        if at < datetime.datetime.now(datetime.timezone.utc):
            raise Refusal("TIMEOUT", "the message has expired", "a time ahead", text)


def requires_response(m):
    return m.get("metadata", {}).get("requires_response", True)
