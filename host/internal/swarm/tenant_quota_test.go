package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"

	"github.com/google/uuid"
)

// of posts as a user of another tenant.
func of(tenant string) func(*swarm.Post) {
	return func(p *swarm.Post) { p.Principal.Tenant = tenant }
}

// tenantsOf are tenants with quotas, and "free" without.
func tenantsOf(quotas map[string]swarm.Quota) map[string]swarm.Tenant {
	tenants := map[string]swarm.Tenant{"free": {}}
	for name, q := range quotas {
		tenants[name] = swarm.Tenant{Quota: q}
	}
	return tenants
}

// withTenants gives the hive's swarm to tenants with quotas, and "free" without.
func withTenants(quotas map[string]swarm.Quota) func(*hive) {
	return func(h *hive) {
		h.opt.Tenants = swarm.NewTenantSet(tenantsOf(quotas))
		h.also = append([]string{"free"}, slices.Collect(maps.Keys(quotas))...)
	}
}

// wantLimit checks a refusal's kind, that it names all of its words, and when to
// come again.
func wantLimit(t *testing.T, err error, retry time.Duration, words ...string) {
	t.Helper()
	var refusal *swarm.Refusal
	if !errors.Is(err, swarm.ErrLimit) || !errors.As(err, &refusal) {
		t.Errorf("got %v, want a refusal", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(refusal.Text, w) {
			t.Errorf("the refusal %q does not say %q", refusal.Text, w)
		}
	}
	if refusal.Retry != retry {
		t.Errorf("retry after %v, want %v", refusal.Retry, retry)
	}
}

// blocked makes turns of the boss wait for the gate, unless ctx ends.
func blocked(h *hive) (open func()) {
	gate := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		turn.CPU().Release()
		select {
		case <-gate:
		case <-ctx.Done():
		}
		if err := turn.CPU().Acquire(context.WithoutCancel(ctx)); err != nil {
			return failed(err)
		}
		return script(ctx, turn)
	}
	return sync.OnceFunc(func() { close(gate) })
}

func TestQuotaOfTasks(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Tasks: 2}}))
	open := blocked(h)
	defer open()
	first := h.mustPost("a", of("acme"), task("one"))
	h.mustPost("b", of("acme"))
	_, err := h.post("c", of("acme"))
	wantLimit(t, err, 5*time.Second, `tenant "acme"`, "2 tasks running", "[tenants.acme] tasks")
	h.mustPost("again", of("acme"), task("one"))
	for range 5 {
		h.mustPost("of another", of("free"))
	}
	open()
	h.answer(first)
	eventually(t, "there is room again", func() bool { // the posts after the first end later
		_, err := h.post("c", of("acme"))
		return err == nil
	})
}

// endStore notes the commit that ends a task.
type endStore struct {
	swarm.Store
	ended atomic.Bool
}

func (s *endStore) Commit(ctx context.Context, m swarm.Mutation) error {
	err := s.Store.Commit(ctx, m)
	if m.Task.State.Ended() {
		s.ended.Store(true)
	}
	return err
}

// A post that follows the end of a task does not find the task in its quota, and the
// status shows it no more: the answer comes after the count. The host is slow to
// count here.
func TestQuotaAfterAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends endStore
		h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Tasks: 1}}), func(h *hive) {
			h.wrap = func(s swarm.Store) swarm.Store { ends.Store = s; return &ends }
			h.opt.Now = func() time.Time {
				if ends.ended.CompareAndSwap(true, false) {
					time.Sleep(time.Second)
				}
				return time.Now()
			}
		})
		acme := alice().Instance("hive")
		acme.Tenant = "acme"
		for _, body := range []string{"one", "two"} {
			if a := h.ask(body, of("acme")); a.State != swarm.StateCompleted {
				t.Errorf("%+v", a)
			}
			if s, err := h.rt.Status(t.Context(), acme); err != nil || s.Running {
				t.Errorf("after the answer: %+v, %v", s, err)
			}
		}
		h.stop()
	})
}

func TestQuotaOfQueue(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Queue: 3}}))
	open := blocked(h)
	defer open()
	bob := func(p *swarm.Post) { p.Principal.ID = "bob" }
	h.mustPost("a", of("acme"))
	h.mustPost("b", of("acme"), bob)
	h.mustPost("c", of("acme"))
	_, err := h.post("d", of("acme"), bob)
	wantLimit(t, err, 5*time.Second, `tenant "acme"`, "3 messages waiting", "[tenants.acme] queue")
	h.mustPost("of another", of("free"))
}

// A turn that a cancel stopped is still winding down when its task is opened again: its
// message waits once more, and counts once.
func TestQuotaAfterAKilledTurn(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Queue: 3}}))
	began, gate := make(chan struct{}, 10), make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		began <- struct{}{}
		turn.CPU().Release()
		<-gate
		if err := turn.CPU().Acquire(context.WithoutCancel(ctx)); err != nil {
			return failed(err)
		}
		return script(ctx, turn)
	}
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	first := h.mustPost("a", of("acme"), task("one"))
	<-began
	if err := h.rt.CancelTask(t.Context(), first.Task, "alice"); err != nil {
		t.Fatal(err)
	}
	h.mustPost("b", of("acme"), task("one"))
	h.mustPost("c", of("acme"), task("two"))
	_, err := h.post("d", of("acme"), task("two"))
	wantLimit(t, err, 5*time.Second, `tenant "acme"`, "3 messages waiting", "[tenants.acme] queue")
}

// A post that its tenant's quota refuses takes no place in the queue of its instance.
func TestQuotaTakesNoPlace(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Tasks: 1}}), func(h *hive) { h.def.Limits.Queue = 3 })
	open := blocked(h)
	defer open()
	h.mustPost("a", of("acme"))
	for range 4 {
		_, err := h.post("b", of("acme"))
		wantLimit(t, err, 5*time.Second, "[tenants.acme] tasks")
	}
}

// A quota of one is rendered in the singular.
func TestQuotaOfOne(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Tasks: 1}}))
	open := blocked(h)
	defer open()
	h.mustPost("a", of("acme"))
	_, err := h.post("b", of("acme"))
	wantLimit(t, err, 5*time.Second, `tenant "acme" has 1 task running, its quota`, "[tenants.acme] tasks")
}

// A turn may not send beyond its tenant's quota either; what was accepted stays.
func TestQuotaInsideATurn(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Queue: 3}, "busy": {MessagesPerDay: 4}}))
	var told []string
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		for range 3 {
			told = append(told, call(turn, "send_request", obj{"target": "math", "subject": "s", "body": "b"}))
		}
		told = append(told, call(turn, "send_broadcast", obj{"targets": []string{"all"}, "subject": "s", "body": "b"}))
		if _, fault := turn.SetTimer(time.Minute, "b"); fault != nil {
			told = append(told, string(fault.Reason))
		}
		call(turn, "task_complete", obj{"finish_message": "done"})
		return swarm.Outcome{}
	}
	for tenant, want := range map[string]int{"acme": 2, "busy": 3} {
		told = nil
		if a := h.ask("go", of(tenant)); a.Body != "done" {
			t.Errorf("%s: answer %+v", tenant, a)
		}
		for i, text := range told[:min(len(told), 4)] {
			if sent := strings.HasPrefix(text, "SUCCESS"); sent != (i < want) {
				t.Errorf("%s: call %d: %s", tenant, i, text)
			}
			if i >= want && (!strings.Contains(text, "LIMIT") || !strings.Contains(text, "[tenants."+tenant+"]")) {
				t.Errorf("%s: call %d: %s", tenant, i, text)
			}
		}
		if len(told) != 5 || told[4] != "quota" {
			t.Errorf("%s: the timer was not refused: %q", tenant, told)
		}
	}
}

// wakeForwarder is a forwarder whose Wake waits for the test.
type wakeForwarder struct {
	anyForwarder
	wake func()
}

func (f wakeForwarder) Wake(swarm.OutboxKey) { f.wake() }

// A post counts once while it is being accepted and its turn already runs.
func TestQuotaCountsAPostOnce(t *testing.T) {
	begun, sent := make(chan struct{}), make(chan struct{})
	var waits, woken atomic.Bool
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Queue: 3}}), func(h *hive) {
		h.forward = wakeForwarder{wake: func() {
			if waits.CompareAndSwap(true, false) {
				<-sent
			}
			woken.Store(true)
		}}
		h.def.Interswarm, h.def.Agents[0].Interswarm = true, true
		h.def.Agents[0].Targets = append(h.def.Agents[0].Targets, "calc@depot")
	})
	var told []string
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Body == "first" {
			call(turn, "send_request", obj{"target": "calc@depot", "subject": "s", "body": "b"})
			close(begun)
			return swarm.Outcome{}
		}
		if incoming(turn).Payload.Body == "second" {
			for range 2 {
				told = append(told, call(turn, "send_request", obj{"target": "math", "subject": "s", "body": "b"}))
			}
			close(sent)
		}
		return swarm.Outcome{}
	}
	h.mustPost("first", of("acme"), task("t"))
	<-begun
	// The turn's commit wakes the forwarder at its end; only the post's may wait there.
	eventually(t, "the request in the outbox wakes the forwarder", woken.Load)
	waits.Store(true)
	h.mustPost("second", of("acme"), task("t"))
	if len(told) != 2 || !strings.HasPrefix(told[0], "SUCCESS") || !strings.HasPrefix(told[1], "SUCCESS") {
		t.Errorf("the turn was told %q", told)
	}
}

// What a tenant makes in a day is counted in the store, so that a restart forgets
// nothing, and begins anew with the next day of UTC.
func TestQuotaOfMessages(t *testing.T) {
	now := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {MessagesPerDay: 2}}), func(h *hive) {
		h.opt.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	h.ask("a", of("acme"))
	h.restart()
	h.ask("b", of("acme"))
	h.restart()
	_, err := h.post("c", of("acme"))
	wantLimit(t, err, time.Hour, `tenant "acme"`, "made 2 messages today", "[tenants.acme] messages_per_day")
	for range 5 {
		h.ask("of another", of("free"))
	}
	mu.Lock()
	now = now.Add(time.Hour)
	mu.Unlock()
	h.ask("the next day", of("acme"))
}

func TestQuotaOfStorage(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Storage: 20_000}}))
	open := blocked(h)
	defer open()
	waits := h.agents.by["boss"]
	kept := make(chan *abi.Error, 3)
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		out := waits(ctx, turn)
		kept <- turn.KVPut(ctx, abi.OpKVPut, swarm.KVTask, "k", []byte("v"))
		return out
	}
	waiting := h.mustPost("before", of("acme"))
	h.mustPost(strings.Repeat("x", 30_000), of("acme"), func(p *swarm.Post) { p.Task = waiting.Task.Task })
	_, err := h.post("c", of("acme"))
	wantLimit(t, err, time.Hour, `tenant "acme"`, "bytes stored", "[tenants.acme] storage")
	h.mustPost("of another", of("free"))
	open()
	if a := h.answer(waiting); a.Body != "boss got [q] before" {
		t.Errorf("what was accepted ended as %+v", a)
	}
	refused := 0
	for range 3 {
		if fault := <-kept; fault != nil {
			refused++
			if fault.Code != abi.CodeLimit || !strings.Contains(fault.Message, "[tenants.acme] storage") {
				t.Error(fault)
			}
		}
	}
	if refused != 2 {
		t.Errorf("%d values were refused, want those of acme", refused)
	}
}

// Posts that come at once do not pass a limit together.
func TestLimitsHoldForPostsAtOnce(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Tasks: 7}}), func(h *hive) { h.def.Limits.Instances = 5 })
	open := blocked(h)
	defer open()
	var mu sync.Mutex
	accepted := map[string]int{}
	var wg sync.WaitGroup
	for i := range 40 {
		for _, tenant := range []string{"acme", "free"} {
			wg.Go(func() {
				_, err := h.post("x", of(tenant), func(p *swarm.Post) {
					if tenant == "free" {
						p.Principal.ID = fmt.Sprint("u", i)
					}
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					accepted[tenant]++
				} else if !errors.Is(err, swarm.ErrLimit) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if accepted["acme"] != 7 || accepted["free"] != 5 {
		t.Errorf("accepted %v, want 7 tasks and 5 instances", accepted)
	}
}

// A post that fails after it was let in takes nothing away.
func TestRefusedPostFreesItsPlace(t *testing.T) {
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Tasks: 1, Queue: 1}}), func(h *hive) { h.def.Limits.Instances = 1 })
	for range 3 {
		_, err := h.post("x", of("acme"), task("none"), func(p *swarm.Post) { p.Results = &swarm.Results{} })
		if err == nil {
			t.Fatal("a task that does not exist was resumed")
		}
	}
	h.ask("x", of("acme"), func(p *swarm.Post) { p.Principal.ID = "other" })
	_, err := h.post("x", of("acme"))
	wantLimit(t, err, 0, "1 instances", "[limits] instances")
}

// A repeat of what began a task is answered though the quota lets no task begin.
func TestRepeatAtAQuota(t *testing.T) {
	r := newRealm(t, withTenants(map[string]swarm.Quota{swarm.DefaultTenant: {Tasks: 1}}))
	open := blocked(r.hive)
	defer open()
	posted := func(digest string) (*swarm.Receipt, error) {
		return r.post("a", func(p *swarm.Post) { p.Key, p.Digest = "k", []byte(digest) })
	}
	first, err := posted("one")
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.post("b")
	wantLimit(t, err, 5*time.Second, "1 task running")
	if again, err := posted("one"); err != nil || !again.Duplicate || again.Task != first.Task {
		t.Errorf("a repeated post: %+v, %v; want the task %s", again, err, first.Task.Task)
	}
	if _, err := posted("another"); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("another post under its key: %v", err)
	}
	open()
	r.answer(first)
}

// The same for a message of a realm.
func TestRepeatedMessageAtAQuota(t *testing.T) {
	r := newRealm(t, withTenants(map[string]swarm.Quota{swarm.DefaultTenant: {Tasks: 1}}))
	open := blocked(r.hive)
	defer open()
	message := func(id, body string) swarm.Incoming {
		in := r.wrapper("", "math", body)
		in.Wrapper.MessageID, in.Wrapper.Payload.TaskID, in.NewTask = id, uuid.NewString(), true
		in.Digest = []byte(body)
		return in
	}
	first := r.receive(message("id", "hello"))
	if _, err := r.rt.Receive(t.Context(), message("another", "hello")); !errors.Is(err, swarm.ErrLimit) {
		t.Errorf("another message: %v", err)
	}
	if again, err := r.rt.Receive(t.Context(), message("id", "hello")); err != nil || !again.Duplicate || again.Task != first.Task || len(again.Exchanges) != 1 {
		t.Errorf("a repeated message: %+v, %v; want the task %s", again, err, first.Task.Task)
	}
	if _, err := r.rt.Receive(t.Context(), message("id", "bye")); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("another message under its id: %v", err)
	}
	open()
	r.wait(first.Exchanges[0])
}
