"""Tests of amp_mesh.py and amp_frameworks.py without a mesh: python3 -m unittest amp_mesh_test."""

import http.server
import json
import os
import socket
import threading
import types
import unittest
import unittest.mock

import amp_frameworks
import amp_mesh

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def ask(agent, payload, message_id="m-1", shown="secret", key=None, **changed):
    message = {"id": message_id, "type": "request", "timestamp": amp_mesh._now(), "payload": payload, **changed}
    status, text = agent.answer(amp_mesh.encode(message, key), shown)
    return status, json.loads(text)["message"] if text else None


class Forms(unittest.TestCase):
    def test_canonical(self):
        numbers = {1e16: "10000000000000000", 1e21: "1e+21", 1e-7: "1e-7", 1.5e-6: "0.0000015", -2.0: "-2", 0.1: "0.1",
                   123456.75: "123456.75", 1.5e300: "1.5e+300", 5e-324: "5e-324", -0.0: "0", 100: "100"}
        for number, text in numbers.items():
            self.assertEqual(amp_mesh.canonical(number), text)
        value = {"\ue000": 1, "\U0001f600": [True, None], "a\n": "é\x7f"}
        self.assertEqual(amp_mesh.canonical(value), '{"a\\n":"é\x7f","\U0001f600":[true,null],"\ue000":1}')

    def test_signatures_of_others(self):
        with open(os.path.join(ROOT, "spec", "gateways", "amp", "signatures.json"), encoding="utf-8") as file:
            vectors = json.load(file)
        for vector in vectors:
            if "canonicalize" not in vector["by"] or len(vector["message"]["message"]["headers"]["signature"]["value"]) != 44:
                continue
            message, key = vector["message"]["message"], vector["key"].encode()
            want = message["headers"]["signature"]["value"]
            amp_mesh.sign(message, key)
            self.assertEqual(message["headers"]["signature"]["value"], want)
            with self.assertRaisesRegex(amp_mesh.Error, "timestamp"):
                amp_mesh.verify(message, key)
        self.assertTrue(any("canonicalize" in vector["by"] for vector in vectors))

    def test_what_is_no_message(self):
        deep = b'{"protocol":"AMP/1.0","message":{"type":"event","payload":' + b"[" * 100000
        for text in (b"", b"[]", b'{"protocol":1}', b"\xff", b'{"protocol":"AMP/1.0","message":{"type":"x","payload":{}}}',
                     b'{"protocol":"AMP/1.0","message":{"type":"event","payload":{"x":NaN}}}',
                     b'{"protocol":"AMP/1.0","message":{"type":"event","payload":{},"id":[]}}',
                     b'{"protocol":"AMP/2.0","message":{"type":"event","payload":{}}}', deep, b"x" * (amp_mesh.MAX_BODY + 1)):
            with self.assertRaises(amp_mesh.Error) as got:
                amp_mesh.decode(text)
            self.assertEqual(got.exception.code, "INVALID_SCHEMA")


class Agents(unittest.TestCase):
    def setUp(self):
        self.agent, self.calls = amp_mesh.Agent("agent-7", token="secret"), []
        self.agent.capability("echo", lambda parameters: self.calls.append(parameters) or parameters)

    def test_repeat(self):
        for _ in range(2):
            status, answer = ask(self.agent, {"capability": "echo", "parameters": {"x": 1}})
            self.assertEqual((status, answer["payload"]["result"]), (200, {"x": 1}))
        self.assertEqual(len(self.calls), 1)
        status, answer = ask(self.agent, {"capability": "echo", "parameters": {"x": 2}})
        self.assertEqual((status, answer["payload"]["error"]["details"]["reason"]), (409, "CONFLICT"))

    def test_repeat_of_what_is_under_way(self):
        begun, end, ran, answers = threading.Event(), threading.Event(), [], []

        def slow(parameters):
            ran.append(parameters)
            begun.set()
            end.wait()
            return {"slow": len(ran)}

        self.agent.capability("slow", slow)
        payload = {"capability": "slow", "parameters": {}}
        asks = [threading.Thread(target=lambda: answers.append(ask(self.agent, payload)[1]["payload"])) for _ in range(2)]
        asks[0].start()
        begun.wait()
        with unittest.mock.patch.object(amp_mesh, "MAX_KEPT", 2):
            for n in range(4):
                ask(self.agent, {"capability": "echo", "parameters": {"n": n}}, f"other-{n}")
            asks[1].start()
            end.set()
            for thread in asks:
                thread.join()
            ask(self.agent, {"capability": "echo", "parameters": {"n": 0}}, "other-0")
        self.assertEqual(answers, [{"status": "success", "result": {"slow": 1}}] * 2)
        self.assertEqual(self.calls, [{"n": n} for n in (0, 1, 2, 3, 0)])

    def test_events(self):
        came = []

        def take(message):
            came.append(message["id"])
            if len(came) == 1:
                raise KeyError("busy")

        self.agent.on_event = take
        for want in (500, 202, 202):
            self.assertEqual(ask(self.agent, {"event_type": "x"}, type="event")[0], want)
        self.assertEqual(came, ["m-1", "m-1"])

    def test_payload_without_canonical_form(self):
        text = b'{"protocol":"AMP/1.0","message":{"id":"m-1","type":"request","payload":{"capability":"echo","x":%b}}}'
        for odd in (b"1e999", b"9" * 400, b'"\\ud800"'):
            status, answer = self.agent.answer(text % odd, "secret")
            self.assertEqual((status, json.loads(answer)["message"]["payload"]["error"]["details"]["reason"]), (400, "MALFORMED"))

    def test_refusals(self):
        self.agent.capability("breaks", lambda parameters: parameters["nothing"])
        delegated = {"delegation": {"subtask": {"capability": "echo", "parameters": {"x": 3}}}}
        for payload, shown, status, word in (
            ({"capability": "echo"}, "guess", 401, "CREDENTIAL"), ({"capability": "none"}, "secret", 404, "available_capabilities"),
            ({"capability": "breaks", "parameters": {}}, "secret", 200, "failed"), ({"delegation": 1}, "secret", 400, "VIOLATIONS"),
            (delegated, "secret", 200, "success"),
        ):
            got, answer = ask(self.agent, payload, message_id=word, shown=shown)
            self.assertEqual(got, status)
            self.assertIn(word, json.dumps(answer))
        with self.assertRaises(ValueError):
            amp_mesh.Agent("agent-8").serve()

    def test_signed(self):
        agent = amp_mesh.Agent("agent-7", key=b"shared")
        agent.capability("echo", lambda parameters: parameters)
        for key, stamp, word in ((b"other", None, "SIGNATURE"), (None, None, "SIGNATURE"), (b"shared", None, "success"),
                                 (b"shared", "2020-01-01T00:00:00Z", "EXPIRED"), (b"shared", "now", "EXPIRED")):
            changed = {"timestamp": stamp} if stamp else {}
            _, answer = ask(agent, {"capability": "echo", "parameters": {"x": 1.0}}, word, "", key, **changed)
            self.assertIn(word, json.dumps(answer))
            amp_mesh.verify(answer, b"shared")

    def test_frameworks(self):
        async def run(task):
            return types.SimpleNamespace(messages=[types.SimpleNamespace(content=task + "!")])

        runnable = types.SimpleNamespace(invoke=lambda given: types.SimpleNamespace(content=given["text"] + "!"))
        crew = types.SimpleNamespace(kickoff=lambda inputs: types.SimpleNamespace(json_dict=None, raw=inputs["text"] + "!"))
        team = types.SimpleNamespace(run=run)
        for name, handler in (("langchain", amp_frameworks.langchain(runnable)), ("crewai", amp_frameworks.crewai(crew)),
                              ("autogen", amp_frameworks.autogen(team))):
            self.agent.capability(name, handler)
            _, answer = ask(self.agent, {"capability": name, "parameters": {"text": "hello"}}, name)
            self.assertEqual(answer["payload"], {"status": "success", "result": {"text": "hello!"}})


class Servers(unittest.TestCase):
    def serve(self, **of):
        agent = amp_mesh.Agent("agent-7", token="secret", **of)
        agent.capability("echo", lambda parameters: parameters)
        self.server = agent.serve()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.server_port), timeout=60)
        self.addCleanup(connection.close)
        return connection

    def reply(self, *fields):
        """The first line of the reply to the head of a POST, whose body does not come."""
        connection = self.connect()
        connection.sendall("\r\n".join(("POST /invoke HTTP/1.1",) + fields + ("", "")).encode())
        return connection.makefile("rb").readline()

    def test_refused_before_the_body(self):
        self.serve()
        shown = "Authorization: Bearer secret"
        for fields, status in (
            (("Content-Length: 100",), b" 401 "), (("Content-Length: 100", "X-API-Key: guess"), b" 401 "),
            ((shown,), b" 411 "), ((shown, "Content-Length: -1"), b" 411 "),
            ((shown, "Content-Length: 1048577"), b" 413 "), ((shown, "Content-Length: " + "9" * 5000), b" 413 "),
        ):
            self.assertIn(status, self.reply(*fields))

    def test_slow_caller(self):
        with unittest.mock.patch.object(amp_mesh._Handler, "read_timeout", 0.05):
            self.serve(parallel=1)
            self.assertEqual(self.reply("Authorization: Bearer secret", "Content-Length: 100"), b"")
        client = amp_mesh.Client(f"http://127.0.0.1:{self.server.server_port}/invoke", "agent-1", "secret")
        self.assertEqual(client.invoke("echo", {"x": 1}), {"x": 1})

    def test_connections(self):
        self.serve(parallel=1)
        taken = [self.connect() for _ in range(4)]
        self.assertEqual(self.connect().recv(1), b"")
        for connection in taken:
            connection.close()
        client = amp_mesh.Client(f"http://127.0.0.1:{self.server.server_port}/invoke", "agent-1", "secret")
        self.assertEqual(client.invoke("echo", {"x": 1}), {"x": 1})


class Mesh(http.server.BaseHTTPRequestHandler):
    """A mesh that answers each POST as its list has it: a status, and header fields."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["message"]
        self.server.seen.append(message)
        status, fields, payload = self.server.replies.pop(0)
        kind = "error" if "error" in payload else "response"
        text = amp_mesh.encode({"type": kind, "headers": {"correlation_id": message["id"]}, "payload": payload})
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Clients(unittest.TestCase):
    def setUp(self):
        self.mesh = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mesh)
        self.mesh.seen, self.mesh.replies = [], []
        threading.Thread(target=self.mesh.serve_forever, daemon=True).start()
        self.addCleanup(self.mesh.server_close)
        self.addCleanup(self.mesh.shutdown)
        self.client = amp_mesh.Client(f"http://127.0.0.1:{self.mesh.server_port}/invoke", "agent-1", "token")

    def test_busy(self):
        busy = {"error": {"code": "RATE_LIMIT_EXCEEDED", "message": "later", "details": {"retry_after_ms": 1}}}
        self.mesh.replies = [(429, {}, busy), (503, {}, busy), (200, {}, {"status": "success", "result": {"x": 1}})]
        self.assertEqual(self.client.invoke("echo", {}), {"x": 1})
        self.assertEqual(len({message["id"] for message in self.mesh.seen}), 1)

    def test_versions(self):
        self.mesh.replies = [(200, {}, {"status": "success", "result": {"version": "1.0"}})]
        self.assertEqual(self.client.negotiate(), {"version": "1.0"})
        self.assertEqual(self.mesh.seen[0]["payload"]["supported"], [amp_mesh.VERSION])

    def test_elsewhere(self):
        other = {"Location": "http://localhost:9/answer"}
        self.mesh.replies = [(202, other, {"status": "partial", "result": {}}), (307, other, {"status": "success", "result": {}})]
        for word in ("another host", "Error"):
            with self.assertRaises(Exception) as got:
                self.client.invoke("echo", {})
            self.assertIn(word, repr(got.exception))
        self.assertEqual(self.mesh.replies, [])

    def test_odd_answers(self):
        for payload, word in (({"status": "success"}, "no result"), ({"status": "success", "result": []}, "no agents"),
                              ({"error": {"code": "TIMEOUT", "details": [1]}}, "TIMEOUT"), ({"error": 1}, "INVALID_SCHEMA")):
            self.mesh.replies = [(200, {}, payload)]
            with self.assertRaisesRegex(amp_mesh.Error, word) as got:
                self.client.discover("echo")
            self.assertEqual(got.exception.reason, "")


class Memberships(unittest.TestCase):
    """Membership with a client whose answers are a list."""

    def join(self, *answers):
        asked, reported, ended = [], [], threading.Event()
        answers = [{"lease_seconds": 60}, *answers, {"lease_seconds": 60}]

        class Client(amp_mesh.Client):
            def request(self, payload, agent=None, capability=None, **_):
                asked.append(capability)
                if len(asked) == len(answers):
                    ended.set()
                answer = answers[min(len(asked), len(answers)) - 1]
                if isinstance(answer, Exception):
                    raise answer
                return {"status": "success", "result": answer}

        def report(err):
            reported.append(str(err))
            raise KeyError("a fault of the program")

        agent, client = amp_mesh.Agent("agent-7", token="secret"), Client("http://127.0.0.1:1/invoke", "agent-7")
        with amp_mesh.Membership(client, agent, "http://127.0.0.1:1", every=0.001, report=report) as membership:
            ended.wait()
        return membership, asked, reported

    def test_odd_answers(self):
        odd = (KeyError("odd"), [{"lease_seconds": lease} for lease in ("x", -1, 0, True, None, 10**400, 1e999, float("nan"))])
        membership, asked, reported = self.join(odd[0], *odd[1], [], OSError("away"))
        self.assertEqual(len(reported), 10, reported)
        for word, text in zip(["odd"] + ["lease"] * 8 + ["away"], reported):
            self.assertIn(word, text)
        self.assertEqual((asked[0], set(asked[1:-1]), asked[-1]), ("registration", {"heartbeat"}, "deregistration"))
        self.assertIsNone(membership.last_error)

    def test_forgotten(self):
        forgotten = amp_mesh.Error("AUTHENTICATION_FAILED", "who?", {"reason": "NOT_REGISTERED"})
        _, asked, reported = self.join(forgotten, OSError("away"), forgotten)
        self.assertEqual(asked[:5], ["registration", "heartbeat", "registration", "heartbeat", "registration"])
        self.assertEqual(reported, ["away"])

    def test_refused(self):
        for lease in ("x", 0):
            with self.assertRaisesRegex(amp_mesh.Error, "lease"):
                self.joined = amp_mesh.Membership(unittest.mock.Mock(_result=lambda *_: {"lease_seconds": lease}), amp_mesh.Agent("a"), "x")


if __name__ == "__main__":
    unittest.main()
