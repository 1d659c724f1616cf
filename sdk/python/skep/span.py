"""A part of a turn that the operator sees with the time it took."""

import re

_ENDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST = 512  # bytes of an error


class Span:
    """Ends with end, with its with block, or with the turn."""

    def __init__(self, host, number):
        self._host, self.id = host, number

    def end(self, attributes=None, error=""):
        """Ends it, with more attributes and with what has gone wrong."""
        members = {"id": self.id}
        if attributes:
            members["attributes"] = attributes
        if error:
            members["error"] = _ENDS.sub(" ", error).encode()[:_LONGEST].decode(errors="ignore")
        self._host.op("span", **members)

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        self.end(error=str(error) if error else "")
