package door_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/door"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A realm answers the questions that its own agents were asked, and no other realm's.
func TestQuestionToAnotherRealm(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.agents.set("calc", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		call(tn, mail.ToolSendRequest, map[string]any{"target": "desk@shop", "subject": "?", "body": "how many?"})
		return swarm.Outcome{}
	})
	x := k.mustAsk(t, acme(), ask("m1", "calc", "go"))
	asked := k.next(t, x.Task).Wrapper.Payload
	if asked.Recipient().Name != "desk@shop" {
		t.Fatalf("calc asks %+v", asked)
	}
	reply := gateway.Ask{Kind: gateway.Answers, ID: "m2", From: "x", Swarm: "hive", Conversation: x.Conversation, Answers: asked.ID, Body: "seven"}
	if _, err := k.Ask(t.Context(), acme(), reply); !errors.Is(err, gateway.ErrUnknown) {
		t.Errorf("acme answers for the shop: %v", err)
	}
}

// What a message has beside its text is bounded to the byte.
func TestInfoIsBounded(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	const most = 64<<10 - len(`{"gateway":{"k":""}}`)
	for n, fits := range map[int]bool{most: true, most + 1: false} {
		a := ask(fmt.Sprint("m", n), "calc", "x")
		a.Info = map[string]any{"k": strings.Repeat("x", n)}
		if _, err := k.Ask(t.Context(), acme(), a); (err == nil) != fits || err != nil && !errors.Is(err, gateway.ErrInvalid) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A list goes on after the message where it stopped, over all swarms, and shows each once.
func TestListOverSwarms(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *door.Options) {
		o.ExposedAgents = func(gateway.Caller) []gateway.ExposedAgent {
			return []gateway.ExposedAgent{{Swarm: "hive", Name: "calc"}, {Swarm: "nest", Name: "calc"}}
		}
	})
	for i, name := range []string{"hive", "nest", "hive", "nest"} {
		a := ask(fmt.Sprint("m", i), "calc", "x")
		a.Swarm = name
		k.wait(t, k.mustAsk(t, acme(), a))
	}
	var got []string
	for before := ""; ; before = got[len(got)-1] {
		page, err := k.List(t.Context(), acme(), before, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 || len(got) > 4 {
			break
		}
		got = append(got, page[0].ID)
	}
	if want := []string{"m2", "m0", "m3", "m1"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

// The message that begins a conversation reads no task: there is none. The next one finds
// it.
func TestNewConversationReadsNoTask(t *testing.T) {
	t.Parallel()
	for _, c := range []gateway.Caller{alice(), acme()} {
		k := newKit(t)
		x := k.mustAsk(t, c, ask("m1", "boss", "go"))
		wantAnswer(t, k.wait(t, x), gateway.Done, "echo: go")
		if n := k.store.n.Load(); n > 0 {
			t.Errorf("%s: %d reads of tasks for a new conversation", c.Principal, n)
		}
		if next := k.mustAsk(t, c, ask("m2", "boss", "go on", in(x.Conversation))); next.Task != x.Task {
			t.Errorf("%s: the conversation of %v goes on in %v", c.Principal, x.Task, next.Task)
		}
		if got := k.mustAsk(t, c, ask("m1", "boss", "go")); !got.Duplicate || got.Task != x.Task {
			t.Errorf("%s: a repeat of the first message has %v, duplicate %t", c.Principal, got.Task, got.Duplicate)
		}
	}
}
