use crate::{Json, ABI};

/// Says what a module is, to operators before they run it.
#[derive(Clone, Debug, Default)]
pub struct Descriptor {
    pub name: String,
    pub version: String,
    pub description: String,
    pub agents: Vec<AgentInfo>,
    /// What [`Agent::action`](crate::Agent::action) answers.
    pub actions: Vec<ActionInfo>,
    pub requests: Vec<Request>,
}

/// Describes one agent the module can play.
#[derive(Clone, Debug, Default)]
pub struct AgentInfo {
    pub name: String,
    pub description: String,
    /// The JSON Schema of the agent's params, null for none.
    pub params: Json,
    pub capabilities: Vec<Capability>,
    pub roles: Vec<String>,
    /// How many messages it can work on at once, 0 if that is not known.
    pub capacity: i64,
}

/// One thing an agent can do, for listings in other protocols.
#[derive(Clone, Debug, Default)]
pub struct Capability {
    pub id: String,
    pub version: String,
    pub description: String,
    pub input_schema: Json,
    pub output_schema: Json,
}

/// Describes one action the module exports.
#[derive(Clone, Debug, Default)]
pub struct ActionInfo {
    /// Matches `[a-z][a-z0-9_]{0,63}`.
    pub name: String,
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: Json,
    /// For instance `5s`; empty for none.
    pub timeout: String,
    pub idempotent: bool,
}

/// A grant the module asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A key of an agent's `allow` table in swarm.toml: llm, http, kv or secrets.
    /// The MAIL tools need none.
    pub allow: String,
    pub value: Json,
    /// For the person who decides.
    pub reason: String,
    /// The module runs without the grant; the call is then refused.
    pub optional: bool,
}

impl Descriptor {
    /// A descriptor with what is mandatory.
    pub fn new(name: &str, version: &str) -> Descriptor {
        Descriptor { name: name.into(), version: version.into(), ..Default::default() }
    }

    pub(crate) fn encode(&self) -> Json {
        let mut m = Members::default();
        m.0.push(("abi", Json::from(ABI)));
        m.0.push(("name", Json::from(&self.name)));
        m.0.push(("version", Json::from(&self.version)));
        m.text("description", &self.description);
        m.list("agents", self.agents.iter().map(AgentInfo::encode).collect());
        m.list("actions", self.actions.iter().map(ActionInfo::encode).collect());
        m.list("requests", self.requests.iter().map(Request::encode).collect());
        Json::object(m.0)
    }
}

impl AgentInfo {
    fn encode(&self) -> Json {
        let mut m = Members::default();
        m.0.push(("name", Json::from(&self.name)));
        m.text("description", &self.description);
        m.value("params", &self.params);
        m.list("capabilities", self.capabilities.iter().map(Capability::encode).collect());
        m.list("roles", self.roles.iter().map(Json::from).collect());
        if self.capacity > 0 {
            m.0.push(("capacity", Json::from(self.capacity)));
        }
        Json::object(m.0)
    }
}

impl Capability {
    fn encode(&self) -> Json {
        let mut m = Members::default();
        m.0.push(("id", Json::from(&self.id)));
        m.text("version", &self.version);
        m.text("description", &self.description);
        m.value("input_schema", &self.input_schema);
        m.value("output_schema", &self.output_schema);
        Json::object(m.0)
    }
}

impl ActionInfo {
    fn encode(&self) -> Json {
        let mut m = Members::default();
        m.0.push(("name", Json::from(&self.name)));
        m.0.push(("description", Json::from(&self.description)));
        m.0.push(("parameters", self.parameters.clone()));
        m.text("timeout", &self.timeout);
        m.flag("idempotent", self.idempotent);
        Json::object(m.0)
    }
}

impl Request {
    fn encode(&self) -> Json {
        let mut m = Members::default();
        m.0.push(("allow", Json::from(&self.allow)));
        m.value("value", &self.value);
        m.0.push(("reason", Json::from(&self.reason)));
        m.flag("optional", self.optional);
        Json::object(m.0)
    }
}

/// Members of an object; what is empty is left out.
#[derive(Default)]
struct Members(Vec<(&'static str, Json)>);

impl Members {
    fn text(&mut self, name: &'static str, s: &str) {
        if !s.is_empty() {
            self.0.push((name, Json::from(s)));
        }
    }

    fn value(&mut self, name: &'static str, v: &Json) {
        if !v.is_null() {
            self.0.push((name, v.clone()));
        }
    }

    fn list(&mut self, name: &'static str, items: Vec<Json>) {
        if !items.is_empty() {
            self.0.push((name, Json::array(items)));
        }
    }

    fn flag(&mut self, name: &'static str, set: bool) {
        if set {
            self.0.push((name, Json::from(true)));
        }
    }
}
