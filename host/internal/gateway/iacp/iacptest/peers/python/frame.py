"""Frames: four bytes of length, big-endian, before UTF-8 JSON (§5.2)."""

import json
import struct

LIMIT = 16 << 20  # "16MB", read as MiB
PREFIX = struct.Struct(">I")


class FrameFault(Exception):
    """A frame that cannot be read; the connection has lost its framing."""


class Malformed(Exception):
    """A frame whose payload is no JSON object; the next frame can be read."""


def encode(message):
    payload = json.dumps(message, ensure_ascii=False).encode()
    if len(payload) > LIMIT:
        raise FrameFault(f"a message of {len(payload)} bytes, {LIMIT} are allowed")
    return PREFIX.pack(len(payload)) + payload


async def read(reader, limit=LIMIT):
    """read returns the next message; asyncio.IncompleteReadError is the end."""
    (length,) = PREFIX.unpack(await reader.readexactly(PREFIX.size))
    if length == 0 or length > limit:
        raise FrameFault(f"a length of {length}, 1 to {limit} are allowed")
    payload = await reader.readexactly(length)
    try:
        message = json.loads(payload.decode())
    except ValueError as e:
        raise Malformed(str(e)) from e
    if not isinstance(message, dict):
        raise Malformed(f"a {type(message).__name__} instead of an object")
    return message
