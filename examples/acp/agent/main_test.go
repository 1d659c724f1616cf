package main

import (
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestSells(t *testing.T) {
	sell := func(body string) skeptest.Outcome {
		return skeptest.Run(Stock{}, skeptest.Input{Agent: "stock", CanComplete: true, Message: skep.Message{Body: body}})
	}
	got := sell(`{"item":"screws","count":3}`)
	if got.Err != nil || got.Mail[0].Finish != `{"item":"screws","count":3,"cents":375}` {
		t.Errorf("got %+v", got)
	}
	if got := sell(`{"item":"screws"}`); got.Err == nil || !strings.Contains(got.Err.Error(), "Order.count: is missing") {
		t.Errorf("half an order: %v", got.Err)
	}
}
