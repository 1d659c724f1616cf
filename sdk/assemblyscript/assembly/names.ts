// Names and numbers of the contract.

/** The version of the ABI this package speaks. */
export const ABI: i32 = 1;

/** Why the host refuses a call: one of a closed set. */
export namespace Code {
  /** Bad arguments. */
  export const INVALID: i32 = 1;
  /** Not granted to this agent. */
  export const DENIED: i32 = 2;
  /** No such thing. */
  export const NOT_FOUND: i32 = 3;
  /** Try again later. */
  export const UNAVAILABLE: i32 = 4;
  /** Out of time. */
  export const DEADLINE: i32 = 5;
  /**
   * The turn is called off. What it does in the next 250 ms still counts if it then
   * ends well: it may save its state and return null.
   */
  export const CANCELLED: i32 = 6;
  /**
   * A budget, size or rate is used up; the reason says which, for instance
   * host_calls or host_bytes. The turn goes on.
   */
  export const LIMIT: i32 = 7;
  /** Does not fit the present state. */
  export const CONFLICT: i32 = 8;
  /** The other side answered with an error. */
  export const UPSTREAM: i32 = 9;
  /** This host cannot do it. */
  export const UNSUPPORTED: i32 = 10;
  /** A fault of the host or the agent. */
  export const INTERNAL: i32 = 11;

  /** The code's name, for instance DENIED. */
  export function name(code: i32): string {
    const names = [
      "OK", "INVALID", "DENIED", "NOT_FOUND", "UNAVAILABLE", "DEADLINE", "CANCELLED", "LIMIT", "CONFLICT", "UPSTREAM",
      "UNSUPPORTED", "INTERNAL",
    ];
    return code >= 0 && code < names.length ? names[code] : "CODE_" + code.toString();
  }
}

/**
 * Host operations by number. Which of them a host has built, and which it grants
 * to an agent, differs; the others answer UNSUPPORTED or DENIED.
 */
export namespace Op {
  export const LAST_ERROR: i32 = 0;
  export const LOG: i32 = 1;
  export const CLOCK_NOW: i32 = 2;
  export const RANDOM: i32 = 3;
  export const HISTORY: i32 = 4;
  export const MAIL: i32 = 10;
  export const ACTION: i32 = 11;
  export const EMIT: i32 = 12;
  export const KV_GET: i32 = 20;
  export const KV_PUT: i32 = 21;
  export const KV_DELETE: i32 = 22;
  export const KV_LIST: i32 = 23;
  export const KV_CAS: i32 = 24;
  export const HTTP_FETCH: i32 = 30;
  export const LLM_CHAT: i32 = 40;
  export const SECRET_EXISTS: i32 = 50;
  export const TIMER_SET: i32 = 60;
  export const TIMER_CANCEL: i32 = 61;
  export const METRIC: i32 = 70;
  export const SPAN: i32 = 71;
  export const BLOB_GET: i32 = 80;
  export const BLOB_PUT: i32 = 81;
}

/** What became of something a turn has shown. */
export namespace Emitted {
  /** The host refused it, and the turn's failure says why. */
  export const REFUSED: i32 = -1;
  /** It is on its way to whoever follows the task. */
  export const OK: i32 = 0;
  /** No reader keeps up: it is logged with the turn, and not shown. Do not repeat it. */
  export const BUSY: i32 = 1;
  /** The task has ended and nobody gets it any more. */
  export const CLOSED: i32 = 2;
}

/** What the exported functions return. */
export namespace Status {
  export const OK: i32 = 0;
  export const ERROR: i32 = 1;
  export const NOT_IMPLEMENTED: i32 = 2;
}
