// A module with an action, price_of, and an agent that does the same for whoever
// writes to it.

import * as skep from "../assembly/index";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

const items = ["tea", "honey", "wax"];
const cents: i64[] = [250, 790, 1200];

class Prices extends skep.Agent {
  turn(t: skep.Turn): skep.Failure | null {
    const at = items.indexOf(t.message.body);
    return t.taskComplete(at < 0 ? `no price for ${t.message.body}` : `${cents[at]} cents`);
  }

  action(call: skep.ActionCall): skep.Failure | null {
    if (call.name != "price_of") return new skep.Failure(skep.Code.UNSUPPORTED, "no such action");
    const item = call.args.getString("item");
    const at = items.indexOf(item);
    if (at < 0) return new skep.Failure(skep.Code.NOT_FOUND, `no price for ${item}`);
    call.answer = skep.Json.object().set("cents", skep.Json.integer(cents[at]));
    return null;
  }
}

const about = new skep.Descriptor("prices", "1.0.0");
about.description = "Knows what things cost.";
const parameters = skep.Json.parse('{"type":"object","properties":{"item":{"type":"string"}},"required":["item"]}');
about.actions.push(new skep.ActionInfo("price_of", "The price of an item, in cents.", parameters!));
skep.run(about, new Prices());
