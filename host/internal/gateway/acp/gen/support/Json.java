    /** Why a message cannot be read or written, with its place. */
    public static final class MessageError extends RuntimeException {
        private static final long serialVersionUID = 1;

        MessageError(String reason) {
            super(reason);
        }
    }

    private static final int MAX_TEXT = 1048576; // bytes
    private static final int MAX_NESTING = 64;

    /** A number as it is written. */
    private record Numeral(String text) {}

    private interface Read<T> {
        T read(Object v, String at);
    }

    private interface Write<T> {
        void write(Writer w, T t, String at);
    }

    private interface Known {
        boolean has(String name);
    }

    private static MessageError failed(String at, String reason) {
        return new MessageError(at + ": " + reason);
    }

    private static MessageError refused(String reason) {
        return new MessageError("the text " + reason);
    }

    private static boolean paired(String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (Character.isHighSurrogate(c) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))) {
                i++;
            } else if (Character.isSurrogate(c)) {
                return false;
            }
        }
        return true;
    }

    private static void checkSize(String text) {
        int n = text.length();
        for (int i = 0; i < text.length() && n <= MAX_TEXT; i++) {
            char c = text.charAt(i);
            n += c < 0x80 ? 0 : c < 0x800 || Character.isSurrogate(c) ? 1 : 2;
        }
        if (n > MAX_TEXT) {
            throw refused("has more than 1048576 bytes");
        }
    }

    private static String utf8(byte[] text) {
        if (text.length > MAX_TEXT) {
            throw refused("has more than 1048576 bytes");
        }
        try {
            return java.nio.charset.StandardCharsets.UTF_8.newDecoder().decode(java.nio.ByteBuffer.wrap(text)).toString();
        } catch (java.nio.charset.CharacterCodingException e) {
            throw refused("is not UTF-8");
        }
    }

    private static Object parseText(String text) {
        checkSize(text);
        if (!paired(text)) {
            throw refused("has an unpaired surrogate");
        }
        return new Parser(text).all();
    }

    private static final class Parser {
        private final String text;
        private int at;
        private int depth;

        Parser(String text) {
            this.text = text;
        }

        Object all() {
            space();
            Object v = value();
            space();
            if (at < text.length()) {
                throw refused("is no JSON");
            }
            return v;
        }

        private int peek() {
            return at < text.length() ? text.charAt(at) : -1;
        }

        private boolean take(char c) {
            if (peek() == c) {
                at++;
                return true;
            }
            return false;
        }

        private void want(char c) {
            if (!take(c)) {
                throw refused("is no JSON");
            }
        }

        private void space() {
            for (int c = peek(); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek()) {
                at++;
            }
        }

        private Object value() {
            switch (peek()) {
                case '{':
                case '[':
                    if (++depth > MAX_NESTING) {
                        throw refused("is nested deeper than 64");
                    }
                    Object v = peek() == '{' ? object() : list();
                    depth--;
                    return v;
                case '"':
                    return string();
                case 't':
                    return word("true", true);
                case 'f':
                    return word("false", false);
                case 'n':
                    return word("null", null);
                default:
                    return number();
            }
        }

        private Object word(String word, Object v) {
            if (!text.startsWith(word, at)) {
                throw refused("is no JSON");
            }
            at += word.length();
            return v;
        }

        private Object number() {
            int begin = at;
            take('-');
            if (!take('0')) {
                digits();
            }
            if (take('.')) {
                digits();
            }
            if (take('e') || take('E')) {
                if (!take('+')) {
                    take('-');
                }
                digits();
            }
            return new Numeral(text.substring(begin, at));
        }

        private void digits() {
            int begin = at;
            while (peek() >= '0' && peek() <= '9') {
                at++;
            }
            if (at == begin) {
                throw refused("is no JSON");
            }
        }

        private java.util.List<Object> list() {
            java.util.List<Object> all = new java.util.ArrayList<>();
            want('[');
            space();
            if (take(']')) {
                return all;
            }
            for (;;) {
                space();
                all.add(value());
                space();
                if (take(']')) {
                    return all;
                }
                want(',');
            }
        }

        private java.util.Map<String, Object> object() {
            java.util.Map<String, Object> all = new java.util.LinkedHashMap<>();
            want('{');
            space();
            if (take('}')) {
                return all;
            }
            for (;;) {
                space();
                if (peek() != '"') {
                    throw refused("is no JSON");
                }
                String name = string();
                if (all.containsKey(name)) {
                    throw refused("has a member twice");
                }
                space();
                want(':');
                space();
                all.put(name, value());
                space();
                if (take('}')) {
                    return all;
                }
                want(',');
            }
        }

        private String string() {
            StringBuilder out = new StringBuilder();
            want('"');
            for (;;) {
                int c = peek();
                if (c < ' ') {
                    throw refused("is no JSON");
                }
                at++;
                if (c == '"') {
                    return out.toString();
                }
                if (c == '\\') {
                    escape(out);
                } else {
                    out.append((char) c);
                }
            }
        }

        private void escape(StringBuilder out) {
            int c = peek();
            at++;
            int i = "\"\\/bfnrt".indexOf(c);
            if (i >= 0) {
                out.append("\"\\/\b\f\n\r\t".charAt(i));
                return;
            }
            if (c != 'u') {
                throw refused("is no JSON");
            }
            char unit = hex();
            out.append(unit);
            if (!Character.isSurrogate(unit)) {
                return;
            }
            if (Character.isLowSurrogate(unit) || !take('\\') || !take('u')) {
                throw refused("has an unpaired surrogate");
            }
            char low = hex();
            if (!Character.isLowSurrogate(low)) {
                throw refused("has an unpaired surrogate");
            }
            out.append(low);
        }

        private char hex() {
            int n = 0;
            for (int i = 0; i < 4; i++, at++) {
                int digit = "0123456789abcdef".indexOf(peek() >= 'A' && peek() <= 'F' ? peek() + 32 : peek());
                if (digit < 0) {
                    throw refused("is no JSON");
                }
                n = n * 16 + digit;
            }
            return (char) n;
        }
    }

    @SuppressWarnings("unchecked")
    private static java.util.Map<String, Object> readObject(Object v, String at) {
        if (v instanceof java.util.Map) {
            return (java.util.Map<String, Object>) v;
        }
        throw failed(at, "is no object");
    }

    private static <T> T field(java.util.Map<String, Object> o, String name, String at, Read<T> read) {
        if (!o.containsKey(name)) {
            throw failed(at + "." + name, "is missing");
        }
        return read.read(o.get(name), at + "." + name);
    }

    private static <T> T optional(java.util.Map<String, Object> o, String name, String at, Read<T> read) {
        Object v = o.get(name);
        return v == null ? null : read.read(v, at + "." + name);
    }

    /** The members that are not declared, each with its text. */
    private static java.util.Map<String, String> others(java.util.Map<String, Object> o, Known declared) {
        java.util.Map<String, String> extra = new java.util.LinkedHashMap<>();
        o.forEach((name, v) -> {
            if (!declared.has(name)) {
                Writer w = new Writer();
                writeValue(w, v);
                extra.put(name, w.out.toString());
            }
        });
        return extra;
    }

    private static void noOthers(java.util.Map<String, Object> o, String at, Known declared) {
        for (String name : o.keySet()) {
            if (!declared.has(name)) {
                throw failed(at + "[" + quoted(name) + "]", "is not declared");
            }
        }
    }

    private static String readString(Object v, String at) {
        if (v instanceof String s) {
            return s;
        }
        throw failed(at, "is no string");
    }

    private static Boolean readBoolean(Object v, String at) {
        if (v instanceof Boolean b) {
            return b;
        }
        throw failed(at, "is neither true nor false");
    }

    private static Integer readInt(Object v, String at) {
        try {
            return Integer.valueOf(v instanceof Numeral n ? n.text : "");
        } catch (NumberFormatException e) {
            throw failed(at, "is no whole number of 32 bits");
        }
    }

    private static Long readLong(Object v, String at) {
        try {
            return Long.valueOf(v instanceof Numeral n ? n.text : "");
        } catch (NumberFormatException e) {
            throw failed(at, "is no whole number of 64 bits");
        }
    }

    private static Double readFloat(Object v, String at) {
        double d = v instanceof Numeral n ? Double.parseDouble(n.text) : Double.NaN;
        if (Double.isNaN(d) || Double.isInfinite(d)) {
            throw failed(at, "is no number of 64 bits");
        }
        return d;
    }

    private static byte[] readBytes(Object v, String at) {
        if (v instanceof String s) {
            try {
                byte[] raw = java.util.Base64.getDecoder().decode(s);
                if (java.util.Base64.getEncoder().encodeToString(raw).equals(s)) {
                    return raw;
                }
            } catch (IllegalArgumentException e) {
                // The reason follows.
            }
        }
        throw failed(at, "is no base64");
    }

    private static <T> Read<java.util.List<T>> readList(Read<T> read) {
        return (v, at) -> {
            if (!(v instanceof java.util.List<?> items)) {
                throw failed(at, "is no list");
            }
            java.util.List<T> all = new java.util.ArrayList<>(items.size());
            for (Object item : items) {
                all.add(read.read(item, at + "[" + all.size() + "]"));
            }
            return all;
        };
    }

    private static <T> Read<java.util.Map<String, T>> readMap(Read<T> read) {
        return (v, at) -> {
            java.util.Map<String, T> all = new java.util.LinkedHashMap<>();
            readObject(v, at).forEach((name, part) -> all.put(name, read.read(part, at + "[" + quoted(name) + "]")));
            return all;
        };
    }

    private static final class Writer {
        final StringBuilder out = new StringBuilder();
        private int depth;

        void open(char c) {
            if (++depth > MAX_NESTING) {
                throw refused("is nested deeper than 64");
            }
            out.append(c);
        }

        void close(char c) {
            depth--;
            out.append(c);
        }

        void comma() {
            char last = out.charAt(out.length() - 1);
            if (last != '{' && last != '[') {
                out.append(',');
            }
        }

        void name(String name) {
            comma();
            out.append(quoted(name)).append(':');
        }
    }

    private static <T> String encode(T t, String at, Write<T> write) {
        Writer w = new Writer();
        write.write(w, t, at);
        String text = w.out.toString();
        checkSize(text);
        return text;
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            int simple = "\"\\\b\f\n\r\t".indexOf(c);
            if (simple >= 0) {
                out.append('\\').append("\"\\bfnrt".charAt(simple));
            } else if (c < ' ') {
                out.append("\\u00").append(c < 16 ? "0" : "").append(Integer.toHexString(c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private static <T> void writeField(Writer w, String name, T t, String at, Write<T> write) {
        w.name(name);
        if (t == null) {
            throw failed(at + "." + name, "is missing");
        }
        write.write(w, t, at + "." + name);
    }

    private static <T> void writeOptional(Writer w, String name, T t, String at, Write<T> write) {
        if (t != null) {
            writeField(w, name, t, at, write);
        }
    }

    private static void writeOthers(Writer w, java.util.Map<String, String> extra, String at, Known declared) {
        if (extra == null) {
            return;
        }
        extra.forEach((name, text) -> {
            String place = at + "[" + quoted(name) + "]";
            if (declared.has(name)) {
                throw failed(place, "is declared and cannot be there twice");
            }
            checkPaired(name, place);
            w.name(name);
            writeValue(w, parseText(text));
        });
    }

    private static void writeValue(Writer w, Object v) {
        if (v instanceof String s) {
            w.out.append(quoted(s));
        } else if (v instanceof Numeral n) {
            w.out.append(n.text);
        } else if (v instanceof java.util.List<?> items) {
            w.open('[');
            for (Object item : items) {
                w.comma();
                writeValue(w, item);
            }
            w.close(']');
        } else if (v instanceof java.util.Map) {
            w.open('{');
            readObject(v, "").forEach((name, part) -> {
                w.name(name);
                writeValue(w, part);
            });
            w.close('}');
        } else {
            w.out.append(v);
        }
    }

    private static void checkPaired(String text, String at) {
        if (!paired(text)) {
            throw failed(at, "has an unpaired surrogate");
        }
    }

    private static void writeString(Writer w, String t, String at) {
        if (t == null) {
            throw failed(at, "is missing");
        }
        checkPaired(t, at);
        w.out.append(quoted(t));
    }

    private static void writeBoolean(Writer w, Boolean t, String at) {
        w.out.append(t.booleanValue());
    }

    private static void writeInt(Writer w, Integer t, String at) {
        w.out.append(t.intValue());
    }

    private static void writeLong(Writer w, Long t, String at) {
        w.out.append(t.longValue());
    }

    private static void writeFloat(Writer w, Double t, String at) {
        if (t.isNaN() || t.isInfinite()) {
            throw failed(at, "is no number of 64 bits");
        }
        w.out.append(t.doubleValue());
    }

    private static void writeBytes(Writer w, byte[] t, String at) {
        if (t == null) {
            throw failed(at, "is missing");
        }
        w.out.append('"').append(java.util.Base64.getEncoder().encodeToString(t)).append('"');
    }

    private static <T> Write<java.util.List<T>> writeList(Write<T> write) {
        return (w, all, at) -> {
            w.open('[');
            int i = 0;
            for (T item : all) {
                w.comma();
                writeItem(w, item, at + "[" + i++ + "]", write);
            }
            w.close(']');
        };
    }

    private static <T> void writeItem(Writer w, T t, String at, Write<T> write) {
        if (t == null) {
            throw failed(at, "is missing");
        }
        write.write(w, t, at);
    }

    private static <T> Write<java.util.Map<String, T>> writeMap(Write<T> write) {
        return (w, all, at) -> {
            w.open('{');
            all.forEach((name, part) -> {
                String place = at + "[" + quoted(name) + "]";
                checkPaired(name, place);
                w.name(name);
                writeItem(w, part, place, write);
            });
            w.close('}');
        };
    }
