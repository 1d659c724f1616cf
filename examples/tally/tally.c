/* tally counts the words and bytes of every request and answers with the sums.
   It is written from abi/ABI.md alone: no SDK, no libc, no heap. */

#include "json.h"

#define IMPORT(name) __attribute__((import_module("skep_v1"), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

IMPORT("input_read")   int       skep_input(unsigned off, void *ptr, unsigned cap);
IMPORT("output_write") int       skep_output(const void *ptr, unsigned len);
IMPORT("call")         long long skep_call(int op, const void *req, unsigned len, void *rsp, unsigned cap);
IMPORT("submit")       long long skep_submit(int op, const void *req, unsigned len);
IMPORT("wait")         int       skep_wait(const int *handles, unsigned n, int timeout_ms);
IMPORT("read")         long long skep_read(int handle, void *ptr, unsigned cap);
IMPORT("close")        int       skep_close(int handle);

enum { LAST_ERROR = 0, LOG = 1, CLOCK = 2, RANDOM = 3, HISTORY = 4, MAIL = 10, EMIT = 12 };
enum { CANCELLED = 6 };

EXPORT("skep_abi_v1") void marker(void) {}

/* The assembler, not C, can make a custom section: a C array would be data. */
__asm__(".section .custom_section.skep.descriptor,\"\",@\n"
        ".ascii \"{\\\"abi\\\":1,\\\"name\\\":\\\"tally\\\",\\\"version\\\":\\\"1.0.0\\\",\"\n"
        ".ascii \"\\\"description\\\":\\\"Counts words and bytes, and keeps the sum.\\\",\"\n"
        ".ascii \"\\\"agents\\\":[{\\\"name\\\":\\\"tally\\\",\\\"description\\\":\\\"Send it any text.\\\",\"\n"
        ".ascii \"\\\"roles\\\":[\\\"worker\\\"]}]}\"\n");

EXPORT("skep_warm") int warm(void) {
  build_classes();
  return 0;
}

/* ---- Counting ---- */

struct count {
  u64 words, bytes;
  int inside; /* the last character was of a word */
};

static int is_space(int c) { /* Unicode White_Space */
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

static void tally(struct count *n, int c) {
  int word = !is_space(c);
  n->words += (u64) (word && !n->inside);
  n->inside = word;
  n->bytes += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

/* ---- Ops ---- */

enum { FROM_INPUT = -1, IN_PLACE = 0 }; /* any other handle is read from */

static struct json input, answer;
static struct text request = TEXT(16384);
static int called_off;
static unsigned input_len;

static int refused(long long r) {
  if (r == -CANCELLED) called_off = 1;
  return r < 0;
}

/* Runs an op with what stands in `request`. The answer is open for reading and
   is to be closed; on an error nothing is open. */
static int ask(int op) {
  if (request.cut) request.len = 0; /* cannot be: every part has its cap */
  long long r = skep_call(op, request.at, request.len, answer.window, WINDOW);
  if (refused(r)) return (int) r;
  unsigned len = (unsigned) r;
  open_json(&answer, (int) (r >> 32), len < WINDOW ? len : WINDOW);
  return 0;
}

static void close_json(struct json *j) {
  if (j->handle > 0) skep_close(j->handle);
  j->handle = IN_PLACE;
}

static void begin(const char *s) {
  request.len = 0, request.cut = 0;
  raw(&request, s);
}

/* Writes the line of the log that stands in `request`. A log that is full, or
   refused, changes nothing. */
static void write_line(void) {
  if (ask(LOG) == 0) close_json(&answer);
}

/* Says how far it has come. Only the part read is told, not the length: what a
   guest shows should not hang on members of the input that it ignores. */
static void shown(u64 seen, u64 all) {
  u64 percent = seen < all ? seen * 100 / all : 100;
  if (called_off) return;
  begin("{\"progress\":{\"text\":\"counting\",\"fraction\":");
  number(&request, percent / 100);
  raw(&request, percent % 100 < 10 ? ".0" : ".");
  number(&request, percent % 100);
  raw(&request, "}}");
  if (ask(EMIT) == 0) close_json(&answer);
}

/* Shows progress every 256 KiB of the input. */
static void progress(u64 seen) {
  static u64 due = 256 << 10;
  if (seen < due) return;
  due += 256 << 10;
  shown(seen, input_len);
}

static long long fetch(struct json *j) {
  if (j->handle == IN_PLACE) return 0;
  if (j->handle != FROM_INPUT) return skep_read(j->handle, j->window, WINDOW);
  progress(j->before);
  return skep_input((unsigned) j->before, j->window, WINDOW);
}

/* Passes the last error on as the turn's output. */
static int fail_with_last_error(void) {
  long long r = skep_call(LAST_ERROR, 0, 0, answer.window, WINDOW);
  if (r < 0) return 1;
  unsigned len = (unsigned) r;
  open_json(&answer, (int) (r >> 32), len < WINDOW ? len : WINDOW);
  do skep_output(answer.window, answer.have);
  while (more(&answer));
  close_json(&answer);
  return 1;
}

static int fail(const struct json *j) {
  if (j->error) return fail_with_last_error();
  begin("{\"code\":\"INVALID\",\"message\":\"the input ");
  struct text why = {(char *) j->bad, 0, 0, 0};
  while (j->bad[why.len]) why.len++;
  escaped(&request, &why);
  raw(&request, ", at byte ");
  number(&request, j->before + j->at);
  raw(&request, "\"}");
  skep_output(request.at, request.len);
  return 1;
}

/* Two ops at once, read in the order in which they come. */
static void stamp(struct text *ticket, struct text *time) {
  static const int ops[2] = {RANDOM, CLOCK};
  struct text *into[2] = {ticket, time}, name = TEXT(16);
  int handles[2], which[2];
  unsigned open = 0;
  for (int i = 0; i < 2; i++) {
    long long h = skep_submit(ops[i], "{}", 2);
    if (refused(h)) continue;
    handles[open] = (int) h, which[open++] = i;
  }
  while (open > 0) {
    int i = skep_wait(handles, open, 10000);
    if (refused(i)) break;
    unsigned n = 0;
    open_json(&answer, handles[i], 0);
    if (enter(&answer, '{'))
      while (member(&answer, &n, &name)) {
        if (same(&name, which[i] ? "time" : "value")) text_value(&answer, into[which[i]]);
        else skip(&answer);
      }
    refused(answer.error);
    if (answer.bad) into[which[i]]->len = 0;
    close_json(&answer);
    open--;
    handles[i] = handles[open], which[i] = which[open];
  }
  while (open > 0) skep_close(handles[--open]);
  if (!ticket->len) raw(ticket, "none");
  if (!time->len) raw(time, "unknown");
}

/* ---- What a turn is told ---- */

struct letter {
  struct text type, sender, subject;
  struct count body;
};

struct past { /* what the history says of earlier requests */
  u64 count, entries, requests, words, tail_from;
  int partial;
};

struct sums { u64 requests, words, bytes, unanswered; };

static void read_letter(struct json *j, struct letter *l) {
  struct text name = TEXT(24);
  unsigned n = 0;
  if (!enter(j, '{')) return;
  while (member(j, &n, &name)) {
    if (same(&name, "msg_type")) {
      text_value(j, &l->type);
    } else if (same(&name, "subject")) {
      text_value(j, &l->subject);
    } else if (same(&name, "body") && after_blanks(j) == '"') {
      int c;
      quote(j);
      while ((c = character(j)) != END) tally(&l->body, c);
    } else if (same(&name, "message") && after_blanks(j) == '{') {
      read_letter(j, l);
    } else if (same(&name, "sender")) {
      unsigned m = 0;
      if (enter(j, '{'))
        while (member(j, &m, &name)) {
          if (same(&name, "address")) text_value(j, &l->sender);
          else skip(j);
        }
    } else {
      skip(j);
    }
  }
}

static void read_entries(struct json *j, struct past *p, int tail) {
  struct letter l = {TEXT(24), TEXT(4), TEXT(4), {0, 0, 0}};
  struct text name = TEXT(24);
  unsigned n = 0;
  if (!enter(j, '[')) return;
  while (next(j, ']', &n)) {
    unsigned m = 0;
    u64 seq = 0;
    l.type.len = 0, l.body = (struct count){0, 0, 0};
    if (!enter(j, '{')) continue;
    while (member(j, &m, &name))
      if (same(&name, "seq")) seq = whole_value(j);
      else if (same(&name, "message")) read_letter(j, &l);
      else skip(j);
    if (tail && seq < p->tail_from) p->tail_from = seq;
    if (j->bad || (!tail && seq >= p->tail_from)) continue;
    p->entries++;
    if (same(&l.type, "request")) p->requests++, p->words += l.body.words;
  }
}

static void read_history(struct json *j, struct past *p) {
  struct text name = TEXT(24);
  unsigned n = 0;
  if (!enter(j, '{')) return;
  while (member(j, &n, &name))
    if (same(&name, "count")) p->count = whole_value(j);
    else if (same(&name, "tail")) read_entries(j, p, 1);
    else skip(j);
}

static void read_sums(struct json *j, struct sums *s) {
  struct text name = TEXT(24);
  unsigned n = 0;
  if (!enter(j, '{')) return;
  while (member(j, &n, &name))
    if (same(&name, "requests")) s->requests = whole_value(j);
    else if (same(&name, "words")) s->words = whole_value(j);
    else if (same(&name, "bytes")) s->bytes = whole_value(j);
    else if (same(&name, "unanswered")) s->unanswered = whole_value(j);
    else skip(j);
}

static void read_input(struct letter *l, struct past *p, struct sums *s) {
  struct text name = TEXT(24);
  unsigned n = 0;
  open_json(&input, FROM_INPUT, 0);
  if (after_blanks(&input) != '{') wrong(&input, "is no object");
  else input.at++;
  while (member(&input, &n, &name))
    if (same(&name, "message")) read_letter(&input, l);
    else if (same(&name, "history")) read_history(&input, p);
    else if (same(&name, "state")) read_sums(&input, s);
    else skip(&input);
  if (after_blanks(&input) != END) wrong(&input, "goes on after its end");
}

/* Reads the entries before the tail, page by page. */
static void read_older(struct past *p) {
  struct text name = TEXT(24);
  u64 after = 0, last;
  do {
    begin("{\"limit\":50,\"after\":");
    number(&request, after);
    raw(&request, "}");
    last = after, after = 0;
    if (ask(HISTORY) < 0) break;
    unsigned n = 0;
    if (enter(&answer, '{'))
      while (member(&answer, &n, &name)) {
        if (same(&name, "entries")) read_entries(&answer, p, 0);
        else if (same(&name, "next")) after = whole_value(&answer);
        else skip(&answer);
      }
    int bad = answer.bad != 0;
    refused(answer.error);
    close_json(&answer);
    if (bad) break;
  } while (after > last && after + 1 < p->tail_from);
  p->partial = p->entries < p->count;
  if (!p->partial) return;
  begin("{\"level\":\"warn\",\"message\":\"could not read the whole history\",\"fields\":{\"entries\":");
  number(&request, p->entries);
  raw(&request, "}}");
  write_line();
}

/* ---- The turn ---- */

static void counted(struct text *t, u64 n, const char *what) {
  number(t, n);
  raw(t, what);
}

static void log_count(const struct letter *l) {
  struct text ticket = TEXT(40), time = TEXT(40);
  stamp(&ticket, &time);
  begin("{\"level\":\"info\",\"message\":\"counted\",\"fields\":{\"words\":");
  counted(&request, l->body.words, ",\"bytes\":");
  counted(&request, l->body.bytes, ",\"ticket\":\"");
  escaped(&request, &ticket);
  raw(&request, "\",\"at\":\"");
  escaped(&request, &time);
  raw(&request, "\"}}");
  write_line();
}

static int respond(const struct letter *l, const struct past *p, const struct sums *s) {
  begin("{\"tool\":\"send_response\",\"args\":{\"target\":\"");
  escaped(&request, &l->sender);
  raw(&request, "\",\"subject\":\"Re: ");
  escaped(&request, &l->subject);
  raw(&request, "\",\"body\":\"words ");
  counted(&request, l->body.words, ", bytes ");
  counted(&request, l->body.bytes, "; in all words ");
  counted(&request, s->words, ", bytes ");
  counted(&request, s->bytes, ", requests ");
  counted(&request, s->requests, "; the history has words ");
  counted(&request, p->words, ", requests ");
  counted(&request, p->requests, p->partial ? ", as far as it could be read\"}}" : "\"}}");
  int r = ask(MAIL);
  if (r == 0) close_json(&answer);
  return r;
}

static int keep(const struct letter *l, const struct sums *s, int answered) {
  begin("{\"state\":{\"requests\":");
  counted(&request, s->requests, ",\"words\":");
  counted(&request, s->words, ",\"bytes\":");
  counted(&request, s->bytes, ",\"unanswered\":");
  counted(&request, s->unanswered, "},\"notes\":[\"");
  raw(&request, "words ");
  counted(&request, l->body.words, ", bytes ");
  counted(&request, l->body.bytes, answered ? "\"]}" : "; called off before the answer\"]}");
  if (skep_output(request.at, request.len) < 0) return fail_with_last_error();
  return 0;
}

EXPORT("skep_turn") int turn(unsigned len) {
  struct letter l = {TEXT(24), TEXT(1024), TEXT(1024), {0, 0, 0}};
  struct past p = {0, 0, 0, 0, ~0ull, 0};
  struct sums s = {0, 0, 0, 0};
  input_len = len;
  read_input(&l, &p, &s);
  if (input.bad) return fail(&input);
  if (!same(&l.type, "request")) return 0;
  if (p.entries < p.count && !called_off) read_older(&p);
  s.requests++, s.words += l.body.words, s.bytes += l.body.bytes;
  shown(input_len, input_len);
  log_count(&l);
  int r = respond(&l, &p, &s);
  if (r < 0 && r != -CANCELLED) return fail_with_last_error();
  if (r < 0) s.unanswered++;
  return keep(&l, &s, r == 0);
}
