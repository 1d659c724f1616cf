"""Envelopes that a receiver must refuse. Each is wrong in one thing only and otherwise
properly signed."""

import dataclasses

from cryptography.hazmat.primitives.asymmetric import ec

from canonical import write
from did import new_signer
from envelope import now, signed
from jws import confused, seal

HOUR = 3600


def _unsigned(e):
    return write(e, list)


def _with_sig(e, sig):
    return write(e | {"sig": sig}, list)


def _content(e, content):
    return e | {"body": e["body"] | {"content": content}}


def _es384(e, s, how):
    return signed(e, dataclasses.replace(s, alg="ES384", key=ec.generate_private_key(ec.SECP384R1())), how)


BAD = {
    "altered": lambda e, s, how: signed(_content(e, "a"), s, how).replace('"content":"a"', '"content":"b"'),
    "wrong-key": lambda e, s, how: signed(e, dataclasses.replace(new_signer(s.alg), kid=s.key_id), how),
    "other-kid": lambda e, s, how: signed(e, new_signer(s.alg), how),
    "none": lambda e, s, how: _with_sig(e, confused("none", _unsigned(e), s, how)),
    "hs256": lambda e, s, how: _with_sig(e, confused("HS256", _unsigned(e), s, how)),
    "swapped": lambda e, s, how: _with_sig(e, confused("swapped", _unsigned(e), s, how)),
    "es384": _es384,
    "critical": lambda e, s, how: signed(e, s, how, **{"crit": ["x-uamp"], "x-uamp": True}),
    # The signature leaves the body out, which then is nobody's word.
    "body-left-out": lambda e, s, how: _with_sig(e, seal(_unsigned(e), s, how, leave=("sig", "body"))),
    "attached": lambda e, s, how: signed(e, s, how | {"form": "attached"}),
    "unsigned": lambda e, s, how: _unsigned(e),
    "past": lambda e, s, how: signed(e | {"ts": now(-HOUR)}, s, how),
    "future": lambda e, s, how: signed(e | {"ts": now(HOUR)}, s, how),
    "duplicate": lambda e, s, how: signed(e, s, how).replace('"to":', '"to":["did:web:first.example"],"to":'),
    "extra": lambda e, s, how: signed(e | {"priority": 1}, s, how),
    "missing": lambda e, s, how: signed({k: v for k, v in e.items() if k != "intent"}, s, how),
    "surrogate": lambda e, s, how: signed(_content(e, "\ufffd"), s, how).replace("\ufffd", "\\ud800"),
    "utf8": lambda e, s, how: signed(_content(e, "\u00ff"), s, how).encode().replace(b"\xc3\xbf", b"\xff"),
    "deep": lambda e, s, how: signed(e | {"ext": {"x": 0}}, s, how).replace('"x":0', '"x":' + "[" * 20000 + "]" * 20000),
    "large": lambda e, s, how: signed(_content(e, "x" * (2 << 20)), s, how),
    "misrouted": lambda e, s, how: signed(e | {"to": ["did:web:elsewhere.example"]}, s, how),
}
