//! A module with an action, price_of, and an agent that does the same for whoever
//! writes to it.

use skep::{ActionCall, ActionInfo, Agent, Code, Descriptor, Error, Json, Turn};

struct Prices;

fn cents(item: &str) -> Result<i64, Error> {
    match item {
        "tea" => Ok(250),
        "honey" => Ok(790),
        "wax" => Ok(1200),
        _ => Err(Error::new(Code::NOT_FOUND, format!("no price for {item}"))),
    }
}

impl Agent for Prices {
    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        let answer = match cents(&t.message.body) {
            Ok(n) => format!("{n} cents"),
            Err(e) => e.message,
        };
        t.task_complete(&answer)
    }

    fn action(&self, call: &mut ActionCall) -> Result<Json, Error> {
        match call.name.as_str() {
            "price_of" => Ok(Json::object([("cents", Json::from(cents(&call.args.get_str("item"))?))])),
            _ => Err(Error::new(Code::UNSUPPORTED, "no such action")),
        }
    }
}

fn descriptor() -> Descriptor {
    let item = Json::object([("item", Json::object([("type", Json::from("string"))]))]);
    let parameters = Json::object([
        ("type", Json::from("object")),
        ("properties", item),
        ("required", Json::array([Json::from("item")])),
    ]);
    Descriptor {
        description: "Knows what things cost.".into(),
        actions: vec![ActionInfo {
            name: "price_of".into(),
            description: "The price of an item, in cents.".into(),
            parameters,
            timeout: "1s".into(),
            idempotent: true,
        }],
        ..Descriptor::new("prices", "1.0.0")
    }
}

skep::module!(Prices, descriptor());

#[cfg(test)]
mod tests {
    use super::*;
    use skep::testing;

    #[test]
    fn agent_and_action_agree() {
        assert_eq!(testing::run(&Prices, testing::Input::of("tea")).mail[0].finish, "250 cents");
        let item = |name: &str| Json::object([("item", Json::from(name))]);
        assert_eq!(testing::act(&Prices, "price_of", item("tea")).unwrap().as_text(), "{\"cents\":250}");
        assert_eq!(testing::act(&Prices, "price_of", item("gold")).unwrap_err().code, Code::NOT_FOUND);
        assert_eq!(testing::describe(&descriptor()).get("actions").items()[0].get_str("name"), "price_of");
    }
}
