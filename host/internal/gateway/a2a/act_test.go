package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/verb"
	"skep/host/internal/swarm"
)

// result is what a verb about a task answers.
type result struct {
	State, Text, Task, Context string
}

func act(t *testing.T, g gateway.Actor, p gateway.Partner, call gateway.Act) (r result, err error) {
	t.Helper()
	call.Task = swarm.TaskKey{Task: "t1"}
	raw, err := g.Act(t.Context(), p, call)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return r, err
}

// TestAct (G-060): the verbs send, tell, status and cancel at the library's own server,
// over both forms of HTTP, with and without streams.
func TestAct(t *testing.T) {
	t.Parallel()
	for _, protocol := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		for _, streams := range []bool{true, false} {
			t.Run(fmt.Sprint(protocol, " streams ", streams), func(t *testing.T) {
				t.Parallel()
				s := newShop(t, protocol, streams)
				o, g, p := newCarrier(t, s.URL)
				sold, err := act(t, g, p, gateway.Act{Verb: "send", Key: "k1", Args: []byte(`{"message":"tea"}`)})
				if err != nil || sold.State != "completed" || sold.Text != "sold tea" || sold.Task == "" || sold.Context == "" {
					t.Fatalf("send: %+v, %v", sold, err)
				}
				if got, err := act(t, g, p, gateway.Act{Verb: "status", Key: "k2", Args: fmt.Appendf(nil, `{"task":%q}`, sold.Task)}); err != nil || got.State != "completed" || got.Text != "sold tea" {
					t.Errorf("status: %+v, %v", got, err)
				}
				if got, err := act(t, g, p, gateway.Act{Verb: "cancel", Key: "k3", Args: fmt.Appendf(nil, `{"task":%q}`, sold.Task)}); err != nil || got.State != "completed" {
					t.Errorf("cancel of an ended task: %+v, %v", got, err)
				}
				if got, err := act(t, g, p, gateway.Act{Verb: "send", Key: "k4", Args: []byte(`{"message":"word"}`)}); err != nil || got.State != "completed" || got.Text != "a word" {
					t.Errorf("an answer without a task: %+v, %v", got, err)
				}
				_, err = act(t, g, p, gateway.Act{Verb: "send", Key: "k5", Args: []byte(`{"message":"fail"}`)})
				if !errors.Is(err, gateway.ErrPartner) || !strings.Contains(err.Error(), "[FAILED] sold out") {
					t.Errorf("a failure: %v", err)
				}
				hung, err := act(t, g, p, gateway.Act{Verb: "tell", Key: "k6", Args: []byte(`{"message":"hang"}`)})
				if err != nil || hung.Task == "" || hung.State != "submitted" && hung.State != "working" {
					t.Fatalf("tell: %+v, %v", hung, err)
				}
				if got, err := act(t, g, p, gateway.Act{Verb: "cancel", Key: "k7", Args: fmt.Appendf(nil, `{"task":%q}`, hung.Task)}); err != nil || got.State != "canceled" {
					t.Errorf("cancel: %+v, %v", got, err)
				}
				if asked := o.take(); len(asked) != 0 {
					t.Errorf("actions brought mail %+v", asked)
				}
			})
		}
	}
}

// TestActInput: a task that needs input is continued by another call with its id; one
// that waits for nothing is not, unless an earlier attempt has brought the input.
func TestActInput(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	_, g, p := newCarrier(t, s.URL)
	asked, err := act(t, g, p, gateway.Act{Verb: "send", Key: "k1", Args: []byte(`{"message":"ask"}`)})
	if err != nil || asked.State != "input_required" || asked.Text != "which one?" {
		t.Fatalf("send: %+v, %v", asked, err)
	}
	reply := gateway.Act{Verb: "send", Key: "k2", Args: fmt.Appendf(nil, `{"message":"green","task":%q}`, asked.Task)}
	if got, err := act(t, g, p, reply); err != nil || got.Text != "sold green" || got.Task != asked.Task {
		t.Errorf("input: %+v, %v", got, err)
	}
	if _, err := act(t, g, p, reply); err == nil || !strings.Contains(err.Error(), "waits for no input, it is completed") {
		t.Errorf("input for an ended task: %v", err)
	}
	reply.Retry = true
	if got, err := act(t, g, p, reply); err != nil || got.Text != "sold green" || s.turns.Load() != 2 {
		t.Errorf("the repeat after %d turns: %+v, %v", s.turns.Load(), got, err)
	}
}

// TestActCard: card describes the partner's agent, and every declared verb is known.
func TestActCard(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	_, g, p := newCarrier(t, s.URL)
	raw, err := g.Act(t.Context(), p, gateway.Act{Verb: "card", Args: []byte(`{}`)})
	if want := `{"name":"Corner shop","description":"sells","version":"3","skills":[{"id":"sell","description":"sells","tags":["x"]}]}`; err != nil || string(raw) != want {
		t.Errorf("%s, %v", raw, err)
	}
	for _, v := range verb.Of(g.Name()) {
		if v.Mail != "" {
			continue // the outbox does it
		}
		if _, err := g.Act(t.Context(), p, gateway.Act{Verb: v.Name, Key: v.Name, Args: []byte(`{"message":"word","task":"none"}`)}); errors.Is(err, gateway.ErrInvalid) {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
	if _, err := g.Act(t.Context(), p, gateway.Act{Verb: "sing", Args: []byte(`{}`)}); !errors.Is(err, gateway.ErrInvalid) {
		t.Errorf("an unknown verb: %v", err)
	}
}

// TestActFails: what the partner does not do is its error; a partner that does not answer
// in time is called off, and so is one whose caller leaves; one whose host stops is not.
func TestActFails(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	hang := gateway.Act{Verb: "send", Key: "k1", Task: swarm.TaskKey{Task: "t1"}, Args: []byte(`{"message":"hang"}`)}
	for _, cause := range []error{fmt.Errorf("stop: %w", swarm.ErrDraining), nil} {
		shown := len(o.Shown())
		ctx, leave := context.WithCancelCause(t.Context())
		go func() {
			for len(o.Shown()) == shown {
				time.Sleep(time.Millisecond)
			}
			leave(cause)
		}()
		if _, err := g.Act(ctx, p, hang); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller left: %v", err)
		}
		if cause != nil && len(s.cancels) > 0 {
			t.Error("a host that stops has cancelled the task")
		}
	}
	<-s.cancels
	p.Timeout = 1
	if _, err := g.Act(t.Context(), p, hang); !errors.Is(err, gateway.ErrPartner) || !strings.Contains(err.Error(), "raise timeout in [gateways.a2a.partners.shop]") {
		t.Errorf("no answer in time: %v", err)
	}
	p.Timeout = time.Minute
	for code, want := range map[int32]string{401: "401", 503: "503", 502: "502"} {
		s.status.Store(code)
		if _, err := act(t, g, p, gateway.Act{Verb: "send", Key: "k2", Args: []byte(`{"message":"tea"}`)}); !errors.Is(err, gateway.ErrPartner) || !strings.Contains(err.Error(), want) {
			t.Errorf("status %d: %v", code, err)
		}
	}
	if _, err := g.Act(t.Context(), p, gateway.Act{Verb: "send", Args: []byte(`{"message":1}`)}); !errors.Is(err, gateway.ErrInvalid) {
		t.Errorf("no text: %v", err)
	}
}
