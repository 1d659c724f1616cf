class MessageError(ValueError):
    """Why a message cannot be read or written, with its place."""


_MAX_TEXT = 1048576  # bytes
_MAX_NESTING = 64
_NUMERAL = _re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PLAIN = _re.compile(r'[^"\\\x00-\x1f]*')
_HEX = _re.compile(r"[0-9a-fA-F]{4}")
_ESCAPED = _re.compile(r'["\\\x00-\x1f]')
_SURROGATE = _re.compile("[\ud800-\udfff]")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LONG = {plain: "\\" + short for short, plain in _SHORT.items() if short != "/"}


class _Numeral:
    """A number as it is written."""

    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text


def _fail(at, reason):
    raise MessageError(f"{at}: {reason}")


def _refuse(reason):
    raise MessageError(f"the text {reason}")


def _parse_text(text):
    if isinstance(text, str):
        if _SURROGATE.search(text):
            _refuse("has an unpaired surrogate")
        _check_size(text)
    else:
        if len(text) > _MAX_TEXT:
            _refuse("has more than 1048576 bytes")
        try:
            text = bytes(text).decode("utf-8")
        except UnicodeError:
            _refuse("is not UTF-8")
    return _Parser(text).all()


def _check_size(text):
    if len(text) > _MAX_TEXT or len(text.encode("utf-8")) > _MAX_TEXT:
        _refuse("has more than 1048576 bytes")


class _Parser:
    def __init__(self, text):
        self.text = text
        self.at = 0
        self.depth = 0

    def all(self):
        self.space()
        v = self.value()
        self.space()
        if self.at < len(self.text):
            _refuse("is no JSON")
        return v

    def peek(self):
        return self.text[self.at : self.at + 1]

    def take(self, c):
        if self.peek() == c:
            self.at += 1
            return True
        return False

    def want(self, c):
        if not self.take(c):
            _refuse("is no JSON")

    def space(self):
        while self.at < len(self.text) and self.text[self.at] in " \t\n\r":
            self.at += 1

    def value(self):
        c = self.peek()
        if c == "{" or c == "[":
            self.depth += 1
            if self.depth > _MAX_NESTING:
                _refuse("is nested deeper than 64")
            v = self.object() if c == "{" else self.list()
            self.depth -= 1
            return v
        if c == '"':
            return self.string()
        for word, v in (("true", True), ("false", False), ("null", None)):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return v
        found = _NUMERAL.match(self.text, self.at)
        if found is None:
            _refuse("is no JSON")
        self.at = found.end()
        return _Numeral(found.group())

    def list(self):
        items = []
        self.want("[")
        self.space()
        if self.take("]"):
            return items
        while True:
            self.space()
            items.append(self.value())
            self.space()
            if self.take("]"):
                return items
            self.want(",")

    def object(self):
        members = {}
        self.want("{")
        self.space()
        if self.take("}"):
            return members
        while True:
            self.space()
            if self.peek() != '"':
                _refuse("is no JSON")
            name = self.string()
            if name in members:
                _refuse("has a member twice")
            self.space()
            self.want(":")
            self.space()
            members[name] = self.value()
            self.space()
            if self.take("}"):
                return members
            self.want(",")

    def string(self):
        self.want('"')
        parts = []
        while True:
            found = _PLAIN.match(self.text, self.at)
            parts.append(found.group())
            self.at = found.end()
            if self.take('"'):
                return "".join(parts)
            self.want("\\")
            parts.append(self.escape())

    def escape(self):
        c = self.peek()
        self.at += 1
        if c in _SHORT:
            return _SHORT[c]
        if c != "u":
            _refuse("is no JSON")
        unit = self.hex()
        if not 0xD800 <= unit <= 0xDFFF:
            return chr(unit)
        if unit >= 0xDC00 or not self.take("\\") or not self.take("u"):
            _refuse("has an unpaired surrogate")
        low = self.hex()
        if not 0xDC00 <= low <= 0xDFFF:
            _refuse("has an unpaired surrogate")
        return chr(0x10000 + (unit - 0xD800) * 0x400 + low - 0xDC00)

    def hex(self):
        found = _HEX.match(self.text, self.at)
        if found is None:
            _refuse("is no JSON")
        self.at += 4
        return int(found.group(), 16)


def _read_object(v, at):
    if not isinstance(v, dict):
        _fail(at, "is no object")
    return v


def _field(o, name, at, read):
    if name not in o:
        _fail(f"{at}.{name}", "is missing")
    return read(o[name], f"{at}.{name}")


def _optional(o, name, at, read):
    v = o.get(name)
    return None if v is None else read(v, f"{at}.{name}")


def _others(o, declared):
    """The members that are not declared, each with its text."""
    extra = {}
    for name, v in o.items():
        if name not in declared:
            w = _Writer()
            _write_value(w, v)
            extra[name] = w.text()
    return extra


def _no_others(o, at, declared):
    for name in o:
        if name not in declared:
            _fail(f"{at}[{_quoted(name)}]", "is not declared")


def _read_string(v, at):
    return v if isinstance(v, str) else _fail(at, "is no string")


def _read_boolean(v, at):
    return v if isinstance(v, bool) else _fail(at, "is neither true nor false")


def _whole(v, at, bits):
    if isinstance(v, _Numeral) and len(v.text) <= 20 and v.text.lstrip("-").isdigit():
        n = int(v.text)
        if -(1 << bits - 1) <= n < 1 << bits - 1:
            return n
    return _fail(at, f"is no whole number of {bits} bits")


def _read_int(v, at):
    return _whole(v, at, 32)


def _read_long(v, at):
    return _whole(v, at, 64)


def _read_float(v, at):
    n = float(v.text) if isinstance(v, _Numeral) else _math.inf
    return n if _math.isfinite(n) else _fail(at, "is no number of 64 bits")


def _read_bytes(v, at):
    if isinstance(v, str) and v.isascii():
        try:
            raw = _base64.b64decode(v, validate=True)
        except ValueError:
            _fail(at, "is no base64")
        if _base64.b64encode(raw).decode("ascii") == v:
            return raw
    return _fail(at, "is no base64")


def _read_list(read):
    def read_all(v, at):
        if not isinstance(v, list):
            _fail(at, "is no list")
        return [read(item, f"{at}[{i}]") for i, item in enumerate(v)]

    return read_all


def _read_map(read):
    def read_all(v, at):
        return {name: read(part, f"{at}[{_quoted(name)}]") for name, part in _read_object(v, at).items()}

    return read_all


def _read_enum(v, at, kind, names):
    if isinstance(v, str) and v in kind._value2member_map_:
        return kind(v)
    return _fail(at, f"is none of {names}")


class _Writer:
    def __init__(self):
        self.parts = []
        self.depth = 0

    def text(self):
        return "".join(self.parts)

    def open(self, c):
        self.depth += 1
        if self.depth > _MAX_NESTING:
            _refuse("is nested deeper than 64")
        self.parts.append(c)

    def close(self, c):
        self.depth -= 1
        self.parts.append(c)

    def comma(self):
        if self.parts[-1] not in ("{", "["):
            self.parts.append(",")

    def name(self, name):
        self.comma()
        self.parts.append(_quoted(name) + ":")


def _encode(t, at, write):
    w = _Writer()
    write(w, t, at)
    text = w.text()
    _check_size(text)
    return text


def _quoted(text):
    return '"' + _ESCAPED.sub(lambda m: _LONG.get(m.group()) or f"\\u{ord(m.group()):04x}", text) + '"'


def _write_field(w, name, t, at, write):
    w.name(name)
    write(w, t, f"{at}.{name}")


def _write_optional(w, name, t, at, write):
    if t is not None:
        _write_field(w, name, t, at, write)


def _write_others(w, extra, at, declared):
    for name, text in extra.items():
        place = f"{at}[{_quoted(name)}]"
        if name in declared:
            _fail(place, "is declared and cannot be there twice")
        _check_paired(name, place)
        w.name(name)
        _write_value(w, _parse_text(text))


def _write_value(w, v):
    if isinstance(v, str):
        w.parts.append(_quoted(v))
    elif isinstance(v, _Numeral):
        w.parts.append(v.text)
    elif isinstance(v, list):
        w.open("[")
        for item in v:
            w.comma()
            _write_value(w, item)
        w.close("]")
    elif isinstance(v, dict):
        w.open("{")
        for name, part in v.items():
            w.name(name)
            _write_value(w, part)
        w.close("}")
    else:
        w.parts.append({True: "true", False: "false", None: "null"}[v])


def _check_paired(text, at):
    if _SURROGATE.search(text):
        _fail(at, "has an unpaired surrogate")


def _write_string(w, t, at):
    if not isinstance(t, str):
        _fail(at, "is no string")
    _check_paired(t, at)
    w.parts.append(_quoted(t))


def _write_boolean(w, t, at):
    if not isinstance(t, bool):
        _fail(at, "is neither true nor false")
    w.parts.append("true" if t else "false")


def _write_whole(w, t, at, bits):
    if not isinstance(t, int) or isinstance(t, bool) or not -(1 << bits - 1) <= t < 1 << bits - 1:
        _fail(at, f"is no whole number of {bits} bits")
    w.parts.append(str(int(t)))


def _write_int(w, t, at):
    _write_whole(w, t, at, 32)


def _write_long(w, t, at):
    _write_whole(w, t, at, 64)


def _write_float(w, t, at):
    if not isinstance(t, (int, float)) or isinstance(t, bool) or not _math.isfinite(t):
        _fail(at, "is no number of 64 bits")
    w.parts.append(repr(float(t)))


def _write_bytes(w, t, at):
    if not isinstance(t, (bytes, bytearray)):
        _fail(at, "is no base64")
    w.parts.append('"' + _base64.b64encode(t).decode("ascii") + '"')


def _write_list(write):
    def write_all(w, items, at):
        w.open("[")
        for i, item in enumerate(items):
            w.comma()
            write(w, item, f"{at}[{i}]")
        w.close("]")

    return write_all


def _write_map(write):
    def write_all(w, members, at):
        w.open("{")
        for name, part in members.items():
            place = f"{at}[{_quoted(name)}]"
            _check_paired(name, place)
            w.name(name)
            write(w, part, place)
        w.close("}")

    return write_all


def _write_enum(w, t, at, kind, names):
    if not isinstance(t, str) or t not in kind._value2member_map_:
        _fail(at, f"is none of {names}")
    w.parts.append(_quoted(str(t)))
