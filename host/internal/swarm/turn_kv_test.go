package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// tell ends a turn with an answer to the user.
func tell(t *swarm.Turn, text string) swarm.Outcome {
	call(t, mail.ToolTaskComplete, obj{"finish_message": text})
	return swarm.Outcome{}
}

// holds lists a scope as an agent sees it: name=value.
func holds(ctx context.Context, t *swarm.Turn, kind swarm.KVKind) (all []string) {
	names, _, err := t.KVList(ctx, kind, "", "", 100)
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range names {
		value, err := t.KVGet(ctx, kind, name)
		all = append(all, fmt.Sprintf("%s=%s", name, value))
		if err != nil {
			return []string{err.Error()}
		}
	}
	return all
}

// put stages values, name=value or name for a deletion.
func put(ctx context.Context, t *swarm.Turn, kind swarm.KVKind, pairs ...string) *abi.Error {
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		raw := []byte(value)
		if !ok {
			raw = nil
		}
		if fault := t.KVPut(ctx, abi.OpKVPut, kind, name, raw); fault != nil {
			return fault
		}
	}
	return nil
}

// A turn sees what it has staged over what is committed; a turn that fails leaves
// nothing behind.
func TestKVStaged(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents.by["boss"] = func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		switch incoming(tn).Payload.Body {
		case "fill":
			put(ctx, tn, swarm.KVAgent, "a=1", "b=2", "c=3", "d=")
		case "fail":
			put(ctx, tn, swarm.KVAgent, "a=9", "b", "z=9")
			return failed(errors.New("on purpose"))
		case "change":
			put(ctx, tn, swarm.KVAgent, "b", "bb=x", "c=33", "bb=22", "none", "e=5", "e")
			if _, err := tn.KVGet(ctx, swarm.KVAgent, "b"); !errors.Is(err, swarm.ErrNotFound) {
				return tell(tn, fmt.Sprint("the deleted value is there: ", err))
			}
		case "page":
			put(ctx, tn, swarm.KVAgent, "a", "bc=x")
			var pages []string
			for after, more := "", true; more; {
				var names []string
				names, more, _ = tn.KVList(ctx, swarm.KVAgent, "b", after, 1)
				pages = append(pages, names...)
				after = names[len(names)-1]
			}
			return tell(tn, fmt.Sprint(pages))
		}
		return tell(tn, fmt.Sprint(holds(ctx, tn, swarm.KVAgent)))
	}
	for _, c := range [][2]string{
		{"fill", "[a=1 b=2 c=3 d=]"}, {"look", "[a=1 b=2 c=3 d=]"}, {"fail", ""}, {"look", "[a=1 b=2 c=3 d=]"},
		{"change", "[a=1 bb=22 c=33 d=]"}, {"look", "[a=1 bb=22 c=33 d=]"}, {"page", "[bb bc]"}, {"look", "[bb=22 bc=x c=33 d=]"},
	} {
		if a := h.ask(c[0]); c[1] != "" && a.Body != c[1] {
			t.Errorf("%s: %q, want %q", c[0], a.Body, c[1])
		}
	}
}

// Values are invisible in another scope: of another task, agent, principal or tenant.
func TestKVScopes(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	look := func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		m := incoming(tn)
		var all []string
		for _, kind := range []swarm.KVKind{swarm.KVTask, swarm.KVAgent, swarm.KVInstance} {
			if m.Payload.Body == "fill" {
				put(ctx, tn, kind, "k="+string(kind))
			}
			all = append(all, holds(ctx, tn, kind)...)
		}
		return tell(tn, fmt.Sprint(all))
	}
	h.agents.by["boss"] = func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		m := incoming(tn)
		if m.Payload.Body != "math" {
			return look(ctx, tn)
		}
		call(tn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "look"})
		return swarm.Outcome{}
	}
	h.agents.by["math"] = func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		var all []string
		for _, kind := range []swarm.KVKind{swarm.KVTask, swarm.KVAgent, swarm.KVInstance} {
			all = append(all, holds(ctx, tn, kind)...)
		}
		if got := fmt.Sprint(all); got != "[k=instance]" {
			return failed(errors.New("math sees " + got))
		}
		call(tn, mail.ToolSendResponse, obj{"target": "boss", "subject": "s", "body": "fine"})
		return swarm.Outcome{}
	}
	bob := func(p *swarm.Post) { p.Principal.ID = "bob" }
	for i, c := range []struct {
		body   string
		change []func(*swarm.Post)
		want   string
	}{
		{"fill", []func(*swarm.Post){task("t")}, "[k=task k=agent k=instance]"},
		{"look", []func(*swarm.Post){task("t")}, "[k=task k=agent k=instance]"},
		{"look", []func(*swarm.Post){task("u")}, "[k=agent k=instance]"},
		{"look", []func(*swarm.Post){task("t"), bob}, "[]"},
		{"math", []func(*swarm.Post){task("t")}, "[k=task k=agent k=instance]"},
	} {
		if a := h.ask(c.body, c.change...); a.Body != c.want {
			t.Errorf("%d: %q, want %q", i, a.Body, c.want)
		}
	}
}

// The quotas of a scope are refused at the put; what others have filled since is
// refused at the commit, and that is the end of the turn alone.
func TestKVQuota(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	large := "=" + strings.Repeat("x", swarm.MaxKVValue)
	staged, filled := make(chan struct{}), make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		switch incoming(tn).Payload.Body {
		case "keys":
			for i := range swarm.MaxKVKeys {
				put(ctx, tn, swarm.KVTask, fmt.Sprint(i)+"=v")
			}
			over := put(ctx, tn, swarm.KVTask, "more=v")
			return tell(tn, fmt.Sprint(over, put(ctx, tn, swarm.KVTask, "0=w", "1", "more=v")))
		case "bytes":
			for i := range swarm.MaxKVBytes/swarm.MaxKVValue - 1 {
				put(ctx, tn, swarm.KVInstance, fmt.Sprint(i)+large)
			}
			return tell(tn, fmt.Sprint(put(ctx, tn, swarm.KVInstance, "more"+large)))
		case "late":
			fault := put(ctx, tn, swarm.KVInstance, "late"+large)
			close(staged)
			<-filled
			return tell(tn, fmt.Sprint(fault))
		}
		return tell(tn, fmt.Sprint(len(holds(ctx, tn, swarm.KVInstance))))
	}
	want := "LIMIT: the scope task would hold 1001 keys, at most 1000 <nil>"
	if a := h.ask("keys"); a.Body != want {
		t.Errorf("%q", a.Body)
	}
	late := h.mustPost("late", task("t"))
	<-staged
	want = "LIMIT: the scope instance would hold 4194424 bytes, at most 4194304"
	if a := h.ask("bytes"); a.Body != want {
		t.Errorf("%q", a.Body)
	}
	close(filled)
	a := h.answer(late)
	if a.Subject != mail.SubjectAgentError || !strings.Contains(a.Body, "failed (kv): what the turn has stored does not fit") {
		t.Errorf("%+v", a)
	}
	if a := h.ask("look", task("t")); a.Body != "63" {
		t.Errorf("%q values", a.Body)
	}
	if got := names(h.events("t")); slices.Contains(got[:3], "task_complete_call") {
		t.Errorf("half the turn counts: %v", got)
	}
}
