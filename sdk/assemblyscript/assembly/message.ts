import { Json } from "./json";

/** A sender or recipient. */
export class Address {
  constructor(
    /** agent, user, admin or system. */
    public kind: string,
    public name: string,
  ) {}

  static read(v: Json): Address {
    return new Address(v.getString("address_type"), v.getString("address"));
  }
}

/** A MAIL message. */
export class Message {
  id: string;
  /** When it was sent, as 2026-03-01T09:30:00.000000+00:00. */
  time: string;
  /** request, response, broadcast, interrupt or broadcast_complete. */
  type: string;
  task: string;
  /** The request, broadcast or interrupt id. */
  refId: string;
  sender: Address;
  recipients: Address[];
  subject: string;
  body: string;
  /** Empty for a message that never left its swarm. */
  senderSwarm: string;
  /** Set by the host's doors, never by agents. */
  routing: Json;

  /** Decodes MAIL's wire form. */
  constructor(v: Json) {
    const m = v.get("message");
    this.id = v.getString("id");
    this.time = v.getString("timestamp");
    this.type = v.getString("msg_type");
    this.task = m.getString("task_id");
    // Exactly one is set.
    this.refId = m.getString("request_id") + m.getString("broadcast_id") + m.getString("interrupt_id");
    this.sender = Address.read(m.get("sender"));
    const to = m.get("recipients").items();
    if (m.get("recipient").isObject) to.push(m.get("recipient"));
    this.recipients = to.map<Address>((a) => Address.read(a));
    this.subject = m.getString("subject");
    this.body = m.getString("body");
    this.senderSwarm = m.getString("sender_swarm");
    this.routing = m.get("routing_info");
  }

  /** Reports whether the host itself sent the message. */
  get fromSystem(): bool {
    return this.sender.kind == "system";
  }

  /** Reports whether a person (user or admin) sent the message. */
  get fromUser(): bool {
    return this.sender.kind == "user" || this.sender.kind == "admin";
  }

  /**
   * Reports whether a timer of this agent has brought the message. Its id is the
   * timer's, its body what the timer was set with.
   */
  get fromTimer(): bool {
    return this.fromSystem && this.subject == "::timer::";
  }
}
