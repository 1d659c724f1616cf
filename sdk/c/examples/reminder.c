/*
 * An agent that remembers and waits: "in 10m tea" says it after ten minutes, "list"
 * tells what is pending in all tasks.
 */
#include "skep.h"

SKEP_DESCRIPTOR({
  "abi": 1, "name": "reminder", "version": "1.0.0",
  "description": "Says things when it is time.",
  "requests": [{"allow": "kv", "value": "agent", "reason": "to list what is pending in all tasks"}]
})

static skep_text key_of(skep_text id) { return SKEP_CAT(SKEP("pending/"), id); }

/* remind sets a timer. The turn ends, and the task waits without costing anything. */
static skep_code remind(int64_t minutes, skep_text what) {
  skep_text id;
  SKEP_TRY(skep_timer_set(minutes * 60000, what, &id));
  SKEP_TRY(skep_kv_put(SKEP_SCOPE_AGENT, key_of(id), what));
  return skep_await_message(SKEP("until it is time"));
}

/* list tells what all tasks wait for. */
static skep_code list(void) {
  skep_buf all = {0};
  skep_text after = {0}, what;
  skep_put(&all, SKEP("Pending:"));
  do {
    skep_json keys;
    SKEP_TRY(skep_kv_list(SKEP_SCOPE_AGENT, SKEP("pending/"), after, 1000, &keys, &after));
    for (skep_each e = skep_over(keys); skep_next(&e);) {
      SKEP_TRY(skep_kv_get(SKEP_SCOPE_AGENT, skep_string(e.value), &what));
      skep_put_char(&all, ' ');
      skep_put(&all, what);
    }
  } while (after.len);
  return skep_task_complete(skep_written(&all));
}

static skep_code reminder(skep_turn *t) {
  if (skep_from_timer(t)) {
    SKEP_TRY(skep_kv_delete(SKEP_SCOPE_AGENT, key_of(skep_str(t->input, "message.id"))));
    return skep_task_complete(SKEP_CAT(SKEP("It is time: "), t->body));
  }
  if (skep_is(t->body, "list")) return list();
  int64_t minutes = 0;
  size_t i = 3;
  if (t->body.len > i && skep_equal((skep_text){t->body.at, i}, SKEP("in ")))
    for (; i < t->body.len && i < 8 && t->body.at[i] >= '0' && t->body.at[i] <= '9'; i++)
      minutes = minutes * 10 + (t->body.at[i] - '0');
  if (minutes && i + 2 < t->body.len && skep_equal((skep_text){t->body.at + i, 2}, SKEP("m ")))
    return remind(minutes, (skep_text){t->body.at + i + 2, t->body.len - i - 2});
  return skep_task_complete(SKEP("I know \"in 10m tea\" and \"list\"."));
}
SKEP_AGENT(reminder)
