package main

import (
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// say plays one turn of a task, with what its last one left.
func say(t *testing.T, in *skeptest.Input, m skep.Message) skeptest.Outcome {
	t.Helper()
	m.Task = in.Message.Task
	in.Message = m
	out := skeptest.Run(Reminder{}, *in)
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	in.State = out.State
	return out
}

func TestReminds(t *testing.T) {
	world := &skeptest.World{KV: skep.ScopeAgent}
	task := func(id string) *skeptest.Input {
		return &skeptest.Input{World: world, CanComplete: true, Message: skep.Message{Task: id}}
	}
	tea, other := task("tea"), task("other")
	if out := say(t, tea, skep.Message{Body: "in 10m drink tea"}); out.Mail[0].Tool != "await_message" {
		t.Errorf("%+v", out.Mail)
	}
	if out := say(t, other, skep.Message{Body: "list"}); out.Mail[0].Finish != "Pending: drink tea" {
		t.Errorf("%+v", out.Mail)
	}
	before := world.Now
	timer, ok := world.Fire()
	if !ok || world.Now.Sub(before) != 10*time.Minute {
		t.Fatalf("%v after %v", ok, world.Now.Sub(before))
	}
	if out := say(t, tea, timer); out.Mail[0].Finish != "It is time: drink tea" {
		t.Errorf("%+v", out.Mail)
	}
	if out := say(t, other, skep.Message{Body: "list"}); out.Mail[0].Finish != "Nothing is pending." {
		t.Errorf("%+v", out.Mail)
	}
}

func TestCancels(t *testing.T) {
	world := &skeptest.World{KV: skep.ScopeAgent}
	in := &skeptest.Input{World: world, CanComplete: true}
	say(t, in, skep.Message{Body: "in 1h a"})
	say(t, in, skep.Message{Body: "in 2h b"})
	if out := say(t, in, skep.Message{Body: "cancel"}); out.Mail[0].Finish != "Cancelled." || len(world.Timers()) != 0 {
		t.Errorf("%+v %+v", out.Mail, world.Timers())
	}
	if left := world.Values(skep.ScopeAgent, *in); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestSaysWhatItDoesNotKnow(t *testing.T) {
	in := &skeptest.Input{World: &skeptest.World{KV: skep.ScopeAgent}, CanComplete: true}
	for body, want := range map[string]string{
		"hello":       `I know "in 10m tea", "list" and "cancel".`,
		"in time tea": `time is no time; write it as in "90s" or "1h30m".`,
	} {
		if out := say(t, in, skep.Message{Body: body}); out.Mail[0].Finish != want {
			t.Errorf("%q: %+v", body, out.Mail)
		}
	}
	for _, body := range []string{"in -1s tea", "in 10m tea"} {
		in.Message = skep.Message{Body: body}
		if body == "in 10m tea" {
			in.World = nil // grants nothing
		}
		if out := skeptest.Run(Reminder{}, *in); out.Err == nil || len(out.Mail) != 0 {
			t.Errorf("%q: %v, %+v", body, out.Err, out.Mail)
		}
	}
}
