// Command prices is a module with an action, price_of, and an agent that
// answers the same by mail.
package main

import (
	"encoding/json"
	"fmt"

	skep "skep/sdk/go"
)

// Prices is both.
type Prices struct{}

var _ = skep.Run(skep.Descriptor{
	Name: "prices", Version: "1.0.0",
	Description: "Knows what things cost.",
	Agents:      []skep.AgentInfo{{Name: "prices", Description: "Send it the name of an item."}},
	Actions: []skep.ActionInfo{{
		Name: "price_of", Description: "The price of an item, in cents.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"item":{"type":"string"}},"required":["item"]}`),
		Timeout:    "1s", Idempotent: true,
	}},
}, Prices{})

func main() {}

func cents(item string) (int, error) {
	switch item {
	case "tea":
		return 250, nil
	case "honey":
		return 790, nil
	case "wax":
		return 1200, nil
	}
	return 0, skep.Errorf(skep.NotFound, "no price for %s", item)
}

// Turn answers mail.
func (Prices) Turn(t *skep.Turn) error {
	n, err := cents(t.Message.Body)
	if err != nil {
		return t.TaskComplete(err.Error())
	}
	return t.TaskComplete(fmt.Sprint(n, " cents"))
}

// Action answers a call.
func (Prices) Action(c *skep.ActionCall) (any, error) {
	if c.Name != "price_of" {
		return nil, skep.Errorf(skep.Unsupported, "no action %s", c.Name)
	}
	var args struct{ Item string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, skep.Errorf(skep.Invalid, "%v", err)
	}
	n, err := cents(args.Item)
	return map[string]int{"cents": n}, err
}
