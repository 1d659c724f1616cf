"""The conformance guest of the SDK for Python: spec/conformance/GUEST.md says what it
does. It has no memory of pointers, and gives up with an exception."""

import skep
from skep import text
from skep.error import Error, name
from skep.span import Span


def fnv(data, sum_=0x811C9DC5):
    for byte in data:
        sum_ = (sum_ ^ byte) * 0x01000193 & 0xFFFFFFFF
    return sum_


def hexed(data):
    return "%08x" % fnv(data)


def refusal(e):
    return "ERROR %s %s %s %d: %s" % (name(e.code), e.op, e.reason or "-", e.retry_after_ms, e.message)


def told(do, *args, **named):
    """What an op answered, or why it was refused."""
    try:
        return do(*args, **named)
    except Error as e:
        return refusal(e)


def said(do, *args):
    """ok, or why not."""
    try:
        do(*args)
    except Error as e:
        return refusal(e)
    return "ok"


def number(do, *args):
    """A result as modules get it: negative for an error."""
    try:
        got = do(*args)
    except Error as e:
        return -e.code
    return 0 if got is None else got


class Args(dict):
    """The arguments of a command, and the texts they were written in."""

    def __init__(self, raw):
        super().__init__(text.decode(raw))
        self.raw, self.texts = raw, text.members(raw)

    def compact(self, key, default=""):
        return text.compact(self.texts[key]) if key in self.texts else default

    def request(self):
        return self.compact("request").encode()

    def requests(self):
        return [text.compact(one).encode() for one in text.items(self.texts["requests"])]


def commands(raw):
    """A command list, or the error that ends the turn."""
    try:
        pairs = [text.items(one) for one in text.items(raw)]
        if any(len(pair) != 2 or pair[0][0] != '"' for pair in pairs):
            raise ValueError("no pair")
        return [(text.decode(pair[0]), Args(pair[1])) for pair in pairs]
    except (ValueError, TypeError, IndexError) as bad:
        raise Error(1, "no command list") from bad


class Conform(skep.Agent):
    def __init__(self):
        self.warmed = 0

    def warm(self, host):
        self.warmed += 1

    def turn(self, t):
        for what, args in commands(t.message.body):
            t.note(self.run(t, what, args))

    def action(self, call):
        if call.name == "run":
            return [self.run(call, what, args, 0) for what, args in commands(text.members(call.texts["args"]).get("commands", "null"))]
        return b'{"action":%s,"args":%s}' % (text.encode(call.name), text.compact(call.texts["args"]).encode())

    def run(self, t, what, args, turns=1):
        if what == "count":  # a process lives on; turns are counted as a module would
            return "%d %d" % (turns, self.warmed)
        do = COMMANDS.get(what)
        return do(t, args) if do else "ERROR UNSUPPORTED %s - 0: no such command" % what


def look(t, _args):
    i, m = t.input, t.message
    task, agent, budget = i["task"], i["agent"], i["budget"]
    shown = {
        "turn": i["turn"], "priority": i["priority"], "task": task["id"], "owner": task["owner"], "contributors": task.get("contributors") or [],
        "completed": task["completed"], "agent": agent["address"], "swarm": agent["swarm"], "instance": agent["instance"],
        "targets": agent.get("comm_targets") or [], "can_complete": agent["can_complete_tasks"], "tools": [tool["name"] for tool in i["tools"]],
        "id": m.id, "type": m.type, "ref": m.ref, "from": ":".join(m.sender), "to": [":".join(to) for to in m.recipients],
        "subject": m.subject, "body": m.body, "deadline_ms": i["deadline_ms"], "host_calls": budget["host_calls"],
        "output_bytes": budget["output_bytes"], "trace": i.get("trace", ""),
    }
    return text.encode(shown).decode()


def line(e):
    said_ = "note %s" % e.value
    if e.kind == "in":
        said_ = "in %s %s" % (e.value.type, e.value.subject)
    elif e.kind == "call":
        said_ = "call %s %s" % (e.value["name"], e.value["args_text"])
    elif e.kind == "result":
        said_ = "result %s %s" % ("ok" if e.value["ok"] else "error", e.value["text"])
    return "%d %d %s" % (e.seq, e.turn, said_)


def history(t, a):
    try:
        page, after = t.history_after(a["after"], a["limit"])
    except Error as e:
        return refusal(e)
    return "; ".join([line(e) for e in page] + ["next %d" % after])


def tail(t, _args):
    count = t.input["history"]["count"]
    return "; ".join([str(count)] + [line(e) for e in t.history()])


def must(t, a):
    return t.call(a["op"], a.request()).decode()


def call(t, a):
    return told(lambda: must(t, a))


def fail(_t, a):
    raise Error(a["code"], a["message"])


def abort(_t, a):
    raise skep.Abort(a["code"], a["message"])


def set_state(t, a):
    t.set_state_text(a.texts["value"])
    return "ok"


def sleep(t, a):
    before = t.now_ns()
    t.sleep(a["ms"] / 1000)
    return str(t.now_ns() - before)


def log(t, a):
    t.log(a["message"], a["level"])
    return "ok"


def full(t, handle, size):
    """Up to size bytes, and fewer only at the end."""
    have = b""
    while len(have) < size:
        piece = t.read(handle, size - len(have))
        if not piece:
            break
        have += piece
    return have


def short(t, a):
    try:
        handle = t.submit(a["op"], a.request())
        first = full(t, handle, a["cap"])
    except Error as e:
        number(t.close, locals().get("handle", 0))
        return str(-e.code)
    rest, reads = b"", 0
    while piece := full(t, handle, a["page"]):
        rest, reads = rest + piece, reads + 1
    closed = number(t.close, handle)
    if not reads:
        return "%d %s" % (len(first), hexed(first))
    again = number(lambda: len(t.read(handle, a["page"])))
    return "%d %d %s %d %d" % (len(first + rest), reads, hexed(first + rest), closed, again)


def collect(t, handle):
    """One answer to its end, 16 bytes at a time."""
    try:
        got = b""
        while piece := t.read(handle, 16):
            got += piece
        return got.decode()
    except Error as e:
        return str(-e.code)
    finally:
        number(t.close, handle)


def submit(t, a):
    handles = [number(t.submit, a["op"], one) for one in a.requests()]
    waiting = list(handles)
    while waiting:
        ready = number(t.wait, waiting, -1)
        if ready < 0:
            return str(ready)
        waiting.pop(ready)
    return " ".join(collect(t, handle) for handle in handles)


def race(t, a):
    handles = [number(t.submit, a["op"], one) for one in a.requests()]
    waiting, words = list(enumerate(handles)), []
    while waiting:
        ready = number(t.wait, [handle for _, handle in waiting], a["timeout"])
        words.append(str(ready if ready < 0 else waiting.pop(ready)[0]))
        if ready < 0 and ready != -5:
            break
    for handle in handles:
        number(t.close, handle)
    return " ".join(words)


def stream(t, a):
    handle, got, words = number(t.submit, a["op"], a.request()), b"", []
    while True:
        try:
            piece = t.read(handle, a["page"])
        except Error as e:
            words.append(str(-e.code))
            break
        words.append(str(len(piece)))
        if not piece:
            break
        got += piece
    number(t.close, handle)
    return " ".join(words + [hexed(got)])


def drop(t, a):
    handle = number(t.submit, a["op"], a.request())
    return "%d %d" % (number(t.close, handle), number(lambda: len(t.read(handle, 0))))


def wait(t, _args):
    results = (number(t.wait, [], 0), number(t.wait, [99], 0), number(lambda: len(t.read(99, 16))), number(t.close, 99))
    return " ".join(map(str, results))


def tool(t, a):
    def ask():
        reply = t.op("mail", b'{"tool":%s,"args":%s}' % (text.encode(a["name"]), a.compact("args").encode()))
        return "%s %s" % (reply.get("id") or "-", reply["text"])

    return told(ask)


def sends(do, *keys):
    """A command that calls a tool. An action tries it, too."""
    return lambda t, a: said(do, t, *[a[key] for key in keys])


def help_(t, _args):
    asks = {"get_summary": True, "get_identity": False, "get_tool_help": ["help"], "get_full_protocol": False}
    return told(lambda: t.tool("help", asks)["text"])


def action(t, a):
    request = b'{"name":%s,"args":%s}' % (text.encode(a["name"]), a.compact("args").encode())
    return told(lambda: text.compact(t.call(skep.OPS["action"], request).decode()))


def emitted(t, **shown):
    return told(lambda: t.op("emit", **shown)["status"])


def progress(t, a):
    shown = {"text": a["text"]} if a["text"] else {}
    if "fraction" in a:
        shown["fraction"] = a["fraction"]
    return emitted(t, progress=shown)


def metric(t, a):
    do = t.gauge if a["kind"] == "gauge" else t.count
    return said(do, a["name"], a["value"], a.get("labels"))


def blob_get(t, a):
    def get():
        data = t.blob_get(a["sha256"])
        return "%d %s" % (len(data), hexed(data))

    return told(get)


def answer(said_):
    """What chat shows of an answer."""
    usage = said_.get("usage") or {}
    calls = [{key: one.get(key, "") for key in ("id", "name", "arguments")} for one in said_.get("tool_calls") or []]
    shown = {
        "text": said_.get("text", ""), "reasoning": said_.get("reasoning", ""), "tool_calls": calls,
        "finish": said_.get("finish", ""),
    }
    for key in ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "micro_usd"):
        shown[key] = usage.get(key, 0)
    return text.encode({**shown, "carry": said_.get("carry")}).decode()


def chat(t, a):
    return told(lambda: answer(t.op("llm.chat", text.compact(a.raw).encode())))


def chat_stream(t, a):
    parts, whole = [], {"text": "", "reasoning": ""}
    pending = t.start("llm.chat", text.compact(a.raw).encode())
    try:
        for one in pending.lines():
            whole["text"] += one.get("delta", "")
            whole["reasoning"] += one.get("reasoning", "")
            if "end" in one:
                return "; ".join(parts + [answer({**one["end"], **whole})])
            parts.append("reasoning " + one["reasoning"] if one.get("reasoning") else "delta " + one.get("delta", ""))
    except Error as e:
        return "; ".join(parts + [refusal(e)])
    finally:
        pending.close()
    return "; ".join(parts + ["ERROR INTERNAL - - 0: the answer has no end"])


COMMANDS = {
    "echo": lambda t, a: a["text"],
    "look": look, "tail": tail, "history": history, "must": must, "call": call, "fail": fail, "abort": abort, "set": set_state,
    "params": lambda t, a: text.compact(t.texts.get("params", "null")),
    "state": lambda t, a: text.compact(t.texts.get("state", "null")),
    "input": lambda t, a: "%d %s" % (len(t.raw), hexed(t.raw)),
    "random": lambda t, a: told(t.random),
    "wall": lambda t, a: told(t.wall_time),
    "clock": lambda t, a: str(t.now_ns()),
    "sleep": sleep, "log": log, "short": short, "submit": submit, "race": race, "stream": stream, "drop": drop, "wait": wait,
    "pointer": lambda t, a: "no pointers",
    "action": action, "chat": chat, "chat_stream": chat_stream, "emit_progress": progress,
    "metric": metric, "blob_get": blob_get,
    "span": lambda t, a: told(lambda: str(t.span(a["name"], a.get("attributes")).id)),
    "end_span": lambda t, a: said(Span(t, a["id"]).end, a.get("attributes"), a.get("error", "")),
    "blob_put": lambda t, a: told(t.blob_put, a["text"].encode()),
    "emit_chunk": lambda t, a: emitted(t, chunk=a["text"]),
    "emit_note": lambda t, a: emitted(t, note=a["text"]),
    "send_request": sends(skep.Turn.send_request, "target", "subject", "body"),
    "ask": lambda t, a: told(lambda: t.ask(a["target"], a["subject"], a["body"]) or "-"),
    "send_response": sends(skep.Turn.send_response, "target", "subject", "body"),
    "send_interrupt": sends(skep.Turn.send_interrupt, "target", "subject", "body"),
    "send_broadcast": sends(skep.Turn.send_broadcast, "targets", "subject", "body"),
    "acknowledge_broadcast": sends(skep.Turn.acknowledge_broadcast, "note"),
    "ignore_broadcast": sends(skep.Turn.ignore_broadcast, "reason"),
    "await_message": sends(skep.Turn.await_message, "reason"),
    "task_complete": sends(skep.Turn.task_complete, "finish_message"),
    "help": help_, "tool": tool,
}

if __name__ == "__main__":
    skep.serve(Conform(), {
        "name": "conform", "version": "1.0.0", "description": "Does what the message says, the same in every language.",
        "agents": [{"name": "conform", "description": "Send it a command list."}],
        "actions": [
            {"name": "echo", "description": "Answers with what it was given.", "parameters": {"type": "object"}},
            {"name": "run", "description": "Answers with the notes of a command list.", "parameters": {"type": "object"}},
        ],
    })
