use crate::Json;

/// The kinds of message.
pub const REQUEST: &str = "request";
#[allow(missing_docs)]
pub const RESPONSE: &str = "response";
#[allow(missing_docs)]
pub const BROADCAST: &str = "broadcast";
#[allow(missing_docs)]
pub const INTERRUPT: &str = "interrupt";
#[allow(missing_docs)]
pub const BROADCAST_COMPLETE: &str = "broadcast_complete";

/// A sender or recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// agent, user, admin or system.
    pub kind: String,
    pub name: String,
}

impl Address {
    pub fn new(kind: &str, name: &str) -> Address {
        Address { kind: kind.into(), name: name.into() }
    }

    fn read(v: &Json) -> Address {
        Address { kind: v.get_str("address_type"), name: v.get_str("address") }
    }

    pub(crate) fn encode(&self) -> Json {
        Json::object([("address_type", Json::from(&self.kind)), ("address", Json::from(&self.name))])
    }
}

/// A MAIL message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    /// When it was sent, as 2026-03-01T09:30:00.000000+00:00.
    pub time: String,
    /// [`REQUEST`], [`RESPONSE`], [`BROADCAST`], [`INTERRUPT`] or [`BROADCAST_COMPLETE`].
    pub kind: String,
    pub task: String,
    /// The request, broadcast or interrupt id.
    pub ref_id: String,
    pub sender: Address,
    pub recipients: Vec<Address>,
    pub subject: String,
    pub body: String,
    /// Empty for a message that never left its swarm.
    pub sender_swarm: String,
    /// Set by the host's doors, never by agents.
    pub routing: Json,
}

impl Message {
    /// Reports whether the host itself sent the message.
    pub fn from_system(&self) -> bool {
        self.sender.kind == "system"
    }

    /// Reports whether a person (user or admin) sent the message.
    pub fn from_user(&self) -> bool {
        self.sender.kind == "user" || self.sender.kind == "admin"
    }

    /// Decodes MAIL's wire form.
    pub(crate) fn read(v: &Json) -> Message {
        let m = v.get("message");
        let mut recipients: Vec<Address> = m.get("recipients").items().iter().map(Address::read).collect();
        let one = m.get("recipient");
        if one.is_object() {
            recipients.push(Address::read(&one));
        }
        Message {
            id: v.get_str("id"),
            time: v.get_str("timestamp"),
            kind: v.get_str("msg_type"),
            task: m.get_str("task_id"),
            // Exactly one is set.
            ref_id: m.get_str("request_id") + &m.get_str("broadcast_id") + &m.get_str("interrupt_id"),
            sender: Address::read(&m.get("sender")),
            recipients,
            subject: m.get_str("subject"),
            body: m.get_str("body"),
            sender_swarm: m.get_str("sender_swarm"),
            routing: m.get("routing_info"),
        }
    }

    /// Encodes MAIL's wire form.
    pub(crate) fn encode(&self) -> Json {
        let addresses = || Json::array(self.recipients.iter().map(Address::encode));
        let mut m = vec![("task_id", Json::from(&self.task))];
        match self.kind.as_str() {
            BROADCAST | BROADCAST_COMPLETE => {
                m.push(("broadcast_id", Json::from(&self.ref_id)));
                m.push(("recipients", addresses()));
            }
            INTERRUPT => {
                m.push(("interrupt_id", Json::from(&self.ref_id)));
                m.push(("recipients", addresses()));
            }
            _ => {
                m.push(("request_id", Json::from(&self.ref_id)));
                m.push(("recipient", self.recipients.first().map(Address::encode).unwrap_or_default()));
            }
        }
        m.push(("sender", self.sender.encode()));
        m.push(("subject", Json::from(&self.subject)));
        m.push(("body", Json::from(&self.body)));
        Json::object([
            ("id", Json::from(&self.id)),
            ("timestamp", Json::from(&self.time)),
            ("message", Json::object(m)),
            ("msg_type", Json::from(&self.kind)),
        ])
    }
}
