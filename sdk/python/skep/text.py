"""JSON to the byte: as other SDKs write it, and values as they came."""

import json
import re
from json.decoder import scanstring

_HALVES = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', re.DOTALL)
_GAP = re.compile(r"[ \t\r\n]*")


def _refuse(word):
    raise ValueError(word + " is no JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)


def encode(value):
    """A value as compact JSON, in UTF-8. Half a surrogate pair becomes U+FFFD."""
    raw = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    raw = raw.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return _HALVES.sub("\ufffd", raw).encode()


def decode(raw):
    """A value of JSON: text, or bytes in UTF-8."""
    return whole(json.loads(raw, parse_constant=_refuse))


def whole(value):
    """A value whose texts have no half of a surrogate pair."""
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    return value


def compact(raw):
    """The text of a value without the space between its tokens."""
    return _SPACE.sub(lambda found: found.group(1) or "", raw)


def _past(raw, at):
    return _GAP.match(raw, at).end()


def members(raw):
    """The members of an object, each as the text it was written in."""
    if not isinstance(decode(raw), dict):
        raise ValueError("no object")
    found, at = {}, _past(raw, 0) + 1
    while raw[_past(raw, at)] != "}":
        at = _past(raw, at)
        if raw[at] == ",":
            at = _past(raw, at + 1)
        key, at = scanstring(raw, at + 1)
        begin = _past(raw, _past(raw, at) + 1)
        _, at = _decoder.raw_decode(raw, begin)
        found[key] = raw[begin:at]
    return found


def items(raw):
    """The items of an array, each as the text it was written in."""
    if not isinstance(decode(raw), list):
        raise ValueError("no array")
    found, at = [], _past(raw, 0) + 1
    while raw[_past(raw, at)] != "]":
        at = _past(raw, at)
        if raw[at] == ",":
            at = _past(raw, at + 1)
        _, end = _decoder.raw_decode(raw, at)
        found.append(raw[at:end])
        at = end
    return found
