"""Agents in a mesh of AMP 1.0: what asks (Client), what answers (Agent), what is registered (Membership).

One file, standard library only, Python 3.9 or later. README.md has the use.
"""

import asyncio
import collections
import concurrent.futures
import datetime
import hashlib
import hmac
import http.client
import http.server
import inspect
import json
import socket
import sys
import threading
import time
import base64
import binascii
import urllib.error
import urllib.parse
import urllib.request
import uuid

VERSION = "1.0"
MAX_BODY = 1 << 20  # bytes of a message, in and out
MAX_AGE = 300  # seconds between the time of a signed message and now
MAX_LEASE = 1e9  # seconds
MAX_KEPT = 1024  # answers that an agent keeps for repeats

# The HTTP status of each code of the protocol.
STATUS = {
    "AGENT_NOT_FOUND": 404,
    "CAPABILITY_NOT_FOUND": 404,
    "AUTHENTICATION_FAILED": 401,
    "RATE_LIMIT_EXCEEDED": 429,
    "TIMEOUT": 504,
    "INVALID_SCHEMA": 400,
    "CONTEXT_NOT_FOUND": 404,
    "INSUFFICIENT_RESOURCES": 503,
}


class Error(Exception):
    """An error message of the protocol, sent or received. status is 0 for one made here."""

    def __init__(self, code, text, details=None, status=0):
        super().__init__(f"{code}: {text}")
        self.code, self.text, self.details, self.status = code, text, details or {}, status

    @property
    def reason(self):
        """The finer reason, empty for none."""
        return self.details.get("reason", "")


def canonical(value):
    """The form of RFC 8785 of a JSON value, as text."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(value)
    return json.dumps(value, ensure_ascii=False)


def _number(value):
    """A number as ECMAScript writes it (RFC 8785, 3.2.2.3)."""
    try:
        value = float(value)
    except OverflowError:
        raise ValueError("JSON has no such number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("JSON has no such number")
    if value == 0:
        return "0"
    digits, _, exponent = repr(abs(value)).partition("e")
    whole, _, part = digits.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + part
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    sign, count = "-" if value < 0 else "", len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    tail = "." + digits[1:] if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def _signature(message, key):
    headers = {name: value for name, value in message.get("headers", {}).items() if name != "signature"}
    text = canonical({**message, "headers": headers} if "headers" in message else message)
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def sign(message, key):
    """Adds the signature of a message. key is bytes."""
    message.setdefault("headers", {})
    value = base64.b64encode(_signature(message, key)).decode()
    message["headers"]["signature"] = {"algorithm": "HMAC-SHA256", "value": value}


def verify(message, key):
    """Raises Error unless the message was signed with the key in the last five minutes."""
    signature = message.get("headers", {}).get("signature")
    try:
        if signature["algorithm"] != "HMAC-SHA256":
            raise ValueError
        value = base64.b64decode(signature["value"], validate=True)
        genuine = hmac.compare_digest(value, _signature(message, key))
    except (TypeError, KeyError, ValueError, binascii.Error, RecursionError):
        genuine = False
    if not genuine:
        raise Error("AUTHENTICATION_FAILED", "headers.signature is missing or of another key", {"reason": "SIGNATURE"})
    try:
        sent = datetime.datetime.fromisoformat(_seconds(message["timestamp"]))
        age = abs((datetime.datetime.now(datetime.timezone.utc) - sent).total_seconds())
    except (TypeError, KeyError, ValueError, AttributeError):
        age = MAX_AGE + 1
    if age > MAX_AGE:
        raise Error("AUTHENTICATION_FAILED", f"timestamp must be within {MAX_AGE} s of now", {"reason": "EXPIRED"})


def _seconds(timestamp):
    """A timestamp in whole seconds, with an offset: Python 3.9 reads no Z and no nanoseconds."""
    day, _, rest = timestamp.replace("Z", "+00:00").partition("T")
    offset = max(rest.find("+"), rest.find("-"))
    if offset < 0:
        raise ValueError("timestamp has no offset")
    return f"{day}T{rest[:8]}{rest[offset:]}"


def _now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def encode(message, key=None):
    """The bytes of a message; signed if there is a key."""
    if key:
        sign(message, key)
    return json.dumps({"protocol": "AMP/" + VERSION, "message": message}).encode()


def decode(text, key=None):
    """The message of some bytes. With a key it must be signed. Raises Error."""
    try:
        if len(text) > MAX_BODY:
            raise _too_large()
        outer = json.loads(text, parse_constant=_refuse_constant)
        token, _, version = outer["protocol"].partition("/")
        message = outer["message"]
        shaped = isinstance(message["payload"], dict) and message["type"] in ("request", "response", "event", "error")
        members = ("source", "destination", "headers")
        shaped = shaped and all(isinstance(message.get(name, {}), dict) for name in members)
        shaped = shaped and all(isinstance(message.get(name, ""), str) for name in ("id", "timestamp"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Error("INVALID_SCHEMA", "this is no message of AMP", {"reason": "MALFORMED"}) from None
    if not shaped or token not in ("AMP", "AIP"):
        raise Error("INVALID_SCHEMA", "this is no message of AMP", {"reason": "MALFORMED"})
    if version.partition(".")[0] != "1":
        details = {"reason": "VERSION_UNSUPPORTED", "supported_versions": [VERSION]}
        raise Error("INVALID_SCHEMA", "only version 1 is spoken here", details)
    if key:
        verify(message, key)
    return message


def _too_large():
    return Error("INVALID_SCHEMA", f"the message has more than {MAX_BODY} bytes", {"reason": "TOO_LARGE"}, 413)


def _refuse_constant(name):
    raise ValueError(f"JSON has no {name}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # the credential is for the mesh alone


class Client:
    """Asks a mesh in the name of an agent. Safe for several threads.

    url is that of invoke, token the bearer token, key the bytes of a shared HMAC key,
    timeout in seconds. tls is an ssl.SSLContext, for a private authority or a certificate.
    """

    def __init__(self, url, agent_id, token=None, key=None, timeout=60.0, tls=None):
        self.url, self.agent_id, self.token, self.key, self.timeout = url, agent_id, token, key, timeout
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=tls))

    def invoke(self, capability, parameters, agent=None, session=None, timeout=None):
        """Asks an agent, or without one any with the capability, and returns the result."""
        payload = {"capability": capability, "parameters": parameters}
        return self._result(payload, agent, capability, session, timeout)

    async def ainvoke(self, *args, **named):
        """invoke for an event loop, which it does not hold up."""
        return await asyncio.get_running_loop().run_in_executor(None, lambda: self.invoke(*args, **named))

    def delegate(self, task, capability, parameters, callback=None, agent=None):
        """Hands on a subtask of a task. With a callback the payload is a partial answer, and the
        answer is posted to that address: Agent.on_answer gets it."""
        subtask = {"capability": capability, "parameters": parameters}
        if callback:
            subtask["completion_callback"] = callback
        return self.request({"delegation": {"parent_task_id": task, "subtask": subtask}}, agent, wait=not callback)

    def discover(self, *capabilities, **constraints):
        """The agents that have all of the capabilities, with what their mesh tells of them."""
        query = {"capabilities": list(capabilities), "constraints": constraints}
        return _member(self._result({"query": query}, "registry", "discovery"), "agents")

    def negotiate(self, kind="protocol_version", **requirements):
        """What the mesh answers to a negotiation: capability_check or protocol_version."""
        payload = {"negotiation_type": kind, "requirements": requirements, "supported": [VERSION]}
        return self._result(payload)

    def context(self, operation, **members):
        """An operation of a shared context: create, get, update, fork or merge. Returns the context."""
        return _member(self._result({"operation": operation, **members}, "context"), "context")

    def tell(self, event_type, agent=None, **members):
        """Sends an event, which has no answer."""
        destination = {"agent_id": agent} if agent else {}
        self._exchange(self._message("event", destination, {"event_type": event_type, **members}), self.timeout)

    def _result(self, *args):
        return _member(self.request(*args), "result")

    def request(self, payload, agent=None, capability=None, session=None, timeout=None, wait=True):
        """Sends a request and returns the payload of its response. Raises Error, or OSError
        where the mesh cannot be reached. With wait a partial answer is asked for until it is whole."""
        destination = {name: value for name, value in (("agent_id", agent), ("capability", capability)) if value}
        timeout = timeout or self.timeout
        message = self._message("request", destination, payload, session)
        message["headers"]["timeout_ms"] = int(timeout * 1000)
        end, answer, location = time.monotonic() + timeout, *self._exchange(message, timeout)
        while wait and location:
            if time.monotonic() >= end:
                raise Error("TIMEOUT", f"there is no answer after {timeout} s")
            time.sleep(0.2)
            answer, location = self._get(location, end - time.monotonic())
        if not answer or answer["headers"].get("correlation_id") != message["id"]:
            raise Error("INVALID_SCHEMA", "the answer is to another message")
        if answer["payload"].get("status") == "failed":
            raise Error("FAILED", str(answer["payload"].get("result")), answer["payload"])
        return answer["payload"]

    def _message(self, kind, destination, payload, session=None):
        source = {"agent_id": self.agent_id, **({"session_id": session} if session else {})}
        return {"id": uuid.uuid4().hex, "type": kind, "timestamp": _now(), "source": source,
                "destination": destination, "headers": {}, "payload": payload}

    def _exchange(self, message, timeout):
        """Posts a message, again under its id while the mesh is busy or away, until timeout."""
        end, pause = time.monotonic() + timeout, 0.2
        while True:
            busy, wait = None, 0.0
            try:
                return self._call(self.url, encode(message, self.key), max(end - time.monotonic(), 0.1))
            except Error as err:
                if err.status not in (429, 502, 503):
                    raise
                after = err.details.get("retry_after_ms", 0)
                busy, wait = err, after / 1000 if isinstance(after, (int, float)) else 0
            except OSError as err:
                busy = err
            if time.monotonic() + max(pause, wait) >= end:
                raise busy
            time.sleep(max(pause, wait))
            pause = min(pause * 2, 5.0)

    def _get(self, location, timeout):
        url = urllib.parse.urljoin(self.url, location)
        here, there = urllib.parse.urlsplit(self.url), urllib.parse.urlsplit(url)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise Error("INVALID_SCHEMA", f"the answer is said to be at another host: {there.netloc}")
        return self._call(url, None, max(timeout, 0.1))

    def _call(self, url, body, timeout):
        """The message that answers, and where the whole answer will be; None for no such."""
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        if self.token:
            request.add_unredirected_header("Authorization", "Bearer " + self.token)
        try:
            with self._opener.open(request, timeout=timeout) as reply:
                text, status, location = reply.read(MAX_BODY + 1), reply.status, reply.headers.get("Location")
        except urllib.error.HTTPError as err:
            with err:
                text, status, location = err.read(MAX_BODY + 1), err.code, None
        except http.client.HTTPException as err:  # it ended within its reply
            raise ConnectionError(f"{type(err).__name__}: {err}") from err
        if not text and status < 300:
            return None, None  # an event was taken
        try:
            message = decode(text, self.key)
        except Error as err:
            err.status = status
            raise
        if message["type"] == "error":
            error = message["payload"].get("error")
            error = error if isinstance(error, dict) else {}
            details = error.get("details")
            details = details if isinstance(details, dict) else {}
            raise Error(error.get("code", "INVALID_SCHEMA"), error.get("message", ""), details, status)
        if status >= 300:
            raise Error("INVALID_SCHEMA", f"the mesh answered {status} without an error", status=status)
        return {**message, "headers": message.get("headers", {})}, location if status == 202 else None


def _member(value, name):
    if not isinstance(value, dict) or name not in value:
        raise Error("INVALID_SCHEMA", f"the answer has no {name}")
    return value[name]


class Agent:
    """Answers a mesh. token is what callers must show, key the bytes of a shared HMAC key.

    on_answer(message) gets responses and errors, as to a delegated subtask; on_event(message)
    gets events. One that raises is sent its message again. A repeat of a message, under its id,
    gets the first answer.
    """

    def __init__(self, agent_id, name=None, version="1.0.0", framework="custom", token=None, key=None, parallel=16):
        self.identity = {"id": agent_id, "name": name or agent_id, "version": version,
                         "framework": framework, "protocol_version": VERSION}
        self.token, self.key, self.parallel = token, key, parallel
        self.on_answer = self.on_event = lambda message: None
        self._described, self._handlers = [], {}
        self._under_way, self._given, self._lock = {}, collections.OrderedDict(), threading.Lock()

    def capability(self, capability_id, handler=None, version="1.0", **described):
        """Declares a capability: a decorator, or with a handler a call. The handler gets the
        parameters and returns the result; it may be a coroutine function. described are members
        of the declaration: description, input_schema, output_schema, constraints."""
        if handler is None:
            return lambda given: self.capability(capability_id, given, version, **described) or given
        self._described.append({"id": capability_id, "version": version, **described})
        self._handlers[capability_id] = handler

    def admits(self, shown):
        """Whether a credential is this agent's token, or none is wanted."""
        return not self.token or hmac.compare_digest(shown.encode(), self.token.encode())

    def answer(self, text, shown=""):
        """The status and the bytes that answer a message, whose sender has shown a credential."""
        message = {}
        try:
            if not self.admits(shown):
                raise Error("AUTHENTICATION_FAILED", "the credential is not of this agent", {"reason": "CREDENTIAL"})
            message = decode(text, self.key)
            payload = self._once(message)
        except Error as err:
            return self.refuse(err, message.get("id"))
        except Exception as err:  # of on_event or on_answer
            return self.refuse(Error("INSUFFICIENT_RESOURCES", _name(err), {"reason": "INTERNAL"}, 500), message.get("id"))
        return (202, b"") if payload is None else (200, self._reply(payload, message.get("id")))

    def refuse(self, err, message_id=None):
        """The status and the bytes that tell the sender of a message an Error."""
        payload = {"error": {"code": err.code, "message": err.text, "details": err.details}}
        return err.status if err.status >= 400 else STATUS.get(err.code, 500), self._reply(payload, message_id)

    def _reply(self, payload, message_id):
        reply = {"id": uuid.uuid4().hex, "type": "error" if "error" in payload else "response", "timestamp": _now(),
                 "source": {"agent_id": self.identity["id"]}, "destination": {}, "headers": {}, "payload": payload}
        if message_id:
            reply["headers"]["correlation_id"] = message_id
        return encode(reply, self.key)

    def _once(self, message):
        """What _take returns for a message: for a repeat the same. A message is under way until it
        has an answer, which is kept until MAX_KEPT others have one."""
        name = message.get("source", {}).get("agent_id"), message.get("id")
        try:
            digest = hashlib.sha256(canonical(message["payload"]).encode()).digest()
        except (ValueError, RecursionError):
            raise Error("INVALID_SCHEMA", "the payload has no canonical form", {"reason": "MALFORMED"}) from None
        with self._lock:
            future, first = self._under_way.get(name) or self._given.get(name) or (None, digest)
            mine = future is None
            if mine:
                future = concurrent.futures.Future()
                if name[1]:
                    self._under_way[name] = future, digest
        if first != digest:
            raise Error("INVALID_SCHEMA", "the id is of another message", {"reason": "CONFLICT"}, 409)
        if mine:
            try:
                future.set_result(self._take(message))
            except BaseException as err:
                future.set_exception(err)
            self._keep(name, message["type"] == "request")
        return future.result()

    def _keep(self, name, failures):
        with self._lock:
            future, digest = self._under_way.pop(name, (None, None))
            if future and (failures or not future.exception()):
                self._given[name] = future, digest
                while len(self._given) > MAX_KEPT:
                    self._given.popitem(last=False)

    def _take(self, message):
        """The payload of the answer to a message: None for what has no answer."""
        if message["type"] == "request":
            try:
                return self._work(message)
            except Error:
                raise
            except Exception as err:  # of a handler: its caller hears of it, and the server goes on
                return {"status": "failed", "result": {"text": _name(err)}}
        (self.on_event if message["type"] == "event" else self.on_answer)(message)
        return None

    def _work(self, message):
        payload = message["payload"]
        try:
            task = payload["delegation"]["subtask"] if "delegation" in payload else payload
            wanted = task.get("capability") or message.get("destination", {}).get("capability")
            offered = wanted in self._handlers
        except (TypeError, KeyError, AttributeError):
            raise Error("INVALID_SCHEMA", "the payload asks for no capability", {"reason": "VIOLATIONS"}) from None
        if not offered:
            raise Error("CAPABILITY_NOT_FOUND", f"{wanted!r} is not offered here",
                        {"available_capabilities": list(self._handlers)})
        result = self._handlers[wanted](task.get("parameters", {}))
        if inspect.isawaitable(result):
            result = asyncio.run(_wait(result))
        return {"status": "success", "result": result if isinstance(result, (dict, list)) else {"text": str(result)}}

    def serve(self, host="127.0.0.1", port=0, tls=None, anyone=False):
        """Serves in threads, and returns the server: its port is server_port, its end is
        shutdown() and server_close(). tls is an ssl.SSLContext. Without a token or a key,
        anyone must be true."""
        if not (self.token or self.key or anyone):
            raise ValueError("an agent without token and key answers anyone: say so by anyone=True")
        server = _Server((host, port), type("Handler", (_Handler,), {
            "agent": self, "places": threading.BoundedSemaphore(self.parallel)}))
        server.connections = threading.BoundedSemaphore(4 * self.parallel)
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


async def _wait(awaitable):
    return await awaitable


def _name(err):
    return f"{type(err).__name__}: {err}"


class _Server(http.server.ThreadingHTTPServer):
    """Has a thread for each of a bounded number of connections. Others are closed."""

    def process_request(self, request, client_address):
        if not self.connections.acquire(blocking=False):
            return self.shutdown_request(request)
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.connections.release()
            raise

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.release()

    def handle_error(self, *of):
        if not isinstance(sys.exc_info()[1], OSError):  # a caller that left
            super().handle_error(*of)


class _Handler(http.server.BaseHTTPRequestHandler):
    read_timeout = 30  # seconds for a caller to write a request
    timeout = 30  # seconds for a caller to read a part of the answer

    def setup(self):
        super().setup()
        self.limit = threading.Timer(self.read_timeout, self._cut)
        self.limit.daemon = True
        self.limit.start()

    def finish(self):
        self.limit.cancel()
        super().finish()

    def _cut(self):
        try:
            socket.socket.shutdown(self.connection, socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended

    def do_GET(self):
        self.limit.cancel()
        self._reply(200, json.dumps({"status": "healthy", "protocol_version": VERSION, "agent": self.agent.identity,
                                     "timestamp": _now()}).encode())

    def do_POST(self):
        """Reads a message of whom the agent admits, when there is a place for it."""
        length = self.headers.get("Content-Length", "")
        shown = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("X-API-Key", "")
        if not self.agent.admits(shown):
            return self._refuse(*self.agent.answer(b"", shown))
        if not (length.isascii() and length.isdigit()):
            return self._refuse(411, self.agent.refuse(Error("INVALID_SCHEMA", "Content-Length is missing"))[1])
        if len(length) > 9 or int(length) > MAX_BODY:
            return self._refuse(*self.agent.refuse(_too_large()))
        if not self.places.acquire(blocking=False):
            busy = Error("INSUFFICIENT_RESOURCES", f"{self.agent.parallel} messages are under way", {"reason": "FULL"})
            return self._refuse(*self.agent.refuse(busy))
        try:
            text = self.rfile.read(int(length))
            self.limit.cancel()
            status, answer = self.agent.answer(text, shown)
        finally:
            self.places.release()
        self._reply(status, answer)

    def _refuse(self, status, text):
        """Replies without the body, and discards it: a connection closed over unread bytes is
        reset, and with it the reply."""
        self._reply(status, text)
        left = MAX_BODY
        while left > 0 and (part := self.rfile.read1(min(left, 1 << 16))):
            left -= len(part)

    def _reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass  # the agent's program has its own log


class Membership:
    """Keeps an agent registered in a mesh, until close: with heartbeats, and anew where the mesh
    has forgotten it or was away. last_error is what the last heartbeat met, None while it is
    registered; report(error) is called with each. A context manager."""

    def __init__(self, client, agent, invoke, health=None, every=None, report=lambda error: None):
        endpoints = {"invoke": invoke, **({"health": health} if health else {})}
        self._payload = {"agent": agent.identity, "capabilities": agent._described, "endpoints": endpoints}
        if agent.token:
            self._payload["authentication"] = {"type": "bearer", "credentials": agent.token}
        self._client, self._every, self._report, self.last_error = client, every, report, None
        self._ended = threading.Event()
        self._lease = self._ask("registration", self._payload)  # a refusal is the caller's to see
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def _ask(self, capability, payload):
        """The lease that the mesh grants, in seconds."""
        lease = self._client._result(payload, "registry", capability)
        lease = lease.get("lease_seconds", 60) if isinstance(lease, dict) else 60
        if isinstance(lease, bool) or not isinstance(lease, (int, float)) or not 0 < lease <= MAX_LEASE:
            raise Error("INVALID_SCHEMA", f"the mesh grants a lease of {lease!r} seconds")
        return lease

    def _renew(self):
        """Heartbeats. Whatever one meets, the next one is sent."""
        while not self._ended.wait(self._every or max(self._lease / 3, 1)):
            try:
                self._beat()
                self.last_error = None
            except Exception as err:
                self.last_error = err
                try:
                    self._report(err)
                except Exception:
                    pass  # a program's report ends no membership

    def _beat(self):
        try:
            self._lease = self._ask("heartbeat", {"agent": {"id": self._payload["agent"]["id"]}})
        except Error as err:
            if err.reason != "NOT_REGISTERED":
                raise
            self._lease = self._ask("registration", self._payload)

    def close(self):
        """Ends the heartbeats and the registration."""
        self._ended.set()
        self._thread.join()
        self._client.request({"agent": {"id": self._payload["agent"]["id"]}}, "registry", "deregistration")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
