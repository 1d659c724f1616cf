// An agent with parameters and a state: it greets whoever writes, in the words the
// swarm's file asks for, and counts how often it did so in this task.

import * as skep from "../assembly/index";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

class Greeter extends skep.Agent {
  turn(t: skep.Turn): skep.Failure | null {
    let greeting = t.params.getString("greeting");
    if (greeting == "") greeting = "Hello";
    const greeted = t.state.get("greeted").asInteger() + 1;
    t.state = skep.Json.object().set("greeted", skep.Json.integer(greeted));
    return t.taskComplete(`${greeting}, ${t.message.body}! (greeting ${greeted} of this task)`);
  }
}

const about = new skep.Descriptor("greeter", "1.0.0");
about.description = "Greets by name and counts its greetings.";
skep.run(about, new Greeter());
