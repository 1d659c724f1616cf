package main

import (
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestAgentAndActionAgree(t *testing.T) {
	out := skeptest.Run(Prices{}, skeptest.Input{CanComplete: true, Message: skep.Message{Body: "tea"}})
	if out.Err != nil || out.Mail[0].Finish != "250 cents" {
		t.Errorf("the agent: %v, %+v", out.Err, out.Mail)
	}
	answer, err := skeptest.Act(Prices{}, "price_of", map[string]string{"item": "tea"})
	if err != nil || string(answer) != `{"cents":250}` {
		t.Errorf("the action: %s, %v", answer, err)
	}
	if _, err := skeptest.Act(Prices{}, "price_of", map[string]string{"item": "gold"}); err == nil || err.Code != skep.NotFound {
		t.Errorf("gold: %v", err)
	}
	if _, err := skeptest.Act(Prices{}, "sell", nil); err == nil || err.Code != skep.Unsupported {
		t.Errorf("another action: %v", err)
	}
}
