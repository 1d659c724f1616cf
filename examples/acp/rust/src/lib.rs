//! Sells screws to who orders some, in messages that order.acp declares. The module
//! messages was written by skep acp compile.

mod messages;

use messages::{Order, Receipt};
use skep::{Agent, AgentInfo, Code, Descriptor, Error, Json, Turn};

/// The agent. It keeps nothing.
struct Stock;

/// The price of one piece, in cents.
const PRICE: i64 = 125;

/// The number of pieces from which on a person answers.
const MANY: i32 = 1000;

/// What cannot be read or written fails the turn, with the place and the reason.
fn invalid(e: messages::MessageError) -> Error {
    Error::new(Code::INVALID, e.to_string())
}

impl Agent for Stock {
    fn turn(&self, t: &mut Turn) -> Result<(), Error> {
        let order = Order::decode(t.message.body.as_bytes()).map_err(invalid)?;
        if order.count >= MANY {
            let quote = t.action("quote", Json::parse(&order.encode().map_err(invalid)?)?)?;
            return t.task_complete(&quote.get_str("text"));
        }
        let cents = PRICE * i64::from(order.count);
        let receipt = Receipt { item: order.item, count: order.count, cents };
        t.task_complete(&receipt.encode().map_err(invalid)?)
    }
}

skep::module!(
    Stock,
    Descriptor {
        description: "Answers an Order of order.acp with a Receipt.".into(),
        agents: vec![AgentInfo { name: "stock".into(), description: "Send it an Order.".into(), ..Default::default() }],
        ..Descriptor::new("stock", "1.0.0")
    }
);

#[cfg(test)]
mod tests {
    use super::*;
    use skep::{testing, Op};

    fn sell(body: &str) -> testing::Outcome {
        let quote: testing::Answer = Box::new(|op, _| (op == Op::ACTION).then(|| Ok(Json::object([("text", Json::from("in two weeks"))]))));
        testing::run(&Stock, testing::Input { answer: Some(quote), ..testing::Input::of(body) })
    }

    #[test]
    fn sells() {
        assert_eq!(sell(r#"{"item":"screws","count":3}"#).mail[0].finish, r#"{"item":"screws","count":3,"cents":375}"#);
        assert_eq!(sell(r#"{"item":"screws","count":1000}"#).mail[0].finish, "in two weeks");
    }

    #[test]
    fn refuses_half_an_order() {
        let e = sell(r#"{"item":"screws"}"#).error.expect("half an order is refused");
        assert_eq!((e.code, e.message.as_str()), (Code::INVALID, "Order.count: is missing"));
    }
}
