package skep_test

import (
	"encoding/json"
	"errors"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// trader exports an action that calls another.
type trader struct{ asker }

// Action passes on what the other says, with what its host knows.
func (trader) Action(c *skep.ActionCall) (any, error) {
	var price struct{ Cents int }
	if err := c.Host().Action("price_of", c.Args, &price); err != nil {
		return nil, err
	}
	at, err := c.Host().Random()
	return map[string]any{"cents": price.Cents, "id": at}, err
}

func TestActionCallsAnother(t *testing.T) {
	t.Parallel()
	var asked string
	var fault error
	in := skeptest.Input{World: &skeptest.World{Actions: map[string]func(json.RawMessage) (any, error){
		"price_of": func(args json.RawMessage) (any, error) {
			asked = string(args)
			return map[string]int{"cents": 250}, fault
		},
	}}}
	got, err := skeptest.ActIn(trader{}, "sell", map[string]string{"item": "tea"}, in)
	if err != nil || string(got) != `{"cents":250,"id":"00000000000000000000000000000001"}` {
		t.Errorf("%s, %v", got, err)
	}
	if asked != `{"item":"tea"}` {
		t.Errorf("asked %s", asked)
	}
	fault = skep.Errorf(skep.Invalid, "no item")
	if _, err := skeptest.ActIn(trader{}, "sell", nil, in); err == nil || err.Code != skep.Invalid {
		t.Errorf("%v", err)
	}
}

func TestActionThatIsRefused(t *testing.T) {
	t.Parallel()
	var err, bad error
	out := skeptest.Run(asker(func(tn *skep.Turn) error {
		err = tn.Action("sell", map[string]int{"n": 1}, nil)
		bad = tn.Action("sell", make(chan int), nil)
		return nil
	}), skeptest.Input{})
	if out.Err != nil || !errors.Is(err, skep.Unsupported) || bad == nil || len(out.Calls) != 1 {
		t.Errorf("%v, %v, %v, %d calls", out.Err, err, bad, len(out.Calls))
	}
}
