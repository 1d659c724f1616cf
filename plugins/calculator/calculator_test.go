package main

import (
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"(17+4)*3", "63"},
		{"2+3*4", "14"},
		{"2*(3+4)-5", "9"},
		{"10/4", "2.5"},
		{"1/3", "≈ 0.3333333333"},
		{"-2/3", "≈ -0.6666666667"},
		{"0.1+0.2", "0.3"},
		{"1/3*3", "1"},
		{"2^10", "1024"},
		{"2^3^2", "512"},
		{"-2^2", "-4"},
		{"2^-2", "0.25"},
		{"7%3", "1"},
		{"-7%3", "2"},
		{"7%-3", "-2"},
		{"7.5%2", "1.5"},
		{"--3", "3"},
		{"+4", "4"},
		{" 1_000 × 3 ÷ 2 − 1 ", "1499"},
		{"2**8", "256"},
		{".5*4", "2"},
		{"1/7/10^12", "≈ 1.428571429e-13"},
		{"100^20", "1" + strings.Repeat("0", 40)},
		{"1/0", "error: division by zero"},
		{"5%0", "error: division by zero"},
		{"0^-1", "error: division by zero"},
		{"", "error: something is missing at the end"},
		{"2+", "error: something is missing at the end"},
		{"(2+3", "error: a closing parenthesis is missing"},
		{"2)", `error: unexpected ")"`},
		{"2 bees", `error: unexpected "b"`},
		{"2 ≠ 3", `error: unexpected "≠"`},
		{"1.2.3", `error: "1.2.3" is no number`},
		{"2^0.5", "error: an exponent must be a whole number from -4096 to 4096"},
		{"9^9^9", "error: an exponent must be a whole number from -4096 to 4096"},
		{"(10^4000)^4000", "error: the numbers become too large"},
		{strings.Repeat("(", 300) + "1", "error: nested more than 200 deep"},
		{strings.Repeat("-", 300) + "1", "error: nested more than 200 deep"},
	}
	for _, tt := range tests {
		if got := answer(tt.in); got != tt.want {
			t.Errorf("answer(%.40q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("(1+2)*3^4/5-6%7")
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) < 1000 && answer(in) == "" {
			t.Errorf("no answer to %q", in)
		}
	})
}

func TestTurn(t *testing.T) {
	t.Parallel()
	agent := skep.Address{Type: skep.AddressAgent, Name: "supervisor"}
	tests := []struct {
		name string
		in   skeptest.Input
		want skeptest.Mail
	}{
		{"a request", skeptest.Input{Message: skep.Message{Sender: agent, Subject: "Part 1", Body: "1+1"}},
			skeptest.Mail{Tool: "send_response", Target: "supervisor", Subject: "Re: Part 1", Body: "2"}},
		{"a user, as the entrypoint", skeptest.Input{CanComplete: true, Message: skep.Message{Body: "1/0"}},
			skeptest.Mail{Tool: "task_complete", Finish: "error: division by zero"}},
		{"a broadcast", skeptest.Input{Message: skep.Message{Type: skep.TypeBroadcast, Sender: agent}},
			skeptest.Mail{Tool: "acknowledge_broadcast"}},
		{"a response", skeptest.Input{Message: skep.Message{Type: skep.TypeResponse, Sender: agent}}, skeptest.Mail{}},
		{"the system", skeptest.Input{Message: skep.Message{Sender: skep.Address{Type: skep.AddressSystem, Name: "hive"}}}, skeptest.Mail{}},
	}
	for _, tt := range tests {
		out := skeptest.Run(Calculator{}, tt.in)
		var got skeptest.Mail
		if len(out.Mail) > 0 {
			got = out.Mail[0]
		}
		if out.Err != nil || len(out.Mail) > 1 || got.Tool != tt.want.Tool || got.Body != tt.want.Body || got.Finish != tt.want.Finish ||
			got.Target != tt.want.Target || got.Subject != tt.want.Subject {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, out.Mail, out.Err, tt.want)
		}
	}
}
