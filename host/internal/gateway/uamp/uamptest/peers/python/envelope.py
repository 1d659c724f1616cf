"""The envelope of §4 and the delta of §5, as the schemas of Appendix A have them."""

import datetime
import re
import uuid

from canonical import loads, write
from did import keys_of
from jws import open_sig, seal

INTENTS = ["ask", "inform", "propose", "confirm", "deny", "progress", "cancel", "subscribe", "notify", "error"]
TYPES = ["patch", "chunk", "progress", "done", "cancel", "error"]
TERMINAL = ["done", "cancel", "error"]
REQUIRED = ["id", "ts", "from", "to", "intent", "body", "sig"]


def now(seconds=0):
    """now is the time without fractions, as the document prints it."""
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def time_of(text):
    """time_of reads ISO 8601 with a zone; only UTC is one of the document."""
    at = datetime.datetime.fromisoformat(text)
    if at.utcoffset() != datetime.timedelta():
        raise ValueError(f"{text} is not in UTC")
    return at


def _uuid(v):
    """§4 writes urn:uuid: and version 4, the schema's format has the bare UUID: this peer
    takes both, and every version."""
    return isinstance(v, str) and re.fullmatch(r"(urn:uuid:)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", v) is not None


def _time(v):
    try:
        return isinstance(v, str) and time_of(v) is not None
    except ValueError:
        return False


def _uri(v):
    return isinstance(v, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", v) is not None


def _text(v):
    return isinstance(v, str)


def _integer(v, least):
    """An integer of JSON Schema may be spelled 64.0."""
    return not isinstance(v, bool) and (isinstance(v, int) or isinstance(v, float) and v.is_integer()) and v >= least


def _context(v):
    return isinstance(v, list) and all(isinstance(c, dict) and _uuid(c.get("id")) and _text(c.get("hash")) and re.fullmatch("sha256:[0-9a-f]{64}", c["hash"]) for c in v)


def _body(v):
    return isinstance(v, dict) and all(_text(v.get(name)) for name in ("type", "content")) and all(_text(v.get(name, "")) for name in ("encoding", "compression"))


CHECKS = {
    "id": _uuid,
    "ts": _time,
    "from": _uri,
    "to": lambda v: isinstance(v, list) and len(v) > 0 and all(map(_uri, v)),
    "intent": lambda v: v in INTENTS,
    "reply_to": _uuid,
    "context": _context,
    "stream_id": _text,
    "delta_window": lambda v: _integer(v, 1),
    "body": _body,
    "cap_token": _text,
    "sig": _text,
    "ext": lambda v: isinstance(v, dict),
}


def fault(e):
    """fault returns what is wrong with an envelope."""
    if not isinstance(e, dict):
        return "an envelope is an object"
    for name in e:
        if name not in CHECKS:
            return f"an envelope has no member {name}"
        if not CHECKS[name](e[name]):
            return f"{name} is wrong"
    return next((f"the envelope has no {name}" for name in REQUIRED if name not in e), None)


def fault_of_delta(d):
    """Deltas may leave stream_id and ts out, as the example in C.2 does against the schema."""
    checks = {"delta_seq": lambda v: _integer(v, 0), "stream_id": _text, "ts": _time, "type": lambda v: v in TYPES, "payload": lambda v: isinstance(v, dict)}
    if not isinstance(d, dict):
        return "a delta is an object"
    for name in d:
        if name not in checks:
            return f"a delta has no member {name}"
        if not checks[name](d[name]):
            return f"{name} is wrong"
    return next((f"the delta has no {name}" for name in ("delta_seq", "type") if name not in d), None)


def draft(signer, to, intent, content="", type="text/plain", **more):
    """draft is an envelope without its sig."""
    e = {"id": more.pop("id", None) or uuid.uuid4().urn, "ts": more.pop("ts", None) or now(), "from": signer.did, "to": [to] if isinstance(to, str) else to, "intent": intent}
    return e | more | {"body": {"type": type, "content": content}}


def signed(envelope, signer, how, **header):
    """signed returns the text of an envelope with its sig."""
    sig = seal(write(envelope, list), signer, how, **header)
    return write(envelope | {"sig": sig}, list)


class Refusal(Exception):
    def __init__(self, status, code, reason, envelope=None, headers=()):
        super().__init__(reason)
        self.status, self.code, self.envelope, self.headers = status, code, envelope, list(headers)


def parse(data):
    """parse reads the bytes of an envelope and checks all but its signature."""
    try:
        source = data.decode()
        envelope = loads(source)
    except (ValueError, RecursionError) as e:
        raise Refusal(400, "4.00", str(e)) from e
    if reason := fault(envelope):
        known = isinstance(envelope, dict) and not fault(envelope | {"sig": ""})
        raise Refusal(400, "4.00", reason, envelope if known else None)
    return envelope, source


async def verify(envelope, source, net):
    """verify checks the signature of a parsed envelope and returns how it was made."""
    try:
        return await open_sig(source, envelope["sig"], lambda kid: keys_of(envelope["from"], kid, net))
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise Refusal(401, "4.01", str(e), envelope) from e
