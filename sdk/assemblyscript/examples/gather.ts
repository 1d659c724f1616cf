// An agent that asks for several pages at once: it is sent their addresses, shows how
// far it has come, and answers with what it got.

import * as skep from "../assembly/index";
export { skep_abi_v1, skep_action, skep_describe, skep_turn, skep_warm } from "../assembly/index";

/** Tells what became of one page. */
function line(p: skep.Pending): string {
  const answer = p.json(), failed = p.failure;
  if (answer === null) return failed === null ? "" : failed.toString();
  const page = new skep.FetchResponse(answer);
  return `${page.status}, ${page.bytes().byteLength} bytes`;
}

class Gather extends skep.Agent {
  turn(t: skep.Turn): skep.Failure | null {
    const urls = t.message.body.split(" ").filter((url) => url != "");
    const asks: skep.Pending[] = [], lines: string[] = [];
    for (let i = 0; i < urls.length; i++) {
      asks.push(t.submit(skep.Op.HTTP_FETCH, new skep.FetchRequest(urls[i]).encode().text));
      lines.push(`${urls[i]}: no answer`);
    }
    for (let done = 1; ; done++) {
      const i = t.waitAny(asks, 30000), failed = t.failure;
      if (i < 0 && failed !== null && failed.code != skep.Code.DEADLINE) return failed;
      if (i < 0) break; // all have been read, or the time is over
      lines[i] = `${urls[i]}: ${line(asks[i])}`;
      if (t.emitProgress(urls[i], <f64>done / urls.length) < 0) t.log("progress is not shown");
    }
    return t.taskComplete(lines.join("\n"));
  }
}

const about = new skep.Descriptor("gather", "1.0.0");
about.description = "Fetches several pages at once.";
const http = new skep.Request("http", "to fetch the pages");
http.value = skep.Json.strings(["https://example.com"]);
http.optional = true;
about.requests.push(http);
skep.run(about, new Gather());
