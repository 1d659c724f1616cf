package main

import (
	"encoding/json"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

var (
	user  = skep.Address{Type: skep.AddressUser, Name: "ann"}
	agent = skep.Address{Type: skep.AddressAgent, Name: "porter"}
)

// TestHandsOn: a question goes to the next agent, and its answer to who has asked, once.
func TestHandsOn(t *testing.T) {
	in := skeptest.Input{
		Agent: "clerk", Params: Params{Next: "scout@hive"},
		Message: skep.Message{Type: skep.TypeRequest, Sender: agent, Subject: "s", Body: "how far?"},
	}
	asked := skeptest.Run(Relay{}, in)
	if asked.Err != nil || len(asked.Mail) != 2 || asked.Mail[0].Target != "scout@hive" || asked.Mail[0].Body != "how far?" {
		t.Fatalf("%+v, %v", asked.Mail, asked.Err)
	}
	var s State
	if err := json.Unmarshal(asked.State, &s); err != nil || len(s.Open) != 1 {
		t.Fatalf("the state is %s, %v", asked.State, err)
	}
	for id := range s.Open {
		in.Message = skep.Message{Type: skep.TypeResponse, RefID: id, Body: "far"}
	}
	in.State = asked.State
	answered := skeptest.Run(Relay{}, in)
	if answered.Err != nil || len(answered.Mail) != 1 || answered.Mail[0].Target != "porter" || !strings.HasSuffix(answered.Mail[0].Body, "\nfar") {
		t.Fatalf("%+v, %v", answered.Mail, answered.Err)
	}
	in.State = answered.State
	if again := skeptest.Run(Relay{}, in); again.Err != nil || len(again.Mail) != 0 {
		t.Errorf("the answer again: %+v, %v", again.Mail, again.Err)
	}
}

// TestEndOfTheWay: an agent without a next one answers.
func TestEndOfTheWay(t *testing.T) {
	out := skeptest.Run(Relay{}, skeptest.Input{
		Agent: "goal", CanComplete: true, Message: skep.Message{Type: skep.TypeRequest, Sender: user, Body: "how far?"},
	})
	if out.Err != nil || len(out.Mail) != 1 || !strings.HasPrefix(out.Mail[0].Finish, "goal@") || !strings.HasSuffix(out.Mail[0].Finish, "\narrived: how far?") {
		t.Errorf("%+v, %v", out.Mail, out.Err)
	}
}
