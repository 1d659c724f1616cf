/*
 * skep.h: write a skep agent in C, with nothing but this header.
 *
 *   #include "skep.h"
 *
 *   SKEP_DESCRIPTOR({"abi": 1, "name": "greeter", "version": "1.0.0"})
 *
 *   static skep_code greet(skep_turn *t) {
 *     if (!skep_is(t->type, "request")) return SKEP_OK;
 *     return skep_task_complete(SKEP_CAT(SKEP("Hello, "), t->body, SKEP("!")));
 *   }
 *   SKEP_AGENT(greet)
 *
 * Include it in one file of a module. No libc is needed: memory comes from
 * skep_alloc and is never freed, because the instance serves one turn and is
 * thrown away. Functions that can be refused return a skep_code; skep_last_error
 * tells what the host said.
 */
#ifndef SKEP_H
#define SKEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKEP_ABI 1

/* ---- Names and numbers of the contract ---------------------------------- */

typedef enum {
  SKEP_OK = 0,
  SKEP_INVALID = 1,      /* bad arguments */
  SKEP_DENIED = 2,       /* not granted to this agent */
  SKEP_NOT_FOUND = 3,    /* no such thing */
  SKEP_UNAVAILABLE = 4,  /* try again later */
  SKEP_DEADLINE = 5,     /* out of time */
  SKEP_CANCELLED = 6,    /* the turn is called off; what it does in 250 ms counts */
  SKEP_LIMIT = 7,        /* a budget, size or rate is used up; the reason says which */
  SKEP_CONFLICT = 8,     /* does not fit the present state */
  SKEP_UPSTREAM = 9,     /* the other side answered with an error */
  SKEP_UNSUPPORTED = 10, /* this host cannot do it */
  SKEP_INTERNAL = 11     /* a fault of the host or the agent */
} skep_code;

/* Ops by number. Which of them a host has built, and which it grants, differs. */
enum {
  SKEP_OP_LAST_ERROR = 0,
  SKEP_OP_LOG = 1,
  SKEP_OP_CLOCK_NOW = 2,
  SKEP_OP_RANDOM = 3,
  SKEP_OP_HISTORY = 4,
  SKEP_OP_MAIL = 10,
  SKEP_OP_ACTION = 11,
  SKEP_OP_EMIT = 12,
  SKEP_OP_KV_GET = 20,
  SKEP_OP_KV_PUT = 21,
  SKEP_OP_KV_DELETE = 22,
  SKEP_OP_KV_LIST = 23,
  SKEP_OP_KV_CAS = 24,
  SKEP_OP_HTTP_FETCH = 30,
  SKEP_OP_LLM_CHAT = 40,
  SKEP_OP_SECRET_EXISTS = 50,
  SKEP_OP_TIMER_SET = 60,
  SKEP_OP_TIMER_CANCEL = 61,
  SKEP_OP_METRIC = 70,
  SKEP_OP_SPAN = 71,
  SKEP_OP_BLOB_GET = 80,
  SKEP_OP_BLOB_PUT = 81
};

/* What the exported functions return. */
enum { SKEP_STATUS_OK = 0, SKEP_STATUS_ERROR = 1, SKEP_STATUS_NOT_IMPLEMENTED = 2 };

/* ---- The host ------------------------------------------------------------ */

#ifdef __wasm__
#define SKEP_IMPORT(from, name) __attribute__((import_module(from), import_name(name))) extern
#define SKEP_EXPORT(name) __attribute__((export_name(name)))
#else
/* A native build is a test: skep_test.h plays the host. */
#define SKEP_IMPORT(from, name) static
#define SKEP_EXPORT(name) __attribute__((unused)) static
#endif

SKEP_IMPORT("skep_v1", "input_read") int32_t skep_host_input_read(uint32_t off, void *ptr, uint32_t cap);
SKEP_IMPORT("skep_v1", "output_write") int32_t skep_host_output_write(const void *ptr, uint32_t len);
SKEP_IMPORT("skep_v1", "call") int64_t skep_host_call(int32_t op, const void *req, uint32_t len, void *rsp, uint32_t cap);
SKEP_IMPORT("skep_v1", "read") int64_t skep_host_read(int32_t handle, void *ptr, uint32_t cap);
SKEP_IMPORT("skep_v1", "close") int32_t skep_host_close(int32_t handle);
SKEP_IMPORT("skep_v1", "abort") void skep_host_abort(int32_t code, const void *ptr, uint32_t len);
SKEP_IMPORT("skep_v1", "submit") int64_t skep_host_submit(int32_t op, const void *req, uint32_t len);
SKEP_IMPORT("skep_v1", "wait") int32_t skep_host_wait(const int32_t *handles, uint32_t n, int32_t timeout_ms);
SKEP_IMPORT("wasi_snapshot_preview1", "clock_time_get")
uint16_t skep_host_clock(uint32_t clock, uint64_t precision, uint64_t *nanoseconds);
SKEP_IMPORT("wasi_snapshot_preview1", "poll_oneoff")
uint16_t skep_host_poll(const void *subscriptions, void *events, uint32_t n, uint32_t *ready);

/* Everything here is static and may stay unused. */
#define SKEP_FN __attribute__((unused)) static

/* ---- Text and memory ------------------------------------------------------ */

/* skep_text is bytes of UTF-8 that end where len says, not at a zero. */
typedef struct {
  const char *at;
  size_t len;
} skep_text;

/* skep_json is the text of one JSON value; at is NULL where there is none. */
typedef skep_text skep_json;

/* SKEP makes a text of a string literal. */
#define SKEP(literal) ((skep_text){(literal), sizeof(literal) - 1})

/* SKEP_CAT joins texts: SKEP_CAT(SKEP("Re: "), t->subject). */
#define SKEP_CAT(...) \
  skep_cat((const skep_text[]){__VA_ARGS__}, sizeof((const skep_text[]){__VA_ARGS__}) / sizeof(skep_text))

SKEP_FN _Noreturn void skep_abort(skep_code code, skep_text message);

#ifdef __wasm__
/* The compiler calls these for copies it does not write out. */
#ifdef __wasm_bulk_memory__
__attribute__((weak)) void *memcpy(void *to, const void *from, size_t n) { return __builtin_memcpy(to, from, n); }
__attribute__((weak)) void *memset(void *to, int c, size_t n) { return __builtin_memset(to, c, n); }
#else
__attribute__((weak, no_builtin("memcpy"))) void *memcpy(void *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) ((char *)to)[i] = ((const char *)from)[i];
  return to;
}
__attribute__((weak, no_builtin("memset"))) void *memset(void *to, int c, size_t n) {
  for (size_t i = 0; i < n; i++) ((char *)to)[i] = (char)c;
  return to;
}
#endif

extern char __heap_base; /* the linker's: where free memory begins */
static char *skep__top = &__heap_base;

/* skep_alloc takes memory, aligned for anything. It never returns NULL: a turn
 * that wants more than its limit is aborted. */
SKEP_FN void *skep_alloc(size_t n) {
  uintptr_t at = ((uintptr_t)skep__top + 15) & ~(uintptr_t)15, end = at + n;
  uintptr_t have = __builtin_wasm_memory_size(0) << 16;
  if (end < at || (end > have && __builtin_wasm_memory_grow(0, ((end - have - 1) >> 16) + 1) == (size_t)-1))
    skep_abort(SKEP_LIMIT, SKEP("out of memory"));
  skep__top = (char *)end;
  return (void *)at;
}
#else
#include <stdlib.h>
#include <string.h>
SKEP_FN void *skep_alloc(size_t n) {
  void *p = malloc(n ? n : 1);
  if (!p) skep_abort(SKEP_LIMIT, SKEP("out of memory"));
  return p;
}
#endif

SKEP_FN void skep__copy(void *to, const void *from, size_t n) {
  if (n) __builtin_memcpy(to, from, n);
}

/* skep_abort gives up: the turn ends, and nothing it did happens. */
SKEP_FN _Noreturn void skep_abort(skep_code code, skep_text message) {
  skep_host_abort(code, message.at, (uint32_t)message.len);
  __builtin_trap(); /* not reached: the host does not return */
}

/* skep_c makes a text of a string that ends with a zero. */
SKEP_FN skep_text skep_c(const char *s) {
  size_t n = 0;
  while (s[n]) n++;
  return (skep_text){s, n};
}

SKEP_FN bool skep__same(const char *p, const char *q, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != q[i]) return false;
  return true;
}

SKEP_FN bool skep_equal(skep_text a, skep_text b) { return a.len == b.len && skep__same(a.at, b.at, a.len); }

/* skep_is compares a text with a string. */
SKEP_FN bool skep_is(skep_text t, const char *s) { return skep_c(s).len == t.len && skep__same(t.at, s, t.len); }

SKEP_FN skep_text skep_cat(const skep_text *parts, size_t n) {
  size_t len = 0;
  for (size_t i = 0; i < n; i++) len += parts[i].len;
  char *at = skep_alloc(len);
  size_t k = 0;
  for (size_t i = 0; i < n; k += parts[i++].len) skep__copy(at + k, parts[i].at, parts[i].len);
  return (skep_text){at, len};
}

/* skep_copy keeps a text that lies in a buffer somebody else will use again. */
SKEP_FN skep_text skep_copy(skep_text t) { return skep_cat(&t, 1); }

/* ---- Writing JSON ---------------------------------------------------------- */

/* skep_buf grows as it is written. {0} is an empty one. */
typedef struct {
  char *at;
  size_t len, cap;
} skep_buf;

SKEP_FN skep_text skep_written(const skep_buf *b) { return (skep_text){b->at, b->len}; }

/* skep__add appends bytes. */
SKEP_FN void skep__add(skep_buf *b, const char *p, size_t n) {
  if (b->cap - b->len < n) {
    char *at = skep_alloc(b->cap = 2 * b->cap + n + 64);
    skep__copy(at, b->at, b->len);
    b->at = at;
  }
  skep__copy(b->at + b->len, p, n);
  b->len += n;
}

/* skep_put appends a text as it is. */
SKEP_FN void skep_put(skep_buf *b, skep_text t) { skep__add(b, t.at, t.len); }

SKEP_FN void skep_put_char(skep_buf *b, char c) { skep__add(b, &c, 1); }

SKEP_FN void skep_put_int(skep_buf *b, int64_t v) {
  char digits[20];
  size_t i = sizeof digits;
  uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  do digits[--i] = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0) digits[--i] = '-';
  skep__add(b, digits + i, sizeof digits - i);
}

/* skep_put_number appends a number: to nine places below a thousand million, else a
 * whole one, of at most 10^18. */
SKEP_FN void skep_put_number(skep_buf *b, double v) {
  if (v < 0) {
    skep_put_char(b, '-');
    v = -v;
  }
  if (!(v < 1e9)) {
    skep_put_int(b, v < 1e18 ? (int64_t)v : 1000000000000000000);
    return;
  }
  uint64_t u = (uint64_t)(v * 1e9 + 0.5), rest = u % 1000000000;
  skep_put_int(b, (int64_t)(u / 1000000000));
  if (rest) skep_put_char(b, '.');
  for (uint64_t place = 100000000; rest; rest %= place, place /= 10) skep_put_char(b, (char)('0' + rest / place));
}

SKEP_FN void skep__put_u(skep_buf *b, unsigned v) {
  char u[6] = {'\\', 'u'};
  for (int i = 0; i < 4; i++) u[2 + i] = "0123456789abcdef"[v >> (12 - 4 * i) & 15];
  skep__add(b, u, 6);
}

/* skep__quote appends a JSON string, with its quotes. */
SKEP_FN void skep__quote(skep_buf *b, const char *p, size_t n) {
  static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
  skep_put_char(b, '"');
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)p[i];
    size_t k = 0;
    while (k < 7 && from[k] != (char)c) k++;
    if (k < 7) {
      skep_put_char(b, '\\');
      skep_put_char(b, to[k]);
    } else if (c < 0x20) {
      skep__put_u(b, c);
    } else if (c == 0xe2 && n - i > 2 && (unsigned char)p[i + 1] == 0x80 && ((unsigned char)p[i + 2] | 1) == 0xa9) {
      skep__put_u(b, 0x2000 | (p[i + 2] & 0x3f)); /* U+2028 and U+2029 end lines for some readers */
      i += 2;
    } else {
      skep_put_char(b, (char)c);
    }
  }
  skep_put_char(b, '"');
}

/* skep_put_string appends a text as a JSON string, with its quotes. */
SKEP_FN void skep_put_string(skep_buf *b, skep_text t) { skep__quote(b, t.at, t.len); }

/* skep_put_json appends a JSON value without the space between its tokens. */
SKEP_FN void skep_put_json(skep_buf *b, skep_json v) {
  bool quoted = false;
  for (size_t i = 0; i < v.len; i++) {
    char c = v.at[i];
    if (!quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    if (c == '"') quoted = !quoted;
    skep_put_char(b, c);
    if (c == '\\' && i + 1 < v.len) skep_put_char(b, v.at[++i]);
  }
}

/* skep__comma separates what follows from what is there. */
SKEP_FN void skep__comma(skep_buf *b) {
  char last = b->len ? b->at[b->len - 1] : '{';
  if (last != '{' && last != '[' && last != ':') skep_put_char(b, ',');
}

/* skep_key begins a member of an object: a comma where one is due, the name. */
SKEP_FN void skep_key(skep_buf *b, const char *name) {
  skep__comma(b);
  skep__quote(b, name, skep_c(name).len);
  skep_put_char(b, ':');
}

/* skep_member appends a member that is a string. */
SKEP_FN void skep_member(skep_buf *b, const char *name, skep_text value) {
  skep_key(b, name);
  skep_put_string(b, value);
}

/* skep_item appends a string to an array. */
SKEP_FN void skep_item(skep_buf *b, skep_text value) {
  skep__comma(b);
  skep_put_string(b, value);
}

/* ---- Reading JSON ---------------------------------------------------------- */

SKEP_FN const char *skep__space(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
  return p;
}

/* skep__trim drops the space around a value. */
SKEP_FN skep_json skep__trim(skep_json v) {
  while (v.len && (unsigned char)v.at[v.len - 1] <= ' ') v.len--;
  while (v.len && (unsigned char)*v.at <= ' ') v.at++, v.len--;
  return v;
}

/* skep__skip returns where a value of a good document ends. */
SKEP_FN const char *skep__skip(const char *p, const char *end) {
  size_t depth = 0;
  bool quoted = false;
  for (; p < end; p++) {
    char c = *p;
    if (c == '"') quoted = !quoted;
    else if (quoted) p += c == '\\';
    else if ((c | 32) == '{') depth++; /* [ and { differ in that bit alone, and so do their ends */
    else if ((c | 32) == '}' && depth-- <= 1) return p + (depth == 0);
    else if (depth) continue;
    else if (c == ',' || c == ':' || c <= ' ') return p;
    if (c == '"' && !quoted && !depth) return p + 1;
  }
  return p;
}

/* skep_each walks an array or an object:
 *   for (skep_each e = skep_over(v); skep_next(&e);) use(e.key, e.value); */
typedef struct {
  skep_json key; /* a JSON string; of an array, none */
  skep_json value;
  const char *p_, *end_;
} skep_each;

SKEP_FN bool skep__is_list(skep_json v) { return v.len && (*v.at == '[' || *v.at == '{'); }

SKEP_FN skep_each skep_over(skep_json v) {
  if (!skep__is_list(v)) return (skep_each){0};
  return (skep_each){.p_ = v.at, .end_ = v.at + v.len - 1};
}

SKEP_FN bool skep_next(skep_each *e) {
  if (!e->p_) return false;
  const char *p = skep__space(e->p_ + 1, e->end_), *q = skep__skip(p, e->end_);
  e->p_ = NULL;
  if (q == p) return false; /* an empty list */
  if (*e->end_ == '}') {
    e->key = (skep_json){p, (size_t)(q - p)};
    p = skep__space(skep__space(q, e->end_) + 1, e->end_);
    q = skep__skip(p, e->end_);
  }
  e->value = (skep_json){p, (size_t)(q - p)};
  q = skep__space(q, e->end_);
  if (q < e->end_) e->p_ = q; /* at a comma */
  return true;
}

SKEP_FN bool skep_is_string(skep_json v) { return v.len && *v.at == '"'; }
SKEP_FN bool skep_is_array(skep_json v) { return v.len && *v.at == '['; }
SKEP_FN bool skep_is_object(skep_json v) { return v.len && *v.at == '{'; }
SKEP_FN bool skep_is_null(skep_json v) { return !v.len || *v.at == 'n'; }
SKEP_FN bool skep_true(skep_json v) { return v.len && *v.at == 't'; }

SKEP_FN unsigned skep__hex(const char *p) {
  unsigned v = 0;
  for (int i = 0; i < 4; i++) v = v << 4 | ((p[i] & 15) + (p[i] > '9' ? 9 : 0));
  return v;
}

/* skep__utf8 writes a character and returns where the next one goes. */
SKEP_FN char *skep__utf8(char *to, unsigned c) {
  int n = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  for (int i = n; i; i--, c >>= 6) to[i] = (char)(0x80 | (c & 63));
  *to = (char)(c | (0xf0e0c000 >> 8 * n & 0xff));
  return to + n + 1;
}

/* skep__unicode decodes \u at p, or the pair of them that is one character. */
SKEP_FN const char *skep__unicode(const char *p, const char *end, unsigned *c) {
  *c = skep__hex(p);
  p += 4;
  if (*c >> 10 == 0x36 && end - p > 5 && p[0] == '\\' && p[1] == 'u' && skep__hex(p + 2) >> 10 == 0x37) {
    *c = 0x10000 + ((*c & 0x3ff) << 10 | (skep__hex(p + 2) & 0x3ff));
    p += 6;
  }
  if (*c >> 11 == 0x1b) *c = 0xfffd; /* half a pair is no character */
  return p;
}

/* skep_string decodes a JSON string; anything else is empty. */
SKEP_FN skep_text skep_string(skep_json v) {
  static const char from[] = "bfnrt", what[] = "\b\f\n\r\t";
  if (!skep_is_string(v)) return (skep_text){0};
  const char *p = v.at + 1, *end = v.at + v.len - 1;
  char *at = skep_alloc(v.len), *to = at;
  while (p < end) {
    unsigned c = (unsigned char)*p++;
    if (c == '\\') {
      c = (unsigned char)*p++;
      if (c == 'u') {
        p = skep__unicode(p, end, &c);
        to = skep__utf8(to, c);
        continue;
      }
      for (int i = 0; i < 5; i++)
        if (c == (unsigned char)from[i]) {
          c = (unsigned char)what[i];
          break;
        }
    }
    *to++ = (char)c;
  }
  return (skep_text){at, (size_t)(to - at)};
}

/* skep_int reads a whole number; what stands behind it (a fraction, an exponent)
 * is ignored, and anything else is 0. */
SKEP_FN int64_t skep_int(skep_json v) {
  size_t i = v.len && *v.at == '-';
  uint64_t n = 0;
  for (; i < v.len && v.at[i] >= '0' && v.at[i] <= '9'; i++) n = n * 10 + (uint64_t)(v.at[i] - '0');
  return (int64_t)(v.len && *v.at == '-' ? 0 - n : n);
}

/* skep__find replaces an object by one of its members. */
SKEP_FN void skep__find(skep_json *v, const char *name, size_t n) {
  skep_each e = skep_over(*v);
  *v = (skep_json){0};
  while (skep_next(&e))
    if (e.key.len == n + 2 && skep__same(e.key.at + 1, name, n)) *v = e.value;
}

/* skep_get returns a member of an object. A name is looked for as it is written
 * in the document, so one that is written with a backslash is not found. */
SKEP_FN skep_json skep_get(skep_json v, skep_text name) {
  skep__find(&v, name.at, name.len);
  return v;
}

/* skep_at follows names with dots between: skep_at(t->input, "task.id"). */
SKEP_FN skep_json skep_at(skep_json v, const char *path) {
  while (*path) {
    size_t n = 0;
    while (path[n] && path[n] != '.') n++;
    skep__find(&v, path, n);
    path += n + (path[n] == '.');
  }
  return v;
}

/* skep_str is skep_at for a string. */
SKEP_FN skep_text skep_str(skep_json v, const char *path) { return skep_string(skep_at(v, path)); }

#define SKEP_DEPTH 500 /* values in values */

SKEP_FN bool skep__is_hex(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f'); }

/* These return where a value ends, NULL where it is none. */
SKEP_FN const char *skep__string_end(const char *p, const char *end) {
  for (p++; p < end; p++) {
    if (*p == '"') return p + 1;
    if ((unsigned char)*p < 0x20) return NULL;
    if (*p != '\\') continue;
    if (++p == end) return NULL;
    if (*p == 'u') {
      for (int i = 0; i < 4; i++)
        if (++p == end || !skep__is_hex(*p)) return NULL;
    } else {
      const char *known = "\"\\/bfnrt";
      while (*known && *known != *p) known++;
      if (!*known) return NULL;
    }
  }
  return NULL;
}

SKEP_FN const char *skep__digits(const char *p, const char *end) {
  const char *from = p;
  while (p < end && *p >= '0' && *p <= '9') p++;
  return p > from ? p : NULL;
}

SKEP_FN const char *skep__number_end(const char *p, const char *end) {
  if (p < end && *p == '-') p++;
  const char *from = p;
  if (!(p = skep__digits(p, end)) || (*from == '0' && p > from + 1)) return NULL;
  if (p < end && *p == '.' && !(p = skep__digits(p + 1, end))) return NULL;
  if (p < end && (*p | 32) == 'e') {
    if (++p < end && (*p == '+' || *p == '-')) p++;
    p = skep__digits(p, end);
  }
  return p;
}

SKEP_FN const char *skep__word_end(const char *p, const char *end, const char *word) {
  for (; *word; word++, p++)
    if (p == end || *p != *word) return NULL;
  return p;
}

SKEP_FN const char *skep__value_end(const char *p, const char *end, int depth);

SKEP_FN const char *skep__list_end(const char *p, const char *end, int depth) {
  char close = (char)(*p + 2); /* [ and ], { and } */
  p = skep__space(p + 1, end);
  if (!depth) return NULL;
  if (p < end && *p == close) return p + 1;
  for (; p < end; p = skep__space(p + 1, end)) {
    if (close == '}') {
      if (*p != '"' || !(p = skep__string_end(p, end))) return NULL;
      p = skep__space(p, end);
      if (p == end || *p != ':') return NULL;
      p = skep__space(p + 1, end);
    }
    if (!(p = skep__value_end(p, end, depth - 1))) return NULL;
    p = skep__space(p, end);
    if (p < end && *p == close) return p + 1;
    if (p == end || *p != ',') return NULL;
  }
  return NULL;
}

SKEP_FN const char *skep__value_end(const char *p, const char *end, int depth) {
  if (p == end) return NULL;
  switch (*p) {
    case '"': return skep__string_end(p, end);
    case '{': case '[': return skep__list_end(p, end, depth);
    case 't': return skep__word_end(p, end, "true");
    case 'f': return skep__word_end(p, end, "false");
    case 'n': return skep__word_end(p, end, "null");
  }
  return skep__number_end(p, end);
}

/* skep_parse checks a text and returns its one JSON value, at NULL if it is not
 * one. What comes from the host is good; what comes from elsewhere, a message's
 * body for instance, must pass here before the readers above see it. */
SKEP_FN skep_json skep_parse(skep_text t) {
  if (!t.len) return (skep_json){0};
  const char *end = t.at + t.len, *p = skep__space(t.at, end), *q = skep__value_end(p, end, SKEP_DEPTH);
  if (!q || skep__space(q, end) != end) return (skep_json){0};
  return (skep_json){p, (size_t)(q - p)};
}

/* ---- Calling the host ------------------------------------------------------ */

/* skep_error is why the host refused a call, or why the agent gives up. */
typedef struct {
  skep_code code;
  skep_text op;           /* the op that failed, for instance mail */
  skep_text reason;       /* a short word for programs, for instance comm_targets */
  int64_t retry_after_ms; /* 0: a retry makes no sense, or may be at once */
  skep_text message;
} skep_error;

/* The last refusal, or what skep_fail said, as the contract writes it:
 * {"code":"DENIED","op":"mail","reason":"comm_targets","message":"…"} */
static skep_json skep__why;
static skep_code skep__why_code;

SKEP_FN skep_text skep_code_name(skep_code code) {
  static const char names[] =
      "OK\0INVALID\0DENIED\0NOT_FOUND\0UNAVAILABLE\0DEADLINE\0CANCELLED\0LIMIT\0CONFLICT\0UPSTREAM\0UNSUPPORTED\0INTERNAL";
  const char *p = names;
  if (code > SKEP_INTERNAL) {
    skep_buf b = {0};
    skep_put(&b, SKEP("CODE_"));
    skep_put_int(&b, code);
    return skep_written(&b);
  }
  for (int i = code; i; i--) p += skep_c(p).len + 1;
  return skep_c(p);
}

static skep_buf skep__answer; /* reused by every call, as large as the largest answer */

/* skep__rest reads what of an answer did not fit, and closes its handle. */
SKEP_FN skep_code skep__rest(size_t len, int32_t handle) {
  skep_buf whole = {skep_alloc(len), skep__answer.cap, len};
  int64_t n = 1;
  skep__copy(whole.at, skep__answer.at, whole.len);
  for (; whole.len < len && n > 0; whole.len += (size_t)n)
    n = skep_host_read(handle, whole.at + whole.len, (uint32_t)(len - whole.len));
  skep_host_close(handle);
  skep__answer = whole;
  return n > 0 ? SKEP_OK : n < 0 ? (skep_code)-n : SKEP_INTERNAL;
}

SKEP_FN skep_code skep__call(int32_t op, const char *p, size_t n) {
  if (!skep__answer.at) skep__answer = (skep_buf){skep_alloc(4096), 0, 4096};
  int64_t r = skep_host_call(op, p, (uint32_t)n, skep__answer.at, (uint32_t)skep__answer.cap);
  if (r < 0) return (skep_code)-r;
  skep__answer.len = (uint32_t)r;
  return r >> 32 ? skep__rest((uint32_t)r, (int32_t)(r >> 32)) : SKEP_OK;
}

/* skep__refused asks why the host refused. */
SKEP_FN skep_code skep__refused(skep_code code) {
  skep__why = skep__call(SKEP_OP_LAST_ERROR, NULL, 0) ? (skep_json){0} : skep_copy(skep_written(&skep__answer));
  return skep__why_code = code;
}

/* skep_call runs any op. The answer (which may be NULL) is good until the next
 * call; skep_copy keeps it. */
SKEP_FN skep_code skep_call(int32_t op, skep_text request, skep_json *answer) {
  skep_code code = skep__call(op, request.at, request.len);
  if (code) skep__refused(code);
  if (answer) *answer = code ? (skep_json){0} : skep__trim(skep_written(&skep__answer));
  return code;
}

/* skep_last_error tells why the last call that was refused was. */
SKEP_FN skep_error skep_last_error(void) {
  skep_error e = {
      .code = skep__why_code,
      .op = skep_str(skep__why, "op"),
      .reason = skep_str(skep__why, "reason"),
      .retry_after_ms = skep_int(skep_at(skep__why, "retry_after_ms")),
      .message = skep_str(skep__why, "message"),
  };
  return e;
}

/* skep_fail gives up with a message: return skep_fail(SKEP_INVALID, SKEP("…")). */
SKEP_FN skep_code skep_fail(skep_code code, skep_text message) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "code", skep_code_name(code));
  skep_member(&b, "message", message);
  skep_put_char(&b, '}');
  skep__why = skep_written(&b);
  return skep__why_code = code;
}

/* SKEP_TRY ends the turn with the error of a call that was refused. */
#define SKEP_TRY(call)              \
  do {                              \
    skep_code skep_try_ = (call);   \
    if (skep_try_) return skep_try_; \
  } while (0)

/* ---- Several ops at once ----------------------------------------------------- */

/* skep_pending is an op that was started, and its answer as far as it is not read
 * yet. {0} is one that is over. */
typedef struct {
  int32_t handle; /* 0 when nothing is open */
  skep_code code; /* why it failed */
  bool unread;    /* the reader has not seen its end, or why it failed */
  skep_json why;
} skep_pending;

/* skep_submit starts any op and does not wait for it. If the host refuses, reading
 * tells: there is one place for errors. Up to 64 may be open at once, of which 8 run
 * beside each other. */
SKEP_FN skep_pending skep_submit(int32_t op, skep_json request) {
  int64_t r = skep_host_submit(op, request.at, (uint32_t)request.len);
  if (r >= 0) return (skep_pending){.handle = (int32_t)r, .unread = true};
  skep_code code = skep__refused((skep_code)-r);
  return (skep_pending){.code = code, .unread = true, .why = skep__why};
}

/* skep_close calls an op off if it still runs, and forgets its answer. The end of
 * the turn does the same. */
SKEP_FN void skep_close(skep_pending *p) {
  if (p->handle) skep_host_close(p->handle);
  p->handle = 0;
  p->unread = false;
}

/* skep_read gives the next bytes of an answer and waits until there are some; n is 0
 * at the end. A piece has no boundaries of its own. An error comes again at every
 * call. */
SKEP_FN skep_code skep_read(skep_pending *p, void *to, size_t cap, size_t *n) {
  *n = 0;
  if (p->handle) {
    int64_t r = skep_host_read(p->handle, to, (uint32_t)cap);
    if (r > 0 || (!r && !cap)) return *n = (size_t)r, SKEP_OK;
    if (r < 0) {
      p->code = skep__refused((skep_code)-r);
      p->why = skep__why;
    }
  }
  skep_close(p);
  if (p->code) {
    skep__why = p->why;
    skep__why_code = p->code;
  }
  return p->code;
}

/* skep_read_all reads the rest of an answer. */
SKEP_FN skep_code skep_read_all(skep_pending *p, skep_text *answer) {
  skep_buf all = {0};
  char piece[1024];
  size_t n;
  do {
    SKEP_TRY(skep_read(p, piece, sizeof piece, &n));
    skep__add(&all, piece, n);
  } while (n);
  *answer = skep_written(&all);
  return SKEP_OK;
}

/* skep_wait_any waits until one of n ops has something to read, has ended or has
 * failed: the lowest of them is *ready. Those that were read to their end or closed
 * do not count any more; when none is left *ready is n. A negative timeout waits as
 * long as it takes, the end of another is SKEP_DEADLINE; SKEP_CANCELLED says that
 * the turn is called off. */
SKEP_FN skep_code skep_wait_any(const skep_pending *list, size_t n, int32_t timeout_ms, size_t *ready) {
  int32_t handles[64];
  size_t index[64], open = 0;
  for (*ready = 0; *ready < n; ++*ready) {
    if (!list[*ready].unread) continue;
    if (!list[*ready].handle) return SKEP_OK; /* not started, and the reader does not know yet */
    handles[open] = list[*ready].handle;
    index[open++] = *ready;
  }
  if (!open) return SKEP_OK;
  int32_t r = skep_host_wait(handles, (uint32_t)open, timeout_ms);
  if (r < 0) return skep__refused((skep_code)-r);
  *ready = index[r];
  return SKEP_OK;
}

SKEP_FN int64_t skep_now(void);

/* skep_wait_all waits until each of n ops has something to read, has ended or has
 * failed. The timeout is for all of them together. */
SKEP_FN skep_code skep_wait_all(const skep_pending *list, size_t n, int32_t timeout_ms) {
  int64_t end = skep_now() + timeout_ms * (int64_t)1000000;
  skep_pending *left = skep_alloc(n * sizeof *left);
  skep__copy(left, list, n * sizeof *left);
  for (size_t ready;; left[ready].unread = false) {
    int64_t rest = timeout_ms < 0 ? -1 : (end - skep_now() + 999999) / 1000000;
    SKEP_TRY(skep_wait_any(left, n, (int32_t)(timeout_ms >= 0 && rest < 0 ? 0 : rest), &ready));
    if (ready == n) return SKEP_OK;
  }
}

/* ---- MAIL's tools ---------------------------------------------------------- */

/* skep_reply is the host's answer to a tool. It is good until the next call. */
typedef struct {
  skep_text id; /* of the message made, if one was */
  skep_text text;
  skep_text request_id; /* of a request: the response to it has it, too */
} skep_reply;

/* skep_tool calls any tool with arguments as its schema asks; reply may be NULL. */
SKEP_FN skep_code skep_tool(skep_text name, skep_json args, skep_reply *reply) {
  skep_buf b = {0};
  skep_json answer;
  skep_put(&b, SKEP("{\"tool\":"));
  skep_put_string(&b, name);
  skep_put(&b, SKEP(",\"args\":"));
  skep_put(&b, args.len ? args : SKEP("{}"));
  skep_put_char(&b, '}');
  SKEP_TRY(skep_call(SKEP_OP_MAIL, skep_written(&b), &answer));
  if (reply) *reply = (skep_reply){skep_str(answer, "id"), skep_str(answer, "text"), skep_str(answer, "request_id")};
  return SKEP_OK;
}

SKEP_FN skep_code skep__letter(skep_text tool, skep_text target, skep_text subject, skep_text body, skep_reply *reply) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "target", target);
  skep_member(&b, "subject", subject);
  skep_member(&b, "body", body);
  skep_put_char(&b, '}');
  return skep_tool(tool, skep_written(&b), reply);
}

/* skep_send_request asks another agent; the answer is a message of a later turn. */
SKEP_FN skep_code skep_send_request(skep_text target, skep_text subject, skep_text body) {
  return skep__letter(SKEP("send_request"), target, subject, body, NULL);
}

/* skep_ask is skep_send_request that gives the request's id. The answer has it as
 * message.message.request_id of t->input, and so has the host's report that there will be none. A host that does not
 * give it leaves it empty. */
SKEP_FN skep_code skep_ask(skep_text target, skep_text subject, skep_text body, skep_text *request_id) {
  skep_reply reply = {0};
  SKEP_TRY(skep__letter(SKEP("send_request"), target, subject, body, &reply));
  *request_id = skep_copy(reply.request_id);
  return SKEP_OK;
}

/* skep_send_response answers an agent. */
SKEP_FN skep_code skep_send_response(skep_text target, skep_text subject, skep_text body) {
  return skep__letter(SKEP("send_response"), target, subject, body, NULL);
}

/* skep_send_interrupt writes to an agent ahead of everything that waits for it. */
SKEP_FN skep_code skep_send_interrupt(skep_text target, skep_text subject, skep_text body) {
  return skep__letter(SKEP("send_interrupt"), target, subject, body, NULL);
}

/* skep_send_broadcast writes to n agents; "all" is every local agent but this one. */
SKEP_FN skep_code skep_send_broadcast(const skep_text *targets, size_t n, skep_text subject, skep_text body) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_key(&b, "targets");
  skep_put_char(&b, '[');
  for (size_t i = 0; i < n; i++) skep_item(&b, targets[i]);
  skep_put_char(&b, ']');
  skep_member(&b, "subject", subject);
  skep_member(&b, "body", body);
  skep_put_char(&b, '}');
  return skep_tool(SKEP("send_broadcast"), skep_written(&b), NULL);
}

/* skep__remark calls a tool whose one argument is a text, or null where the text
 * is empty and may be left out. */
SKEP_FN skep_code skep__remark(skep_text tool, const char *name, skep_text text, bool optional) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  if (text.len || !optional) {
    skep_member(&b, name, text);
  } else {
    skep_key(&b, name);
    skep_put(&b, SKEP("null"));
  }
  skep_put_char(&b, '}');
  return skep_tool(tool, skep_written(&b), NULL);
}

/* skep_acknowledge_broadcast takes note of the broadcast in hand. */
SKEP_FN skep_code skep_acknowledge_broadcast(skep_text note) {
  return skep__remark(SKEP("acknowledge_broadcast"), "note", note, true);
}

/* skep_ignore_broadcast leaves the broadcast in hand. */
SKEP_FN skep_code skep_ignore_broadcast(skep_text reason) {
  return skep__remark(SKEP("ignore_broadcast"), "reason", reason, true);
}

/* skep_await_message ends the agent's part until another message arrives. Later
 * mail of the turn is refused with SKEP_CONFLICT. */
SKEP_FN skep_code skep_await_message(skep_text reason) {
  return skep__remark(SKEP("await_message"), "reason", reason, true);
}

/* skep_task_complete answers the user and ends the task. Later mail of the turn
 * is refused with SKEP_CONFLICT. */
SKEP_FN skep_code skep_task_complete(skep_text finish) {
  return skep__remark(SKEP("task_complete"), "finish_message", finish, false);
}

/* skep_help returns the host's own words about MAIL and this agent; args as in
 * ABI.md, section 7, for instance {"get_summary":true}. */
SKEP_FN skep_code skep_help(skep_json args, skep_text *text) {
  skep_reply reply = {0};
  SKEP_TRY(skep_tool(SKEP("help"), args, &reply));
  *text = reply.text;
  return SKEP_OK;
}

/* ---- Actions ---------------------------------------------------------------------- */

/* skep_action_json is the request of SKEP_OP_ACTION, for skep_submit. */
SKEP_FN skep_json skep_action_json(skep_text name, skep_json args) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "name", name);
  skep_key(&b, "args");
  skep_put(&b, args.len ? args : SKEP("{}"));
  skep_put_char(&b, '}');
  return skep_written(&b);
}

/* skep_call_action calls an action of the operator's file; answer, a JSON value, may be
 * NULL. SKEP_UNSUPPORTED is a name that was not given to this agent, SKEP_INVALID args
 * that do not fit, SKEP_UPSTREAM an action that has failed; the turn goes on. */
SKEP_FN skep_code skep_call_action(skep_text name, skep_json args, skep_json *answer) {
  skep_json got;
  SKEP_TRY(skep_call(SKEP_OP_ACTION, skep_action_json(name, args), &got));
  if (answer) *answer = skep_copy(got);
  return SKEP_OK;
}

/* ---- Models ----------------------------------------------------------------------- */

/* skep_chat_request is one question to a model. */
typedef struct {
  skep_text model;    /* by its name in the operator's [models] */
  skep_buf messages;  /* so far, written with skep_chat_say and its like */
  skep_buf tools;     /* that the model may call, written with skep_chat_tool */
  skep_text choice;   /* auto when empty, none, required, or the name of a tool */
  skep_json schema;   /* a JSON Schema that the text must follow, or empty */
  int64_t max_tokens; /* bounds the answer; 0 takes the model's bound */
  /* from 0 to 2; NULL leaves it to the model */
  const double *temperature;
} skep_chat_request;

/* skep_chat_answer is what it says: text, tool calls, or both. */
typedef struct {
  skep_text text, reasoning;
  skep_json tool_calls; /* an array of objects with the strings id, name, arguments */
  skep_text finish;     /* stop, tool_calls, length or filtered */
  int64_t input_tokens, cached_tokens, output_tokens, reasoning_tokens;
  int64_t micro_usd; /* millionths of a dollar, 0 without prices */
  skep_json carry;   /* empty, or what goes back with the answer */
} skep_chat_answer;

SKEP_FN void skep__open(skep_buf *b, const char *name, skep_text value) {
  skep__comma(b);
  skep_put_char(b, '{');
  skep_member(b, name, value);
}

/* skep_chat_say adds a message to a conversation; role is system, user or assistant. */
SKEP_FN void skep_chat_say(skep_buf *messages, skep_text role, skep_text content) {
  skep__open(messages, "role", role);
  skep_member(messages, "content", content);
  skep_put_char(messages, '}');
}

/* skep__calls puts tool calls, with no members but those that a request has. */
SKEP_FN void skep__calls(skep_buf *b, skep_json calls) {
  skep_put_char(b, '[');
  for (skep_each e = skep_over(calls); skep_next(&e);) {
    skep__open(b, "id", skep_str(e.value, "id"));
    skep_member(b, "name", skep_str(e.value, "name"));
    skep_member(b, "arguments", skep_str(e.value, "arguments"));
    skep_put_char(b, '}');
  }
  skep_put_char(b, ']');
}

/* skep_chat_repeat adds a model's answer, before what its tool calls gave. */
SKEP_FN void skep_chat_repeat(skep_buf *messages, const skep_chat_answer *a) {
  skep_each any = skep_over(a->tool_calls);
  skep__open(messages, "role", SKEP("assistant"));
  skep_member(messages, "content", a->text);
  if (skep_next(&any)) {
    skep_key(messages, "tool_calls");
    skep__calls(messages, a->tool_calls);
  }
  if (a->carry.len) {
    skep_key(messages, "carry");
    skep_put_json(messages, a->carry);
  }
  skep_put_char(messages, '}');
}

/* skep_chat_result adds what a tool call gave, by the call's id, and whether it failed. */
SKEP_FN void skep_chat_result(skep_buf *messages, skep_text id, skep_text content, bool failed) {
  skep__open(messages, "role", SKEP("tool"));
  skep_member(messages, "content", content);
  skep_member(messages, "tool_call_id", id);
  if (failed) {
    skep_key(messages, "error");
    skep_put(messages, SKEP("true"));
  }
  skep_put_char(messages, '}');
}

/* skep_chat_tool adds a tool; parameters is a JSON Schema. */
SKEP_FN void skep_chat_tool(skep_buf *tools, skep_text name, skep_text description, skep_json parameters) {
  skep__open(tools, "name", name);
  skep_member(tools, "description", description);
  skep_key(tools, "parameters");
  skep_put_json(tools, parameters);
  skep_put_char(tools, '}');
}

SKEP_FN void skep__list(skep_buf *b, const char *name, const skep_buf *items) {
  skep_key(b, name);
  skep_put_char(b, '[');
  skep_put(b, skep_written(items));
  skep_put_char(b, ']');
}

/* skep_chat_json is the request of SKEP_OP_LLM_CHAT, for skep_submit. */
SKEP_FN skep_json skep_chat_json(skep_chat_request r) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "model", r.model);
  skep__list(&b, "messages", &r.messages);
  if (r.tools.len) skep__list(&b, "tools", &r.tools);
  if (r.choice.len) skep_member(&b, "tool_choice", r.choice);
  if (r.schema.len) {
    skep_key(&b, "response_schema");
    skep_put_json(&b, r.schema);
  }
  if (r.max_tokens) {
    skep_key(&b, "max_tokens");
    skep_put_int(&b, r.max_tokens);
  }
  if (r.temperature) {
    skep_key(&b, "temperature");
    skep_put_number(&b, *r.temperature);
  }
  skep_put_char(&b, '}');
  return skep_written(&b);
}

/* skep_chatted reads an answer of SKEP_OP_LLM_CHAT. */
SKEP_FN skep_chat_answer skep_chatted(skep_json answer) {
  answer = skep_copy(answer);
  skep_json usage = skep_at(answer, "usage"), carry = skep_at(answer, "carry");
  return (skep_chat_answer){
      .text = skep_str(answer, "text"),
      .reasoning = skep_str(answer, "reasoning"),
      .tool_calls = skep_at(answer, "tool_calls"),
      .finish = skep_str(answer, "finish"),
      .input_tokens = skep_int(skep_at(usage, "input_tokens")),
      .cached_tokens = skep_int(skep_at(usage, "cached_tokens")),
      .output_tokens = skep_int(skep_at(usage, "output_tokens")),
      .reasoning_tokens = skep_int(skep_at(usage, "reasoning_tokens")),
      .micro_usd = skep_int(skep_at(usage, "micro_usd")),
      .carry = skep_is_null(carry) ? (skep_json){0} : carry,
  };
}

/* skep_chat asks a model and waits for the whole answer. The model must be granted, as
 * in allow = { llm = ["default"] }, else it is SKEP_DENIED. SKEP_LIMIT says that a budget
 * is used up or the question too long, SKEP_UNAVAILABLE that the model may answer later. */
SKEP_FN skep_code skep_chat(skep_chat_request r, skep_chat_answer *answer) {
  skep_json got;
  SKEP_TRY(skep_call(SKEP_OP_LLM_CHAT, skep_chat_json(r), &got));
  *answer = skep_chatted(got);
  return SKEP_OK;
}

/* skep_chat_stream is an answer as it comes. */
typedef struct {
  skep_pending op;         /* to wait for it, or to close it */
  skep_text delta;         /* the piece of the text that skep_chat_next has found … */
  skep_text reasoning;     /* … or that of the reasoning */
  skep_chat_answer answer; /* all of it, at the end */
  skep_buf read_, text_, reasoning_;
  size_t at_;
} skep_chat_stream;

/* skep_chat_submit asks a model and does not wait. If the host refuses, skep_chat_next
 * tells. */
SKEP_FN skep_chat_stream skep_chat_submit(skep_chat_request r) {
  return (skep_chat_stream){.op = skep_submit(SKEP_OP_LLM_CHAT, skep_chat_json(r))};
}

/* skep__line reads the next line of an answer, the last of which may have no end. */
SKEP_FN skep_code skep__line(skep_chat_stream *s, skep_text *line) {
  char piece[1024];
  size_t n = 1, end = s->at_;
  while (n) {
    while (end < s->read_.len && s->read_.at[end] != '\n') end++;
    if (end < s->read_.len) break;
    SKEP_TRY(skep_read(&s->op, piece, sizeof piece, &n));
    if (s->at_ == s->read_.len) s->at_ = end = s->read_.len = 0;
    skep__add(&s->read_, piece, n);
  }
  *line = (skep_text){s->read_.at + s->at_, end - s->at_};
  s->at_ = end + (n > 0);
  return SKEP_OK;
}

/* skep_chat_next waits for the next piece. *more is false at the end, where the answer
 * is there. */
SKEP_FN skep_code skep_chat_next(skep_chat_stream *s, bool *more) {
  skep_text line;
  *more = false;
  SKEP_TRY(skep__line(s, &line));
  skep_json v = skep_parse(line), end = skep_at(v, "end");
  if (!v.len) return skep_fail(SKEP_INTERNAL, SKEP("llm.chat: the answer breaks off"));
  if (end.len) {
    s->answer = skep_chatted(end);
    s->answer.text = skep_written(&s->text_);
    s->answer.reasoning = skep_written(&s->reasoning_);
    skep_close(&s->op);
    return SKEP_OK;
  }
  *more = true;
  s->delta = skep_str(v, "delta");
  s->reasoning = skep_str(v, "reasoning");
  skep_put(&s->text_, s->delta);
  skep_put(&s->reasoning_, s->reasoning);
  return SKEP_OK;
}

/* ---- What whoever follows the task sees at once -------------------------------- */

/* skep_emitted is what became of it. */
typedef enum {
  SKEP_EMIT_OK,    /* it is on its way */
  SKEP_EMIT_BUSY,  /* no reader keeps up: it is logged with the turn, do not repeat it */
  SKEP_EMIT_CLOSED /* the task has ended and nobody gets it any more */
} skep_emitted;

SKEP_FN skep_code skep__emit(skep_buf *b, skep_emitted *status) {
  skep_json answer;
  skep_put_char(b, '}');
  SKEP_TRY(skep_call(SKEP_OP_EMIT, skep_written(b), &answer));
  skep_text said = skep_str(answer, "status");
  if (status) *status = skep_is(said, "busy") ? SKEP_EMIT_BUSY : skep_is(said, "closed") ? SKEP_EMIT_CLOSED : SKEP_EMIT_OK;
  return SKEP_OK;
}

/* skep_emit_progress shows how far the turn has come: in words, at most 4 KiB, as a
 * fraction from 0 to 1, or both. An empty text and a negative fraction are left out;
 * status may be NULL. */
SKEP_FN skep_code skep_emit_progress(skep_text text, double fraction, skep_emitted *status) {
  skep_buf b = {0};
  skep_put(&b, SKEP("{\"progress\":{"));
  if (text.len) skep_member(&b, "text", text);
  if (fraction >= 0) {
    skep_key(&b, "fraction");
    skep_put_number(&b, fraction);
  }
  skep_put_char(&b, '}');
  return skep__emit(&b, status);
}

SKEP_FN skep_code skep__emit_text(const char *member, skep_text text, skep_emitted *status) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, member, text);
  return skep__emit(&b, status);
}

/* skep_emit_chunk shows the next piece of a text, at most 16 KiB. */
SKEP_FN skep_code skep_emit_chunk(skep_text text, skep_emitted *status) {
  return skep__emit_text("chunk", text, status);
}

/* skep_emit_note shows a line, at most 4 KiB. The history does not have it; for that
 * there is skep_note. */
SKEP_FN skep_code skep_emit_note(skep_text text, skep_emitted *status) {
  return skep__emit_text("note", text, status);
}

/* ---- What lasts beyond the turn ------------------------------------------------ */

/* skep_scope says who shares values. The operator grants the widest one, as in
 * allow = { kv = "agent" }; a wider one is SKEP_DENIED. */
typedef enum {
  SKEP_SCOPE_AGENT,   /* this agent in all tasks of its instance */
  SKEP_SCOPE_TASK,    /* this agent in this task */
  SKEP_SCOPE_INSTANCE /* all agents and tasks of the instance */
} skep_scope;

SKEP_FN skep_text skep__scope(skep_scope scope) {
  return scope == SKEP_SCOPE_TASK ? SKEP("task") : scope == SKEP_SCOPE_INSTANCE ? SKEP("instance") : SKEP("agent");
}

/* skep__kv ends a request with its scope, and runs it. */
SKEP_FN skep_code skep__kv(int32_t op, skep_buf *b, skep_scope scope, skep_json *answer) {
  skep_member(b, "scope", skep__scope(scope));
  skep_put_char(b, '}');
  return skep_call(op, skep_written(b), answer);
}

/* skep_kv_get reads a value: what this turn has put, else what is committed. It is
 * SKEP_NOT_FOUND when there is none. Keys have 1 to 512 bytes, values at most 64 KiB. */
SKEP_FN skep_code skep_kv_get(skep_scope scope, skep_text key, skep_text *value) {
  skep_buf b = {0};
  skep_json answer;
  skep_put_char(&b, '{');
  skep_member(&b, "key", key);
  SKEP_TRY(skep__kv(SKEP_OP_KV_GET, &b, scope, &answer));
  *value = skep_str(answer, "value");
  return SKEP_OK;
}

/* skep_kv_put sets a value. The turn sees it at once, others when the turn has ended
 * well; the last turn to end wins. A scope holds 1,000 keys and 4 MiB; what is more
 * is SKEP_LIMIT. */
SKEP_FN skep_code skep_kv_put(skep_scope scope, skep_text key, skep_text value) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "key", key);
  skep_member(&b, "value", value);
  return skep__kv(SKEP_OP_KV_PUT, &b, scope, NULL);
}

/* skep_kv_delete removes a value, as skep_kv_put sets one. It is no error if there is
 * none. */
SKEP_FN skep_code skep_kv_delete(skep_scope scope, skep_text key) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "key", key);
  return skep__kv(SKEP_OP_KV_DELETE, &b, scope, NULL);
}

/* skep_kv_list gives an array of the keys that begin with prefix and are greater than
 * after, in the order of their bytes, at most limit of them (0 is 100, at most
 * 1,000), and the after of the next page, empty at the end. */
SKEP_FN skep_code skep_kv_list(skep_scope scope, skep_text prefix, skep_text after, int64_t limit, skep_json *keys,
                               skep_text *next) {
  skep_buf b = {0};
  skep_json answer;
  skep_put_char(&b, '{');
  skep_member(&b, "prefix", prefix);
  skep_member(&b, "after", after);
  skep_key(&b, "limit");
  skep_put_int(&b, limit);
  SKEP_TRY(skep__kv(SKEP_OP_KV_LIST, &b, scope, &answer));
  *next = skep_str(answer, "next");
  *keys = skep_copy(skep_at(answer, "keys"));
  return SKEP_OK;
}

SKEP_FN void skep__text_or_null(skep_buf *b, const char *name, const skep_text *value) {
  skep_key(b, name);
  if (value) skep_put_string(b, *value);
  else skep_put(b, SKEP("null"));
}

/* skep_kv_cas replaces a value at once if it is the one expected, and says in ok
 * whether it was: an expect of NULL wants none there, a value of NULL deletes. It
 * stays even if the turn fails, and does not see what the turn has put: such a key is
 * SKEP_CONFLICT. */
SKEP_FN skep_code skep_kv_cas(skep_scope scope, skep_text key, const skep_text *expect, const skep_text *value, bool *ok) {
  skep_buf b = {0};
  skep_json answer;
  skep_put_char(&b, '{');
  skep_member(&b, "key", key);
  skep__text_or_null(&b, "expect", expect);
  skep__text_or_null(&b, "value", value);
  SKEP_TRY(skep__kv(SKEP_OP_KV_CAS, &b, scope, &answer));
  *ok = skep_true(skep_at(answer, "ok"));
  return SKEP_OK;
}

/* skep_timer_set has the host send this agent a message of this task after 1 ms to 30
 * days by the turn's clock; skep_from_timer tells it. The id (which may be NULL) is
 * also that of the message. It counts only if the turn ends well, and then survives
 * restarts. While a timer is pending, skep_await_message succeeds. A task has at most
 * 16 pending; one more is SKEP_LIMIT. */
SKEP_FN skep_code skep_timer_set(int64_t after_ms, skep_text body, skep_text *id) {
  skep_buf b = {0};
  skep_json answer;
  skep_put(&b, SKEP("{\"after\":"));
  skep_put_int(&b, after_ms);
  skep_member(&b, "body", body);
  skep_put_char(&b, '}');
  SKEP_TRY(skep_call(SKEP_OP_TIMER_SET, skep_written(&b), &answer));
  if (id) *id = skep_str(answer, "id");
  return SKEP_OK;
}

/* skep__named runs an op whose request is one text. */
SKEP_FN skep_code skep__named(int32_t op, const char *member, skep_text text, skep_json *answer) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, member, text);
  skep_put_char(&b, '}');
  return skep_call(op, skep_written(&b), answer);
}

/* skep_timer_cancel ends a timer that this agent has set in this task, as long as the
 * turn on its message has not begun; else it is SKEP_NOT_FOUND. It counts only if the
 * turn ends well. */
SKEP_FN skep_code skep_timer_cancel(skep_text id) { return skep__named(SKEP_OP_TIMER_CANCEL, "id", id, NULL); }

/* ---- HTTP ---------------------------------------------------------------------- */

static const char skep__base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* skep_put_base64 appends bytes as text of 64 characters, with padding. */
SKEP_FN void skep_put_base64(skep_buf *b, skep_text bytes) {
  for (size_t i = 0; i < bytes.len; i += 3) {
    uint32_t bits = 0;
    for (size_t k = i; k < i + 3; k++) bits = bits << 8 | (k < bytes.len ? (unsigned char)bytes.at[k] : 0);
    for (size_t k = 0; k < 4; k++) skep_put_char(b, i + k > bytes.len ? '=' : skep__base64[bits >> (18 - 6 * k) & 63]);
  }
}

SKEP_FN int skep__digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* skep_from_base64 reads what a host writes; it ends at the first character that is
 * none of them. */
SKEP_FN skep_text skep_from_base64(skep_text text) {
  char *at = skep_alloc(text.len), *to = at;
  uint32_t bits = 0;
  int have = 0;
  for (size_t i = 0; i < text.len; i++) {
    int digit = skep__digit(text.at[i]);
    if (digit < 0) break;
    bits = bits << 6 | (uint32_t)digit;
    if ((have += 6) >= 8) *to++ = (char)(bits >> (have -= 8));
  }
  return (skep_text){at, (size_t)(to - at)};
}

/* skep_fetch_request is one HTTP request. */
typedef struct {
  skep_text method;  /* GET when empty; HEAD, POST, PUT, PATCH, DELETE, OPTIONS */
  skep_text url;     /* absolute, http or https */
  skep_json headers; /* an object of strings, or empty */
  skep_text body;    /* what the JSON of a request holds, 2 MiB */
  bool binary;       /* the body is not text of UTF-8 */
} skep_fetch_request;

/* skep_fetch_response is its answer. Any status is one, also 404 and 500. */
typedef struct {
  int64_t status;
  skep_json headers; /* an object of strings; names are in lower case */
  skep_text body;    /* whole; one of more than 8 MiB, or what [limits.http] says, is SKEP_LIMIT */
} skep_fetch_response;

/* skep_fetch_json is the request of SKEP_OP_HTTP_FETCH, for skep_submit. */
SKEP_FN skep_json skep_fetch_json(skep_fetch_request r) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "method", r.method.len ? r.method : SKEP("GET"));
  skep_member(&b, "url", r.url);
  if (r.headers.len) {
    skep_key(&b, "headers");
    skep_put(&b, r.headers);
  }
  if (r.body.len && r.binary) {
    skep_key(&b, "body_base64");
    skep_put_char(&b, '"');
    skep_put_base64(&b, r.body);
    skep_put_char(&b, '"');
  } else if (r.body.len) {
    skep_member(&b, "body", r.body);
  }
  skep_put_char(&b, '}');
  return skep_written(&b);
}

/* skep_fetched reads an answer of SKEP_OP_HTTP_FETCH, for skep_read_all. */
SKEP_FN skep_fetch_response skep_fetched(skep_json answer) {
  skep_text coded = skep_str(answer, "body_base64");
  return (skep_fetch_response){
      .status = skep_int(skep_at(answer, "status")),
      .headers = skep_copy(skep_at(answer, "headers")),
      .body = coded.len ? skep_from_base64(coded) : skep_str(answer, "body"),
  };
}

/* skep_fetch makes an HTTP request and waits for its answer. After 60 s, or what the
 * operator's [limits.http] says, it is SKEP_DEADLINE. It goes where the operator's grants lead, as in
 * allow = { http = ["https://api.example.com"] }, else it is SKEP_DENIED. The host adds
 * the secrets that are bound to the origin. SKEP_UNAVAILABLE means that no answer
 * came; the request may have arrived. */
SKEP_FN skep_code skep_fetch(skep_fetch_request r, skep_fetch_response *response) {
  skep_json answer;
  SKEP_TRY(skep_call(SKEP_OP_HTTP_FETCH, skep_fetch_json(r), &answer));
  *response = skep_fetched(answer);
  return SKEP_OK;
}

/* skep_secret_exists tells whether the host adds a secret to this agent's requests,
 * by the name it has in the operator's file. The agent never sees its value. */
SKEP_FN skep_code skep_secret_exists(skep_text name, bool *exists) {
  skep_json answer;
  SKEP_TRY(skep__named(SKEP_OP_SECRET_EXISTS, "name", name, &answer));
  *exists = skep_true(skep_at(answer, "exists"));
  return SKEP_OK;
}

/* ---- Blobs --------------------------------------------------------------------- */

/* skep_blob_put keeps up to 3,000,000 bytes and tells their address, by which all
 * agents of the tenant read them. It counts only if the turn ends well. The blob goes
 * with the last task that has put it. */
SKEP_FN skep_code skep_blob_put(skep_text bytes, skep_text *sha256) {
  skep_buf b = {0};
  skep_json answer;
  skep_put(&b, SKEP("{\"data\":\""));
  skep_put_base64(&b, bytes);
  skep_put(&b, SKEP("\"}"));
  SKEP_TRY(skep_call(SKEP_OP_BLOB_PUT, skep_written(&b), &answer));
  *sha256 = skep_str(answer, "sha256");
  return SKEP_OK;
}

/* skep_blob_get reads a blob by its address; SKEP_NOT_FOUND when the tenant has none. */
SKEP_FN skep_code skep_blob_get(skep_text sha256, skep_text *bytes) {
  skep_json answer;
  SKEP_TRY(skep__named(SKEP_OP_BLOB_GET, "sha256", sha256, &answer));
  *bytes = skep_from_base64(skep_str(answer, "data"));
  return SKEP_OK;
}

/* ---- What the operator measures ------------------------------------------------ */

SKEP_FN skep_code skep__metric(skep_text name, double value, const char *kind, skep_json labels) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "name", name);
  skep_key(&b, "value");
  skep_put_number(&b, value);
  if (kind) skep_member(&b, "kind", skep_c(kind));
  if (labels.len) {
    skep_key(&b, "labels");
    skep_put(&b, labels);
  }
  skep_put_char(&b, '}');
  return skep_call(SKEP_OP_METRIC, skep_written(&b), NULL);
}

/* skep_count adds a value, 0 or more, to a counter of the operator's monitoring. labels
 * is an object of at most 8 short strings, or empty; each set of them is a series of its
 * own. It counts when the turn ends, once. Too many series or calls are SKEP_LIMIT. */
SKEP_FN skep_code skep_count(skep_text name, double value, skep_json labels) {
  return skep__metric(name, value, NULL, labels);
}

/* skep_gauge sets a value that goes up and down, else as skep_count. */
SKEP_FN skep_code skep_gauge(skep_text name, double value, skep_json labels) {
  return skep__metric(name, value, "gauge", labels);
}

SKEP_FN skep_code skep__span(skep_buf *b, skep_json attributes, skep_text error, skep_json *answer) {
  if (attributes.len) {
    skep_key(b, "attributes");
    skep_put(b, attributes);
  }
  if (error.len) skep_member(b, "error", error);
  skep_put_char(b, '}');
  return skep_call(SKEP_OP_SPAN, skep_written(b), answer);
}

/* skep_span_begin begins a part of the turn that the operator sees with the time it
 * took; attributes is an object of strings, or empty. It lies in the one that began last
 * and has not ended. What is open at the end of the turn ends with it. */
SKEP_FN skep_code skep_span_begin(skep_text name, skep_json attributes, int64_t *id) {
  skep_buf b = {0};
  skep_json answer;
  skep_put_char(&b, '{');
  skep_member(&b, "name", name);
  SKEP_TRY(skep__span(&b, attributes, (skep_text){0}, &answer));
  *id = skep_int(skep_at(answer, "id"));
  return SKEP_OK;
}

/* skep_span_end ends one, with attributes beside those it began with, and why what it
 * covers has failed; an empty error says that it has not. */
SKEP_FN skep_code skep_span_end(int64_t id, skep_json attributes, skep_text error) {
  skep_buf b = {0};
  skep_put(&b, SKEP("{\"id\":"));
  skep_put_int(&b, id);
  return skep__span(&b, attributes, error, NULL);
}

/* ---- Log, time, randomness, history ---------------------------------------- */

/* skep_log_at writes a line to the operator's log. level is debug, info, warn or
 * error; fields is an object or empty. A line the host refuses is lost. */
SKEP_FN void skep_log_at(skep_text level, skep_text message, skep_json fields) {
  skep_json why = skep__why;
  skep_code code = skep__why_code;
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "level", level);
  skep_member(&b, "message", message);
  if (fields.len) {
    skep_key(&b, "fields");
    skep_put(&b, fields);
  }
  skep_put_char(&b, '}');
  skep_call(SKEP_OP_LOG, skep_written(&b), NULL);
  skep__why = why;
  skep__why_code = code;
}

SKEP_FN void skep_log(skep_text message) { skep_log_at(SKEP("info"), message, (skep_json){0}); }

/* skep_now reads the turn's clock, in nanoseconds since 1970. It stands still
 * while the module computes and moves with calls and sleeps. */
SKEP_FN int64_t skep_now(void) {
  uint64_t ns = 0;
  skep_host_clock(0, 1, &ns);
  return (int64_t)ns;
}

/* skep_sleep waits, and moves the turn's clock by exactly that span. */
SKEP_FN void skep_sleep(int64_t nanoseconds) {
  struct {
    uint64_t userdata;
    uint64_t tag; /* 0: clock */
    uint64_t clock;
    uint64_t timeout, precision;
    uint64_t absolute;
  } subscription = {.clock = 1, .timeout = nanoseconds > 0 ? (uint64_t)nanoseconds : 0};
  uint64_t event[4];
  uint32_t ready = 0;
  skep_host_poll(&subscription, event, 1, &ready);
}

SKEP_FN skep_code skep__ask(int32_t op, const char *member, skep_text *text) {
  skep_json answer;
  SKEP_TRY(skep_call(op, (skep_text){0}, &answer));
  *text = skep_copy(skep_str(answer, member));
  return SKEP_OK;
}

/* skep_wall_time asks the host for the real time, as 2026-03-01T09:30:00.120000+00:00. */
SKEP_FN skep_code skep_wall_time(skep_text *time) { return skep__ask(SKEP_OP_CLOCK_NOW, "time", time); }

/* skep_random gives 32 hexadecimal digits that differ between turns, and repeat
 * when a turn runs again. */
SKEP_FN skep_code skep_random(skep_text *digits) { return skep__ask(SKEP_OP_RANDOM, "value", digits); }

/* skep_history reads entries with seq above after, oldest first: an array, and
 * where the next page begins, 0 at the end. The newest entries are in the input
 * already, at history.tail. */
SKEP_FN skep_code skep_history(int64_t after, int64_t limit, skep_json *entries, int64_t *next) {
  skep_buf b = {0};
  skep_json answer;
  skep_put(&b, SKEP("{\"after\":"));
  skep_put_int(&b, after);
  skep_put(&b, SKEP(",\"limit\":"));
  skep_put_int(&b, limit);
  skep_put_char(&b, '}');
  SKEP_TRY(skep_call(SKEP_OP_HISTORY, skep_written(&b), &answer));
  answer = skep_copy(answer);
  *entries = skep_at(answer, "entries");
  *next = skep_int(skep_at(answer, "next"));
  return SKEP_OK;
}

/* ---- The turn ---------------------------------------------------------------- */

/* skep_turn is one agent's handling of one message. */
typedef struct {
  skep_json input;       /* all of it: ABI.md, section 8 */
  skep_text type;        /* request, response, broadcast, interrupt, broadcast_complete */
  skep_text sender_type; /* agent, user, admin, system */
  skep_text sender;
  skep_text subject;
  skep_text body;
  skep_json params;    /* from swarm.toml, null without any */
  skep_json state;     /* what the last turn left, null at first; skep_set_state sets it */
} skep_turn;

static skep_buf skep__state, skep__notes; /* what the turn leaves */

/* skep_set_state keeps a JSON value, up to 64 KiB, for this agent's next turn in
 * this task; null forgets it. It counts only if the turn ends well. */
SKEP_FN void skep_set_state(skep_turn *t, skep_json value) {
  skep__state = (skep_buf){0};
  skep_key(&skep__state, "state");
  skep_put_json(&skep__state, value.len ? value : SKEP("null"));
  t->state = (skep_json){skep__state.at + 8, skep__state.len - 8};
}

/* skep_note adds a line to the agent's history. */
SKEP_FN void skep_note(skep_text text) {
  if (!skep__notes.len) skep_put(&skep__notes, SKEP("\"notes\":["));
  skep_item(&skep__notes, text);
}

SKEP_FN bool skep_from_system(const skep_turn *t) { return skep_is(t->sender_type, "system"); }

SKEP_FN bool skep_from_user(const skep_turn *t) {
  return skep_is(t->sender_type, "user") || skep_is(t->sender_type, "admin");
}

/* skep_from_timer tells whether a timer of this agent has brought the message. Its id,
 * skep_str(t->input, "message.id"), is the timer's, its body what that was set with. */
SKEP_FN bool skep_from_timer(const skep_turn *t) { return skep_from_system(t) && skep_is(t->subject, "::timer::"); }

/* ---- The exported functions --------------------------------------------------- */

SKEP_FN skep_text skep__input(uint32_t len) {
  char *at = skep_alloc(len);
  int32_t n = skep_host_input_read(0, at, len);
  return (skep_text){at, n < 0 ? 0 : (size_t)n};
}

/* skep__ended writes what a call leaves behind, or why it failed. */
SKEP_FN int32_t skep__ended(skep_code code, const char *output, size_t n) {
  if (!code && (!n || skep_host_output_write(output, (uint32_t)n) >= 0)) return SKEP_STATUS_OK;
  skep_text why = skep__why.len && code == skep__why_code ? skep__why : SKEP("the agent gave no message");
  skep_host_output_write(why.at, (uint32_t)why.len);
  return SKEP_STATUS_ERROR;
}

static skep_turn skep__turn;

SKEP_FN int32_t skep__run_turn(uint32_t len, skep_code (*agent)(skep_turn *)) {
  static skep_text *const fields[] = {&skep__turn.type, &skep__turn.sender_type, &skep__turn.sender,
                                      &skep__turn.subject, &skep__turn.body};
  const char *path = "message.msg_type\0message.message.sender.address_type\0message.message.sender.address\0"
                     "message.message.subject\0message.message.body";
  skep__turn.input = skep__input(len);
  skep__turn.params = skep_at(skep__turn.input, "params");
  skep__turn.state = skep_at(skep__turn.input, "state");
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++, path += skep_c(path).len + 1)
    *fields[i] = skep_str(skep__turn.input, path);
  skep_code code = agent(&skep__turn);
  skep_buf out = {0};
  if (skep__state.len + skep__notes.len) {
    skep_put_char(&out, '{');
    skep_put(&out, skep_written(&skep__state));
    if (skep__notes.len) {
      skep__comma(&out);
      skep_put(&out, skep_written(&skep__notes));
      skep_put_char(&out, ']');
    }
    skep_put_char(&out, '}');
  }
  return skep__ended(code, out.at, out.len);
}

/* skep_action is one call of an action this module exports. Its code may call ops as far
 * as the operator grants them to the action; it sends no mail. */
typedef struct {
  skep_text name;
  skep_json args;   /* they fit the parameters of the descriptor: the host has checked */
  skep_json params; /* from swarm.toml */
  skep_json answer; /* a JSON value, set by the agent's code; null otherwise */
} skep_action;

SKEP_FN int32_t skep__run_action(uint32_t len, skep_code (*action)(skep_action *)) {
  skep_json in = skep__input(len);
  skep_action a = {.name = skep_str(in, "name"), .args = skep_at(in, "args"), .params = skep_at(in, "params")};
  a.answer = SKEP("null");
  skep_code code = action(&a);
  return skep__ended(code, a.answer.at, a.answer.len);
}

/* SKEP_DESCRIPTOR says what the module is, as plain JSON: ABI.md, section 10. */
#define SKEP_DESCRIPTOR(...)                                \
  SKEP_EXPORT("skep_describe") int32_t skep__describe(void) { \
    static const char text[] = #__VA_ARGS__;                  \
    return skep__ended(SKEP_OK, text, sizeof text - 1);       \
  }

/* SKEP_AGENT makes skep_code f(skep_turn *) the module's agent. */
#define SKEP_AGENT(f)                                         \
  SKEP_EXPORT("skep_abi_v1") void skep__marker(void) {}       \
  SKEP_EXPORT("skep_turn") int32_t skep__turn_export(uint32_t len) { \
    return skep__run_turn(len, f);                            \
  }

/* SKEP_WARM has skep_code f(void) prepare what is the same for every turn, before
 * the host takes the image from which all turns start. */
#define SKEP_WARM(f) \
  SKEP_EXPORT("skep_warm") int32_t skep__warm(void) { return skep__ended(f(), NULL, 0); }

/* SKEP_ACTION makes skep_code f(skep_action *) answer the module's actions. */
#define SKEP_ACTION(f)                                            \
  SKEP_EXPORT("skep_action") int32_t skep__action(uint32_t len) { \
    return skep__run_action(len, f);                              \
  }

#endif
