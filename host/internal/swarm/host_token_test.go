package swarm_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/swarm"
)

// acceptedStore lists the tenants whose posts it accepts, and holds up those that wait names. It
// fails commits of the default tenant until a time.
type acceptedStore struct {
	swarm.Store
	mu      sync.Mutex
	tenants []string
	wait    map[string]chan struct{}
	broken  time.Time
}

func (s *acceptedStore) Commit(ctx context.Context, m swarm.Mutation) error {
	if m.Task.Key.Tenant == swarm.DefaultTenant && time.Now().Before(s.broken) {
		return errOutage
	}
	return s.Store.Commit(ctx, m)
}

func (s *acceptedStore) Accept(ctx context.Context, m swarm.Mutation, sub swarm.Submission) (swarm.Submission, error) {
	tenant := m.Task.Key.Tenant
	s.mu.Lock()
	s.tenants = append(s.tenants, tenant)
	s.mu.Unlock()
	if held := s.wait[tenant]; held != nil {
		m.MarkEncoded()
		<-held
	}
	return s.Store.Accept(ctx, m, sub)
}

func (s *acceptedStore) accepted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tenants)
}

// newSharedHive is a hive with one CPU token for the tenants default and calm, whose monotonic clock
// goes on by a millisecond each time it is read.
func newSharedHive(t *testing.T, s *acceptedStore, change ...func(*hive)) *hive {
	var reads atomic.Int64
	return newHive(t, append(change, func(h *hive) {
		h.opt.Tokens, h.also = 1, []string{"calm"}
		h.opt.Monotonic = func() time.Time { return time.Now().Add(time.Duration(reads.Add(1)) * time.Millisecond) }
		h.wrap = func(inner swarm.Store) swarm.Store { s.Store = inner; return s }
	})...)
}

func ofCalm(p *swarm.Post) { p.Principal.Tenant = "calm" }

// A tenant whose posts wait for the processor lets another tenant's post pass after one of them.
func TestPostsShareProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, goOn := &acceptedStore{}, make(chan struct{})
		h := newSharedHive(t, s, func(h *hive) {
			h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
				if incoming(turn).Payload.Body == "hold" {
					<-goOn
				}
				return script(ctx, turn)
			}
		})
		h.mustPost("hold")
		synctest.Wait() // its turn has the token
		const flood = 8
		var posts sync.WaitGroup
		for range flood {
			posts.Go(func() { h.mustPost("one of many") })
		}
		synctest.Wait()
		posts.Go(func() { h.mustPost("one", ofCalm) })
		synctest.Wait()
		if before := s.accepted(); len(before) != 1 {
			t.Fatalf("%d posts are accepted without a token", len(before)-1)
		}
		close(goOn)
		posts.Wait()
		if at := slices.Index(s.accepted()[1:], "calm"); at > 1 {
			t.Errorf("%d posts of the flood are accepted before another tenant's, want one at most", at)
		}
	})
}

// A post that waits to be written keeps no other from being prepared.
func TestWriteHoldsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		s := &acceptedStore{wait: map[string]chan struct{}{swarm.DefaultTenant: held}}
		h := newSharedHive(t, s)
		var posts sync.WaitGroup
		posts.Go(func() { h.answer(h.mustPost("waits")) })
		synctest.Wait()
		if a := h.answer(h.mustPost("one", ofCalm)); a.Body != "boss got [q] one" {
			t.Errorf("beside a post that waits to be written: %q", a.Body)
		}
		close(held)
		posts.Wait()
	})
}

// A turn whose commit fails before it is encoded, and is tried again, keeps no other from computing.
func TestFailedCommitHoldsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &acceptedStore{broken: time.Now().Add(time.Hour)}
		h := newSharedHive(t, s)
		first := h.mustPost("fails")
		synctest.Wait()
		if a := h.answer(h.mustPost("one", ofCalm)); a.Body != "boss got [q] one" || !time.Now().Before(s.broken) {
			t.Errorf("beside a commit that fails: %q", a.Body)
		}
		time.Sleep(time.Until(s.broken))
		h.answer(first)
	})
}
