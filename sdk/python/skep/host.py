"""The host as one turn or one call of an action reaches it."""

import base64
import datetime

import grpc

from . import text, wire
from .error import CODES, Error, told
from .ops import OPS, number
from .span import Span

_NAMES = {number: name for name, number in OPS.items()}
_UNAVAILABLE, _CANCELLED = CODES.index("UNAVAILABLE"), CODES.index("CANCELLED")


class Stub:
    """The service of the host, over one channel for all turns."""

    def __init__(self, channel):
        for name in ("Call", "Submit", "Wait", "Read", "Close", "Sleep"):
            request = {"Call": wire.OpRequest, "Submit": wire.OpRequest}.get(name) or getattr(wire, name + "Request")
            answer = {"Call": wire.OpResponse, "Submit": wire.HandleResponse, "Read": wire.OpResponse}.get(name) or getattr(wire, name + "Response")
            call = channel.unary_unary("/skep.plugin.v1.Host/" + name, request.SerializeToString, answer.FromString)
            setattr(self, name, call)


class Host:
    """Ops, as numbers of OPS with requests in JSON. It serves one thread."""

    def __init__(self, stub, session, clock=0):
        self._stub, self._session, self._clock = stub, session, clock

    def _ask(self, name, request):
        try:
            answer = getattr(self._stub, name)(request)
        except grpc.RpcError as lost:  # the turn is over, or the host is gone
            code = _CANCELLED if lost.code() == grpc.StatusCode.PERMISSION_DENIED else _UNAVAILABLE
            raise Error(code, lost.details() or str(lost.code()), "host") from lost
        self._clock = getattr(answer, "clock", 0) or self._clock
        return answer

    def call(self, op, request=b""):
        """Runs an op and waits for its answer, bytes."""
        answer = self._ask("Call", wire.OpRequest(session=self._session, op=op, request=request))
        if answer.code:
            raise told(answer.code, answer.body)
        return answer.body

    def submit(self, op, request=b""):
        """Starts an op and gives a handle."""
        answer = self._ask("Submit", wire.OpRequest(session=self._session, op=op, request=request))
        if answer.code:
            raise told(answer.code, answer.error)
        return answer.handle

    def wait(self, handles, timeout_ms=-1):
        """The lowest index of a handle that is ready. Out of time is DEADLINE."""
        answer = self._ask("Wait", wire.WaitRequest(session=self._session, handles=handles, timeout_ms=timeout_ms))
        if answer.code:
            raise told(answer.code, answer.error)
        return answer.index

    def read(self, handle, size=1 << 16):
        """The next bytes of an answer, none at its end."""
        answer = self._ask("Read", wire.ReadRequest(session=self._session, handle=handle, size=size))
        if answer.code:
            raise told(answer.code, answer.body)
        return answer.body

    def close(self, handle):
        """Calls an op off if it still runs, and forgets its answer."""
        answer = self._ask("Close", wire.CloseRequest(session=self._session, handle=handle))
        if answer.code:
            raise told(answer.code, answer.error)

    def now_ns(self):
        """The turn's clock, in nanoseconds since 1970. It moves with the answers of
        ops."""
        return self._clock

    def now(self):
        """The turn's clock."""
        return datetime.datetime.fromtimestamp(self._clock / 1e9, datetime.timezone.utc)

    def sleep(self, seconds):
        """Moves the turn's clock by a time."""
        self._ask("Sleep", wire.SleepRequest(session=self._session, nanoseconds=round(seconds * 1e9)))

    def op(self, op, request=None, /, **members):
        """Runs an op by its name, as in op("kv.get", key="k"), and gives its answer as
        Python has it. A request in JSON may stand for the members."""
        body = self.call(number(op), text.encode(members) if request is None else request)
        return text.decode(body) if body else None

    def start(self, op, request=None, /, **members):
        """Starts an op; several run at once. Its errors come with its answer."""
        return Pending(self, number(op), text.encode(members) if request is None else request)

    def log(self, message, level="info", **fields):
        """Writes a line for the operator. What the host says to that is of no use."""
        line = {"level": level, "message": message}
        try:
            self.call(OPS["log"], text.encode({**line, "fields": fields} if fields else line))
        except Error:
            pass

    def random(self):
        """32 hexadecimal digits of the turn's own."""
        return self.op("random")["value"]

    def wall_time(self):
        """The real time, as text."""
        return self.op("clock.now")["time"]

    def count(self, name, by=1, labels=None):
        """Adds to a number that the operator's monitoring reads."""
        self._measure(name, by, {}, labels)

    def gauge(self, name, value, labels=None):
        """Sets such a number."""
        self._measure(name, value, {"kind": "gauge"}, labels)

    def _measure(self, name, value, kind, labels):
        self.op("metric", name=name, value=value, **kind, **({"labels": labels} if labels else {}))

    def span(self, name, attributes=None):
        """Begins a part of the turn that is shown with the time it took, as in
        with t.span("look up"): …"""
        more = {"attributes": attributes} if attributes else {}
        return Span(self, self.op("span", name=name, **more)["id"])

    def blob_put(self, data):
        """Keeps bytes that are too large for a message, and gives their address."""
        return self.op("blob.put", data=base64.b64encode(data).decode())["sha256"]

    def blob_get(self, sha256):
        """The bytes at an address."""
        return base64.b64decode(self.op("blob.get", sha256=sha256)["data"])

    def tool(self, name, args):
        """Calls a MAIL tool: its answer has a text, and perhaps an id. Actions have
        none."""
        return self.op("mail", tool=name, args=args)

    def action(self, name, args):
        """Calls an action and gives its answer."""
        return self.op("action", name=name, args=args)


class Pending:
    """An op that was started, and its answer as far as it is not read."""

    def __init__(self, host, op, request):
        self._host, self._handle, self._error = host, 0, None
        try:
            self._handle = host.submit(op, request)
        except Error as refused:
            self._error = refused

    def pieces(self, size=1 << 14):
        """The answer as it comes. Who leaves early calls the op off."""
        try:
            while True:
                if self._error:
                    raise self._error
                if not self._handle:
                    return
                try:
                    piece = self._host.read(self._handle, size)
                except Error as failed:
                    self._error = failed
                    continue
                if not piece:
                    return
                yield piece
        finally:
            self.close()

    def lines(self):
        """The lines of JSON of an answer as they come, such as those of llm.chat."""
        rest = b""
        for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n")
            yield from map(text.decode, filter(None, whole))
        if rest:
            yield text.decode(rest)

    def answer(self):
        """The whole answer as Python has it."""
        body = b"".join(self.pieces())
        return text.decode(body) if body else None

    def close(self):
        """Calls the op off if it still runs. It never fails."""
        if self._handle:
            handle, self._handle = self._handle, 0
            try:
                self._host.close(handle)
            except Error:
                pass
