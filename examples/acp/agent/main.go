// Command agent sells screws to who orders some, in messages that order.acp declares.
// All but this file was written by skep acp compile.
package main

import skep "skep/sdk/go"

// Stock is the agent. It keeps nothing.
type Stock struct{}

// price of one piece, in cents.
const price = 125

var _ = skep.Run(skep.Descriptor{
	Name: "stock", Version: "1.0.0",
	Description: "Answers an Order of order.acp with a Receipt.",
	Agents:      []skep.AgentInfo{{Name: "stock", Description: "Send it an Order."}},
}, Stock{})

func main() {}

// many is the number of pieces from which on a person answers.
const many = 1000

// Turn answers an order, or asks a person what to answer a large one. What is no order fails
// the turn, with the place and the reason.
func (Stock) Turn(t *skep.Turn) error {
	var order Order
	if err := order.UnmarshalJSON([]byte(t.Message.Body)); err != nil {
		return err
	}
	if order.Count >= many {
		var quote struct{ Text string }
		if err := t.Action("quote", order, &quote); err != nil {
			return err
		}
		return t.TaskComplete(quote.Text)
	}
	receipt, err := Receipt{Item: order.Item, Count: order.Count, Cents: price * int64(order.Count)}.MarshalJSON()
	if err != nil {
		return err
	}
	return t.TaskComplete(string(receipt))
}
