// An agent that remembers and waits: "in 10m tea" says it after ten minutes, "list"
// tells what is pending in all tasks.

import * as skep from "../assembly/index";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

const PENDING = "pending/";

/** Sets a timer. The turn ends, and the task waits without costing anything. */
function remind(t: skep.Turn, minutes: i64, what: string): skep.Failure | null {
  const id = t.setTimer(minutes * 60000, what);
  if (id === null) return t.failure;
  const failed = t.kv(skep.Scope.AGENT).put(PENDING + id, what);
  return failed !== null ? failed : t.awaitMessage("until it is time");
}

/** Tells what all tasks wait for. */
function list(t: skep.Turn): skep.Failure | null {
  const kv = t.kv(skep.Scope.AGENT), keys = kv.keys(PENDING), texts: string[] = [];
  if (keys === null) return t.failure;
  for (let i = 0; i < keys.length; i++) {
    const text = kv.get(keys[i]);
    if (text === null) return t.failure;
    texts.push(text);
  }
  return t.taskComplete(`Pending: ${texts.join(", ")}`);
}

class Reminder extends skep.Agent {
  turn(t: skep.Turn): skep.Failure | null {
    const m = t.message, words = m.body.split(" ");
    if (m.fromTimer) {
      const failed = t.kv(skep.Scope.AGENT).delete(PENDING + m.id);
      return failed !== null ? failed : t.taskComplete(`It is time: ${m.body}`);
    }
    if (m.body == "list") return list(t);
    if (words.length > 2 && words[0] == "in" && words[1].endsWith("m")) {
      const minutes = I64.parseInt(words[1]);
      if (minutes > 0) return remind(t, minutes, words.slice(2).join(" "));
    }
    return t.taskComplete('I know "in 10m tea" and "list".');
  }
}

const about = new skep.Descriptor("reminder", "1.0.0");
about.description = "Says things when it is time.";
const kv = new skep.Request("kv", "to list what is pending in all tasks");
kv.value = skep.Json.string("agent");
about.requests.push(kv);
skep.run(about, new Reminder());
