package federation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/swarm"
	"skep/host/mailtest/refclient"
	"skep/host/mailtest/refpeer"
	"skep/spec/mail"
)

// answerRequest is what an agent of the reference does that answers requests.
func answerRequest(p *refpeer.Peer, m refpeer.Mail) {
	if m.Kind == "request" {
		_, _ = p.Response(m.Task, m.Agent, m.From, "Re: "+m.Subject, "two in bin 9")
	}
}

// Appendix A, the host being the owner: its notice goes to whom it has asked
// (R-033, R-034, R-036, R-040, S-19, G-04, G-05, G-08, G-19).
func TestReferenceAnswers(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: answerRequest})
	if a := p.ask(t, "hive", "T", hosttest.RequestOf("analyst@beta", "x")); a.Body != "boss got [Re: s] two in bin 9" {
		t.Errorf("answer %+v", a)
	}
	p.wantExchanges("hive> forward request [s] 200", "beta> back response [Re: s] 200", "hive> back response [::task_complete::] 200")
	last := p.beta.Log()[2]
	if !strings.Contains(string(last.Body), `"recipient":{"address_type":"agent","address":"analyst@beta"}`) {
		t.Errorf("the notice %s", last.Body)
	}
	want := []string{"user:alice@hive", "swarm:hive@beta"}
	if got := p.beta.Contributors(refpeer.Task{Instance: "swarm:hive", ID: "T"}); !slices.Equal(got, want) {
		t.Errorf("contributors %q, want %q", got, want)
	}
	if part := p.waitEnded("T"); part.Task.State != swarm.StateCompleted {
		t.Errorf("the task is %s", part.Task.State)
	}
}

// Two messages before the first reply: the second takes the back route, and comes
// second (G-39).
func TestReferenceGetsTwo(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: func(p *refpeer.Peer, m refpeer.Mail) {
		if m.Subject == "s2" {
			answerRequest(p, m)
		}
	}})
	body := hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": "analyst@beta", "subject": "s1", "body": "x"}},
		hosttest.Step{"send_request", hosttest.Args{"target": "analyst@beta", "subject": "s2", "body": "y"}}, hosttest.Step{"await_message", hosttest.Args{}})
	if a := p.ask(t, "hive", "T", body); a.Body != "boss got [Re: s2] two in bin 9" {
		t.Errorf("answer %+v", a)
	}
	p.wantExchanges("hive> forward request [s1] 200", "hive> back request [s2] 200", "beta> back response [Re: s2] 200", "hive> back response [::task_complete::] 200")
}

// A reference that has forgotten a task gets it anew (contract 6.2).
func TestReferenceForgets(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: answerRequest})
	first := []string{"hive> forward request [s] 200", "beta> back response [Re: s] 200", "hive> back response [::task_complete::] 200"}
	p.ask(t, "hive", "T", hosttest.RequestOf("analyst@beta", "x"))
	p.wantExchanges(first...)
	p.waitEnded("T")
	p.beta.Restart()
	if a := p.ask(t, "hive", "T", hosttest.RequestOf("analyst@beta", "y")); a.Body != "boss got [Re: s] two in bin 9" {
		t.Errorf("answer %+v", a)
	}
	p.wantExchanges(slices.Concat(first, []string{"hive> back request [s] 400"}, first)...)
}

// A reference that has forgotten a request which it took is noticed by its uptime: the
// agent that waits is told, and not at the end of the task's time.
func TestReferenceForgetsRequest(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{})
	alice, operator := p.local.As(hosttest.AliceKey), p.local.As(hosttest.OperatorKey)
	if _, err := alice.PostAsync(t.Context(), client.Post{Body: hosttest.RequestOf("analyst@beta", "x"), Subject: "q", Task: "T"}); err != nil {
		t.Fatal(err)
	}
	p.wantExchanges("hive> forward request [s] 200")
	p.waitDelivered("T")
	ping := func() {
		if _, err := operator.PingPeer(t.Context(), "beta"); err != nil {
			t.Fatal(err)
		}
	}
	ping()
	if task, err := alice.Task(t.Context(), "T"); err != nil || task.State != "running" {
		t.Fatalf("the task: %+v, %v", task, err)
	}
	p.beta.Restart()
	ping()
	part := p.waitEnded("T")
	if all := history(t, p.local, "T", "boss"); !strings.Contains(fmt.Sprint(all), "was started again after it took the request to analyst@beta") {
		t.Errorf("the task is %s; boss: %+v", part.Task.State, all)
	}
}

// The reference's completion is for an agent that is not here; the asker gets
// it, and the reference gets nothing that makes it begin again (R-035, G-04).
func TestReferenceCompletes(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: func(p *refpeer.Peer, m refpeer.Mail) {
		if m.Kind == "request" {
			_, _ = p.Broadcast(m.Task, "chief", []string{"math@hive"}, "news", "n")
			_, _ = p.Complete(m.Task, "chief", "done")
		}
	}})
	if a := p.ask(t, "hive", "T", hosttest.RequestOf("chief@beta", "x")); a.Body != "boss got [::interswarm_task_complete::] done" {
		t.Errorf("answer %+v", a)
	}
	p.wantExchanges("hive> forward request [s] 200", "beta> back broadcast [news] 200", "beta> back response [::task_complete::] 200", "hive> back response [::task_complete::] 200")
}

// The reference answers and then completes, as its prompts want it: the task ends
// once, by the answer.
func TestReferenceAnswersAndCompletes(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: func(p *refpeer.Peer, m refpeer.Mail) {
		if m.Kind == "request" {
			answerRequest(p, m)
			_, _ = p.Complete(m.Task, "chief", "done")
		}
	}})
	if a := p.ask(t, "hive", "T", hosttest.RequestOf("chief@beta", "x")); a.Body != "boss got [Re: s] two in bin 9" {
		t.Errorf("answer %+v", a)
	}
	p.waitEnded("T")
	hosttest.Eventually(t, "both have told the other", func() bool {
		lines := p.exchanges()
		return slices.Contains(lines, "beta> back response [::task_complete::] 200") && slices.Contains(lines, "hive> back response [::task_complete::] 200")
	})
	if err := hosttest.Follow(t.Context(), p.local.As(hosttest.AliceKey), "T"); err != nil {
		t.Error(err)
	}
}

// A reference that completes without having written notifies no swarm; the task ends by
// its own time (G-03 is the reference's part).
func TestReferenceCompletesInSilence(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: func(p *refpeer.Peer, m refpeer.Mail) { _, _ = p.Complete(m.Task, "chief", "done") }})
	a, err := p.local.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("chief@beta", "x"), Task: "T", Timeout: time.Second})
	if err != nil || a.Subject != mail.SubjectTaskTimeout {
		t.Errorf("answer %+v, %v", a, err)
	}
}

// What the reference refuses, always with 500, the agent hears with the reference's
// reason (R-041, R-082, R-085, G-02, G-65).
func TestReferenceRefuses(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{})
	a := p.ask(t, "hive", "T", hosttest.RequestOf("nobody@beta", "x"))
	if !strings.HasPrefix(a.Body, "boss got [::router_error::]") || !strings.Contains(a.Body, "unknown agent 'nobody'") {
		t.Errorf("answer %+v", a)
	}
	p.wantExchanges("hive> forward request [s] 500")
}

// The reference as the owner: the host is a contributor from the first reply on,
// and ends its part at the notice, which is for an agent that is not here (R-004,
// S-09, G-04, G-11).
func TestReferenceOwns(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: func(p *refpeer.Peer, m refpeer.Mail) { _, _ = p.Complete(m.Task, m.Agent, m.Body) }})
	task := p.beta.Begin("u9", "T")
	p.wantStatus(200)(p.beta.Request(task, "chief", "math@hive", "s", "x"))
	p.wantExchanges("beta> forward request [s] 200", "hive> back response [Re: s] 200", "beta> back response [::task_complete::] 200")
	if want, got := `"local_runner":"swarm:beta@hive"`, string(p.beta.Log()[0].Answer); !strings.Contains(got, want) {
		t.Errorf("answer %s without %s", got, want)
	}
	if want, got := []string{"user:u9@beta", "swarm:beta@hive"}, p.beta.Contributors(task); !slices.Equal(got, want) {
		t.Errorf("contributors %q, want %q", got, want)
	}
	if part := p.waitEnded("T"); part.Task.State != swarm.StateCompleted || part.Task.Key.Instance != "swarm:beta" || part.Task.Owner != "user:u9@beta" {
		t.Errorf("the host's part: %+v", part.Task)
	}
}

// The host completes its part without having written: the reference's agent that
// asked is told. That one completes at that, as a model may, and no notice answers
// a notice (R-035, R-036, G-03).
func TestReferenceIsTold(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: func(p *refpeer.Peer, m refpeer.Mail) { _, _ = p.Complete(m.Task, m.Agent, m.Agent+" heard "+m.Body) }})
	task := p.beta.Begin("u9", "T")
	p.wantStatus(200)(p.beta.Request(task, "analyst", "boss@hive", "s", "x"))
	want := []string{"beta> forward request [s] 200", "hive> back response [::task_complete::] 200", "beta> back response [::task_complete::] 200"}
	p.wantExchanges(want...)
	if body := string(p.beta.Log()[1].Body); !strings.Contains(body, `"address":"analyst@beta"`) || !strings.Contains(body, "boss got [s] x") {
		t.Errorf("the notice %s", body)
	}
	p.waitEnded("T")
	p.wantExchanges(want...)
}

// Two messages before the host's first reply: the reference forwards both, which
// the host takes for one task (G-39).
func TestReferenceForwardsTwice(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{})
	p.links["beta"].setTarget("")
	task := p.beta.Begin("u9", "T")
	p.wantStatus(200)(p.beta.Request(task, "chief", "math@hive", "s1", "x"))
	p.wantStatus(200)(p.beta.Request(task, "chief", "math@hive", "s2", "y"))
	p.links["beta"].setTarget(p.beta.URL())
	p.wantExchanges("beta> forward request [s1] 200", "beta> forward request [s2] 200", "hive> back response [Re: s1] 200", "hive> back response [Re: s2] 200")
}

// One task id of two users of the reference is two tasks, each in an instance of its
// own (G-40).
func TestReferenceUsesAnIDTwice(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{})
	first := p.beta.Begin("u1", "T")
	p.wantStatus(200)(p.beta.Request(first, "chief", "math@hive", "s1", "x"))
	p.wantExchanges("beta> forward request [s1] 200", "hive> back response [Re: s1] 200")
	second := p.beta.Begin("u2", "T")
	p.wantStatus(200)(p.beta.Request(second, "chief", "math@hive", "s2", "x"))
	p.wantExchanges("beta> forward request [s1] 200", "hive> back response [Re: s1] 200", "beta> forward request [s2] 200", "hive> back response [Re: s2] 200")
	if a, b := p.beta.Contributors(first), p.beta.Contributors(second); a[1] != "swarm:beta@hive" || a[1] == b[1] {
		t.Errorf("contributors %q and %q", a, b)
	}
	p.wantStatus(200)(p.beta.Request(first, "chief", "math@hive", "s3", "x"))
	p.wantExchanges("beta> forward request [s1] 200", "hive> back response [Re: s1] 200", "beta> forward request [s2] 200",
		"hive> back response [Re: s2] 200", "beta> back request [s3] 200", "hive> back response [Re: s3] 200")
}

// The reference restarts while the host works for it: the answer is not lost.
func TestReferenceForgetsItsOwn(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{})
	p.links["beta"].setTarget("")
	p.wantStatus(200)(p.beta.Request(p.beta.Begin("u9", "T"), "chief", "math@hive", "s", "x"))
	p.beta.Restart()
	p.links["beta"].setTarget(p.beta.URL())
	p.wantExchanges("beta> forward request [s] 200", "hive> back response [Re: s] 400", "hive> forward response [Re: s] 200")
}

// A host that restarts knows what it works on for the reference (R-024, G-41).
func TestReferenceWritesAfterRestart_G41(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{})
	task := p.beta.Begin("u9", "T")
	p.wantStatus(200)(p.beta.Request(task, "chief", "math@hive", "s1", "x"))
	p.wantExchanges("beta> forward request [s1] 200", "hive> back response [Re: s1] 200")
	p.waitDelivered("T")
	p.restart("hive")
	p.wantStatus(200)(p.beta.Request(task, "chief", "math@hive", "s2", "y"))
	p.wantExchanges("beta> forward request [s1] 200", "hive> back response [Re: s1] 200", "beta> back request [s2] 200", "hive> back response [Re: s2] 200")
}

// member gives a member of an object another value; missing takes it out.
func member(o refclient.Object, name string, value any) refclient.Object {
	o = slices.DeleteFunc(slices.Clone(o), func(m refclient.Member) bool { return m.Name == name })
	if value == missing {
		return o
	}
	return append(o, refclient.Member{Name: name, Value: value})
}

const missing = "\x00missing"

// variants are wrappers of other versions of the reference, by the subject under
// which they are sent.
var variants = map[string]func(w, payload refclient.Object) refclient.Object{
	"no token":   func(w, _ refclient.Object) refclient.Object { return member(w, "auth_token", missing) },
	"null token": func(w, _ refclient.Object) refclient.Object { return member(w, "auth_token", nil) },
	"neither": func(w, _ refclient.Object) refclient.Object {
		return member(member(w, "auth_token", missing), "metadata", missing)
	},
	"null metadata": func(w, _ refclient.Object) refclient.Object { return member(w, "metadata", nil) },
	"more of all": func(w, p refclient.Object) refclient.Object {
		return member(member(w, "version", "1.4"), "payload", member(p, "priority", 3))
	},
	"no swarms": func(w, p refclient.Object) refclient.Object {
		return member(w, "payload", member(member(member(p, "sender_swarm", missing), "recipient_swarm", missing), "routing_info", nil))
	},
	"a time without a zone": func(w, _ refclient.Object) refclient.Object {
		return member(w, "timestamp", "2026-11-20 15:52:40.084847")
	},
	"zulu time":         func(w, _ refclient.Object) refclient.Object { return member(w, "timestamp", "2026-11-20T15:52:40.1Z") },
	"ids that are none": func(w, p refclient.Object) refclient.Object { return member(w, "message_id", "message 1") },
	"contributors of other roles": func(w, _ refclient.Object) refclient.Object {
		return member(w, "task_contributors", []string{"user:u9@beta", "agent:remote@delta"})
	},
	"a bare sender": func(w, p refclient.Object) refclient.Object {
		return member(w, "payload", member(p, "sender", refclient.Object{{Name: "address_type", Value: "agent"}, {Name: "address", Value: "chief"}}))
	},
}

// What other versions leave out, add or write otherwise is taken as it is meant
// (R-002, R-004, G-08, G-42).
func TestReferenceVariants(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Alter: func(w refclient.Object) refclient.Object {
		payload := w[slices.IndexFunc(w, func(m refclient.Member) bool { return m.Name == "payload" })].Value.(refclient.Object)
		subject := payload[slices.IndexFunc(payload, func(m refclient.Member) bool { return m.Name == "subject" })].Value.(string)
		if change := variants[subject]; change != nil {
			return change(w, payload)
		}
		return w
	}})
	for subject := range variants {
		status, err := p.beta.Request(p.beta.Begin("u9", subject), "chief", "math@hive", subject, "x")
		if log := p.beta.Log(); status != 200 || err != nil {
			t.Errorf("%s: %d, %v, %s", subject, status, err, log[len(log)-1].Answer)
			continue
		}
		hosttest.Eventually(t, "the answer to "+subject, func() bool { return slices.Contains(p.exchanges(), "hive> back response [Re: "+subject+"] 200") })
	}
}
