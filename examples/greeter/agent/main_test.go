package main

import (
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestGreets(t *testing.T) {
	in := skeptest.Input{
		Agent: "greeter", CanComplete: true,
		Params:  Params{Greeting: "Moin"},
		Message: skep.Message{Body: "Ada"},
	}
	first := skeptest.Run(Greeter{}, in)
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	if got, want := first.Mail[0].Finish, "Moin, Ada! (greeting 1 of this task)"; got != want {
		t.Errorf("first answer %q, want %q", got, want)
	}
	in.State = first.State
	second := skeptest.Run(Greeter{}, in)
	if got, want := second.Mail[0].Finish, "Moin, Ada! (greeting 2 of this task)"; got != want {
		t.Errorf("second answer %q, want %q", got, want)
	}
}
