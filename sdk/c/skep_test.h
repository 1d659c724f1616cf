/*
 * skep_test.h: a pretended host, so that an agent's turns can be tested with the
 * machine's own C compiler. Include the agent, then this:
 *
 *   #include "greeter.c"
 *   #include "skep_test.h"
 *
 *   int main(void) {
 *     skep_test_outcome out = skep_test_turn((skep_test_input){.body = SKEP("bees")});
 *     skep_test_equal(skep_test_mail(&out, 0, "finish_message"), "Hello, bees!");
 *     return skep_test_failures;
 *   }
 */
#ifndef SKEP_TEST_H
#define SKEP_TEST_H

#include <setjmp.h>
#include <stdio.h>

#include "skep.h"

/* skep_test_input is one message for one agent. What is left out gets a value
 * that makes sense: a request from the user. */
typedef struct {
  skep_text type, sender_type, sender, subject, body;
  skep_json state, params; /* null when left out; one turn's state goes into the next */
  bool cannot_complete;
  /* answer, if set, is asked first. It sets the op's answer, or returns a code to
   * refuse, or does neither and leaves the op to the default. SKEP_CANCELLED calls
   * the turn off: from then on the host refuses as a real one does. For an op that is
   * submitted, skep_test_after, skep_test_pieces and skep_test_fails say how the
   * answer comes. */
  skep_code (*answer)(int32_t op, skep_json request, skep_json *answer);
} skep_test_input;

enum { SKEP_TEST_CALLS = 256 };

#define SKEP_TEST_START 1767268800000000000 /* 2026-01-01T12:00:00Z */

/* skep_test_outcome is how the turn ended. */
typedef struct {
  int32_t status; /* 0 when the turn would be committed */
  bool aborted;   /* with the message in output */
  skep_text output;
  skep_json state; /* what a later turn sees */
  skep_json notes;
  size_t calls; /* of ops, in order */
  struct {
    int32_t op;
    skep_json request;
    skep_code refused;
    bool submitted, closed; /* not waited for; closed before its end */
  } call[SKEP_TEST_CALLS];
} skep_test_outcome;

/* skep_test_stream is an answer as it is read. */
typedef struct {
  int64_t ready; /* on the turn's clock */
  skep_text rest;
  size_t piece, call;
  skep_code code; /* at the end */
  bool open;
} skep_test_stream;

static struct {
  skep_test_stream next; /* what the test's answer says of itself */
  skep_test_stream open[65]; /* by handle; [0] is none */
  bool off;              /* the turn is called off */
  skep_test_input in;
  skep_test_outcome out;
  skep_text input;
  skep_buf output;
  skep_text why;
  int64_t now;
  int made;
  int64_t spans;
  bool ended;
  bool submitted; /* the op that is asked for */
  jmp_buf abort;
} skep_test_;

SKEP_FN int32_t skep_host_input_read(uint32_t off, void *ptr, uint32_t cap) {
  size_t left = off < skep_test_.input.len ? skep_test_.input.len - off : 0, n = left < cap ? left : cap;
  skep__copy(ptr, skep_test_.input.at + off, n);
  return (int32_t)n;
}

SKEP_FN int32_t skep_host_output_write(const void *ptr, uint32_t len) {
  skep__add(&skep_test_.output, ptr, len);
  return (int32_t)skep_test_.output.len;
}

SKEP_FN void skep_host_abort(int32_t code, const void *ptr, uint32_t len) {
  (void)code;
  skep_test_.out.aborted = true;
  skep_test_.out.output = skep_copy((skep_text){ptr, len});
  longjmp(skep_test_.abort, 1);
}

SKEP_FN uint16_t skep_host_clock(uint32_t clock, uint64_t precision, uint64_t *nanoseconds) {
  (void)clock, (void)precision;
  *nanoseconds = (uint64_t)skep_test_.now;
  return 0;
}

SKEP_FN uint16_t skep_host_poll(const void *subscriptions, void *events, uint32_t n, uint32_t *ready) {
  uint64_t timeout;
  (void)events, (void)n;
  memcpy(&timeout, (const char *)subscriptions + 24, sizeof timeout);
  skep_test_.now += (int64_t)timeout;
  *ready = 1;
  return 0;
}

/* skep_test__refuse makes the body of an error. */
SKEP_FN skep_code skep_test__refuse(skep_code code, skep_text message) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "code", skep_code_name(code));
  skep_member(&b, "message", message);
  skep_put_char(&b, '}');
  skep_test_.why = skep_written(&b);
  return code;
}

/* skep_test__mail accepts MAIL's tools, and nothing after the turn has ended. */
SKEP_FN skep_code skep_test__mail(skep_json request, skep_json *answer) {
  skep_text tool = skep_str(request, "tool");
  if (skep_is(tool, "task_complete") && skep_test_.in.cannot_complete)
    return skep_test__refuse(SKEP_DENIED, SKEP("this agent cannot complete tasks"));
  if (skep_test_.ended) return skep_test__refuse(SKEP_CONFLICT, SKEP("the turn has awaited or completed"));
  skep_test_.ended = skep_is(tool, "await_message") || skep_is(tool, "task_complete");
  *answer = SKEP("{\"id\":\"00000000-0000-4000-8000-000000000001\",\"text\":\"SUCCESS\"}");
  if (skep_is(tool, "send_request"))
    *answer = SKEP("{\"id\":\"00000000-0000-4000-8000-000000000001\",\"request_id\":"
                   "\"00000000-0000-4000-8000-000000000002\",\"text\":\"SUCCESS\"}");
  return SKEP_OK;
}

/* skep_test__span numbers spans as they begin. */
SKEP_FN skep_code skep_test__span(skep_json request, skep_json *answer) {
  skep_buf b = {0};
  int64_t id = skep_int(skep_at(request, "id"));
  if (id < 0 || id > skep_test_.spans) return skep_test__refuse(SKEP_NOT_FOUND, SKEP("no such span is open"));
  skep_put(&b, SKEP("{\"id\":"));
  skep_put_int(&b, id ? id : ++skep_test_.spans);
  skep_put_char(&b, '}');
  *answer = skep_written(&b);
  return SKEP_OK;
}

SKEP_FN skep_code skep_test__answer(int32_t op, skep_json request, skep_json *answer) {
  if (skep_test_.in.answer) {
    skep_code code = skep_test_.in.answer(op, request, answer);
    if (code) return skep_test__refuse(code, SKEP("refused by the test"));
    if (answer->at) return SKEP_OK;
  }
  switch (op) {
    case SKEP_OP_EMIT: *answer = SKEP("{\"status\":\"ok\"}"); return SKEP_OK;
    case SKEP_OP_LOG:
    case SKEP_OP_METRIC: *answer = SKEP("{}"); return SKEP_OK;
    case SKEP_OP_SPAN: return skep_test__span(request, answer);
    case SKEP_OP_CLOCK_NOW: *answer = SKEP("{\"time\":\"2026-01-01T12:00:00.000000+00:00\"}"); return SKEP_OK;
    case SKEP_OP_HISTORY: *answer = SKEP("{\"entries\":[]}"); return SKEP_OK;
    case SKEP_OP_MAIL: return skep_test__mail(request, answer);
    case SKEP_OP_RANDOM: {
      char *text = skep_alloc(64);
      snprintf(text, 64, "{\"value\":\"%032x\"}", ++skep_test_.made);
      *answer = skep_c(text);
      return SKEP_OK;
    }
  }
  return skep_test__refuse(SKEP_UNSUPPORTED, SKEP("this host does not have the op"));
}

/* skep_test_after lets the answer be there that much later on the turn's clock, which
 * waiting and reading move. */
SKEP_FN void skep_test_after(int64_t ms) { skep_test_.next.ready = skep_test_.now + ms * 1000000; }

/* skep_test_pieces has each read give at most that many bytes of the answer. */
SKEP_FN void skep_test_pieces(size_t bytes) { skep_test_.next.piece = bytes; }

/* skep_test_fails has the op fail after its answer. */
SKEP_FN void skep_test_fails(skep_code code) { skep_test_.next.code = code; }

/* skep_test_chat makes a model's answer of a text and of tool calls, an array or none: in
 * lines, word by word, where the agent has submitted the op. */
SKEP_FN skep_json skep_test_chat(skep_text text, skep_json tool_calls) {
  skep_buf b = {0};
  bool whole = !skep_test_.submitted;
  for (size_t i = 0, from = 0; !whole && i < text.len; i++) {
    if (text.at[i] != ' ' && i + 1 < text.len) continue;
    skep_put(&b, SKEP("{\"delta\":"));
    skep_put_string(&b, (skep_text){text.at + from, i + 1 - from});
    skep_put(&b, SKEP("}\n"));
    from = i + 1;
  }
  skep_put(&b, whole ? SKEP("{\"text\":") : SKEP("{\"end\":{"));
  if (whole) {
    skep_put_string(&b, text);
    skep_put_char(&b, ',');
  }
  skep_put(&b, SKEP("\"tool_calls\":"));
  skep_put(&b, tool_calls.len ? tool_calls : SKEP("[]"));
  skep_put(&b, tool_calls.len ? SKEP(",\"finish\":\"tool_calls\"") : SKEP(",\"finish\":\"stop\""));
  skep_put(&b, SKEP(",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}"));
  if (!whole) skep_put(&b, SKEP("}\n"));
  return skep_written(&b);
}

/* skep_test__failed notes that an op has failed, and that the turn is called off. */
SKEP_FN int64_t skep_test__failed(size_t call, skep_code code) {
  if (call < SKEP_TEST_CALLS) skep_test_.out.call[call].refused = code;
  if (code == SKEP_CANCELLED) skep_test_.off = true;
  return -(int64_t)code;
}

/* skep_test__start runs an op and records it. A code it gives at once has happened. */
SKEP_FN skep_code skep_test__start(int32_t op, skep_json request, bool submitted, skep_test_stream *s) {
  skep_json answer = {0};
  size_t n = skep_test_.out.calls;
  skep_test_.submitted = submitted;
  skep_test_.next = (skep_test_stream){.ready = skep_test_.now, .piece = (size_t)-1, .call = n, .open = true};
  skep_code code = skep_test_.off && op != SKEP_OP_LOG ? skep_test__refuse(SKEP_CANCELLED, SKEP("the turn is called off"))
                                                       : skep_test__answer(op, request, &answer);
  if (n < SKEP_TEST_CALLS) {
    skep_test_.out.call[n].op = op;
    skep_test_.out.call[n].request = request;
    skep_test_.out.call[n].submitted = submitted;
    skep_test_.out.calls++;
  }
  if (code) skep_test__failed(n, code);
  *s = skep_test_.next;
  s->rest = answer;
  return code;
}

/* skep_test__keep finds a handle for an answer, 0 if there is none. */
SKEP_FN int32_t skep_test__keep(skep_test_stream s) {
  int32_t handle = 1;
  while (handle < 65 && skep_test_.open[handle].open) handle++;
  if (handle == 65) return 0;
  skep_test_.open[handle] = s;
  return handle;
}

SKEP_FN int64_t skep_host_call(int32_t op, const void *req, uint32_t len, void *rsp, uint32_t cap) {
  skep_test_stream s = {.rest = skep_test_.why};
  if (op != SKEP_OP_LAST_ERROR) {
    skep_code code = skep_test__start(op, skep_copy((skep_text){req, len}), false, &s);
    if (code) return -(int64_t)code;
    if (s.ready > skep_test_.now) skep_test_.now = s.ready;
    if (s.code) return skep_test__failed(s.call, skep_test__refuse(s.code, SKEP("failed by the test")));
  }
  size_t n = s.rest.len < cap ? s.rest.len : cap, whole = s.rest.len;
  skep__copy(rsp, s.rest.at, n);
  if (n == whole) return (int64_t)whole;
  s.rest = (skep_text){s.rest.at + n, whole - n};
  s.open = true;
  s.piece = (size_t)-1;
  return (int64_t)whole | (int64_t)skep_test__keep(s) << 32;
}

SKEP_FN int64_t skep_host_submit(int32_t op, const void *req, uint32_t len) {
  skep_test_stream s;
  int32_t handle = skep_test__keep((skep_test_stream){.open = true});
  if (!handle) return -(int64_t)skep_test__refuse(SKEP_LIMIT, SKEP("64 handles are open"));
  skep_code code = skep_test__start(op, skep_copy((skep_text){req, len}), true, &s);
  skep_test_.open[handle] = s;
  if (!code) return handle;
  skep_test_.open[handle].open = false;
  return -(int64_t)code;
}

SKEP_FN skep_test_stream *skep_test__find(int32_t handle) {
  if (handle > 0 && handle < 65 && skep_test_.open[handle].open) return &skep_test_.open[handle];
  skep_test__refuse(SKEP_NOT_FOUND, SKEP("no such handle is open"));
  return NULL;
}

SKEP_FN int32_t skep_host_wait(const int32_t *handles, uint32_t n, int32_t timeout_ms) {
  skep_test_stream *s, *first = NULL;
  int64_t end = skep_test_.now + timeout_ms * (int64_t)1000000;
  int32_t at = 0;
  if (!n) return -(int32_t)skep_test__refuse(SKEP_INVALID, SKEP("no handles"));
  for (uint32_t i = 0; i < n; i++) {
    if (!(s = skep_test__find(handles[i]))) return -SKEP_NOT_FOUND;
    if (s->ready < skep_test_.now) s->ready = skep_test_.now;
    if (!first || s->ready < first->ready) first = s, at = (int32_t)i;
  }
  if (!skep_test_.off && timeout_ms >= 0 && first->ready > end) {
    skep_test_.now = end;
    return -(int32_t)skep_test__refuse(SKEP_DEADLINE, SKEP("nothing is ready yet"));
  }
  if (!skep_test_.off) skep_test_.now = first->ready;
  if (first->code == SKEP_CANCELLED && !first->rest.len) skep_test_.off = true;
  return skep_test_.off ? -(int32_t)skep_test__refuse(SKEP_CANCELLED, SKEP("the turn is called off")) : at;
}

SKEP_FN int64_t skep_host_read(int32_t handle, void *ptr, uint32_t cap) {
  skep_test_stream *s = skep_test__find(handle);
  if (!s) return -SKEP_NOT_FOUND;
  if (skep_test_.off && (s->ready > skep_test_.now || !s->rest.len))
    return skep_test__failed(s->call, skep_test__refuse(SKEP_CANCELLED, SKEP("the turn is called off")));
  if (s->ready > skep_test_.now) skep_test_.now = s->ready;
  if (!s->rest.len && s->code) return skep_test__failed(s->call, skep_test__refuse(s->code, SKEP("failed by the test")));
  size_t n = s->rest.len < s->piece ? s->rest.len : s->piece;
  if (n > cap) n = cap;
  skep__copy(ptr, s->rest.at, n);
  s->rest = (skep_text){s->rest.at + n, s->rest.len - n};
  return (int64_t)n;
}

SKEP_FN int32_t skep_host_close(int32_t handle) {
  skep_test_stream *s = skep_test__find(handle);
  if (!s) return -SKEP_NOT_FOUND;
  bool unread = s->rest.len || s->code || s->ready > skep_test_.now;
  if (s->call < SKEP_TEST_CALLS) skep_test_.out.call[s->call].closed = unread && !skep_test_.out.call[s->call].refused;
  s->open = false;
  return 0;
}

SKEP_FN skep_text skep_test__or(skep_text t, const char *otherwise) { return t.at ? t : skep_c(otherwise); }

/* skep_test__input writes the turn's input as a host does. */
SKEP_FN skep_text skep_test__input(skep_test_input in) {
  skep_buf b = {0};
  skep_put(&b, SKEP("{\"v\":1,\"turn\":1,\"task\":{\"id\":\"5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90\","
                    "\"owner\":\"user:test@test\",\"contributors\":[],\"completed\":false},"
                    "\"agent\":{\"address\":\"agent\",\"swarm\":\"test\",\"instance\":\"user:test@test\","
                    "\"comm_targets\":[],\"can_complete_tasks\":"));
  skep_put(&b, in.cannot_complete ? SKEP("false") : SKEP("true"));
  skep_put(&b, SKEP("},\"tools\":[],\"message\":{\"id\":\"8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11\","
                    "\"timestamp\":\"2026-01-01T12:00:00.000000+00:00\",\"msg_type\":"));
  skep_put_string(&b, skep_test__or(in.type, "request"));
  skep_put(&b, SKEP(",\"message\":{\"task_id\":\"5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90\",\"sender\":{\"address_type\":"));
  skep_put_string(&b, skep_test__or(in.sender_type, "user"));
  skep_member(&b, "address", skep_test__or(in.sender, "test"));
  skep_put_char(&b, '}');
  skep_member(&b, "subject", skep_test__or(in.subject, "New Message"));
  skep_member(&b, "body", in.body);
  skep_put(&b, SKEP("}},\"priority\":4,\"history\":{\"count\":0,\"tail\":[]},\"state\":"));
  skep_put(&b, skep_test__or(in.state, "null"));
  skep_put(&b, SKEP(",\"params\":"));
  skep_put(&b, skep_test__or(in.params, "null"));
  skep_put(&b, SKEP(",\"deadline_ms\":600000,\"budget\":{\"fuel\":0,\"host_calls\":1000,\"output_bytes\":1048576}}"));
  return skep_written(&b);
}

/* skep_test_turn runs one turn of the agent that SKEP_AGENT names. */
SKEP_FN skep_test_outcome skep_test_turn(skep_test_input in) {
  memset(&skep_test_, 0, sizeof skep_test_);
  skep_test_.in = in;
  skep_test_.now = SKEP_TEST_START;
  skep_test_.input = skep_test__input(in);
  skep__state = skep__notes = (skep_buf){0};
  skep__why = (skep_json){0};
  skep_test_.out.state = skep_test__or(in.state, "null");
  if (setjmp(skep_test_.abort)) return skep_test_.out;
  skep_test_.out.status = skep__turn_export((uint32_t)skep_test_.input.len);
  skep_test_.out.output = skep_written(&skep_test_.output);
  skep_json result = skep_parse(skep_test_.out.output), state = skep_at(result, "state");
  if (skep_test_.out.status == SKEP_STATUS_OK) {
    if (state.at) skep_test_.out.state = state;
    skep_test_.out.notes = skep_at(result, "notes");
  }
  return skep_test_.out;
}

/* skep_test_mail returns an argument of the n-th MAIL call that was accepted,
 * from 0; with "tool", the tool's name. */
SKEP_FN skep_text skep_test_mail(const skep_test_outcome *out, size_t n, const char *argument) {
  for (size_t i = 0; i < out->calls; i++) {
    if (out->call[i].op != SKEP_OP_MAIL || out->call[i].refused || n--) continue;
    if (skep_is(skep_c(argument), "tool")) return skep_str(out->call[i].request, "tool");
    return skep_str(skep_at(out->call[i].request, "args"), argument);
  }
  return (skep_text){0};
}

/* skep_test_emit returns a member of what the turn showed with its n-th accepted
 * emit, from 0: "progress.text", "progress.fraction", "chunk" or "note", as JSON. */
SKEP_FN skep_json skep_test_emit(const skep_test_outcome *out, size_t n, const char *member) {
  for (size_t i = 0; i < out->calls; i++)
    if (out->call[i].op == SKEP_OP_EMIT && !out->call[i].refused && !n--) return skep_at(out->call[i].request, member);
  return (skep_json){0};
}

/* skep_test_action_in runs one call of an action, with the params and the answer of an
 * input; exported is skep__action. The outcome's output is the answer, or with status 1
 * why there is none. */
SKEP_FN skep_test_outcome skep_test_action_in(int32_t (*exported)(uint32_t), skep_text name, skep_json args, skep_test_input in) {
  skep_buf b = {0};
  memset(&skep_test_, 0, sizeof skep_test_);
  skep_test_.in = in;
  skep_test_.now = SKEP_TEST_START;
  skep_put_char(&b, '{');
  skep_member(&b, "name", name);
  skep_key(&b, "args");
  skep_put(&b, args);
  skep_key(&b, "params");
  skep_put(&b, skep_test__or(in.params, "{}"));
  skep_put_char(&b, '}');
  skep_test_.input = skep_written(&b);
  skep__why = (skep_json){0};
  if (setjmp(skep_test_.abort)) return skep_test_.out;
  skep_test_.out.status = exported((uint32_t)b.len);
  skep_test_.out.output = skep_written(&skep_test_.output);
  return skep_test_.out;
}

/* skep_test_action is skep_test_action_in with an empty input. */
SKEP_FN skep_test_outcome skep_test_action(int32_t (*exported)(uint32_t), skep_text name, skep_json args) {
  return skep_test_action_in(exported, name, args, (skep_test_input){0});
}

static int skep_test_failures;

/* skep_test_equal compares, and reports where it does not hold. */
#define skep_test_equal(...) skep_test__equal(__VA_ARGS__, __FILE__, __LINE__)

SKEP_FN void skep_test__equal(skep_text got, const char *want, const char *file, int line) {
  if (skep_is(got, want)) return;
  fprintf(stderr, "%s:%d: got \"%.*s\", want \"%s\"\n", file, line, (int)got.len, got.at ? got.at : "", want);
  skep_test_failures = 1;
}

#endif
