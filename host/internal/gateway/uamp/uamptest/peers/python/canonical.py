"""JSON as §4.2 has it.

"Keys sorted lexicographically, UTF-8, no extra whitespace" leaves the order of keys and
the spelling of numbers open: jcs is RFC 8785, literal sorts by code point and keeps
numbers as they came, which is what the standard library makes of its own output.
"""

import hashlib
import json

import rfc8785


class Number:
    """A number as it was spelled."""

    def __init__(self, text):
        self.text = text

    def plain(self):
        return json.loads(self.text)


def _once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member comes twice")
    return found


def _no_constant(name):
    raise ValueError(f"{name} is no JSON")


def loads(text):
    """loads is strict where the standard library is not."""
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)


def literal(text):
    """literal keeps how numbers are spelled."""
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=Number, parse_float=Number)


def write(value, order=sorted):
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(write(name) + ":" + write(value[name], order) for name in order(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(write(v, order) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _doubles(value):
    """RFC 8785 knows no integers beyond what a double holds."""
    if isinstance(value, dict):
        return {name: _doubles(v) for name, v in value.items()}
    if isinstance(value, list):
        return [_doubles(v) for v in value]
    if isinstance(value, int) and abs(value) >= 1 << 53:
        return float(value)
    return value


FORMS = {
    "jcs": lambda text, leave: rfc8785.dumps(_doubles(_without(json.loads(text), leave))),
    "literal": lambda text, leave: write(_without(literal(text), leave)).encode(),
}


def _without(value, names):
    return {name: v for name, v in value.items() if name not in names}


def digest(form, text, leave=("sig",)):
    """digest hashes the text of an envelope in a form, without the named members."""
    return hashlib.sha256(FORMS[form](text, leave)).digest()
