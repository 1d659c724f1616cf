package main

import (
	"encoding/json"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestSells(t *testing.T) {
	sell := func(body string) skeptest.Outcome {
		quote := func(order json.RawMessage) (any, error) {
			if string(order) != body {
				t.Errorf("a person is asked about %s", order)
			}
			return map[string]string{"text": "in two weeks"}, nil
		}
		return skeptest.Run(Stock{}, skeptest.Input{Agent: "stock", CanComplete: true, Message: skep.Message{Body: body},
			World: &skeptest.World{Actions: map[string]func(json.RawMessage) (any, error){"quote": quote}}})
	}
	got := sell(`{"item":"screws","count":3}`)
	if got.Err != nil || got.Mail[0].Finish != `{"item":"screws","count":3,"cents":375}` {
		t.Errorf("got %+v", got)
	}
	if got := sell(`{"item":"screws","count":1000}`); got.Err != nil || got.Mail[0].Finish != "in two weeks" {
		t.Errorf("a large order: %+v", got)
	}
	if got := sell(`{"item":"screws"}`); got.Err == nil || !strings.Contains(got.Err.Error(), "Order.count: is missing") {
		t.Errorf("half an order: %v", got.Err)
	}
}
