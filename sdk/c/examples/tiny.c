/* The smallest agent: it greets whoever asks. */
#include "skep.h"

SKEP_DESCRIPTOR({
  "abi": 1, "name": "tiny", "version": "1.0.0",
  "description": "Greets whoever asks."
})

static skep_code greet(skep_turn *t) {
  if (!skep_is(t->type, "request")) return SKEP_OK;
  return skep_task_complete(SKEP_CAT(SKEP("Hello, "), t->body, SKEP("!")));
}
SKEP_AGENT(greet)
