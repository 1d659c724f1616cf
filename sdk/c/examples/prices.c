/*
 * A module with an action, price_of, and an agent that does the same for whoever
 * writes to it.
 */
#include "skep.h"

SKEP_DESCRIPTOR({
  "abi": 1, "name": "prices", "version": "1.0.0",
  "description": "Knows what things cost.",
  "agents": [{"name": "prices", "description": "Send it the name of an item."}],
  "actions": [{
    "name": "price_of", "description": "The price of an item, in cents.",
    "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    "timeout": "1s", "idempotent": true
  }]
})

static const struct {
  const char *item;
  int cents;
} list[] = {{"tea", 250}, {"honey", 790}, {"wax", 1200}};

/* price puts the price of an item into b, or says that there is none. */
static skep_code price(skep_buf *b, skep_text item) {
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (skep_is(item, list[i].item)) return skep_put_int(b, list[i].cents), SKEP_OK;
  return skep_fail(SKEP_NOT_FOUND, SKEP_CAT(SKEP("no price for "), item));
}

static skep_code action(skep_action *a) {
  if (!skep_is(a->name, "price_of")) return skep_fail(SKEP_UNSUPPORTED, SKEP("no such action"));
  skep_buf b = {0};
  skep_put(&b, SKEP("{\"cents\":"));
  SKEP_TRY(price(&b, skep_str(a->args, "item")));
  skep_put_char(&b, '}');
  a->answer = skep_written(&b);
  return SKEP_OK;
}
SKEP_ACTION(action)

static skep_code turn(skep_turn *t) {
  skep_buf b = {0};
  if (price(&b, t->body)) return skep_task_complete(skep_last_error().message);
  skep_put(&b, SKEP(" cents"));
  return skep_task_complete(skep_written(&b));
}
SKEP_AGENT(turn)
