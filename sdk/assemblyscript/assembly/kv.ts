import { Op } from "./names";
import { Failure } from "./failure";
import { Json } from "./json";
import { Turn } from "./turn";

/**
 * Says who shares the values of a Kv. The operator grants the widest one, as in
 * allow = { kv = "agent" }; a wider one is DENIED.
 */
export namespace Scope {
  /** This agent in this task. */
  export const TASK: string = "task";
  /** This agent in all tasks of its instance. */
  export const AGENT: string = "agent";
  /** All agents and tasks of the instance. */
  export const INSTANCE: string = "instance";
}

/** A page of keys. */
export class Keys {
  constructor(
    public keys: string[],
    /** The after of the next page, empty at the end. */
    public next: string,
  ) {}
}

/**
 * Texts that last beyond the turn, under keys of 1 to 512 bytes, each at most 64 KiB.
 * A scope holds 1,000 keys and 4 MiB; what is more is LIMIT.
 */
export class Kv {
  constructor(
    private turn: Turn,
    private scope: string,
  ) {}

  private call(op: i32, request: Json): Json | null {
    return this.turn.call(op, request.put("scope", this.scope).text);
  }

  /**
   * A value: what this turn has put, else what is committed. It is null when there is
   * none, and failure is NOT_FOUND.
   */
  get(key: string): string | null {
    const answer = this.call(Op.KV_GET, Json.object().put("key", key));
    return answer === null ? null : answer.getString("value");
  }

  /**
   * Sets a value. The turn sees it at once, others when the turn has ended well; the
   * last turn to end wins.
   */
  put(key: string, value: string): Failure | null {
    this.call(Op.KV_PUT, Json.object().put("key", key).put("value", value));
    return this.turn.failure;
  }

  /** Removes a value, as put sets one. It is no failure if there is none. */
  delete(key: string): Failure | null {
    this.call(Op.KV_DELETE, Json.object().put("key", key));
    return this.turn.failure;
  }

  /**
   * Keys that begin with prefix and are greater than after, in the order of their
   * bytes, at most limit of them (0 is 100, at most 1,000).
   */
  list(prefix: string, after: string = "", limit: i32 = 0): Keys | null {
    const page = Json.object().put("prefix", prefix).put("after", after).set("limit", Json.integer(limit));
    const answer = this.call(Op.KV_LIST, page);
    return answer === null ? null : new Keys(answer.get("keys").asStrings(), answer.getString("next"));
  }

  /** All keys that begin with prefix. */
  keys(prefix: string): string[] | null {
    let all: string[] = [], after = "";
    do {
      const page = this.list(prefix, after, 1000);
      if (page === null) return null;
      all = all.concat(page.keys);
      after = page.next;
    } while (after != "");
    return all;
  }

  /**
   * Replaces a value at once if it is the one expected, and reports whether it was: an
   * expect of null wants none there, a value of null deletes. It stays even if the turn
   * fails. It is false, too, when it was refused, and failure says why: it does not see
   * what the turn has put, and such a key is CONFLICT.
   */
  cas(key: string, expect: string | null, value: string | null): bool {
    const request = Json.object().put("key", key).set("expect", textOrNull(expect)).set("value", textOrNull(value));
    const answer = this.call(Op.KV_CAS, request);
    return answer !== null && answer.get("ok").asBoolean();
  }
}

function textOrNull(text: string | null): Json {
  return text === null ? Json.null() : Json.string(text);
}
