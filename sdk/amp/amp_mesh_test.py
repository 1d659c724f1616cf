"""Tests of amp_mesh.py and amp_frameworks.py without a mesh: python3 -m unittest amp_mesh_test."""

import http.server
import json
import os
import threading
import types
import unittest

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
        self.assertEqual((status, answer["payload"]["error"]["details"]["reason"]), (400, "CONFLICT"))

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


if __name__ == "__main__":
    unittest.main()
