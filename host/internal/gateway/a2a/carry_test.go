package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
	"skep/host/internal/hosttest"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// recorder is a runtime that remembers what a carrier brings it.
type recorder struct {
	*gatewaytest.Runtime
	mu    sync.Mutex
	asked []gateway.Ask
	fails error // what the next Ask gets
}

// Ask takes an answer to our message, which the runtime in memory does not have; the rest
// is its own.
func (o *recorder) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	if c.Realm != "shop" || c.Principal.Tenant != "acme" {
		return gateway.Exchange{}, fmt.Errorf("a foreign caller %+v", c)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.fails; err != nil {
		o.fails = nil
		return gateway.Exchange{}, err
	}
	for _, before := range o.asked {
		if before.ID == a.ID && before.Digest != a.Digest {
			return gateway.Exchange{}, gateway.ErrConflict
		}
		if before.ID == a.ID {
			return gateway.Exchange{Duplicate: true}, nil
		}
	}
	o.asked = append(o.asked, a)
	if a.Kind == gateway.Answers {
		return gateway.Exchange{ID: a.ID}, nil
	}
	return o.Runtime.Ask(ctx, c, a)
}

// take returns what was brought since the last call.
func (o *recorder) take() []gateway.Ask {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	return asked
}

// shop is a foreign agent on the library's own server. Its text says what it does.
type shop struct {
	*httptest.Server
	streams bool
	status  atomic.Int32 // answers everything with it, if not 0
	turns   atomic.Int32
	cards   atomic.Int32
	cut     atomic.Bool // ends the next stream after its first event
	cancels chan struct{}
}

func newShop(t *testing.T, protocol sdk.TransportProtocol, streams bool) *shop {
	t.Helper()
	s := &shop{streams: streams, cancels: make(chan struct{}, 1)}
	handler := a2asrv.NewHandler(s)
	mux := http.NewServeMux()
	rpc, rest := a2asrv.NewJSONRPCHandler(handler), a2asrv.NewRESTHandler(handler)
	mux.HandleFunc("GET "+a2asrv.WellKnownAgentCardPath, func(w http.ResponseWriter, _ *http.Request) {
		s.cards.Add(1)
		_ = json.NewEncoder(w).Encode(&sdk.AgentCard{
			Name: "Corner shop", Description: "sells", Version: "3", Capabilities: sdk.AgentCapabilities{Streaming: streams},
			SupportedInterfaces: []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL+"/agent", protocol)},
			Skills:              []sdk.AgentSkill{{ID: "sell", Name: "sell", Description: "sells", Tags: []string{"x"}}},
		})
	})
	mux.Handle("/agent", rpc)
	mux.Handle("/agent/", http.StripPrefix("/agent", rest))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := s.status.Load(); code != 0 {
			http.Error(w, "no", int(code))
			return
		}
		if s.cut.Load() && strings.HasPrefix(r.URL.Path, "/agent") {
			w = &cutter{ResponseWriter: w, s: s}
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// cutter breaks a connection after the first event.
type cutter struct {
	http.ResponseWriter
	s    *shop
	sent bool
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.sent && c.s.cut.Swap(false) {
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(b)
}

func (c *cutter) Flush() {
	c.ResponseWriter.(http.Flusher).Flush()
	c.sent = c.sent || c.Header().Get("Content-Type") != "" && c.s.turns.Load() > 0
}

// Execute implements the library's executor.
func (s *shop) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		s.turns.Add(1)
		text := x.Message.Parts[0].Text()
		if text == "word" {
			yield(sdk.NewMessage(sdk.MessageRoleAgent, sdk.NewTextPart("a word")), nil)
			return
		}
		if x.StoredTask == nil && !yield(sdk.NewSubmittedTask(x, x.Message), nil) {
			return
		}
		s.work(ctx, x, text, yield)
	}
}

func (s *shop) work(ctx context.Context, x *a2asrv.ExecutorContext, text string, yield func(sdk.Event, error) bool) {
	state := func(state sdk.TaskState, text string) bool {
		return yield(sdk.NewStatusUpdateEvent(x, state, sdk.NewMessageForTask(sdk.MessageRoleAgent, x, sdk.NewTextPart(text))), nil)
	}
	switch text {
	case "ask":
		state(sdk.TaskStateInputRequired, "which one?")
		return
	case "fail":
		state(sdk.TaskStateFailed, "sold out")
		return
	case "hang":
		state(sdk.TaskStateWorking, "looking")
		<-ctx.Done()
		return
	}
	if !state(sdk.TaskStateWorking, "looking") {
		return
	}
	piece := sdk.NewArtifactEvent(x, sdk.NewTextPart("sold "))
	if yield(piece, nil) && yield(sdk.NewArtifactUpdateEvent(x, piece.Artifact.ID, sdk.NewTextPart(text)), nil) {
		yield(sdk.NewStatusUpdateEvent(x, sdk.TaskStateCompleted, nil), nil)
	}
}

// Cancel implements the library's executor.
func (s *shop) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		select {
		case s.cancels <- struct{}{}:
		default:
		}
		yield(sdk.NewStatusUpdateEvent(x, sdk.TaskStateCanceled, nil), nil)
	}
}

// newCarrier returns a runtime with the agent that writes to shop, a gateway, and shop as
// its partner.
func newCarrier(t *testing.T, url string) (*recorder, *a2a.Gateway, gateway.Partner) {
	t.Helper()
	o := &recorder{Runtime: gatewaytest.New()}
	o.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "buyer"}, func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
		<-ctx.Done()
		return gateway.Answer{}
	})
	t.Cleanup(o.Close)
	return o, a2a.New(a2a.Options{Runtime: o}), gateway.Partner{Name: "shop", Tenant: "acme", URL: url, Timeout: time.Minute, Client: &http.Client{}}
}

// delivery is a message of agent buyer to clerk@shop.
func delivery(id string, kind mail.Type, body string) swarm.Delivery {
	return swarm.Delivery{Trace: swarm.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ""), Hops: 1, Wrapper: mail.Interswarm{
		MessageID: id, SourceSwarm: "hive", TargetSwarm: "shop", Type: kind, TaskOwner: "user:ann@hive",
		Payload: mail.Payload{
			TaskID: "t1", ID: id, Sender: mail.Address{Type: mail.Agent, Name: "buyer"}, Body: body,
			Recipients: []mail.Address{{Type: mail.Agent, Name: "clerk@shop"}},
		},
	}}
}

func wantState(t *testing.T, got gateway.Carried, want gateway.CarriedState, reason string) {
	t.Helper()
	if got.State != want || !strings.Contains(got.Reason, reason) {
		t.Errorf("carried: %+v, want state %d and %q", got, want, reason)
	}
}

// TestCarry: a request is answered by what the foreign agent answers, its pieces are shown
// on the way, and a repeat brings the same (X-005, G-052).
func TestCarry(t *testing.T) {
	t.Parallel()
	for _, protocol := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		for _, streams := range []bool{true, false} {
			t.Run(fmt.Sprint(protocol, " streams ", streams), func(t *testing.T) {
				t.Parallel()
				s := newShop(t, protocol, streams)
				o, g, p := newCarrier(t, s.URL)
				wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "tea")), gateway.Taken, "")
				got := o.take()
				if len(got) != 1 || got[0].Kind != gateway.Answers || got[0].Answers != "m1" || got[0].Body != "sold tea" || got[0].From != "clerk" || got[0].To[0] != "buyer" || got[0].Swarm != "hive" {
					t.Fatalf("the runtime gets %+v", got)
				}
				var shown string
				for _, piece := range o.Shown() {
					shown += piece.Answers + " " + string(piece.Piece.Kind) + fmt.Sprint(piece.Piece.N) + " " + piece.Piece.Text + "; "
				}
				if streams && shown != "m1 progress0 looking; m1 chunk0 sold ; m1 chunk1 tea; " {
					t.Errorf("shown: %s", shown)
				}
				wantState(t, g.Carry(t.Context(), p, delivery("m2", mail.Request, "fail")), gateway.Taken, "")
				if got = o.take(); len(got) != 1 || got[0].Subject != "[FAILED]" || got[0].Body != "sold out" || got[0].Info["error"] != "FAILED" {
					t.Errorf("a failure is brought as %+v", got)
				}
				wantState(t, g.Carry(t.Context(), p, delivery("m3", mail.Request, "word")), gateway.Taken, "")
				if got = o.take(); len(got) != 1 || got[0].Body != "a word" {
					t.Errorf("an answer without a task is brought as %+v", got)
				}
				if s.cards.Load() != 1 {
					t.Errorf("the card was fetched %d times", s.cards.Load())
				}
			})
		}
	}
}

// TestCarryQuestion: a foreign task that needs input is a question to our agent, whose
// answer goes to the task, and the task's answer to the first request.
func TestCarryQuestion(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	ask := delivery("m1", mail.Request, "ask")
	wantState(t, g.Carry(t.Context(), p, ask), gateway.Taken, "")
	got := o.take()
	if len(got) != 1 || got[0].Kind != gateway.Asks || got[0].Body != "which one?" || got[0].Answers != "m1" || !got[0].Reply || !mail.ValidUUID(got[0].ID) {
		t.Fatalf("the question is brought as %+v", got)
	}
	reply := delivery("m2", mail.Response, "green")
	reply.Wrapper.Payload.ID = got[0].ID
	o.FailNext("Find", errors.New("the store fails for a moment"))
	wantState(t, g.Carry(t.Context(), p, reply), gateway.Later, "the store fails")
	wantState(t, g.Carry(t.Context(), p, reply), gateway.Taken, "")
	if got = o.take(); len(got) != 1 || got[0].Kind != gateway.Answers || got[0].Answers != "m1" || got[0].Body != "sold green" {
		t.Errorf("the answer is brought as %+v", got)
	}
	stray := delivery("m3", mail.Response, "x")
	stray.Wrapper.Payload.ID = "none"
	wantState(t, g.Carry(t.Context(), p, stray), gateway.Refused, "no foreign task waits")
}

// TestCarryQuestionToTheCaller: what our agent asks in the course of a foreign task is shown
// by that task as INPUT_REQUIRED, so it is taken, and no message of ours besides; a partner
// without an address is asked as well. A question about the foreign agent's own question
// is a message, as that has no task of ours.
func TestCarryQuestionToTheCaller(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	x, err := o.Runtime.Ask(t.Context(), p.Caller(), gateway.Ask{Kind: gateway.Asks, ID: "in1", Swarm: "hive", To: []string{"buyer"}, Body: "sell"})
	if err != nil {
		t.Fatal(err)
	}
	question := delivery("m1", mail.Request, "tea")
	question.Answers = swarm.RemoteKey("shop", x.ID)
	o.FailNext("Find", errors.New("the store fails for a moment"))
	wantState(t, g.Carry(t.Context(), p, question), gateway.Later, "the store fails")
	for _, url := range []string{s.URL, ""} {
		p.URL = url
		wantState(t, g.Carry(t.Context(), p, question), gateway.Taken, "")
	}
	if got := o.take(); len(got) > 0 || s.turns.Load() > 0 {
		t.Errorf("the partner had %d messages, and brought %+v", s.turns.Load(), got)
	}
	p.URL = s.URL
	wantState(t, g.Carry(t.Context(), p, delivery("m2", mail.Request, "ask")), gateway.Taken, "")
	about := delivery("m3", mail.Request, "tea")
	about.Answers = swarm.RemoteKey("shop", o.take()[0].ID)
	wantState(t, g.Carry(t.Context(), p, about), gateway.Taken, "")
	if got := o.take(); len(got) != 1 || got[0].Body != "sold tea" {
		t.Errorf("the question about a question brings %+v", got)
	}
}

// TestCarryResumes: an attempt after a broken stream goes on with the same foreign task.
func TestCarryResumes(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	s.cut.Store(true)
	d := delivery("m1", mail.Request, "tea")
	wantState(t, g.Carry(t.Context(), p, d), gateway.Unanswered, "")
	wantState(t, g.Carry(t.Context(), p, d), gateway.Taken, "")
	if got := o.take(); len(got) != 1 || got[0].Body != "sold tea" || s.turns.Load() != 1 {
		t.Errorf("after %d turns: %+v", s.turns.Load(), got)
	}
}

// TestCarryAfterAnOutage: an answer that was there when the time for it ended, but could
// not be brought before, is brought; a task that goes on is cancelled.
func TestCarryAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	d := delivery("m1", mail.Request, "tea")
	o.fails = errors.New("the store fails for a while")
	wantState(t, g.Carry(t.Context(), p, d), gateway.Unanswered, "the store fails")
	p.Timeout = time.Nanosecond
	wantState(t, g.Carry(t.Context(), p, d), gateway.Taken, "")
	if got := o.take(); len(got) != 1 || got[0].Body != "sold tea" || len(s.cancels) != 0 {
		t.Errorf("brought %+v, with %d cancellations", got, len(s.cancels))
	}
}

// TestUnsentIsLater: what a partner has not taken, because it was down for longer than its
// time for an answer, is sent later: a question, and the answer to one.
func TestUnsentIsLater(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	wantState(t, g.Carry(t.Context(), p, delivery("m0", mail.Request, "ask")), gateway.Taken, "") // the card is known now
	question := o.take()[0]
	answer := delivery("m1", mail.Response, "the green one")
	answer.Wrapper.Payload.ID = question.ID
	for _, d := range []swarm.Delivery{answer, delivery("m2", mail.Request, "tea")} {
		s.status.Store(http.StatusServiceUnavailable)
		wantState(t, g.Carry(t.Context(), p, d), gateway.Later, "503")
		o.age(t, time.Hour)
		s.status.Store(0)
		wantState(t, g.Carry(t.Context(), p, d), gateway.Taken, "")
		if got := o.take(); len(got) != 1 || got[0].Body != "sold "+d.Wrapper.Payload.Body {
			t.Errorf("brought %+v", got)
		}
	}
}

// packed is a store that has as many conversations of a realm as it keeps. The first one has
// a message under way.
type packed struct {
	state.Store
	evicted int
}

// packedRuntime is a runtime with such a store.
type packedRuntime struct {
	*recorder
	records *packed
}

func (o packedRuntime) State() state.Store { return o.records }

func (s *packed) Put(ctx context.Context, r state.Record) (int64, error) {
	if r.Version == 0 && s.evicted == 0 {
		return 0, state.ErrFull
	}
	return s.Store.Put(ctx, r)
}

func (s *packed) List(_ context.Context, of, after state.Key, limit int) (list []state.Record, err error) {
	n := 0
	if after.Name != "" {
		if n, err = strconv.Atoi(after.Name); err != nil {
			return nil, err
		}
		n++
	}
	for ; n < state.MaxOfRealm && len(list) < limit; n++ {
		r := state.Record{Key: of, Value: []byte(`{"context":"c"}`)}
		if n == 0 {
			r.Value = []byte(`{"open":{"message":"m","since":"2026-01-02T03:04:05Z"}}`)
		}
		r.Key.Name = strconv.Itoa(n)
		list = append(list, r)
	}
	return list, nil
}

func (s *packed) Delete(_ context.Context, k state.Key, _ int64) error {
	if k.Name == "0" {
		return errors.New("a conversation with a message under way is removed")
	}
	s.evicted++
	return nil
}

// TestManyConversations: a partner with as many records as it may have is written to all the
// same: silent conversations make room.
func TestManyConversations(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, _, p := newCarrier(t, s.URL)
	full := &packed{Store: o.State()}
	g := a2a.New(a2a.Options{Runtime: packedRuntime{o, full}})
	wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "tea")), gateway.Taken, "")
	if full.evicted == 0 {
		t.Error("nothing was removed")
	}
}

// age makes what the records of conversations have of messages under way older.
func (o *recorder) age(t *testing.T, by time.Duration) {
	t.Helper()
	list, err := o.State().List(t.Context(), state.Key{Gateway: "a2a", Kind: "conversation"}, state.Key{}, 100)
	if err != nil || len(list) == 0 {
		t.Fatalf("%d records, %v", len(list), err)
	}
	for _, r := range list {
		var record map[string]any
		if err := json.Unmarshal(r.Value, &record); err != nil {
			t.Fatal(err)
		}
		if open, ok := record["open"].(map[string]any); ok {
			open["since"] = time.Now().Add(-by)
		}
		if r.Value, err = json.Marshal(record); err == nil {
			_, err = o.State().Put(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestCarryFails: what a failure means for the message depends on whether the partner may
// have it, and whether another attempt may do better.
func TestCarryFails(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	s.status.Store(http.StatusBadGateway)
	wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "tea")), gateway.Later, "the agent card") // nothing was sent
	s.status.Store(0)
	wantState(t, g.Carry(t.Context(), p, delivery("m0", mail.Broadcast, "tea")), gateway.Taken, "") // the card is known now
	for code, want := range map[int32]gateway.CarriedState{
		401: gateway.Refused, 403: gateway.Refused, 404: gateway.Refused, 429: gateway.Later, 503: gateway.Later, 502: gateway.Unanswered,
	} {
		s.status.Store(code)
		wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "tea")), want, fmt.Sprint(code))
	}
	s.status.Store(0)
	wantState(t, g.Carry(t.Context(), gateway.Partner{Name: "shop", Tenant: "acme", Client: &http.Client{}}, delivery("m1", mail.Request, "tea")), gateway.Refused, "[gateways.a2a.partners.shop]")
	p.Options = map[string]any{"keys": []string{`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`}}
	_, pinned, _ := newCarrier(t, s.URL)
	wantState(t, pinned.Carry(t.Context(), p, delivery("m1", mail.Request, "tea")), gateway.Refused, "no signature of the card")
	gone := "http://" + hosttest.FreeAddress(t, "127.0.0.1")
	wantState(t, g.Carry(t.Context(), gateway.Partner{Name: "gone", Tenant: "acme", URL: gone, Client: &http.Client{}}, delivery("m1", mail.Request, "tea")), gateway.Later, "cannot be reached")
	if got := o.take(); len(got) != 0 {
		t.Errorf("failures brought %+v", got)
	}
}

// TestCarryTimeout: a foreign agent that does not answer in time is told to stop. The time
// counts from the first attempt.
func TestCarryTimeout(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(o.Shown()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	wantState(t, g.Carry(ctx, p, delivery("m1", mail.Request, "hang")), gateway.Unanswered, "")
	p.Timeout = 1
	wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "hang")), gateway.Refused, "raise timeout in [gateways.a2a.partners.shop]")
	<-s.cancels
}

// TestCarryCancel: an interrupt that cancels ends the foreign task of the request under
// way, which is then answered.
func TestCarryCancel(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	o, g, p := newCarrier(t, s.URL)
	done := make(chan gateway.Carried, 1)
	go func() { done <- g.Carry(t.Context(), p, delivery("m1", mail.Request, "hang")) }()
	for len(o.Shown()) == 0 {
		time.Sleep(time.Millisecond)
	}
	wantState(t, g.Carry(t.Context(), p, delivery("m3", mail.Interrupt, "word")), gateway.Taken, "")
	if got := o.take(); len(got) != 1 || got[0].Body != "a word" || got[0].Answers != "m3" {
		t.Errorf("an interrupt beside it is answered by %+v", got)
	}
	stop := delivery("m2", mail.Interrupt, "")
	stop.Wrapper.Payload.Subject = "Cancel: too late"
	wantState(t, g.Carry(t.Context(), p, stop), gateway.Taken, "")
	wantState(t, <-done, gateway.Taken, "")
	if got := o.take(); len(got) != 1 || got[0].Subject != "[CANCELED]" {
		t.Errorf("a cancelled request is brought as %+v", got)
	}
}

// TestDiscover lists a partner's skills.
func TestDiscover(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	_, g, p := newCarrier(t, s.URL)
	list, err := g.Discover(t.Context(), p)
	if err != nil || len(list) != 1 || list[0].Name != "Corner-shop" || list[0].Capabilities[0].ID != "sell" {
		t.Errorf("%+v, %v", list, err)
	}
	p.Options = map[string]any{"card": s.URL + "/agent"}
	if list, err := g.Discover(t.Context(), p); err == nil {
		t.Errorf("what is no card is read as %+v", list)
	}
}

// TestCarryOwn: an agent of one host asks an agent of another, in version 1.0 and 0.3.
func TestCarryOwn(t *testing.T) {
	t.Parallel()
	far := newSite(t, nil)
	for _, version := range []string{"1.0", "0.3"} {
		o, g, p := newCarrier(t, far.server.URL)
		p.Client = far.http(token)
		p.Options = map[string]any{"card": far.server.URL + "/a2a/hive/asks/.well-known/agent-card.json"}
		if version == "0.3" {
			p.Client.Transport = oldCards{p.Client.Transport}
		}
		wantState(t, g.Carry(t.Context(), p, delivery("m1"+version, mail.Request, "hi")), gateway.Taken, "")
		question := o.take()
		if len(question) != 1 || question[0].Body != "What is your name?" {
			t.Fatalf("%s: %+v", version, question)
		}
		reply := delivery("m2"+version, mail.Response, "Bee")
		reply.Wrapper.Payload.ID = question[0].ID
		wantState(t, g.Carry(t.Context(), p, reply), gateway.Taken, "")
		if got := o.take(); len(got) != 1 || got[0].Body != "hello Bee" {
			t.Errorf("%s: %+v", version, got)
		}
	}
}

// TestCarryGRPC: a partner whose card lists gRPC alone is asked over it, through the
// partner's http client, and its errors are told.
func TestCarryGRPC(t *testing.T) {
	t.Parallel()
	far := newSite(t, nil)
	rt, g, p := newCarrier(t, far.server.URL)
	p.Client = far.http(token)
	p.Client.Transport = oneBinding{p.Client.Transport, "GRPC"}
	p.Options = map[string]any{"card": far.server.URL + "/a2a/hive/asks/.well-known/agent-card.json"}
	wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "hi")), gateway.Taken, "")
	question := rt.take()
	if len(question) != 1 || question[0].Body != "What is your name?" {
		t.Fatalf("got %+v", question)
	}
	reply := delivery("m2", mail.Response, "Bee")
	reply.Wrapper.Payload.ID = question[0].ID
	wantState(t, g.Carry(t.Context(), p, reply), gateway.Taken, "")
	if got := rt.take(); len(got) != 1 || got[0].Body != "hello Bee" {
		t.Errorf("got %+v", got)
	}
	far.rt.FailNext("Ask", fmt.Errorf("not for you: %w", gateway.ErrDenied))
	wantState(t, g.Carry(t.Context(), p, delivery("m3", mail.Request, "hi")), gateway.Refused, "not for you")
	far.rt.Revoke(token)
	wantState(t, g.Carry(t.Context(), p, delivery("m4", mail.Request, "hi")), gateway.Refused, "401")
}

// oldCards shows cards as a server has them that speaks version 0.3 alone.
type oldCards struct{ base http.RoundTripper }

func (o oldCards) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.base.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, ".json") {
		return resp, err
	}
	return changeCard(resp, func(card map[string]any) {
		delete(card, "supportedInterfaces")
		delete(card, "securityRequirements")
	})
}

// changeCard returns a response with a changed card.
func changeCard(resp *http.Response, change func(card map[string]any)) (*http.Response, error) {
	defer resp.Body.Close()
	var card map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&card); err != nil {
		return nil, err
	}
	change(card)
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(card)
	return w.Result(), nil
}
