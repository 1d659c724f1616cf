package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// hibernatingHost is a host whose turns hibernate wherever they wait for one of two models.
type hibernatingHost struct {
	*host
	first, second *slowModel
}

func newHibernatingHost(t *testing.T, turn func(v *visit)) *hibernatingHost {
	s := &hibernatingHost{talking(t, nil, turn), newSlowModel(), newSlowModel()}
	s.models, s.hibernates = map[string]Model{"default": s.first, "other": s.second}, true
	s.allow.LLM = []string{"default", "other"}
	return s
}

// begin starts the host, posts, and waits until the turn has given its sandbox up.
func (s *hibernatingHost) begin() *swarm.Receipt {
	s.t.Helper()
	s.start(0, false)
	r, err := s.rt.Submit(s.t.Context(), s.post())
	if err != nil {
		s.t.Fatal(err)
	}
	<-s.first.begun
	s.hibernated(1)
	return r
}

// answer waits for the answer to a post.
func (s *hibernatingHost) answer(r *swarm.Receipt) swarm.Answer {
	s.t.Helper()
	a, err := s.rt.Wait(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// interruptible runs a turn as a sandbox does: its ops end when it is interrupted.
func interruptible(turns func(v *visit)) func(v *visit) {
	return func(v *visit) {
		ctx, cancel := context.WithCancelCause(v.ctx)
		defer cancel(nil)
		go func() {
			select {
			case <-v.t.Cancelled:
				cancel(turn.ErrCancelled)
			case <-ctx.Done():
			}
		}()
		turns(&visit{ctx: ctx, t: v.t, in: v.in})
	}
}

// An interrupt wakes a turn that has hibernated: its call is cancelled, what it has staged is
// committed, and the interrupt is the next turn (S-03).
func TestHibernatedTurnIsInterrupted_S03(t *testing.T) {
	t.Parallel()
	var heard atomic.Value
	s := newHibernatingHost(t, interruptible(func(v *visit) {
		if m, _ := mail.ParseMessage(v.in.Message); m.Payload.Body != "go" {
			v.tell([]string{"stopped", v.call(abi.OpKVGet, `{"key":"k"}`)})
			return
		}
		v.call(abi.OpKVPut, `{"key":"k","value":"staged"}`)
		_, fault := v.t.Ops.Call(v.ctx, abi.OpLLMChat, []byte(ask("x")))
		heard.Store(fault.Error())
	}))
	s.change = func(d *swarm.Definition) { d.Preempt = true }
	s.begin()
	defer s.stop()
	stop := s.post()
	stop.Key, stop.Body, stop.Type, stop.MustExist = "stop", "stop", mail.Interrupt, true
	if a, err := s.send(stop); err != nil || a.Body != "stopped\n"+`{"value":"staged"}` {
		t.Errorf("%+v, %v", a, err)
	}
	if got := heard.Load(); got != "CANCELLED: the turn is called off" {
		t.Errorf("the call ended with %q", got)
	}
	<-s.first.ended
	if len(s.first.begun) > 0 {
		t.Error("the call was made again")
	}
}

// moving is a cluster of which the host works on all tasks or on none.
type moving struct{ store func() swarm.Store }

func (moving) Alive() bool { return true }

func (m moving) Claim(ctx context.Context, _ []slot.Slot) ([]swarm.RunningTask, error) {
	return m.store().RunningTasks(ctx)
}

func (moving) GrantSpend(_ context.Context, _ string, _ int64, least, bound swarm.Spend) (granted, rest swarm.Spend, err error) {
	return least, bound, nil
}

func (moving) Workers() int { return 1 }

func (moving) OthersLoad(string) int64 { return 0 }

func (moving) Changed() <-chan struct{} { return nil }

func (moving) CountRunning(context.Context, []string) (map[string]int, error) { return nil, nil }

func (moving) Deaths() map[swarm.TurnID]swarm.Deaths { return nil }

// A turn that has hibernated holds up no move of its task: its call is cancelled, and the next host
// repeats the turn and makes the call anew.
func TestHibernatedTurnMoves(t *testing.T) {
	t.Parallel()
	s := newHibernatingHost(t, func(v *visit) { v.tell([]string{v.call(abi.OpLLMChat, ask("x"))}) })
	s.cluster = moving{func() swarm.Store { return s.store }}
	s.start(0, false)
	slots := []slot.Slot{swarm.SlotOf(s.key())}
	if err := s.rt.Gained(t.Context(), slots); err != nil {
		t.Fatal(err)
	}
	if _, err := s.rt.Submit(t.Context(), s.post()); err != nil {
		t.Fatal(err)
	}
	<-s.first.begun
	s.hibernated(1)
	if err := s.rt.Losing(t.Context(), slots); err != nil {
		t.Fatal(err)
	}
	<-s.first.ended
	if rec, err := s.store.Record(t.Context(), s.key(), 1); err != nil || rec.End != nil {
		t.Errorf("the turn that moved has ended: %+v, %v", rec.End, err)
	}
	s.stop()
	s.start(0, false)
	defer s.stop()
	if err := s.rt.Gained(t.Context(), slots); err != nil {
		t.Fatal(err)
	}
	<-s.first.begun
	s.first.pieces <- struct{}{}
	if got := s.told(t); !strings.Contains(got[0], `"text":"x"`) {
		t.Errorf("told %q", got)
	}
}

// A turn that has hibernated writes nothing once its host has lost its claim: the answer that came
// since is not in its record, and the next host makes the call anew.
func TestHibernatedTurnIsFenced(t *testing.T) {
	t.Parallel()
	s := newHibernatingHost(t, func(v *visit) { v.tell([]string{v.call(abi.OpLLMChat, ask("x"))}) })
	s.begin()
	s.store.dead.Store(true)
	s.first.pieces <- struct{}{}
	s.stop()
	s.start(0, false)
	defer s.stop()
	if rec, err := s.store.Record(t.Context(), s.key(), 1); err != nil || rec.End != nil || len(rec.Entries) != 1 {
		t.Errorf("the record has %+v, %v, want the intent alone", rec, err)
	}
	<-s.first.begun
	s.first.pieces <- struct{}{}
	if got := s.told(t); !strings.Contains(got[0], `"text":"x"`) {
		t.Errorf("told %q", got)
	}
}

// The erasure of a tenant ends a turn that has hibernated with its call, and nothing of it is left.
func TestHibernatedTurnIsErased(t *testing.T) {
	t.Parallel()
	s := newHibernatingHost(t, func(v *visit) { v.tell([]string{v.call(abi.OpLLMChat, ask("x"))}) })
	s.begin()
	defer s.stop()
	if err := s.rt.EraseTenant(t.Context(), swarm.DefaultTenant, nil); err != nil {
		t.Fatal(err)
	}
	<-s.first.ended
	if has, err := s.store.HasData(t.Context(), swarm.DefaultTenant); err != nil || has {
		t.Errorf("the tenant has data: %v, %v", has, err)
	}
}

// A turn that has hibernated goes on under the definition that is in force when its answer comes,
// on the module that it began on; it fails where agent or module is gone, with what it has cost.
func TestHibernatedTurnAfterReload(t *testing.T) {
	t.Parallel()
	repeats := func(v *visit) { v.tell([]string{v.call(abi.OpLLMChat, ask("x"))}) }
	for name, c := range map[string]struct {
		find   Modules
		reload func(s *hibernatingHost) error
		want   string
		tokens int64
	}{
		"another module": {storedModules{"m1": guest{"m1", repeats}}, func(s *hibernatingHost) error {
			s.modules["boss"] = guest{"m2", func(*visit) {}}
			s.exec.Bind(s.bindings())
			return nil
		}, `"text":"x"`, 1},
		"module gone": {nil, func(s *hibernatingHost) error {
			s.modules["boss"] = guest{"m2", func(*visit) {}}
			s.exec.Bind(s.bindings())
			return nil
		}, "which this host does not have any more", 100},
		"grant gone": {nil, func(s *hibernatingHost) error {
			s.allow.LLM = nil
			s.exec.Bind(s.bindings())
			return nil
		}, `"text":"x"`, 1},
		"agent gone": {nil, func(s *hibernatingHost) error {
			def := s.def
			def.Entrypoint, def.Agents = "math", []swarm.Agent{{Name: "math", Entrypoint: true, CanComplete: true}}
			return s.rt.ReplaceDefinitions([]swarm.Definition{def})
		}, "is no longer part of swarm", 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHibernatingHost(t, repeats)
			s.find = c.find
			r := s.begin()
			defer s.stop()
			if err := c.reload(s); err != nil {
				t.Fatal(err)
			}
			s.first.pieces <- struct{}{}
			if a := s.answer(r); !strings.Contains(a.Body, c.want) {
				t.Errorf("answered %q, want %q", a.Body, c.want)
			}
			rec, err := s.store.Record(t.Context(), s.key(), 1)
			if err != nil || rec.End == nil || rec.End.Usage.Spend.Tokens != c.tokens {
				t.Errorf("the turn ended as %+v, %v, want %d tokens", rec.End, err, c.tokens)
			}
			if len(s.first.begun) > 0 {
				t.Error("the call was made again")
			}
		})
	}
}

// A turn that has hibernated waits for a person like any other: what still runs is finished first.
// Each call is made once.
func TestHibernatedTurnSuspends(t *testing.T) {
	t.Parallel()
	s := newHibernatingHost(t, func(v *visit) {
		other, fault := v.t.Ops.Submit(v.ctx, abi.OpLLMChat, []byte(askOther("y")))
		if fault != nil {
			v.tell([]string{fault.Error()})
			return
		}
		defer other.Close()
		told := []string{v.call(abi.OpLLMChat, ask("x")), v.call(abi.OpAction, `{"name":"confirm","args":{}}`)}
		v.tell(append(told, v.readStream(other)))
	})
	s.change = newShop(t, nil).change
	r := s.begin()
	defer func() { s.stop() }()
	s.first.pieces <- struct{}{}
	<-s.second.begun
	s.second.pieces <- struct{}{}
	if a := s.answer(r); a.State != swarm.StatePaused {
		t.Fatalf("%+v", a)
	}
	a, err := s.resume(one("yes"))
	for _, want := range []string{`"text":"x"`, `{"text":"yes"}`, `{"delta":"y"}`} {
		if !strings.Contains(a.Body, want) {
			t.Errorf("%+v, %v; want %q", a, err, want)
		}
	}
	if calls := len(s.first.sent()) + len(s.second.sent()); calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
}

// askOther asks the second model.
func askOther(text string) string {
	raw, _ := json.Marshal(abi.ChatRequest{Model: "other", Messages: []abi.ChatMessage{{Role: abi.RoleUser, Content: text}}})
	return string(raw)
}

// A turn that has hibernated as often as it may keeps its sandbox in the waits that follow.
func TestMostHibernations(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	const calls = maxHibernations + 2
	s := newHibernatingHost(t, func(v *visit) {
		runs.Add(1)
		var told []string
		for n := range calls {
			told = append(told, v.call(abi.OpLLMChat, ask(fmt.Sprint("x", n))))
		}
		v.tell(told)
	})
	r := s.begin()
	defer s.stop()
	for n := range int64(calls) {
		if n > 0 {
			<-s.first.begun
		}
		s.hibernated(min(n+1, maxHibernations))
		s.first.pieces <- struct{}{}
	}
	a := s.answer(r)
	if got := strings.Count(a.Body, `"text":"x`); got != calls {
		t.Errorf("%d answers of %d: %+v", got, calls, a)
	}
	if given, runs := s.exec.WaitingTurns().CountHibernations(), runs.Load(); given != maxHibernations || runs != maxHibernations+1 {
		t.Errorf("given up %d times, run %d times", given, runs)
	}
}

// A turn hibernates in a request, too, which goes out once and ends with the turn.
func TestHibernateInRequest(t *testing.T) {
	t.Parallel()
	begun, answers, left := make(chan string, 8), make(chan struct{}), make(chan struct{}, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- r.Header.Get("Idempotency-Key")
		select {
		case <-answers:
			_, _ = io.WriteString(w, "late")
		case <-r.Context().Done():
			left <- struct{}{}
		}
	}))
	defer server.Close()
	for _, cancelled := range []bool{false, true} {
		h := online(t, &site{Server: server}, func(v *visit) { v.tell([]string{v.call(abi.OpHTTPFetch, fetch(server.URL))}) })
		h.hibernates = true
		h.start(0, false)
		r, err := h.rt.Submit(t.Context(), h.post())
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		h.hibernated(1)
		if cancelled {
			if err := h.rt.CancelTask(t.Context(), h.key(), "alice"); err != nil {
				t.Fatal(err)
			}
			<-left
		} else {
			answers <- struct{}{}
			if a, err := h.rt.Wait(t.Context(), r); err != nil || !strings.Contains(a.Body, `"body":"late"`) {
				t.Errorf("%+v, %v", a, err)
			}
		}
		h.stop()
		if len(begun) > 0 {
			t.Error("the request was sent again")
		}
	}
}

// Of two calls that a turn awaits without its sandbox one fails, and the other goes on until it is
// answered or the turn closes it.
func TestHibernateInTwoCalls(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		t.Run(fmt.Sprint("closes ", closes), func(t *testing.T) {
			t.Parallel()
			s := newHibernatingHost(t, func(v *visit) { v.awaitTwo(closes) })
			s.second.fault, s.second.cost = abi.Errorf(abi.CodeUnavailable, abi.OpLLMChat, "down", "it is down"), swarm.Spend{Tokens: 7}
			r := s.begin()
			defer s.stop()
			<-s.second.begun
			s.second.pieces <- struct{}{}
			want, tokens := "1 <nil>\n"+`{"delta":"y"}|UNAVAILABLE: it is down`+"\n", int64(7+1)
			if closes {
				if cause := <-s.first.ended; !errors.Is(cause, context.Canceled) {
					t.Errorf("the call that was closed ended with %v", cause)
				}
			} else {
				s.hibernated(2)
				s.first.pieces <- struct{}{}
				want += `{"delta":"x"}|`
			}
			if a := s.answer(r); !strings.HasPrefix(a.Body, want) {
				t.Errorf("answered %q, want %q", a.Body, want)
			}
			if task, _, _ := s.spentBy(t); task.Tokens != tokens {
				t.Errorf("spent %+v, want %d tokens", task, tokens)
			}
			if again := slices.Concat(drain(s.first.begun), drain(s.second.begun)); len(again) > 0 {
				t.Errorf("asked again: %q", again)
			}
		})
	}
}

// awaitTwo awaits calls of two models, reads the one that is answered first, and then reads or
// closes the other.
func (v *visit) awaitTwo(closes bool) {
	a, fault := v.t.Ops.Submit(v.ctx, abi.OpLLMChat, []byte(ask("x")))
	if fault != nil {
		return
	}
	if !closes {
		defer a.Close()
	}
	b, fault := v.t.Ops.Submit(v.ctx, abi.OpLLMChat, []byte(askOther("y")))
	if fault != nil {
		return
	}
	defer b.Close()
	i, fault := v.t.Ops.Wait(v.ctx, []turn.Answer{a, b}, -1)
	told := []string{fmt.Sprint(i, " ", fault)}
	told = append(told, v.readStream(b))
	if closes {
		a.Close()
		v.tell(append(told, "closed"))
		return
	}
	v.tell(append(told, v.readStream(a)))
}

func drain(c chan string) (list []string) {
	for len(c) > 0 {
		list = append(list, <-c)
	}
	return list
}
