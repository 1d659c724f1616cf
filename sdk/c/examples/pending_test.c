/* Several ops at once, streams, being called off, and what is shown. */
#include "skep.h"

static skep_code nothing(skep_turn *t) { return (void)t, SKEP_OK; }
static skep_code (*does)(skep_turn *) = nothing;
static skep_code agent(skep_turn *t) { return does(t); }
SKEP_AGENT(agent)

#include "skep_test.h"

static skep_code script(int32_t op, skep_json request, skep_json *answer) {
  skep_text name = skep_string(request);
  if (op == SKEP_OP_EMIT && skep_is(skep_str(request, "chunk"), "busy")) *answer = SKEP("{\"status\":\"busy\"}");
  if (op != SKEP_OP_HTTP_FETCH) return SKEP_OK;
  *answer = SKEP("\"fast\"");
  skep_test_pieces(4);
  skep_test_after(1000);
  if (skep_is(name, "slow")) *answer = SKEP("\"slow\""), skep_test_after(3000);
  if (skep_is(name, "late")) *answer = SKEP("{"), skep_test_after(2000), skep_test_fails(SKEP_UPSTREAM);
  if (skep_is(name, "off")) *answer = SKEP(""), skep_test_fails(SKEP_CANCELLED);
  return skep_is(name, "no") ? SKEP_DENIED : SKEP_OK;
}

static skep_pending ask(const char *name) {
  skep_buf b = {0};
  skep_put_string(&b, skep_c(name));
  return skep_submit(SKEP_OP_HTTP_FETCH, skep_written(&b));
}

static skep_test_outcome play(skep_code (*turn)(skep_turn *)) {
  does = turn;
  return skep_test_turn((skep_test_input){.body = SKEP("x"), .answer = script});
}

static skep_code beside(skep_turn *t) {
  skep_pending list[] = {ask("slow"), ask("fast"), ask("late"), ask("no"), {0}};
  skep_text text;
  (void)t;
  for (size_t i;;) {
    SKEP_TRY(skep_wait_any(list, 5, -1, &i));
    if (i == 5) return SKEP_OK;
    skep_code code = skep_read_all(&list[i], &text);
    skep_note(code ? skep_code_name(code) : text);
    skep_test_equal(skep_code_name(skep_read_all(&list[i], &text)), code == SKEP_DENIED ? "DENIED" : code ? "UPSTREAM" : "OK");
  }
}

static skep_code timeouts(skep_turn *t) {
  skep_pending list[] = {ask("slow"), ask("fast")};
  size_t i, n;
  char piece[8];
  (void)t;
  skep_test_equal(skep_code_name(skep_wait_any(list, 2, 999, &i)), "DEADLINE");
  SKEP_TRY(skep_wait_any(list, 2, 1, &i));
  skep_test_equal(skep_code_name(skep_wait_all(list, 2, 1999)), "DEADLINE");
  skep_test_equal(skep_code_name(skep_wait_all(list, 2, 1)), "OK");
  SKEP_TRY(skep_read(&list[i], piece, sizeof piece, &n));
  skep_note((skep_text){piece, n});
  skep_close(&list[1]);
  skep_close(&list[1]);
  return skep_wait_any(&list[1], 1, 0, &i);
}

static skep_code too_many(skep_turn *t) {
  static skep_pending list[65];
  size_t i;
  skep_text text;
  (void)t;
  for (i = 0; i < 65; i++) list[i] = ask("slow");
  SKEP_TRY(skep_wait_any(list, 65, 0, &i));
  skep_test_equal(i == 64 ? SKEP("the last") : SKEP("another"), "the last");
  return skep_read_all(&list[64], &text);
}

static skep_code off(skep_turn *t) {
  skep_pending list[] = {ask("off"), ask("slow"), ask("fast")};
  size_t n;
  char piece[8];
  skep_text text;
  skep_test_equal(skep_code_name(skep_wait_any(list, 2, -1, &n)), "CANCELLED");
  SKEP_TRY(skep_read(&list[2], piece, sizeof piece, &n));
  skep_test_equal((skep_text){piece, n}, "\"fas"); /* what has come */
  skep_pending more = ask("fast");
  skep_test_equal(skep_code_name(skep_read_all(&more, &text)), "CANCELLED");
  for (n = 0; n < 3; n++) skep_test_equal(skep_code_name(skep_read_all(&list[n], &text)), "CANCELLED");
  skep_test_equal(skep_code_name(skep_emit_note(SKEP("x"), NULL)), "CANCELLED");
  skep_log(SKEP("still here"));
  skep_set_state(t, SKEP("\"saved\""));
  return SKEP_OK;
}

static skep_code emits(skep_turn *t) {
  skep_emitted first = SKEP_EMIT_CLOSED, second = SKEP_EMIT_OK;
  (void)t;
  SKEP_TRY(skep_emit_chunk(SKEP("a"), &first));
  SKEP_TRY(skep_emit_chunk(SKEP("busy"), &second));
  skep_test_equal(first == SKEP_EMIT_OK && second == SKEP_EMIT_BUSY ? SKEP("yes") : SKEP("no"), "yes");
  SKEP_TRY(skep_emit_progress(SKEP("half"), 0.5, NULL));
  SKEP_TRY(skep_emit_progress(SKEP("begun"), -1, NULL));
  return skep_emit_progress((skep_text){0}, 1, NULL);
}

int main(void) {
  skep_test_outcome out = play(beside);
  skep_test_equal(out.notes, "[\"DENIED\",\"\\\"fast\\\"\",\"UPSTREAM\",\"\\\"slow\\\"\"]");
  skep_test_equal(out.call[0].submitted && !out.call[0].closed ? SKEP("yes") : SKEP("no"), "yes");
  out = play(timeouts);
  skep_test_equal(out.notes, "[\"\\\"fas\"]");
  skep_test_equal(out.call[1].closed && !out.call[0].closed ? SKEP("yes") : SKEP("no"), "yes");
  out = play(too_many);
  skep_test_equal(skep_str(out.output, "code"), "LIMIT");
  out = play(off);
  skep_test_equal(out.state, "\"saved\"");
  out = play(emits);
  skep_test_equal(skep_test_emit(&out, 2, "progress"), "{\"text\":\"half\",\"fraction\":0.5}");
  skep_test_equal(skep_test_emit(&out, 3, "progress"), "{\"text\":\"begun\"}");
  skep_test_equal(skep_test_emit(&out, 4, "progress.fraction"), "1");
  return skep_test_failures;
}
