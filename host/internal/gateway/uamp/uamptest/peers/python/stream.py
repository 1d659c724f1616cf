"""A stream of deltas: §5. Its producer waits while delta_window frames are not
acknowledged."""

import asyncio
import base64
import json

from envelope import TERMINAL, now


def chunk(text):
    return {"chunk_b64": base64.b64encode(text.encode()).decode()}


class Stream:
    def __init__(self, name, envelope, quirks):
        self.name, self.owner, self.asked, self.quirks = name, envelope["from"], envelope["id"], quirks
        self.window = int(envelope.get("delta_window", 64))
        self.frames, self.acked, self.ended, self.was_cut = [], -1, False, False
        self._waiting = []

    def changed(self):
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()

    async def change(self):
        event = asyncio.Event()
        self._waiting.append(event)
        await event.wait()

    async def emit(self, type, payload):
        """emit adds a delta as soon as the window has room for it."""
        while not self.ended and len(self.frames) - self.acked > self.window and "overrun" not in self.quirks:
            await self.change()
        if self.ended:
            return
        self.frames.append({"delta_seq": len(self.frames), "stream_id": self.name, "ts": now(), "type": type, "payload": payload})
        self.ended = type in TERMINAL
        self.changed()

    async def end(self, type, payload):
        """end adds a last delta without regard to the window."""
        self.acked = len(self.frames) - 1
        await self.emit(type, payload)

    def acknowledge(self, seq):
        if not isinstance(seq, int) or seq >= len(self.frames):
            return False
        self.acked = max(self.acked, seq)
        self.changed()
        return True

    async def read(self, start, gone):
        """read yields the deltas from one on as events, as it is told to."""
        at = start
        while True:
            while at >= len(self.frames) and not self.ended and not gone.is_set():
                await self.change()
            if gone.is_set() or at >= len(self.frames) or "no-terminal" in self.quirks and self.frames[at]["type"] in TERMINAL:
                return
            yield self._event(self.frames[at])
            if "cut" in self.quirks and not self.was_cut and at == start + 1:
                self.was_cut = True
                return
            at += 1

    def _event(self, frame):
        quirks, seq = self.quirks, frame["delta_seq"]
        if "gap" in quirks and seq == 1:
            return b""
        if "bare" in quirks:
            frame = {name: frame[name] for name in ("delta_seq", "type", "payload")}
        if "extra-member" in quirks:
            frame = frame | {"sender": "x"}
        text = json.dumps(frame, indent=1 if "many-lines" in quirks else None)
        if "bad-json" in quirks:
            text = text[1:]
        lines = [": still here"] if "many-lines" in quirks else []
        lines += [] if "no-ids" in quirks else [f"id: {seq}"]
        lines += [f"data: {line}" for line in text.split("\n")]
        event = ("\r\n" if "many-lines" in quirks else "\n").join([*lines, "", ""]) * (2 if "repeat" in quirks else 1)
        if "after-done" in quirks and frame["type"] in TERMINAL:
            late = frame | {"delta_seq": seq + 1, "type": "chunk", "payload": chunk("late")}
            event += f"data: {json.dumps(late)}\n\n"
        return event.encode()
