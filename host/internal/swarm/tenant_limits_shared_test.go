package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
	"skep/spec/mail"
)

// shareLimits starts a runtime of tenants beside other hosts. It works on all tasks.
func shareLimits(t *testing.T, others *otherHosts, quotas map[string]swarm.Quota, change ...func(*hive)) *hive {
	t.Helper()
	one := &sharingHost{sharedBudget: &sharedBudget{left: map[int64]swarm.Spend{}}, others: others}
	h := newHive(t, append([]func(*hive){withTenants(quotas), func(h *hive) { h.opt.Cluster = one }}, change...)...)
	h.gainAll()
	return h
}

// gainAll makes the host work on all tasks.
func (h *hive) gainAll() {
	h.t.Helper()
	if err := h.rt.Gained(h.t.Context(), allSlots()); err != nil {
		h.t.Fatal(err)
	}
}

func allSlots() []slot.Slot {
	all := make([]slot.Slot, slot.Tasks)
	for n := range all {
		all[n] = slot.Slot(n)
	}
	return all
}

// TestTurnsOfHosts: a tenant has its part of `turns` at each host, rounded up, and more once another host has gone.
func TestTurnsOfHosts(t *testing.T) {
	t.Parallel()
	others, began, gate := newOtherHosts(1), make(chan string, 10), make(chan struct{})
	h := shareLimits(t, others, map[string]swarm.Quota{"acme": {Turns: 3}}, func(h *hive) {
		h.agents.by = map[string]behave{"boss": func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			began <- turn.Key().Tenant
			turn.CPU().Release()
			<-gate
			if err := turn.CPU().Acquire(context.WithoutCancel(ctx)); err != nil {
				return failed(err)
			}
			return script(ctx, turn)
		}}
	})
	defer close(gate)
	by := func(id string) func(*swarm.Post) { return func(p *swarm.Post) { p.Principal.ID = id } }
	for _, id := range []string{"a", "b", "c"} {
		h.mustPost("hello", of("acme"), by(id))
	}
	for range 2 {
		if tenant := <-began; tenant != "acme" {
			t.Fatalf("a turn of %q began", tenant)
		}
	}
	for _, id := range []string{"d", "e"} { // they wait behind the tenant's third
		h.mustPost("hello", of("free"), by(id))
		if tenant := <-began; tenant != "free" {
			t.Fatal("the tenant has more turns than its part of the limit")
		}
	}
	others.set(0)
	if tenant := <-began; tenant != "acme" {
		t.Errorf("a turn of %q began when a host had gone", tenant)
	}
}

// sharingHives are two hosts that show each other what they have. What they store is each one's own.
type sharingHives struct {
	one, two             *hive
	othersOne, othersTwo *otherHosts
}

func newSharingHives(t *testing.T, quotas map[string]swarm.Quota, limits swarm.Limits) *sharingHives {
	t.Helper()
	s := &sharingHives{othersOne: newOtherHosts(1), othersTwo: newOtherHosts(1)}
	change := func(h *hive) { h.def.Limits = limits }
	s.one, s.two = shareLimits(t, s.othersOne, quotas, change), shareLimits(t, s.othersTwo, quotas, change)
	return s
}

// beat makes each of them see what the other has.
func (s *sharingHives) beat() {
	s.othersOne.show(s.two)
	s.othersTwo.show(s.one)
}

// TestQueueOfHosts: the messages of a tenant that wait at all hosts count for `queue`, also inside a turn, once they have
// been shown. What another host has had and has no more, or a host that is gone, leaves room.
func TestQueueOfHosts(t *testing.T) {
	t.Parallel()
	s := newSharingHives(t, map[string]swarm.Quota{"acme": {Queue: 4}}, swarm.Limits{TaskMessages: 20, TaskTimeout: time.Hour, Queue: 100})
	open := blocked(s.two)
	defer open()
	var last *swarm.Receipt
	for range 3 {
		last = s.two.mustPost("a", of("acme"))
	}
	s.two.mustPost("of another", of("free"))
	s.beat()
	var told string
	s.one.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		told = call(turn, "send_request", obj{"target": "math", "subject": "s", "body": "b"})
		call(turn, "task_complete", obj{"finish_message": "done"})
		return swarm.Outcome{}
	}
	s.one.ask("b", of("acme")) // the fourth
	if !strings.Contains(told, "4 messages waiting") {
		t.Errorf("a turn that sends one more was told %q", told)
	}
	openOne := blocked(s.one)
	defer openOne()
	s.one.mustPost("c", of("acme"))
	_, err := s.one.post("d", of("acme"))
	wantLimit(t, err, 5*time.Second, `tenant "acme"`, "4 messages waiting", "[tenants.acme] queue")
	s.beat()
	_, err = s.two.post("d", of("acme"))
	wantLimit(t, err, 5*time.Second, `tenant "acme"`, "4 messages waiting")
	use, err := s.one.rt.QuotaUse(t.Context(), "acme")
	if want := (swarm.QuotaUse{Name: "queue", Limit: 4, Used: 4}); err != nil || !slices.Contains(use.Quota, want) {
		t.Errorf("the quota has %+v, %v; want %+v", use, err, want)
	}
	open()
	s.two.answer(last)
	eventually(t, "the other host has answered all", func() bool { _, n := s.two.rt.CountLoad(); return n == 0 })
	s.beat()
	for range 3 {
		s.one.mustPost("e", of("acme"))
	}
	if s.beat(); len(s.two.rt.SharedLoads()) != 0 {
		t.Error("a host without load shows some")
	}
	_, err = s.two.post("f", of("acme"))
	wantLimit(t, err, 5*time.Second, "4 messages waiting")
	s.othersTwo.show() // the host that has them is gone
	s.two.mustPost("f", of("acme"))
}

// TestInstanceQueueOfHosts: the messages that wait in an instance at all hosts count for its limit.
func TestInstanceQueueOfHosts(t *testing.T) {
	t.Parallel()
	s := newSharingHives(t, nil, swarm.Limits{TaskMessages: 20, TaskTimeout: time.Hour, Queue: 3})
	defer blocked(s.one)()
	defer blocked(s.two)()
	s.two.mustPost("a")
	s.two.mustPost("b")
	s.beat()
	bob := func(p *swarm.Post) { p.Principal.ID = "bob" }
	s.one.mustPost("c")
	_, err := s.one.post("d")
	wantLimit(t, err, 0, "3 messages are waiting in this instance", "[limits] queue")
	s.one.mustPost("of another", bob)
	s.othersOne.show()
	s.one.mustPost("d")
}

// TestShownLoads: of an instance that has little of its limit nothing is shown.
func TestShownLoads(t *testing.T) {
	t.Parallel()
	h := shareLimits(t, newOtherHosts(1), nil, func(h *hive) { h.def.Limits.Queue = 64 })
	defer blocked(h)()
	h.mustPost("a")
	if loads := h.rt.SharedLoads(); len(loads) != 0 {
		t.Errorf("%d loads are shown for one message of 64", len(loads))
	}
	h.mustPost("b")
	if loads := h.rt.SharedLoads(); len(loads) != 1 {
		t.Errorf("%d loads are shown for 2 messages of 64, want one", len(loads))
	}
}

// TestInstancesOfHosts: instances that other hosts have made count for the limit, those that are counted already once. A
// host that is gone makes them be counted again.
func TestInstancesOfHosts(t *testing.T) {
	t.Parallel()
	s := newSharingHives(t, map[string]swarm.Quota{"acme": {}}, swarm.Limits{TaskMessages: 20, TaskTimeout: time.Hour, Queue: 9, Instances: 4})
	post := func(h *hive, id string) error {
		_, err := h.post("a", of("acme"), func(p *swarm.Post) { p.Principal.ID = id })
		return err
	}
	must := func(h *hive, ids ...string) {
		t.Helper()
		for _, id := range ids {
			if err := post(h, id); err != nil {
				t.Fatal(id, err)
			}
		}
	}
	must(s.one, "a")
	must(s.two, "b")
	s.beat()
	must(s.one, "c")
	s.beat()
	must(s.two, "d", "b")
	s.beat()
	for _, h := range []*hive{s.one, s.two} {
		wantLimit(t, post(h, "e"), 0, "the swarm has 4 instances, its limit")
	}
	must(s.one, "a", "c")
	s.othersOne.show()
	must(s.one, "e", "f") // the instances of the lost host are not in this one's store
	wantLimit(t, post(s.one, "g"), 0, "the swarm has 4 instances, its limit")
}

// countedStore calls counting once, before instances are counted.
type countedStore struct {
	swarm.Store
	counting func()
}

func (s *countedStore) Instances(ctx context.Context, tenant, name string) ([]swarm.InstanceKey, error) {
	if counting := s.counting; counting != nil {
		s.counting = nil
		counting()
	}
	return s.Store.Instances(ctx, tenant, name)
}

// TestInstancesCountedAtOnce: an instance that is made while instances are counted is shown to the other hosts.
func TestInstancesCountedAtOnce(t *testing.T) {
	t.Parallel()
	s := &countedStore{}
	h := shareLimits(t, newOtherHosts(1), map[string]swarm.Quota{"acme": {}}, func(h *hive) {
		h.def.Limits = swarm.Limits{TaskMessages: 20, TaskTimeout: time.Hour, Instances: 4}
		h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
	})
	by := func(id string) func(*swarm.Post) { return func(p *swarm.Post) { p.Principal.ID = id } }
	s.counting = func() { h.mustPost("a", of("acme"), by("a")) }
	h.mustPost("b", of("acme"), by("b"))
	if loads := h.rt.SharedLoads(); len(loads) != 1 || slices.Max(slices.Collect(maps.Values(loads))) != 2 {
		t.Errorf("two instances are shown as %v", loads)
	}
}

// TestPeerTasksOfHosts: the tasks that run for another swarm at all hosts count for its limit.
func TestPeerTasksOfHosts(t *testing.T) {
	t.Parallel()
	p, others := federate(t, "hive", "depot"), newOtherHosts(1)
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	hive.def.Limits.PeerTasks = 2
	hive.opt.Cluster = &sharingHost{sharedBudget: &sharedBudget{left: map[int64]swarm.Spend{}}, others: others}
	hive.restart()
	hive.gainAll()
	send := func(n int) error {
		_, err := p.hand("depot", "hive", false, foreign(fmt.Sprint(n), func(w *mail.Interswarm) {
			w.MessageID = fmt.Sprintf("1c9d0000-0000-4000-8000-%012d", n)
			w.Payload.Recipients[0].Name, w.Payload.Body = "math@hive", "[]"
			w.Type = mail.Broadcast
		}), 0)
		return err
	}
	if err := send(1); err != nil {
		t.Fatal(err)
	}
	others.show(hive) // another one has as many
	if err := send(2); !errors.Is(err, swarm.ErrLimit) || !strings.Contains(err.Error(), "raise [limits] peer_tasks") {
		t.Errorf("a third task at two hosts: %v", err)
	}
	others.show()
	if err := send(3); err != nil {
		t.Errorf("a second task when the other host is gone: %v", err)
	}
}
