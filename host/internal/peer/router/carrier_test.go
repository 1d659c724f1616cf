package router_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway/state"
	"skep/host/internal/peer/router"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// fakeCarrier answers as scripted and keeps what it was asked to carry.
type fakeCarrier struct {
	answer func(ctx context.Context, n int, d swarm.Delivery) router.Carried

	mu    sync.Mutex
	seen  []int64
	taken []int64
	open  int
	most  int // attempts at once
}

func (c *fakeCarrier) Carry(ctx context.Context, d swarm.Delivery) router.Carried {
	c.mu.Lock()
	c.seen = append(c.seen, number(d))
	n := len(c.seen)
	c.open++
	c.most = max(c.most, c.open)
	c.mu.Unlock()
	out := c.answer(ctx, n, d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if out.State == router.Taken {
		c.taken = append(c.taken, number(d))
	}
	return out
}

func (c *fakeCarrier) carried() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

// realm is a swarm that a carrier reaches.
func realm(c router.Carrier, change ...func(*router.Peer)) peers {
	p := router.Peer{Carrier: c, Gateway: "toy", GiveUp: 2 * time.Hour}
	for _, f := range change {
		f(&p)
	}
	return peers{"depot": p}
}

// to is a message for a recipient.
func to(n int64, recipient string, kind mail.Type) swarm.Delivery {
	d := newDelivery(n, false)
	d.Wrapper.Type = kind
	d.Wrapper.Payload.Recipients[0].Name = recipient + "@depot"
	return d
}

// carry runs a router in fake time over one outbox.
func carry(t *testing.T, p peers, o *fakeOutbox, change ...func(*router.Options)) *router.Router {
	t.Helper()
	o.anyOrder = true
	r := run(t, o, p, change...)
	r.Wake(box("t", "depot"))
	return r
}

// awaitSettled waits in fake time.
func awaitSettled(o *fakeOutbox, n int) {
	for range n {
		<-o.settled
	}
}

// A realm that was down for an hour gets each message once, those for a recipient in
// their order (G-054), and each attempt in vain is shown (G-044).
func TestCarrierDownForAnHour(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		giveUp   time.Duration
		giveUpAt time.Duration // of answers
	}{
		"requests": {giveUp: 2 * time.Hour}, "answers": {giveUp: 30 * time.Second, giveUpAt: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				down := &fakeCarrier{answer: func(context.Context, int, swarm.Delivery) router.Carried {
					if time.Since(begin) < time.Hour {
						return router.Carried{State: router.Later, Reason: "connection refused"}
					}
					return router.Carried{State: router.Taken}
				}}
				o := newFakeOutbox()
				for n := range int64(6) {
					d := to(n+1, []string{"a", "b"}[n%2], mail.Request)
					if c.giveUpAt > 0 {
						d.GiveUpAt = begin.Add(c.giveUpAt)
					}
					o.put(box("t", "depot"), d)
				}
				r := carry(t, realm(down, func(p *router.Peer) { p.GiveUp = c.giveUp }), o)
				time.Sleep(time.Hour - time.Second)
				synctest.Wait()
				if len(o.taken)+len(o.failed) > 0 || r.Stats()[0].Outboxes != 1 || r.Stats()[0].Breaker == router.BreakerClosed {
					t.Errorf("while it is down: %q taken, %v failed, %+v", o.taken, o.failed, r.Stats())
				}
				if n := len(down.carried()); n > 1500 {
					t.Errorf("%d attempts in an hour", n)
				}
				if tried := len(down.carried()); tried == 0 || len(o.retried) != tried {
					t.Errorf("of %d attempts in vain %d are shown", tried, len(o.retried))
				}
				time.Sleep(time.Hour / 2)
				synctest.Wait()
				odd, even := pick(down.taken, 1), pick(down.taken, 0)
				if !slices.Equal(odd, []int64{1, 3, 5}) || !slices.Equal(even, []int64{2, 4, 6}) || len(o.taken) != 6 || len(o.failed) > 0 {
					t.Errorf("taken %v, delivered %q, failed %v", down.taken, o.taken, o.failed)
				}
			})
		})
	}
}

// pick returns the numbers with a remainder by 2.
func pick(all []int64, rest int64) []int64 {
	return slices.DeleteFunc(slices.Clone(all), func(n int64) bool { return n%2 != rest })
}

// An interrupt overtakes a message that is held, and every attempt that is in use; others
// wait for their turn (G-050).
func TestCarrierInterruptOvertakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := &fakeCarrier{answer: func(_ context.Context, _ int, d swarm.Delivery) router.Carried {
			if number(d) == 1 {
				<-release
			}
			return router.Carried{State: router.Taken}
		}}
		o := newFakeOutbox()
		o.put(box("t", "depot"), to(1, "a", mail.Request))
		r := carry(t, realm(c, func(p *router.Peer) { p.MaxAttempts = 1 }), o)
		synctest.Wait()
		o.put(box("t", "depot"), to(2, "a", mail.Request))
		o.put(box("t", "depot"), to(3, "b", mail.Request))
		o.put(box("t", "depot"), to(4, "a", mail.Interrupt))
		r.Wake(box("t", "depot"))
		synctest.Wait()
		if got := c.carried(); !slices.Equal(got, []int64{1, 4}) {
			t.Errorf("while the first is held %v were sent, want 1 and 4", got)
		}
		close(release)
		synctest.Wait()
		if got := c.carried(); len(got) != 4 || len(o.taken) != 4 {
			t.Errorf("%v were sent, %q delivered", got, o.taken)
		}
	})
}

// An answer overtakes a message that is held, and every attempt that is in use: its
// recipient may wait for it before he answers that message.
func TestCarrierAnswerOvertakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan struct{})
		c := &fakeCarrier{answer: func(_ context.Context, _ int, d swarm.Delivery) router.Carried {
			switch number(d) {
			case 1:
				<-answered
			case 3:
				close(answered)
			}
			return router.Carried{State: router.Taken}
		}}
		o := newFakeOutbox()
		o.put(box("t", "depot"), to(1, "a", mail.Request))
		r := carry(t, realm(c, func(p *router.Peer) { p.MaxAttempts = 1 }), o)
		synctest.Wait()
		o.put(box("t", "depot"), to(2, "a", mail.Request))
		o.put(box("t", "depot"), to(3, "a", mail.Response))
		r.Wake(box("t", "depot"))
		synctest.Wait()
		if got := c.carried(); !slices.Equal(got, []int64{1, 3, 2}) || len(o.taken) != 3 {
			t.Errorf("%v were sent, %q delivered, want 1, 3 and 2", got, o.taken)
		}
	})
}

// A held message delays no other recipient, as far as there are attempts.
func TestCarrierAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCarrier{answer: func(context.Context, int, swarm.Delivery) router.Carried {
			time.Sleep(time.Minute)
			return router.Carried{State: router.Taken}
		}}
		o := newFakeOutbox()
		for n := range int64(10) {
			o.put(box("t", "depot"), to(n+1, fmt.Sprint("agent", n), mail.Request))
		}
		begin := time.Now()
		carry(t, realm(c, func(p *router.Peer) { p.MaxAttempts = 5; p.AttemptTime = time.Hour }), o)
		awaitSettled(o, 10)
		if took := time.Since(begin); took != 2*time.Minute || c.most != 5 {
			t.Errorf("10 messages with 5 attempts took %v, %d at once", took, c.most)
		}
	})
}

// One user's held messages, and his interrupts, take every attempt at a partner that does
// not answer: another user's message goes out all the same, and his next one before those
// of the first user that wait.
func TestCarrierAttemptsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := &fakeCarrier{answer: func(_ context.Context, _ int, d swarm.Delivery) router.Carried {
			if number(d) < 100 {
				<-release
			}
			return router.Carried{State: router.Taken}
		}}
		o := newFakeOutbox()
		alice, bob := box("t", "depot"), box("t", "depot")
		bob.Task.Instance = "user:bob"
		for n := range int64(60) {
			kind := mail.Request
			if n >= 40 {
				kind = mail.Interrupt
			}
			o.put(alice, to(n+1, fmt.Sprint("agent", n), kind))
		}
		r := carry(t, realm(c, func(p *router.Peer) { p.AttemptTime = time.Hour }), o)
		synctest.Wait()
		held := len(c.carried())
		if held < 32 || held > 48 {
			t.Errorf("%d attempts of one user at once", held)
		}
		for n := range int64(3) {
			o.put(bob, to(100+n, fmt.Sprint("agent", n), mail.Request))
		}
		r.Wake(bob)
		synctest.Wait()
		if got := c.carried()[held:]; len(got) != 3 || len(o.taken) != 3 {
			t.Errorf("while they are held %v of the other user were sent, %q delivered", got, o.taken)
		}
		close(release)
		awaitSettled(o, 63)
	})
}

// An agent of a partner that holds its messages takes not every attempt: those to other agents go out,
// though the tasks of one user ask all of them, and the next one of an agent that answers, too.
func TestCarrierSlowRecipient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := &fakeCarrier{answer: func(_ context.Context, _ int, d swarm.Delivery) router.Carried {
			if number(d) < 100 {
				<-release
			}
			return router.Carried{State: router.Taken}
		}}
		o := newFakeOutbox()
		put := func(n int64, agent string) swarm.OutboxKey {
			box := box(fmt.Sprint("t", n), "depot")
			o.put(box, to(n, agent, mail.Request))
			return box
		}
		boxes := []swarm.OutboxKey{}
		for n := range int64(60) {
			boxes = append(boxes, put(n+1, "slow"))
		}
		r := carry(t, realm(c, func(p *router.Peer) { p.AttemptTime = time.Hour }), o)
		for _, box := range boxes {
			r.Wake(box)
		}
		synctest.Wait()
		held := len(c.carried())
		if held != 32 {
			t.Errorf("%d attempts at one agent at once", held)
		}
		for round := range int64(3) {
			for n := range int64(8) {
				r.Wake(put(100+10*round+n, fmt.Sprint("agent", n)))
			}
			synctest.Wait()
		}
		if got := c.carried()[held:]; len(got) != 24 {
			t.Errorf("while they are held %v of the other agents were sent", got)
		}
		close(release)
		awaitSettled(o, 84)
	})
}

// The waiting sequences of the instance with the fewest attempts go first.
func TestCarrierAttemptsGoRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var users []string
		c := &fakeCarrier{}
		c.answer = func(_ context.Context, _ int, d swarm.Delivery) router.Carried {
			time.Sleep(time.Minute)
			c.mu.Lock()
			defer c.mu.Unlock()
			users = append(users, d.Wrapper.TaskOwner)
			return router.Carried{State: router.Taken}
		}
		o := newFakeOutbox()
		alice, bob := box("t", "depot"), box("t", "depot")
		bob.Task.Instance = "user:bob"
		put := func(box swarm.OutboxKey, first int64) {
			for n := range int64(6) {
				d := to(first+n, fmt.Sprint("agent", n), mail.Request)
				d.Wrapper.TaskOwner = box.Task.Instance
				o.put(box, d)
			}
		}
		put(alice, 1)
		r := carry(t, realm(c, func(p *router.Peer) { p.MaxAttempts = 2; p.AttemptTime = time.Hour }), o)
		synctest.Wait()
		put(bob, 101)
		r.Wake(bob)
		awaitSettled(o, 12)
		if n := len(pickUser(users[:8], "user:bob")); n < 3 {
			t.Errorf("of the first 8 messages %d are bob's: %q", n, users)
		}
	})
}

// pickUser returns the entries of a user.
func pickUser(all []string, user string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s != user })
}

// What a carrier answers decides over the message.
func TestCarrierAnswers(t *testing.T) {
	t.Parallel()
	always := func(s router.CarriedState) func(context.Context, int, swarm.Delivery) router.Carried {
		return func(context.Context, int, swarm.Delivery) router.Carried {
			return router.Carried{State: s, Reason: "because"}
		}
	}
	silent := func(ctx context.Context, _ int, _ swarm.Delivery) router.Carried {
		<-ctx.Done()
		return router.Carried{}
	}
	once := func(first router.Carried) func(context.Context, int, swarm.Delivery) router.Carried {
		return func(_ context.Context, n int, _ swarm.Delivery) router.Carried {
			if n == 1 {
				return first
			}
			return router.Carried{State: router.Taken}
		}
	}
	for name, c := range map[string]struct {
		answer  func(context.Context, int, swarm.Delivery) router.Carried
		change  func(*router.Peer)
		seen    int
		failure string // empty when it is delivered
		atLeast time.Duration
	}{
		"taken":      {answer: always(router.Taken), seen: 1},
		"refused":    {answer: always(router.Refused), seen: 1, failure: "swarm 'depot' refuses it: because"},
		"later":      {answer: once(router.Carried{State: router.Later}), seen: 2},
		"a time":     {answer: once(router.Carried{State: router.Later, Wait: 5 * time.Minute}), seen: 2, atLeast: 5 * time.Minute},
		"unanswered": {answer: once(router.Carried{State: router.Unanswered}), seen: 2},
		"unanswered and not sent twice": {
			answer: always(router.Unanswered), change: func(p *router.Peer) { p.FailInDoubt = true }, seen: 1,
			failure: "swarm 'depot' may have it, and it is not sent twice (retry_in_doubt = false): because",
		},
		"later and not sent twice": {
			answer: once(router.Carried{State: router.Later}), change: func(p *router.Peer) { p.FailInDoubt = true }, seen: 2,
		},
		"silent": {
			answer: silent, change: func(p *router.Peer) { p.GiveUp, p.AttemptTime = 30*time.Second, time.Minute }, seen: 1, atLeast: time.Minute,
			failure: "swarm 'depot' did not take it within 30s ([gateways.toy.partners.depot] give_up), 1 tries: it gave no whole answer within 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				carrier, o, kept := &fakeCarrier{answer: c.answer}, newFakeOutbox(), newAttempts()
				p := realm(carrier)
				if c.change != nil {
					p = realm(carrier, c.change)
				}
				o.put(box("t", "depot"), to(1, "a", mail.Request))
				begin := time.Now()
				carry(t, p, o, func(opt *router.Options) { opt.State = kept })
				awaitSettled(o, 1)
				synctest.Wait()
				if len(carrier.carried()) != c.seen || o.failed[id(1)] != c.failure || (c.failure == "") != (len(o.taken) == 1) {
					t.Errorf("sent %v, delivered %q, failed %q", carrier.carried(), o.taken, o.failed)
				}
				if took := time.Since(begin); took < c.atLeast {
					t.Errorf("it took %v, want %v", took, c.atLeast)
				}
				if len(kept.records) > 0 {
					t.Errorf("records of attempts are left: %v", kept.records)
				}
			})
		})
	}
}

// A message that may have left an earlier host is not sent again, and no message leaves
// before that is recorded.
func TestCarrierInDoubtAfterCrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCarrier{answer: func(context.Context, int, swarm.Delivery) router.Carried { return router.Carried{State: router.Taken} }}
		o, kept := newFakeOutbox(), newAttempts()
		kept.records[state.Key{Tenant: "default", Gateway: "toy", Realm: "depot", Kind: "attempt", Name: id(1)}] = "an earlier host"
		kept.broken = 3
		o.put(box("t", "depot"), to(1, "a", mail.Request))
		o.put(box("t", "depot"), to(2, "a", mail.Request))
		carry(t, realm(c, func(p *router.Peer) { p.FailInDoubt = true }), o, func(opt *router.Options) { opt.State = kept })
		awaitSettled(o, 2)
		synctest.Wait()
		if got := c.carried(); !slices.Equal(got, []int64{2}) || !strings.Contains(o.failed[id(1)], "the host ended during an earlier attempt") {
			t.Errorf("sent %v, failed %q", got, o.failed)
		}
		if len(kept.records) > 0 {
			t.Errorf("records of attempts are left: %v", kept.records)
		}
	})
}

// A message that is taken while the host stops is delivered: the next host would hold it
// for one in doubt.
func TestCarrierTakesWhileTheHostStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCarrier{answer: func(ctx context.Context, _ int, _ swarm.Delivery) router.Carried {
			<-ctx.Done()
			return router.Carried{State: router.Taken}
		}}
		o, kept := newFakeOutbox(), newAttempts()
		o.anyOrder = true
		o.put(box("t", "depot"), to(1, "a", mail.Request))
		r := router.New(router.Options{Local: "hive", State: kept, Peers: realm(c, func(p *router.Peer) { p.FailInDoubt = true })})
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- r.Run(ctx, o) }()
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
		if len(o.taken) != 1 || len(kept.records) > 0 {
			t.Errorf("delivered %q, failed %q, %d records of attempts", o.taken, o.failed, len(kept.records))
		}
	})
}

// What was not sent tells nothing of the swarm: messages in doubt do not open its breaker.
func TestCarrierDoubtsAreNoFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCarrier{answer: func(context.Context, int, swarm.Delivery) router.Carried { return router.Carried{State: router.Taken} }}
		o, kept := newFakeOutbox(), newAttempts()
		for n := range int64(10) {
			kept.records[state.Key{Tenant: "default", Gateway: "toy", Realm: "depot", Kind: "attempt", Name: id(n + 1)}] = "an earlier host"
			o.put(box("t", "depot"), to(n+1, "a", mail.Request))
		}
		o.put(box("t", "depot"), to(11, "a", mail.Request))
		begin := time.Now()
		r := carry(t, realm(c, func(p *router.Peer) { p.FailInDoubt = true }), o, func(opt *router.Options) { opt.State = kept })
		awaitSettled(o, 11)
		if took := time.Since(begin); took != 0 || r.Stats()[0].Breaker != router.BreakerClosed || len(o.taken) != 1 {
			t.Errorf("after %v: %+v, delivered %q", took, r.Stats(), o.taken)
		}
	})
}

// A message that was not sent is not in doubt, though the store did not tell that the
// record of its attempt was written, or could not remove it.
func TestCarrierAttemptsOutlastAStoreThatFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*attempts){
		"written, and told as failed": func(a *attempts) { a.lost = 1 },
		"not removed":                 func(a *attempts) { a.kept = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &fakeCarrier{answer: func(_ context.Context, n int, _ swarm.Delivery) router.Carried {
					if n <= 2 {
						return router.Carried{State: router.Later, Reason: "connection refused"}
					}
					return router.Carried{State: router.Taken}
				}}
				o, kept := newFakeOutbox(), newAttempts()
				fail(kept)
				o.put(box("t", "depot"), to(1, "a", mail.Request))
				carry(t, realm(c, func(p *router.Peer) { p.FailInDoubt = true }), o, func(opt *router.Options) { opt.State = kept })
				awaitSettled(o, 1)
				synctest.Wait()
				if len(o.taken) != 1 || len(kept.records) > 0 {
					t.Errorf("delivered %q, failed %q, %d records of attempts", o.taken, o.failed, len(kept.records))
				}
			})
		})
	}
}

// A message that an erasure removes while it is carried is not sent again, not even while
// the outbox cannot be read, and leaves no record of its attempt.
func TestCarrierSendsNothingAfterAnErasure(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]router.Carried{
		"the partner is away": {State: router.Later, Reason: "connection refused"}, "it gives no answer": {State: router.Unanswered}, "it is taken": {State: router.Taken},
	} {
		for doubt, failInDoubt := range map[string]bool{"": false, ", retry_in_doubt = false": true} {
			t.Run(name+doubt, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o, kept := newFakeOutbox(), newAttempts()
					c := &fakeCarrier{answer: func(context.Context, int, swarm.Delivery) router.Carried {
						o.erase()
						o.broken = 3
						return first
					}}
					o.put(box("t", "depot"), to(1, "a", mail.Request))
					r := carry(t, realm(c, func(p *router.Peer) { p.FailInDoubt = failInDoubt }), o, func(opt *router.Options) { opt.State = kept })
					time.Sleep(time.Hour)
					synctest.Wait()
					if got := c.carried(); len(got) != 1 || len(kept.records) > 0 || len(o.failed)+len(o.taken) > 0 || r.Workers("depot") > 0 {
						t.Errorf("sent %v, records %v, failed %q, delivered %q, %d workers", got, kept.records, o.failed, o.taken, r.Workers("depot"))
					}
				})
			})
		}
	}
}

// A backlog is looked through once for each wake and each message, not once more for each
// message before it.
func TestCarrierBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const backlog = 200
		c := &fakeCarrier{answer: func(context.Context, int, swarm.Delivery) router.Carried { return router.Carried{State: router.Taken} }}
		o := newFakeOutbox()
		for n := range int64(backlog) {
			o.put(box("t", "depot"), to(n+1, fmt.Sprint("agent", n%4), mail.Request))
		}
		carry(t, realm(c), o)
		awaitSettled(o, backlog)
		synctest.Wait()
		if o.looked > backlog*backlog/2 {
			t.Errorf("%d messages were looked at for %d", o.looked, backlog)
		}
	})
}

// A carrier is not asked again for what it has taken while the outbox cannot be written.
func TestCarrierOutboxFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCarrier{answer: func(context.Context, int, swarm.Delivery) router.Carried { return router.Carried{State: router.Taken} }}
		o := newFakeOutbox()
		o.unmarked, o.broken = 4, 2
		o.put(box("t", "depot"), to(1, "a", mail.Request))
		o.put(box("t", "depot"), to(2, "a", mail.Request))
		carry(t, realm(c), o)
		awaitSettled(o, 2)
		if got := c.carried(); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("sent %v", got)
		}
	})
}

// attempts is a [state.Store] in memory of which the first writes fail.
type attempts struct {
	state.Store
	mu      sync.Mutex
	records map[state.Key]string
	broken  int
	// lost and kept are how many writes and deletions report a failure: the writes were
	// durable, the deletions had no effect.
	lost, kept int
}

func newAttempts() *attempts { return &attempts{records: map[state.Key]string{}} }

func (a *attempts) Get(_ context.Context, k state.Key) (state.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	value, ok := a.records[k]
	if !ok {
		return state.Record{}, state.ErrNotFound
	}
	return state.Record{Key: k, Value: []byte(value)}, nil
}

func (a *attempts) Put(_ context.Context, r state.Record) (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken > 0 {
		a.broken--
		return 0, errors.New("the disk is slow")
	}
	if _, ok := a.records[r.Key]; ok {
		return 0, state.ErrVersion
	}
	a.records[r.Key] = string(r.Value)
	if a.lost > 0 {
		a.lost--
		return 0, errors.New("the disk is slow")
	}
	return 1, nil
}

func (a *attempts) Delete(_ context.Context, k state.Key, _ int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept > 0 {
		a.kept--
		return errors.New("the disk is slow")
	}
	delete(a.records, k)
	return nil
}

// A partner is its tenant's: other tenants do not write to it.
func TestPartnersOfTenants(t *testing.T) {
	t.Parallel()
	r := router.New(router.Options{Local: "hive", Peers: realm(&fakeCarrier{}, func(p *router.Peer) { p.Tenant = "acme" })})
	if err := r.Check(t.Context(), swarm.InstanceKey{Tenant: "acme"}, "depot"); err != nil {
		t.Error(err)
	}
	if err := r.Check(t.Context(), swarm.InstanceKey{Tenant: "free"}, "depot"); err == nil {
		t.Error("another tenant may write to the partner")
	}
}
