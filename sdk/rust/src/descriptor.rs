use crate::json::Object;
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
    /// Bounds of the input, as in `{"max_input_length":10000,"supported_languages":["en"]}`; null for none.
    pub constraints: Json,
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
        let mut o = Object::new();
        o.int("abi", ABI).text("name", &self.name).text("version", &self.version);
        o.some("description", Json::from(&self.description));
        o.some("agents", Json::array(self.agents.iter().map(AgentInfo::encode)));
        o.some("actions", Json::array(self.actions.iter().map(ActionInfo::encode)));
        o.some("requests", Json::array(self.requests.iter().map(Request::encode)));
        o.json()
    }
}

impl AgentInfo {
    fn encode(&self) -> Json {
        let mut o = Object::new();
        o.text("name", &self.name).some("description", Json::from(&self.description));
        o.given("params", &self.params);
        o.some("capabilities", Json::array(self.capabilities.iter().map(Capability::encode)));
        o.some("roles", Json::array(self.roles.iter().map(Json::from)));
        o.some("capacity", Json::from(self.capacity.max(0))).json()
    }
}

impl Capability {
    fn encode(&self) -> Json {
        let mut o = Object::new();
        o.text("id", &self.id).some("version", Json::from(&self.version)).some("description", Json::from(&self.description));
        o.given("input_schema", &self.input_schema).given("output_schema", &self.output_schema);
        o.given("constraints", &self.constraints).json()
    }
}

impl ActionInfo {
    fn encode(&self) -> Json {
        let mut o = Object::new();
        o.text("name", &self.name).text("description", &self.description).set("parameters", &self.parameters);
        o.some("timeout", Json::from(&self.timeout)).some("idempotent", Json::from(self.idempotent)).json()
    }
}

impl Request {
    fn encode(&self) -> Json {
        let mut o = Object::new();
        o.text("allow", &self.allow).given("value", &self.value).text("reason", &self.reason);
        o.some("optional", Json::from(self.optional)).json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_constraints() {
        let mut c = Capability { id: "translation".into(), ..Default::default() };
        assert_eq!(c.encode().as_text(), "{\"id\":\"translation\"}");
        c.constraints = Json::parse("{\"max_input_length\":10000}").unwrap();
        assert_eq!(c.encode().as_text(), "{\"id\":\"translation\",\"constraints\":{\"max_input_length\":10000}}");
    }
}
