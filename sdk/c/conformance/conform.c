/* The conformance guest of the C SDK: spec/conformance/GUEST.md says what it does. */
#include "skep.h"

SKEP_DESCRIPTOR({
  "abi": 1, "name": "conform", "version": "1.0.0",
  "description": "Does what the message says, the same in every language.",
  "agents": [{"name": "conform", "description": "Send it a command list."}],
  "actions": [{"name": "echo", "description": "Answers with what it was given.", "parameters": {"type": "object"}}]
})

static int turns, warmed;

static skep_code warm(void) { return warmed++, SKEP_OK; }
SKEP_WARM(warm)

static skep_code action(skep_action *a) {
  skep_buf b = {0};
  skep_put_char(&b, '{');
  skep_member(&b, "action", a->name);
  skep_key(&b, "args");
  skep_put_json(&b, a->args);
  skep_put_char(&b, '}');
  a->answer = skep_written(&b);
  return SKEP_OK;
}
SKEP_ACTION(action)

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

/* mail runs the command that is one of MAIL's tools. */
static bool mail(skep_text name, skep_json args, skep_text *note) {
  skep_text target = skep_str(args, "target"), subject = skep_str(args, "subject"), body = skep_str(args, "body");
  if (skep_is(name, "send_request")) *note = said(skep_send_request(target, subject, body));
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
  else return mail(name, args, note);
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

static skep_code conform(skep_turn *t) {
  skep_json list = skep_parse(t->body), args;
  skep_text name, note;
  bool good = skep_is_array(list);
  turns++;
  for (skep_each e = skep_over(list); good && skep_next(&e);) good = pair(e.value, &name, &args);
  if (!good) return skep_fail(SKEP_INVALID, SKEP("no command list"));
  for (skep_each e = skep_over(list); skep_next(&e);) {
    pair(e.value, &name, &args);
    SKEP_TRY(run(t, name, args, &note));
    skep_note(note);
  }
  return SKEP_OK;
}
SKEP_AGENT(conform)
