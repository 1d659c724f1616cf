/* The conformance guest of the C SDK: spec/conformance/GUEST.md says what it does. */
#include "skep.h"

SKEP_DESCRIPTOR({
  "abi": 1, "name": "conform", "version": "1.0.0",
  "description": "Does what the message says, the same in every language.",
  "agents": [{"name": "conform", "description": "Send it a command list."}],
  "actions": [
    {"name": "echo", "description": "Answers with what it was given.", "parameters": {"type": "object"}},
    {"name": "run", "description": "Answers with the notes of a command list.", "parameters": {"type": "object"}}
  ]
})

static int turns, warmed;

static skep_code warm(void) { return warmed++, SKEP_OK; }
SKEP_WARM(warm)

/* ---- Small things ---- */

static skep_text number(int64_t n) {
  skep_buf b = {0};
  skep_put_int(&b, n);
  return skep_written(&b);
}

static void word(skep_buf *b, skep_text t) {
  if (b->len) skep_put_char(b, ' ');
  skep_put(b, t);
}

static void num(skep_buf *b, int64_t n) { word(b, number(n)); }

static skep_text compact(skep_json v) {
  skep_buf b = {0};
  skep_put_json(&b, v.len ? v : SKEP("null"));
  return skep_written(&b);
}

static uint32_t mix(uint32_t h, const char *p, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)p[i]) * 16777619u;
  return h;
}

static void hash(skep_buf *b, uint32_t h) {
  char digits[8];
  for (int i = 0; i < 8; i++) digits[i] = "0123456789abcdef"[h >> (28 - 4 * i) & 15];
  word(b, (skep_text){digits, 8});
}

enum { SEED = 2166136261u };

/* refusal is what a note says of an error. */
static skep_text refusal(skep_error e) {
  return SKEP_CAT(SKEP("ERROR "), skep_code_name(e.code), SKEP(" "), e.op, SKEP(" "), e.reason.len ? e.reason : SKEP("-"),
                  SKEP(" "), number(e.retry_after_ms), SKEP(": "), e.message);
}

/* said is ok, or why not. */
static skep_text said(skep_code code) { return code ? refusal(skep_last_error()) : SKEP("ok"); }

/* ---- What the input says ---- */

/* names puts an array of strings as a member. */
static void names(skep_buf *b, const char *key, skep_json list, const char *path) {
  skep_key(b, key);
  skep_put_char(b, '[');
  for (skep_each e = skep_over(list); skep_next(&e);) skep_item(b, skep_str(e.value, path));
  skep_put_char(b, ']');
}

static skep_text address(skep_json a) { return SKEP_CAT(skep_str(a, "address_type"), SKEP(":"), skep_str(a, "address")); }

static void copy_text(skep_buf *b, const char *key, skep_json from, const char *path) { skep_member(b, key, skep_str(from, path)); }

static void copy_value(skep_buf *b, const char *key, skep_json from, const char *path) {
  skep_key(b, key);
  skep_put(b, skep_at(from, path));
}

static void look_message(skep_buf *b, skep_json message) {
  skep_json m = skep_at(message, "message"), one = skep_at(m, "recipient");
  copy_text(b, "id", message, "id");
  copy_text(b, "type", message, "msg_type");
  skep_member(b, "ref", SKEP_CAT(skep_str(m, "request_id"), skep_str(m, "broadcast_id"), skep_str(m, "interrupt_id")));
  skep_member(b, "from", address(skep_at(m, "sender")));
  skep_key(b, "to");
  skep_put_char(b, '[');
  for (skep_each e = skep_over(skep_at(m, "recipients")); skep_next(&e);) skep_item(b, address(e.value));
  if (one.len) skep_item(b, address(one));
  skep_put_char(b, ']');
}

static skep_text look(skep_turn *t) {
  skep_json in = t->input, agent = skep_at(in, "agent"), task = skep_at(in, "task");
  skep_buf b = {0};
  skep_put_char(&b, '{');
  copy_value(&b, "turn", in, "turn");
  copy_value(&b, "priority", in, "priority");
  copy_text(&b, "task", task, "id");
  copy_text(&b, "owner", task, "owner");
  names(&b, "contributors", skep_at(task, "contributors"), "");
  copy_value(&b, "completed", task, "completed");
  copy_text(&b, "agent", agent, "address");
  copy_text(&b, "swarm", agent, "swarm");
  copy_text(&b, "instance", agent, "instance");
  names(&b, "targets", skep_at(agent, "comm_targets"), "");
  copy_value(&b, "can_complete", agent, "can_complete_tasks");
  names(&b, "tools", skep_at(in, "tools"), "name");
  look_message(&b, skep_at(in, "message"));
  skep_member(&b, "subject", t->subject);
  skep_member(&b, "body", t->body);
  copy_value(&b, "deadline_ms", in, "deadline_ms");
  copy_value(&b, "host_calls", in, "budget.host_calls");
  copy_value(&b, "output_bytes", in, "budget.output_bytes");
  copy_text(&b, "trace", in, "trace");
  skep_put_char(&b, '}');
  return skep_written(&b);
}

static void entry(skep_buf *b, skep_json e) {
  skep_text kind = skep_str(e, "kind");
  if (b->len) skep_put(b, SKEP("; "));
  skep_put(b, skep_at(e, "seq"));
  word(b, skep_at(e, "turn"));
  word(b, kind);
  if (skep_is(kind, "in")) {
    word(b, skep_str(e, "message.msg_type"));
    word(b, skep_str(e, "message.message.subject"));
  } else if (skep_is(kind, "call")) {
    word(b, skep_str(e, "call.name"));
    word(b, skep_at(e, "call.args"));
  } else if (skep_is(kind, "result")) {
    word(b, skep_true(skep_at(e, "result.ok")) ? SKEP("ok") : SKEP("error"));
    word(b, skep_str(e, "result.text"));
  } else {
    word(b, skep_str(e, "note"));
  }
}

static skep_text tail(skep_turn *t) {
  skep_buf b = {0};
  skep_put(&b, skep_at(t->input, "history.count"));
  for (skep_each e = skep_over(skep_at(t->input, "history.tail")); skep_next(&e);) entry(&b, e.value);
  return skep_written(&b);
}

static skep_text history(skep_json args) {
  skep_json entries;
  int64_t next;
  skep_buf b = {0};
  skep_code code = skep_history(skep_int(skep_at(args, "after")), skep_int(skep_at(args, "limit")), &entries, &next);
  if (code) return said(code);
  for (skep_each e = skep_over(entries); skep_next(&e);) entry(&b, e.value);
  if (b.len) skep_put(&b, SKEP("; "));
  skep_put(&b, SKEP("next "));
  skep_put_int(&b, next);
  return skep_written(&b);
}

/* ---- The boundary itself ---- */

static skep_text input(skep_json args) {
  uint32_t page = (uint32_t)skep_int(skep_at(args, "page")), off = 0, h = SEED;
  char *at = skep_alloc(page);
  skep_buf b = {0};
  for (int32_t n; (n = skep_host_input_read(off, at, page)) > 0; off += (uint32_t)n) h = mix(h, at, (size_t)n);
  num(&b, off);
  hash(&b, h);
  return skep_written(&b);
}

static skep_text brief(skep_json args) {
  skep_text request = compact(skep_at(args, "request"));
  uint32_t cap = (uint32_t)skep_int(skep_at(args, "cap")), page = (uint32_t)skep_int(skep_at(args, "page")), reads = 0;
  char *first = skep_alloc(cap), *at = skep_alloc(page);
  skep_buf b = {0};
  int64_t n, r = skep_host_call((int32_t)skep_int(skep_at(args, "op")), request.at, (uint32_t)request.len, first, cap);
  int32_t handle = (int32_t)(r >> 32);
  if (r < 0) return number(r);
  num(&b, (uint32_t)r);
  uint32_t h = mix(SEED, first, handle ? cap : (uint32_t)r);
  if (handle) {
    for (; (n = skep_host_read(handle, at, page)) > 0; reads++) h = mix(h, at, (size_t)n);
    num(&b, reads);
  }
  hash(&b, h);
  if (!handle) return skep_written(&b);
  num(&b, skep_host_close(handle));
  num(&b, skep_host_read(handle, at, page));
  return skep_written(&b);
}

/* collect reads one answer to its end. */
static void collect(skep_buf *b, int32_t handle) {
  char at[16];
  skep_buf all = {0};
  int64_t n;
  while ((n = skep_host_read(handle, at, sizeof at)) > 0) skep__add(&all, at, (size_t)n);
  skep_host_close(handle);
  word(b, n < 0 ? number(n) : skep_written(&all));
}

static int32_t start(int32_t op, skep_json request) {
  skep_text r = compact(request);
  return (int32_t)skep_host_submit(op, r.at, (uint32_t)r.len);
}

static skep_text race(skep_json args) {
  int32_t handles[64], waiting[64], numbers[64], n = 0, left;
  skep_buf b = {0};
  for (skep_each e = skep_over(skep_at(args, "requests")); skep_next(&e); n++) {
    handles[n] = waiting[n] = start((int32_t)skep_int(skep_at(args, "op")), e.value);
    numbers[n] = n;
  }
  for (left = n; left > 0;) {
    int32_t ready = skep_host_wait(waiting, (uint32_t)left, (int32_t)skep_int(skep_at(args, "timeout")));
    num(&b, ready < 0 ? ready : numbers[ready]);
    if (ready < 0 && ready != -SKEP_DEADLINE) break;
    if (ready < 0) continue;
    for (left--; ready < left; ready++) waiting[ready] = waiting[ready + 1], numbers[ready] = numbers[ready + 1];
  }
  while (n > 0) skep_host_close(handles[--n]);
  return skep_written(&b);
}

static skep_text stream(skep_json args) {
  uint32_t page = (uint32_t)skep_int(skep_at(args, "page")), h = SEED;
  int32_t handle = start((int32_t)skep_int(skep_at(args, "op")), skep_at(args, "request"));
  char *at = skep_alloc(page);
  skep_buf b = {0};
  for (int64_t n = 1; n > 0;) {
    n = skep_host_read(handle, at, page);
    num(&b, n);
    if (n > 0) h = mix(h, at, (size_t)n);
  }
  skep_host_close(handle);
  hash(&b, h);
  return skep_written(&b);
}

static skep_text dropped(skep_json args) {
  int32_t handle = start((int32_t)skep_int(skep_at(args, "op")), skep_at(args, "request"));
  skep_buf b = {0};
  num(&b, skep_host_close(handle));
  num(&b, skep_host_read(handle, NULL, 0));
  return skep_written(&b);
}

static skep_text submit(skep_json args) {
  int32_t handles[64], waiting[64], n = 0, left, op = (int32_t)skep_int(skep_at(args, "op"));
  skep_buf b = {0};
  for (skep_each e = skep_over(skep_at(args, "requests")); skep_next(&e); n++) {
    handles[n] = waiting[n] = start(op, e.value);
  }
  for (left = n; left > 0;) {
    int32_t ready = skep_host_wait(waiting, (uint32_t)left, -1);
    if (ready < 0) return number(ready);
    waiting[ready] = waiting[--left];
  }
  for (int32_t i = 0; i < n; i++) collect(&b, handles[i]);
  return skep_written(&b);
}

static skep_text wait_results(void) {
  int32_t handle = 99;
  char at[16];
  skep_buf b = {0};
  num(&b, skep_host_wait(&handle, 0, 0));
  num(&b, skep_host_wait(&handle, 1, 0));
  num(&b, skep_host_read(99, at, sizeof at));
  num(&b, skep_host_close(99));
  return skep_written(&b);
}

static void result(skep_buf *b, int64_t r) {
  skep_json why;
  num(b, r);
  skep_call(SKEP_OP_LAST_ERROR, (skep_text){0}, &why);
  word(b, skep_str(why, "reason"));
}

static skep_text pointer(void) {
  void *wild = (void *)4294967280u;
  skep_buf b = {0};
  result(&b, skep_host_input_read(0, wild, 32));
  result(&b, skep_host_output_write(wild, 32));
  result(&b, skep_host_call(SKEP_OP_LOG, wild, 32, NULL, 0));
  result(&b, skep_host_submit(SKEP_OP_LOG, wild, 32));
  return skep_written(&b);
}

/* ---- Commands ---- */

static skep_text request(skep_json args) {
  skep_json r = skep_at(args, "request");
  return r.at ? compact(r) : r;
}

static skep_text call(skep_json args) {
  skep_json answer;
  skep_code code = skep_call((int32_t)skep_int(skep_at(args, "op")), request(args), &answer);
  return code ? said(code) : skep_copy(answer);
}

static skep_text broadcast(skep_json args) {
  skep_text targets[64];
  size_t n = 0;
  for (skep_each e = skep_over(skep_at(args, "targets")); skep_next(&e);) targets[n++] = skep_string(e.value);
  return said(skep_send_broadcast(targets, n, skep_str(args, "subject"), skep_str(args, "body")));
}

static skep_text tool(skep_json args) {
  skep_reply reply;
  skep_code code = skep_tool(skep_str(args, "name"), compact(skep_at(args, "args")), &reply);
  return code ? said(code) : SKEP_CAT(reply.id.len ? reply.id : SKEP("-"), SKEP(" "), reply.text);
}

static skep_text help(void) {
  skep_text text;
  skep_code code = skep_help(
      SKEP("{\"get_summary\":true,\"get_identity\":false,\"get_tool_help\":[\"help\"],\"get_full_protocol\":false}"), &text);
  return code ? said(code) : skep_copy(text);
}

static skep_text asleep(skep_json args) {
  int64_t before = skep_now();
  skep_sleep(skep_int(skep_at(args, "ms")) * 1000000);
  return number(skep_now() - before);
}

static skep_text logged(skep_json args) {
  skep_log_at(skep_str(args, "level"), skep_str(args, "message"), (skep_json){0});
  return SKEP("ok");
}

/* ---- Actions, models, what is shown and measured ---- */

static skep_text act(skep_json args) {
  skep_json answer;
  skep_code code = skep_call_action(skep_str(args, "name"), compact(skep_at(args, "args")), &answer);
  return code ? said(code) : compact(answer);
}

/* talk puts the messages of a question. */
static void talk(skep_buf *b, skep_json messages) {
  for (skep_each e = skep_over(messages); skep_next(&e);) {
    skep_text role = skep_str(e.value, "role"), content = skep_str(e.value, "content");
    skep_chat_answer a = {.text = content, .tool_calls = skep_at(e.value, "tool_calls"), .carry = skep_at(e.value, "carry")};
    bool failed = skep_true(skep_at(e.value, "error"));
    if (skep_is(role, "tool")) skep_chat_result(b, skep_str(e.value, "tool_call_id"), content, failed);
    else if (skep_is(role, "assistant")) skep_chat_repeat(b, &a);
    else skep_chat_say(b, role, content);
  }
}

/* fraction reads a number from 0, with up to six places. */
static double fraction(skep_json v) {
  double place = 1, n = 0;
  for (size_t i = 0, point = 0; i < v.len; i++) {
    if (v.at[i] == '.') point = 1;
    else n = n * 10 + (v.at[i] - '0'), place *= point ? 10 : 1;
  }
  return n / place;
}

static skep_chat_request question(skep_json args) {
  static double temperature;
  skep_json heat = skep_at(args, "temperature");
  skep_chat_request r = {
      .model = skep_str(args, "model"), .choice = skep_str(args, "tool_choice"), .schema = skep_at(args, "response_schema"),
      .max_tokens = skep_int(skep_at(args, "max_tokens")), .temperature = heat.len ? &temperature : NULL,
  };
  temperature = fraction(heat);
  talk(&r.messages, skep_at(args, "messages"));
  for (skep_each e = skep_over(skep_at(args, "tools")); skep_next(&e);)
    skep_chat_tool(&r.tools, skep_str(e.value, "name"), skep_str(e.value, "description"), skep_at(e.value, "parameters"));
  return r;
}

static void member_int(skep_buf *b, const char *name, int64_t n) {
  skep_key(b, name);
  skep_put_int(b, n);
}

static skep_text answered(const skep_chat_answer *a) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "text", a->text);
  skep_member(&b, "reasoning", a->reasoning);
  skep_key(&b, "tool_calls");
  skep_put_char(&b, '[');
  for (skep_each e = skep_over(a->tool_calls); skep_next(&e);) {
    skep__comma(&b);
    skep_put_char(&b, '{');
    copy_text(&b, "id", e.value, "id");
    copy_text(&b, "name", e.value, "name");
    copy_text(&b, "arguments", e.value, "arguments");
    skep_put_char(&b, '}');
  }
  skep_put_char(&b, ']');
  skep_member(&b, "finish", a->finish);
  member_int(&b, "input_tokens", a->input_tokens);
  member_int(&b, "cached_tokens", a->cached_tokens);
  member_int(&b, "output_tokens", a->output_tokens);
  member_int(&b, "reasoning_tokens", a->reasoning_tokens);
  member_int(&b, "micro_usd", a->micro_usd);
  skep_key(&b, "carry");
  skep_put(&b, compact(a->carry));
  skep_put_char(&b, '}');
  return skep_written(&b);
}

static skep_text chat(skep_json args) {
  skep_chat_answer a;
  skep_code code = skep_chat(question(args), &a);
  return code ? said(code) : answered(&a);
}

static skep_text chat_stream(skep_json args) {
  skep_chat_stream s = skep_chat_submit(question(args));
  skep_buf b = {0};
  skep_code code;
  for (bool more; !(code = skep_chat_next(&s, &more)) && more;) {
    skep_put(&b, s.reasoning.len ? SKEP("reasoning ") : SKEP("delta "));
    skep_put(&b, s.reasoning.len ? s.reasoning : s.delta);
    skep_put(&b, SKEP("; "));
  }
  skep_put(&b, code ? said(code) : answered(&s.answer));
  return skep_written(&b);
}

static skep_text shown(skep_code code, skep_emitted status) {
  if (code) return said(code);
  return status == SKEP_EMIT_OK ? SKEP("ok") : status == SKEP_EMIT_BUSY ? SKEP("busy") : SKEP("closed");
}

static skep_text progress(skep_json args) {
  skep_json part = skep_at(args, "fraction");
  skep_emitted status;
  skep_code code = skep_emit_progress(skep_str(args, "text"), part.len ? fraction(part) : -1, &status);
  return shown(code, status);
}

static skep_text measured(skep_json args) {
  skep_text name = skep_str(args, "name");
  skep_json labels = skep_at(args, "labels"), v = skep_at(args, "value");
  bool negative = v.len && *v.at == '-';
  double value = fraction((skep_json){v.at + negative, v.len - negative}) * (negative ? -1 : 1);
  return said(skep_is(skep_str(args, "kind"), "gauge") ? skep_gauge(name, value, labels) : skep_count(name, value, labels));
}

static skep_text span(skep_json args) {
  int64_t id;
  skep_code code = skep_span_begin(skep_str(args, "name"), skep_at(args, "attributes"), &id);
  return code ? said(code) : number(id);
}

static skep_text blob_put(skep_json args) {
  skep_text address;
  skep_code code = skep_blob_put(skep_str(args, "text"), &address);
  return code ? said(code) : address;
}

static skep_text blob_get(skep_json args) {
  skep_text bytes;
  skep_buf b = {0};
  skep_code code = skep_blob_get(skep_str(args, "sha256"), &bytes);
  if (code) return said(code);
  num(&b, (int64_t)bytes.len);
  hash(&b, mix(SEED, bytes.at, bytes.len));
  return skep_written(&b);
}

static skep_text end_span(skep_json args) {
  return said(skep_span_end(skep_int(skep_at(args, "id")), skep_at(args, "attributes"), skep_str(args, "error")));
}

/* keeps runs the command that measures, or keeps bytes. */
static bool keeps(skep_text name, skep_json args, skep_text *note) {
  if (skep_is(name, "metric")) *note = measured(args);
  else if (skep_is(name, "span")) *note = span(args);
  else if (skep_is(name, "end_span")) *note = end_span(args);
  else if (skep_is(name, "blob_put")) *note = blob_put(args);
  else if (skep_is(name, "blob_get")) *note = blob_get(args);
  else return false;
  return true;
}

/* asks runs the command that asks an action or a model, or shows something. */
static bool asks(skep_text name, skep_json args, skep_text *note) {
  skep_text text = skep_str(args, "text");
  skep_emitted status;
  skep_code code;
  if (skep_is(name, "action")) *note = act(args);
  else if (skep_is(name, "chat")) *note = chat(args);
  else if (skep_is(name, "chat_stream")) *note = chat_stream(args);
  else if (skep_is(name, "emit_progress")) *note = progress(args);
  else if (skep_is(name, "emit_chunk")) code = skep_emit_chunk(text, &status), *note = shown(code, status);
  else if (skep_is(name, "emit_note")) code = skep_emit_note(text, &status), *note = shown(code, status);
  else return false;
  return true;
}

static skep_text ask(skep_text target, skep_text subject, skep_text body) {
  skep_text id = {0};
  skep_code code = skep_ask(target, subject, body, &id);
  return code ? said(code) : id.len ? id : SKEP("-");
}

/* mail runs the command that is one of MAIL's tools. */
static bool mail(skep_text name, skep_json args, skep_text *note) {
  skep_text target = skep_str(args, "target"), subject = skep_str(args, "subject"), body = skep_str(args, "body");
  if (skep_is(name, "ask")) *note = ask(target, subject, body);
  else if (skep_is(name, "send_request")) *note = said(skep_send_request(target, subject, body));
  else if (skep_is(name, "send_response")) *note = said(skep_send_response(target, subject, body));
  else if (skep_is(name, "send_interrupt")) *note = said(skep_send_interrupt(target, subject, body));
  else if (skep_is(name, "send_broadcast")) *note = broadcast(args);
  else if (skep_is(name, "acknowledge_broadcast")) *note = said(skep_acknowledge_broadcast(skep_str(args, "note")));
  else if (skep_is(name, "ignore_broadcast")) *note = said(skep_ignore_broadcast(skep_str(args, "reason")));
  else if (skep_is(name, "await_message")) *note = said(skep_await_message(skep_str(args, "reason")));
  else if (skep_is(name, "task_complete")) *note = said(skep_task_complete(skep_str(args, "finish_message")));
  else if (skep_is(name, "help")) *note = help();
  else if (skep_is(name, "tool")) *note = tool(args);
  else return false;
  return true;
}

/* host runs the command that asks the host for something else. */
static bool host(skep_turn *t, skep_text name, skep_json args, skep_text *note) {
  skep_code code;
  if (skep_is(name, "call")) *note = call(args);
  else if (skep_is(name, "random")) { if ((code = skep_random(note))) *note = said(code); }
  else if (skep_is(name, "wall")) { if ((code = skep_wall_time(note))) *note = said(code); }
  else if (skep_is(name, "clock")) *note = number(skep_now());
  else if (skep_is(name, "sleep")) *note = asleep(args);
  else if (skep_is(name, "log")) *note = logged(args);
  else if (skep_is(name, "tail")) *note = tail(t);
  else if (skep_is(name, "history")) *note = history(args);
  else if (skep_is(name, "input")) *note = input(args);
  else if (skep_is(name, "short")) *note = brief(args);
  else if (skep_is(name, "submit")) *note = submit(args);
  else if (skep_is(name, "race")) *note = race(args);
  else if (skep_is(name, "stream")) *note = stream(args);
  else if (skep_is(name, "drop")) *note = dropped(args);
  else if (skep_is(name, "wait")) *note = wait_results();
  else if (skep_is(name, "pointer")) *note = pointer();
  else return asks(name, args, note) || keeps(name, args, note) || mail(name, args, note);
  return true;
}

/* run does one command. Its code ends the turn. */
static skep_code run(skep_turn *t, skep_text name, skep_json args, skep_text *note) {
  if (skep_is(name, "echo")) *note = skep_str(args, "text");
  else if (skep_is(name, "look")) *note = look(t);
  else if (skep_is(name, "params")) *note = compact(t->params);
  else if (skep_is(name, "state")) *note = compact(t->state);
  else if (skep_is(name, "set")) skep_set_state(t, skep_at(args, "value")), *note = SKEP("ok");
  else if (skep_is(name, "count")) *note = SKEP_CAT(number(turns), SKEP(" "), number(warmed));
  else if (skep_is(name, "must")) {
    skep_json answer;
    SKEP_TRY(skep_call((int32_t)skep_int(skep_at(args, "op")), request(args), &answer));
    *note = skep_copy(answer);
  } else if (skep_is(name, "fail")) return skep_fail((skep_code)skep_int(skep_at(args, "code")), skep_str(args, "message"));
  else if (skep_is(name, "abort")) skep_abort((skep_code)skep_int(skep_at(args, "code")), skep_str(args, "message"));
  else if (!host(t, name, args, note)) *note = SKEP_CAT(SKEP("ERROR UNSUPPORTED "), name, SKEP(" - 0: no such command"));
  return SKEP_OK;
}

/* pair takes a command apart. */
static bool pair(skep_json v, skep_text *name, skep_json *args) {
  skep_each e = skep_over(v);
  if (!skep_is_array(v) || !skep_next(&e) || !skep_is_string(e.value)) return false;
  *name = skep_string(e.value);
  if (!skep_next(&e) || !skep_is_object(e.value)) return false;
  *args = e.value;
  return !skep_next(&e);
}

/* notes runs a command list. The notes go to the history, or into an array. */
static skep_code notes(skep_turn *t, skep_json list, skep_buf *b) {
  skep_json args;
  skep_text name, note;
  bool good = skep_is_array(list);
  for (skep_each e = skep_over(list); good && skep_next(&e);) good = pair(e.value, &name, &args);
  if (!good) return skep_fail(SKEP_INVALID, SKEP("no command list"));
  for (skep_each e = skep_over(list); skep_next(&e);) {
    pair(e.value, &name, &args);
    SKEP_TRY(run(t, name, args, &note));
    if (b) skep_item(b, note);
    else skep_note(note);
  }
  return SKEP_OK;
}

static skep_code conform(skep_turn *t) {
  turns++;
  return notes(t, skep_parse(t->body), NULL);
}
SKEP_AGENT(conform)

static skep_code action(skep_action *a) {
  skep_turn t = {.params = a->params};
  skep_buf b = {0};
  if (skep_is(a->name, "run")) {
    skep_put_char(&b, '[');
    SKEP_TRY(notes(&t, skep_at(a->args, "commands"), &b));
    skep_put_char(&b, ']');
  } else {
    skep_put_char(&b, '{');
    skep_member(&b, "action", a->name);
    skep_key(&b, "args");
    skep_put_json(&b, a->args);
    skep_put_char(&b, '}');
  }
  a->answer = skep_written(&b);
  return SKEP_OK;
}
SKEP_ACTION(action)
