package capability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// around is a host's list of other swarms, which grows by those that are found.
type around struct {
	mu    sync.Mutex
	known []swarm.KnownSwarm
	asked []string
	// waits is closed when a host is queried that does not answer.
	waits chan struct{}
}

func newAround() *around { return &around{waits: make(chan struct{})} }

func (a *around) List() []swarm.KnownSwarm {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.known)
}

func (a *around) Discover(ctx context.Context, s swarm.DiscoveryRequest) ([]string, error) {
	a.mu.Lock()
	a.asked = append(a.asked, s.URL)
	a.mu.Unlock()
	switch s.URL {
	case "stuck":
		close(a.waits)
		<-ctx.Done()
		return nil, ctx.Err()
	case "gone":
		return nil, errors.New("nobody is there")
	}
	a.learn(s.URL)
	return []string{s.URL}, nil
}

func (a *around) learn(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.ContainsFunc(a.known, func(n swarm.KnownSwarm) bool { return n.Name == name }) {
		a.known = append(a.known, swarm.KnownSwarm{Name: name, Entrypoint: "desk"})
	}
}

func (a *around) questions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// open takes letters for everybody and delivers none.
type open struct{}

func (open) Check(context.Context, swarm.InstanceKey, string) error { return nil }
func (open) Wake(swarm.OutboxKey)                                   {}

// newScout is a host whose boss does what turn says and may discover swarms.
func newScout(t *testing.T, turn func(*visit)) (*host, *around) {
	h, near := newHost(t), newAround()
	h.modules["boss"] = guest{"m1", turn}
	h.forward, h.near = open{}, near
	h.change = func(def *swarm.Definition) {
		def.Interswarm, def.Discovery = true, true
		def.Agents[0].Interswarm, def.Agents[0].Targets = true, []string{"math", "*@*"}
		def.Agents[0].Actions = []string{"confirm"}
		def.Human = []abi.Tool{{Name: "confirm", Description: "Ask a person.", Parameters: []byte(`{"type":"object"}`)}}
	}
	return h, near
}

func seek(v *visit, urls ...string) string {
	return v.mail(mail.ToolDiscoverSwarms, obj{"discovery_urls": urls})
}

func tell(v *visit) string {
	return v.mail(mail.ToolSendInterswarmBroadcast, obj{"subject": "news", "body": "x"})
}

// finds is a turn that discovers swarms, writes to them and reports the results.
func finds(v *visit) {
	texts := []string{seek(v, "depot", "gone", "yard"), tell(v), seek(v, "gone"), seek(v)}
	v.mail(mail.ToolTaskComplete, obj{"finish_message": strings.Join(texts, "\n")})
}

// Contract 7.4: a search is an effect of the turn, and a call with a result for
// the agent.
func TestDiscover(t *testing.T) {
	t.Parallel()
	h, near := newScout(t, finds)
	h.start(0, false)
	defer h.stop()
	a, err := h.ask()
	want := `{"text":"SUCCESS: discovered 2 swarms: depot, yard; without an answer: \"gone\": nobody is there"}
{"id":"…","text":"SUCCESS: broadcast sent to 2 swarms","sent_to":["desk@depot","desk@yard"]}
UNAVAILABLE: no swarms discovered: "gone": nobody is there
INVALID: error in the arguments of discover_swarms: discovery_urls: must be an array, not null`
	if diff := cmp.Diff(want, blur(a.Body)); err != nil || diff != "" {
		t.Errorf("%v, mismatch (-want +got):\n%s", err, diff)
	}
	if got := near.questions(); !slices.Equal(got, []string{"depot", "gone", "yard", "gone"}) {
		t.Errorf("asked %q", got)
	}
	rec, err := h.store.Record(t.Context(), h.key(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range rec.Entries {
		kinds = append(kinds, e.Call+" "+string(e.Kind))
	}
	if want := []string{"1 intent", "1 answer", "2 call", "3 intent", "3 answer", "4 call", "5 call"}; !slices.Equal(kinds, want) {
		t.Errorf("the journal has %q, want %q", kinds, want)
	}
	if got := h.story(); !strings.Contains(strings.Join(got, "\n"), `boss {"seq":2,"turn":1,"time":"","kind":"call","call":{"id":"t1.c1","name":"discover_swarms"`) {
		t.Errorf("the history lacks the call: %q", got)
	}
}

// A list that is far too long is refused by its length, before its entries are checked.
func TestDiscoverLongList(t *testing.T) {
	t.Parallel()
	h, near := newScout(t, func(v *visit) {
		v.mail(mail.ToolTaskComplete, obj{"finish_message": seek(v, make([]string, 100_000)...)})
	})
	h.start(0, false)
	defer h.stop()
	a, err := h.ask()
	if err != nil || !strings.Contains(a.Body, "a list of more than") || len(near.questions()) != 0 {
		t.Errorf("%v, %.200s", err, a.Body)
	}
}

// The host dies at each durable write. The agent is told what it was told, and
// what was written to others stays what it was.
func TestDiscoverSurvivesDeath(t *testing.T) {
	t.Parallel()
	calm, _ := newScout(t, finds)
	calm.start(0, false)
	if a, err := calm.ask(); err != nil || a.State != swarm.StateCompleted {
		t.Fatal(a, err)
	}
	want, writes := calm.story(), calm.store.n.Load()
	calm.stop()
	if writes != 6 {
		t.Errorf("%d durable writes, want 6: a post, a turn, two for each of two searches", writes)
	}
	for n := int64(2); n <= writes; n++ {
		for _, behind := range []bool{false, true} {
			h, near := newScout(t, finds)
			h.start(n, behind)
			_, _ = h.ask()
			h.stop()
			h.start(0, false)
			a, err := h.ask()
			if err != nil || a.State != swarm.StateCompleted {
				t.Fatal(n, behind, a, err)
			}
			if diff := cmp.Diff(want, h.story()); diff != "" {
				t.Errorf("%d behind %v: another story (-calm +died):\n%s", n, behind, diff)
			}
			if asked := near.questions(); len(asked) > 7 {
				t.Errorf("%d behind %v: asked %q", n, behind, asked)
			}
			h.stop()
		}
	}
}

// A re-run turn writes to the same swarms, whichever are known by then.
func TestRepeatedBroadcast(t *testing.T) {
	t.Parallel()
	h, near := newScout(t, func(v *visit) {
		first := tell(v)
		v.call(abi.OpAction, `{"name":"confirm","args":{}}`)
		v.mail(mail.ToolTaskComplete, obj{"finish_message": first + tell(v)})
	})
	near.learn("depot")
	h.start(0, false)
	if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
		t.Fatal(a, err)
	}
	near.learn("yard")
	h.restart()
	defer h.stop()
	a, err := h.resume(one("yes"))
	if want := `"sent_to":["desk@depot"]}{"id":"…","text":"SUCCESS: broadcast sent to 2 swarms"`; err != nil || !strings.Contains(blur(a.Body), want) {
		t.Errorf("%v, %s lacks %s", err, blur(a.Body), want)
	}
	boxes, err := h.rt.Outboxes(t.Context())
	if err != nil || len(boxes) != 2 {
		t.Fatal(boxes, err)
	}
	for i, want := range []int64{1, 3} {
		p, ok, err := h.rt.NextDelivery(t.Context(), boxes[i])
		snap, unread := h.store.Load(t.Context(), boxes[i].Task)
		at := slices.IndexFunc(snap.Outbox, func(m swarm.OutboxMessage) bool { return m.ID == p.Wrapper.MessageID })
		if err != nil || unread != nil || !ok || at < 0 || snap.Outbox[at].N != want || !strings.Contains(a.Body, boxes[0].Peer) {
			t.Errorf("letter for %s: %+v, %v", boxes[i].Peer, p, err)
		}
	}
}

// Who cancels the task calls the search off.
func TestDiscoverIsCalledOff(t *testing.T) {
	t.Parallel()
	h, near := newScout(t, func(v *visit) { seek(v, "stuck", "depot") })
	h.start(0, false)
	defer h.stop()
	go func() {
		<-near.waits
		if err := h.rt.CancelTask(context.Background(), h.key(), "alice"); err != nil {
			t.Error(err)
		}
	}()
	if a, err := h.ask(); err != nil || a.State != swarm.StateCancelled {
		t.Error(a, err)
	}
	if got := near.questions(); len(got) != 1 {
		t.Errorf("asked %q", got)
	}
}

// A turn asks a few times, not for ever; and what is not the agent's to call is
// refused without a question.
func TestDiscoverIsBounded(t *testing.T) {
	t.Parallel()
	h, near := newScout(t, func(v *visit) {
		var texts []string
		for i := range 6 {
			texts = append(texts, seek(v, fmt.Sprint("s", i)))
		}
		v.mail(mail.ToolTaskComplete, obj{"finish_message": texts[3] + texts[5] + seek(v, "s")})
	})
	h.start(0, false)
	defer h.stop()
	a, err := h.ask()
	want := `{"text":"SUCCESS: discovered 1 swarm: s3"}LIMIT: a turn may call discover_swarms 4 times`
	if err != nil || !strings.HasPrefix(a.Body, want) || len(near.questions()) != 4 {
		t.Errorf("%s, %v; asked %q", a.Body, err, near.questions())
	}

	h, near = newScout(t, finds)
	change := h.change
	h.change = func(def *swarm.Definition) { change(def); def.Discovery = false }
	h.start(0, false)
	defer h.stop()
	a, err = h.ask()
	want = `DENIED: agent "boss" is not given the tool discover_swarms: the task is not an admin's; set [swarm] allow_agent_discovery = true`
	if err != nil || !strings.HasPrefix(a.Body, want) || len(near.questions()) > 0 {
		t.Errorf("%s, %v; asked %q", a.Body, err, near.questions())
	}
}

// A discovery is replayed from its record, without a query.
func TestReplayDiscover(t *testing.T) {
	t.Parallel()
	h, near := newScout(t, finds)
	h.start(0, false)
	if _, err := h.ask(); err != nil {
		t.Fatal(err)
	}
	rec, err := h.store.Record(t.Context(), h.key(), 1)
	h.stop()
	if err != nil {
		t.Fatal(err)
	}
	asked := len(near.questions())
	rec.Header.Recipe = testRecipe
	var calls []string
	got, err := Replay(t.Context(), &offline{turn: finds, fuel: 100}, testRecipe, rec, [32]byte{}, ReplayOptions{OnCall: func(s ReplayedCall) { calls = append(calls, blur(string(s.Answer))) }})
	if err != nil || got.Difference != "" || len(near.questions()) != asked {
		t.Errorf("%+v, %v", got, err)
	}
	if len(calls) != 5 || !strings.HasPrefix(calls[0], `{"text":"SUCCESS: discovered 2 swarms`) {
		t.Errorf("calls %q", calls)
	}
}
