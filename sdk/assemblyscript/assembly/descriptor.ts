import { ABI } from "./names";
import { Json } from "./json";

/** Says what a module is, to operators before they run it. */
export class Descriptor {
  description: string = "";
  agents: AgentInfo[] = [];
  /** What Agent.action answers. */
  actions: ActionInfo[] = [];
  requests: Request[] = [];

  constructor(
    public name: string,
    public version: string,
  ) {}

  encode(): Json {
    let v = Json.object().set("abi", Json.integer(ABI)).put("name", this.name).put("version", this.version);
    v = text(v, "description", this.description);
    v = list(v, "agents", this.agents.map<Json>((a) => a.encode()));
    v = list(v, "actions", this.actions.map<Json>((a) => a.encode()));
    return list(v, "requests", this.requests.map<Json>((r) => r.encode()));
  }
}

/** Describes one agent the module can play. */
export class AgentInfo {
  /** The JSON Schema of the agent's params. */
  params: Json = Json.null();
  capabilities: Capability[] = [];
  roles: string[] = [];
  /** How many messages it can work on at once, 0 if that is not known. */
  capacity: i64 = 0;

  constructor(
    public name: string,
    public description: string,
  ) {}

  encode(): Json {
    let v = text(Json.object().put("name", this.name), "description", this.description);
    v = value(v, "params", this.params);
    v = list(v, "capabilities", this.capabilities.map<Json>((c) => c.encode()));
    v = list(v, "roles", this.roles.map<Json>((r) => Json.string(r)));
    return this.capacity > 0 ? v.set("capacity", Json.integer(this.capacity)) : v;
  }
}

/** One thing an agent can do, for listings in other protocols. */
export class Capability {
  description: string = "";
  inputSchema: Json = Json.null();
  outputSchema: Json = Json.null();
  /** Bounds of the input, as in {"max_input_length":10000,"supported_languages":["en"]}; null for none. */
  constraints: Json = Json.null();

  constructor(
    public id: string,
    public version: string,
  ) {}

  encode(): Json {
    let v = text(Json.object().put("id", this.id), "version", this.version);
    v = text(v, "description", this.description);
    v = value(value(v, "input_schema", this.inputSchema), "output_schema", this.outputSchema);
    return value(v, "constraints", this.constraints);
  }
}

/** Describes one action the module exports. */
export class ActionInfo {
  /** For instance 5s; empty for none. */
  timeout: string = "";
  idempotent: bool = false;

  constructor(
    /** Matches [a-z][a-z0-9_]{0,63}. */
    public name: string,
    public description: string,
    /** The JSON Schema of the arguments. */
    public parameters: Json,
  ) {}

  encode(): Json {
    let v = Json.object().put("name", this.name).put("description", this.description).set("parameters", this.parameters);
    v = text(v, "timeout", this.timeout);
    return this.idempotent ? v.set("idempotent", Json.boolean(true)) : v;
  }
}

/** A grant the module asks for. */
export class Request {
  value: Json = Json.null();
  /** The module runs without the grant; the call is then refused. */
  optional: bool = false;

  constructor(
    /** A key of an agent's allow table in swarm.toml: llm, http, kv or secrets. */
    public allow: string,
    /** For the person who decides. */
    public reason: string,
  ) {}

  encode(): Json {
    let v = value(Json.object().put("allow", this.allow), "value", this.value).put("reason", this.reason);
    return this.optional ? v.set("optional", Json.boolean(true)) : v;
  }
}

// What is empty is left out.

function text(v: Json, name: string, s: string): Json {
  return s == "" ? v : v.put(name, s);
}

function value(v: Json, name: string, member: Json): Json {
  return member.isNull ? v : v.set(name, member);
}

function list(v: Json, name: string, items: Json[]): Json {
  return items.length == 0 ? v : v.set(name, Json.array(items));
}
