package main

import (
	"slices"
	"testing"

	skep "skep/sdk/go"
)

// I-096: a cancellation withdraws what is under way, each request once, and no try that waits:
// a request by its message, a workflow of another agent by its own id. One that was withdrawn may
// have been done, and is undone although it has failed.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents["a"] = func(asked) string { return `{"status":"failed","error":"no"}` }
	h.agents["d"] = echo
	const undo = `,"compensate":{"agent_id":"d","task_type":"undo-`
	h.start(`{"workflow_id":"w","execution_plan":{"mode":"parallel","steps":[
		{"id":"pause","agent_id":"a","task_type":"x","retry":{"times":3,"delay":3600}` + undo + `pause"}},
		{"id":"slow","agent_id":"mute","task_type":"y"` + undo + `slow"}},
		{"id":"inner","agent_id":"b@depot","task_type":"mail.message","parameters":{"body":{"message_type":"workflow_start","payload":{"workflow_id":"other"}}}}]}}`)
	h.answerOne() // the try
	h.control("workflow_cancel", `{"workflow_id":"w","reason":"enough"}`)
	h.control("workflow_cancel", `{"workflow_id":"w","reason":"again"}`)
	if want := []string{
		`mute [cancel slow] {"message_type":"workflow_cancel","payload":{"workflow_id":"w","step":"slow","message_id":"mr2","reason":"cancelled by boss: enough"}}`,
		`b@depot [cancel inner] {"message_type":"workflow_cancel","payload":{"workflow_id":"other","step":"inner","message_id":"mr3","reason":"cancelled by boss: enough"}}`,
	}; !slices.Equal(h.withdrawn, want) {
		t.Errorf("withdrawn are %q, want %q", h.withdrawn, want)
	}
	if got, want := h.shown[len(h.shown)-1].Text, "workflow w: stopping, 1 of 3 steps\nCANCELLED: cancelled by boss: enough\npause  not run   a\nslow   stopping  mute  since 2026-01-01T12:00:00Z until 2026-01-01T12:01:00Z\ninner  stopping  b@depot  since 2026-01-01T12:00:00Z until 2026-01-01T12:01:00Z"; got != want {
		t.Errorf("the picture is\n%s\nwant\n%s", got, want)
	}
	h.reply("mute", `{"status":"failed","error":{"code":"CANCELLED","message":"called off"}}`)
	h.reply("b@depot", `{"status":"completed","result":1}`)
	h.run()
	r, o := h.last()
	if r.Error.Code != codeCancelled || o.Steps["slow"].Status != "failed" || o.Steps["inner"].Status != "done" || o.Summary.NotRun != 1 || !slices.Equal(o.Summary.Undone, []string{"slow"}) {
		t.Errorf("ended with %+v, %+v", r.Error, o)
	}
	if timers := h.world.Timers(); len(timers) > 0 || len(h.withdrawn) != 2 {
		t.Errorf("left are the timers %v, withdrawn %q", timers, h.withdrawn)
	}
}

// A try that was not answered in time is withdrawn before the next one.
func TestWithdrawATry(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.start(`{"workflow_id":"w","execution_plan":{"steps":[{"id":"slow","agent_id":"mute","task_type":"y","timeout":5,"retries":1}]}}`)
	h.run()
	if h.subjects() != "y y" || len(h.withdrawn) != 2 || h.withdrawn[0] == h.withdrawn[1] {
		t.Errorf("asked %s, withdrawn %q", h.subjects(), h.withdrawn)
	}
}

// An agent that runs a workflow as a step of another's is cancelled by an interrupt of its asker,
// and of no other. The interrupt has no answer: the workflow's own is the one to its start.
func TestInterruptOfTheAsker(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.start(diamond)
	for _, m := range []skep.Message{
		{Sender: skep.Address{Type: skep.AddressAgent, Name: "b"}, Body: `{"message_type":"workflow_cancel","payload":{"workflow_id":"w"}}`},
		{Sender: boss, Body: `{"message_type":"workflow_cancel","payload":{"workflow_id":"v"}}`},
		{Sender: boss, Body: `stop`},
		{Sender: boss, Body: `{"message_type":"workflow_cancel","payload":{"workflow_id":"w","step":"s","message_id":"m","reason":"enough"}}`},
	} {
		if len(h.withdrawn) > 0 {
			t.Errorf("cancelled before %s of %s", m.Body, m.Sender.Name)
		}
		m.Type = skep.TypeInterrupt
		h.turn(m)
	}
	if len(h.withdrawn) != 1 || len(h.replies) > 0 {
		t.Errorf("withdrawn %q, answered %+v", h.withdrawn, h.replies)
	}
	h.reply("a", `1`)
	if r, o := h.last(); r.Error.Code != codeCancelled || o.State != "cancelled" || o.Summary.Done != 1 || len(h.replies) != 1 {
		t.Errorf("ended with %+v, %+v", r.Error, o)
	}
}
