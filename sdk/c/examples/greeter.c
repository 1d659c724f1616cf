/*
 * An agent with parameters and a state: it greets whoever writes, in the words
 * the swarm's file asks for, and counts how often it did so in this task.
 */
#include "skep.h"

SKEP_DESCRIPTOR({
  "abi": 1, "name": "greeter", "version": "1.0.0",
  "description": "Greets by name and counts its greetings.",
  "agents": [{
    "name": "greeter", "description": "Send it a name.",
    "params": {"type": "object", "properties": {"greeting": {"type": "string"}}}
  }]
})

static skep_code greet(skep_turn *t) {
  skep_text greeting = skep_str(t->params, "greeting");
  if (!greeting.len) greeting = SKEP("Hello");
  int64_t greeted = skep_int(skep_at(t->state, "greeted")) + 1;

  skep_buf state = {0}, answer = {0};
  skep_put_char(&state, '{');
  skep_key(&state, "greeted");
  skep_put_int(&state, greeted);
  skep_put_char(&state, '}');
  skep_set_state(t, skep_written(&state));

  skep_put(&answer, SKEP_CAT(greeting, SKEP(", "), t->body, SKEP("! (greeting ")));
  skep_put_int(&answer, greeted);
  skep_put(&answer, SKEP(" of this task)"));
  return skep_task_complete(skep_written(&answer));
}
SKEP_AGENT(greet)
