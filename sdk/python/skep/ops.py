"""The ops of the ABI, by their names."""

import difflib

OPS = {
    "last_error": 0, "log": 1, "clock.now": 2, "random": 3, "history": 4,
    "mail": 10, "action": 11, "emit": 12,
    "kv.get": 20, "kv.put": 21, "kv.delete": 22, "kv.list": 23, "kv.cas": 24,
    "http.fetch": 30, "llm.chat": 40, "secret.exists": 50,
    "timer.set": 60, "timer.cancel": 61, "metric": 70, "span": 71, "blob.get": 80, "blob.put": 81,
}


def number(name):
    """The number of an op. A name that no op has is a ValueError."""
    if name in OPS:
        return OPS[name]
    near = "".join(', did you mean "%s"?' % one for one in difflib.get_close_matches(str(name), OPS, 1))
    raise ValueError("there is no op %r%s" % (name, near or "; skep.OPS names all"))
