/* A writer and a reader of JSON for tally.c. The reader sees a few KiB at a time
   and takes no memory, so it reads a text of any size. */

typedef unsigned char u8;
typedef unsigned long long u64;

/* ---- Classes of bytes, a table that skep_warm builds ---- */

enum { BLANK = 1, PLAIN = 2, DIGIT = 4 };
static u8 class[256];

static void build_classes(void) {
  for (int c = 0x20; c < 0x80; c++) class[c] = PLAIN; /* stands for itself in a string */
  class['"'] = class['\\'] = 0;
  for (int c = '0'; c <= '9'; c++) class[c] |= DIGIT;
  class[' '] |= BLANK;
  class['\t'] = class['\n'] = class['\r'] = BLANK;
}

/* ---- Text ---- */

struct text {
  char *at;
  unsigned cap, len;
  int cut; /* something did not fit */
};

/* A text with memory of the function that has it. */
#define TEXT(size) { (char[size]){0}, size, 0, 0 }

static void put(struct text *t, const char *from, unsigned n) {
  if (n > t->cap - t->len) {
    t->cut = 1;
    return;
  }
  for (unsigned i = 0; i < n; i++) t->at[t->len++] = from[i];
}

static void raw(struct text *t, const char *s) {
  unsigned n = 0;
  while (s[n]) n++;
  put(t, s, n);
}

static void number(struct text *t, u64 n) {
  char digits[20];
  int i = 20;
  do digits[--i] = (char) ('0' + n % 10);
  while (n /= 10);
  put(t, digits + i, (unsigned) (20 - i));
}

static unsigned encode(char *out, int c) {
  if (c < 0x80) return out[0] = (char) c, 1;
  if (c < 0x800) return out[0] = (char) (0xC0 | c >> 6), out[1] = (char) (0x80 | (c & 63)), 2;
  if (c < 0x10000) {
    out[0] = (char) (0xE0 | c >> 12), out[1] = (char) (0x80 | (c >> 6 & 63));
    return out[2] = (char) (0x80 | (c & 63)), 3;
  }
  out[0] = (char) (0xF0 | c >> 18), out[1] = (char) (0x80 | (c >> 12 & 63));
  return out[2] = (char) (0x80 | (c >> 6 & 63)), out[3] = (char) (0x80 | (c & 63)), 4;
}

/* Appends the text escaped for the inside of a JSON string. */
static void escaped(struct text *t, const struct text *s) {
  for (unsigned i = 0; i < s->len; i++) {
    u8 c = (u8) s->at[i];
    if (c == '"' || c == '\\') {
      put(t, (char[]){'\\', (char) c}, 2);
    } else if (c < 0x20) {
      put(t, (char[]){'\\', 'u', '0', '0', (char) ('0' + (c >> 4)), "0123456789abcdef"[c & 15]}, 6);
    } else {
      put(t, (const char *) &s->at[i], 1);
    }
  }
}

static int same(const struct text *t, const char *s) {
  unsigned i = 0;
  while (i < t->len && s[i] && t->at[i] == s[i]) i++;
  return i == t->len && !s[i] && !t->cut;
}

/* ---- A JSON reader that sees a few KiB at a time ---- */

enum { END = -1, DEPTH = 10000, WINDOW = 4096 };

struct json {
  int handle;        /* where it comes from; the rest of the program knows */
  unsigned at, have; /* the window: bytes used, bytes there */
  u64 before;        /* bytes that came before the window */
  int ended, holds, held;
  long long error;   /* what fetch refused with */
  const char *bad;   /* what is wrong with the JSON; everything stops */
  u8 window[WINDOW];
};

/* Fills the window; bytes there, 0 at the end, or an error. */
static long long fetch(struct json *j);

static void open_json(struct json *j, int handle, unsigned have) {
  j->handle = handle, j->at = 0, j->have = have, j->before = 0;
  j->ended = j->holds = 0, j->error = 0, j->bad = 0;
}

static void wrong(struct json *j, const char *why) {
  if (!j->bad) j->bad = why;
}

static int more(struct json *j) {
  if (j->ended || j->bad) return 0;
  j->before += j->have;
  j->at = j->have = 0;
  long long n = fetch(j);
  if (n > 0) return j->have = (unsigned) n, 1;
  j->ended = 1;
  if (n < 0) j->error = n, wrong(j, "could not be read to its end");
  return 0;
}

static int peek(struct json *j) {
  if (j->bad) return END;
  return j->at < j->have || more(j) ? j->window[j->at] : END;
}

static int take(struct json *j) {
  int c = peek(j);
  if (c != END) j->at++;
  return c;
}

static int after_blanks(struct json *j) {
  int c;
  while ((c = peek(j)) != END && class[c] & BLANK) j->at++;
  return c;
}

static void expect(struct json *j, int want, const char *why) {
  if (after_blanks(j) == want) j->at++;
  else wrong(j, why);
}

static int hex4(struct json *j) {
  int v = 0;
  for (int i = 0; i < 4; i++) {
    int c = take(j);
    if (c >= '0' && c <= '9') c -= '0';
    else if ((c | 32) >= 'a' && (c | 32) <= 'f') c = (c | 32) - 'a' + 10;
    else return wrong(j, "has a bad \\u escape"), END;
    v = v << 4 | c;
  }
  return v;
}

static int escape(struct json *j) {
  int c = take(j);
  switch (c) {
    case '"': case '\\': case '/': return c;
    case 'b': return 8;
    case 'f': return 12;
    case 'n': return 10;
    case 'r': return 13;
    case 't': return 9;
    case 'u': return hex4(j);
  }
  return wrong(j, "has a bad escape"), END;
}

/* The rest of a character of two to four bytes. */
static int utf8(struct json *j, int c) {
  static const int least[4] = {0, 0x80, 0x800, 0x10000};
  int n = c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : 0;
  int v = c & (0x3F >> n);
  for (int i = 0; i < n; i++) {
    int d = peek(j);
    if (d == END || (d & 0xC0) != 0x80) n = 0;
    else v = v << 6 | (d & 63), j->at++;
  }
  if (n == 0 || v < least[n] || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000))
    return wrong(j, "is not UTF-8"), END;
  return v;
}

/* A character of a string, or half of one written as two escapes; END at the
   closing quote. */
static int unit(struct json *j) {
  int c = take(j);
  if (c == '"') return END;
  if (c == '\\') return escape(j);
  if (c >= 0x80) return utf8(j, c);
  if (c == END || !(class[c] & PLAIN)) return wrong(j, "has a string that is not ended"), END;
  return c;
}

/* The next character of a string, END after the last or when something is wrong;
   half a pair alone becomes U+FFFD. */
static int character(struct json *j) {
  int c = j->holds ? j->held : unit(j);
  j->holds = 0;
  if (j->bad) return END;
  if (c < 0xD800 || c > 0xDFFF) return c;
  if (c > 0xDBFF) return 0xFFFD;
  int low = unit(j);
  if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00));
  j->holds = 1, j->held = low;
  return 0xFFFD;
}

static void quote(struct json *j) {
  j->holds = 0;
  expect(j, '"', "has something else where a string should be");
}

/* Reads a string into t, or past it where t is 0. A cut text has no holes. */
static void string(struct json *j, struct text *t) {
  int c;
  quote(j);
  while ((c = character(j)) != END) {
    char bytes[4];
    if (t && !t->cut) put(t, bytes, encode(bytes, c));
  }
}

static void word(struct json *j, const char *s) {
  for (; *s; s++)
    if (take(j) != (u8) *s) wrong(j, "has a word that is not true, false or null");
}

static void digits(struct json *j, u64 *v) {
  int c, n = 0;
  for (; (c = peek(j)) != END && class[c] & DIGIT; j->at++, n++) {
    u64 d = (u64) (c - '0');
    *v = *v > (~0ull - d) / 10 ? ~0ull : *v * 10 + d;
  }
  if (n == 0) wrong(j, "has a bad number");
}

/* Reads a number. Its value if it is a whole one from 0 (at most 2^64-1), else 0. */
static u64 numeral(struct json *j) {
  u64 v = 0, rest = 0;
  int whole = 1;
  if (peek(j) == '-') j->at++, whole = 0;
  if (peek(j) == '0') j->at++;
  else digits(j, &v);
  if (peek(j) == '.') j->at++, whole = 0, digits(j, &rest);
  if ((peek(j) | 32) == 'e') {
    j->at++, whole = 0;
    if (peek(j) == '+' || peek(j) == '-') j->at++;
    digits(j, &rest);
  }
  return whole ? v : 0;
}

static void scalar(struct json *j) {
  switch (after_blanks(j)) {
    case '"': string(j, 0); return;
    case 't': word(j, "true"); return;
    case 'f': word(j, "false"); return;
    case 'n': word(j, "null"); return;
    default: numeral(j);
  }
}

static void key(struct json *j, struct text *name) {
  if (name) name->len = 0, name->cut = 0;
  string(j, name);
  expect(j, ':', "lacks a colon");
}

/* Passes over one value, without recursion: a bit says what each level is. */
static void skip(struct json *j) {
  static u8 levels[DEPTH / 8 + 1];
  unsigned depth = 0;
  for (;;) {
    int c = after_blanks(j);
    if (c == '{' || c == '[') {
      if (depth == DEPTH) return wrong(j, "is nested too deeply");
      j->at++;
      u8 bit = (u8) (1 << (depth & 7));
      levels[depth >> 3] = (u8) (c == '{' ? levels[depth >> 3] | bit : levels[depth >> 3] & ~bit);
      depth++;
      if (after_blanks(j) == c + 2) {
        j->at++, depth--;
      } else {
        if (c == '{') key(j, 0);
        continue;
      }
    } else {
      scalar(j);
    }
    for (;;) { /* a value is over */
      if (j->bad || depth == 0) return;
      int object = levels[(depth - 1) >> 3] >> ((depth - 1) & 7) & 1;
      c = after_blanks(j);
      if (c == ',') {
        j->at++;
        if (object) key(j, 0);
        break;
      }
      if (c != (object ? '}' : ']')) return wrong(j, "has brackets that do not match");
      j->at++, depth--;
    }
  }
}

/* Enters the object or array that comes; passes over anything else. */
static int enter(struct json *j, int bracket) {
  if (after_blanks(j) == bracket) return j->at++, 1;
  skip(j);
  return 0;
}

/* Goes on to the next member or element; *n counts them. */
static int next(struct json *j, int bracket, unsigned *n) {
  int c = after_blanks(j);
  if (c == bracket) return j->at++, 0;
  if ((*n)++ > 0) expect(j, ',', "lacks a comma");
  return !j->bad;
}

static int member(struct json *j, unsigned *n, struct text *name) {
  if (!next(j, '}', n)) return 0;
  key(j, name);
  return !j->bad;
}

static void text_value(struct json *j, struct text *t) {
  t->len = 0, t->cut = 0;
  if (after_blanks(j) == '"') string(j, t);
  else skip(j);
}

static u64 whole_value(struct json *j) {
  int c = after_blanks(j);
  if (c != END && (c == '-' || class[c] & DIGIT)) return numeral(j);
  skip(j);
  return 0;
}
