package uamp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// recorder is a runtime that remembers what comes about messages of ours; the rest is its
// own.
type recorder struct {
	*gatewaytest.Runtime
	mu    sync.Mutex
	asked []gateway.Ask
	fails []error // of the next ones, nil for none
	// failing is called before a message fails, nil for nothing.
	failing func()
	// taken is called when a message of a realm was taken, nil for nothing.
	taken func()
	// hidden means that no partner is configured.
	hidden bool
	store  shaky
}

// State implements [gateway.Runtime].
func (o *recorder) State() state.Store { return &o.store }

// shaky is a store in which a test lets a method fail.
type shaky struct {
	state.Store
	mu    sync.Mutex
	fails map[string]error // of the next call of a method
	// writes counts what was written and removed.
	writes int
}

func (s *shaky) failNext(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = map[string]error{method: err}
}

// failure is why a method fails: its caller has left, or a test wants it.
func (s *shaky) failure(ctx context.Context, method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := s.fails[method]
	delete(s.fails, method)
	return err
}

// Get implements [state.Store].
func (s *shaky) Get(ctx context.Context, k state.Key) (state.Record, error) {
	if err := s.failure(ctx, "Get"); err != nil {
		return state.Record{}, err
	}
	return s.Store.Get(ctx, k)
}

// Put implements [state.Store].
func (s *shaky) Put(ctx context.Context, r state.Record) (int64, error) {
	if err := s.failure(ctx, "Put"); err != nil {
		return 0, err
	}
	s.countWrite()
	return s.Store.Put(ctx, r)
}

// Delete implements [state.Store].
func (s *shaky) Delete(ctx context.Context, k state.Key, version int64) error {
	s.countWrite()
	return s.Store.Delete(ctx, k, version)
}

func (s *shaky) countWrite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
}

// written is how many records were written or removed.
func (s *shaky) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (o *recorder) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.fails) > 0 {
		err := o.fails[0]
		if o.fails = o.fails[1:]; err != nil {
			if o.failing != nil {
				o.failing()
			}
			return gateway.Exchange{}, err
		}
	}
	if a.Of == nil {
		x, err := o.Runtime.Ask(ctx, c, a)
		if o.taken != nil {
			o.taken()
		}
		return x, err
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
		o.CloseRequest(a.Of.Wrapper.Payload.ID)
	}
	return gateway.Exchange{ID: a.ID}, nil
}

// failNext lets the next calls of Ask fail, but for those with nil.
func (o *recorder) failNext(errs ...error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails = errs
}

// hide lets no partner be configured, or those that were.
func (o *recorder) hide(hidden bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hidden = hidden
}

// Partner implements [gateway.Runtime].
func (o *recorder) Partner(name string) (gateway.Partner, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hidden {
		return gateway.Partner{}, false
	}
	return o.Runtime.Partner(name)
}

// take returns what came since the last call.
func (o *recorder) take() []gateway.Ask {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	return asked
}

// out is a hive whose partner lab has a host.
type out struct {
	*hive
	rec *recorder
	lab *lab
	p   gateway.Partner
}

// overBindings runs a test once for each binding by which the partner is called.
func overBindings(t *testing.T, test func(*testing.T, *out), change ...func(*uamp.Options)) {
	t.Helper()
	overSome(t, []string{"http", "websocket", "grpc"}, test, change...)
}

func overSome(t *testing.T, bindings []string, test func(*testing.T, *out), change ...func(*uamp.Options)) {
	t.Helper()
	for _, binding := range bindings {
		t.Run(binding, func(t *testing.T) {
			t.Parallel()
			o := newOut(t, change...)
			o.p.Options["binding"] = binding
			o.rt.AddPartner(o.p)
			test(t, o)
		})
	}
}

// overHTTP reports whether the partner is called by requests of HTTP.
func (o *out) overHTTP() bool { return o.p.Options["binding"] == "http" }

// lab is the host of the partner, which does with an envelope or a request for a stream
// what a test wants.
type lab struct {
	t   *testing.T
	own seal.Key

	mu       sync.Mutex
	envelope func(http.ResponseWriter, envelope.Signed)
	stream   func(http.ResponseWriter, *http.Request)
	manifest http.HandlerFunc // nil for none
	// frame does with a frame what a test wants, and reports whether nothing else is to be done
	// with it; nil for a lab that does with each frame what it does with a request of HTTP.
	frame   func(s *labSocket, text []byte) bool
	got     []envelope.Signed
	streams []string // Last-Event-IDs
}

// newOutOf is an out whose hive is made by a function, and whose lab has no address.
func newOutOf(t *testing.T, newHive func(testing.TB, func(*uamp.Options)) *hive, change ...func(*uamp.Options)) *out {
	t.Helper()
	o := &out{lab: &lab{t: t}}
	o.hive = newHive(t, func(opt *uamp.Options) {
		own := opt.Runtime.(*gatewaytest.Runtime)
		o.rec = &recorder{Runtime: own, store: shaky{Store: own.State()}}
		opt.Runtime = o.rec
		for _, c := range change {
			c(opt)
		}
	})
	o.lab.own = o.own
	return o
}

func newOut(t *testing.T, change ...func(*uamp.Options)) *out {
	t.Helper()
	o := newOutOf(t, newHive, change...)
	server := serveClear(t, o.lab)
	o.p, _ = o.rec.Partner("lab")
	o.p.URL, o.p.Client, o.p.Timeout = server.URL, clearClient(t), time.Minute
	o.p.IDs = []string{"did:web:lab.example:agents:*"}
	o.rt.AddPartner(o.p)
	return o
}

func (l *lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/uamp/1/ws":
		l.serveSocket(w, r)
		return
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
		l.serveCall(w, r)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/agent-manifest.json") {
		if l.manifest == nil {
			http.NotFound(w, r)
			return
		}
		l.manifest(w, r)
		return
	}
	if r.Method == http.MethodGet {
		l.streams = append(l.streams, r.Header.Get("Last-Event-ID"))
		if l.stream == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		l.stream(w, r)
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s, err := envelope.Reader{Strict: true, MaxBytes: 1 << 20, MaxDepth: 64}.Read(text)
	if err == nil {
		_, err = seal.Verify(s.Sig, s.Sums, []seal.PublicKey{keyOf(l.t, s.From)})
	}
	if err == nil {
		var token seal.Token
		if token, err = seal.ReadToken(s.CapToken); err == nil {
			err = errors.Join(token.Verify([]seal.PublicKey{keyOf(l.t, s.From)}), token.Check(seal.Use{
				Now: time.Now(), Audience: s.To, Issuers: []string{s.From}, Subject: s.From, Need: "uamp:" + string(s.Intent),
			}))
		}
	}
	if err != nil || r.URL.Path != "/v1/messages" || r.Header.Get("Content-Type") != "application/uamp+json;v=1" {
		l.t.Errorf("%s %s: %v", r.URL, text, err)
	}
	l.got = append(l.got, s)
	if l.envelope == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	l.envelope(w, s)
}

// does sets what the lab does with envelopes and requests for streams.
func (l *lab) does(e func(http.ResponseWriter, envelope.Signed), s func(http.ResponseWriter, *http.Request)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.envelope, l.stream = e, s
}

// take returns what came since the last call.
func (l *lab) take() (got []envelope.Signed, streams []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	got, streams = l.got, l.streams
	l.got, l.streams = nil, nil
	return got, streams
}

// reply is the text of an envelope of the lab in answer to one.
func (l *lab) reply(to envelope.Signed, intent envelope.Intent, kind, content string, change ...func(*envelope.Envelope)) string {
	e := envelope.Envelope{
		ID: envelope.NewID(), Time: time.Now(), From: to.To[0], To: []string{to.From}, Intent: intent, ReplyTo: to.ID, Window: envelope.DefaultWindow,
		Body: envelope.NewBody(kind, []byte(content)),
	}
	for _, c := range change {
		c(&e)
	}
	return signedBy(l.t, l.own, e)
}

// answers sends an envelope in a response.
func (l *lab) answers(status int, intent envelope.Intent, kind, content string, change ...func(*envelope.Envelope)) func(http.ResponseWriter, envelope.Signed) {
	return func(w http.ResponseWriter, s envelope.Signed) {
		w.Header().Set("Content-Type", "application/uamp+json;v=1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, l.reply(s, intent, kind, content, change...))
	}
}

// streamAt answers with a stream.
func streamAt(w http.ResponseWriter, _ envelope.Signed) {
	w.Header().Set("Location", "/v1/stream/s%201")
	w.WriteHeader(http.StatusAccepted)
}

// events answers with events, each with its number, from the one that is wanted on: so many
// of them.
func events(most int, data ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		next := 0
		if _, err := fmt.Sscan(r.Header.Get("Last-Event-ID"), &next); err == nil {
			next++
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for n, one := range data {
			if n >= next && n < next+most {
				_, _ = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", n, fmt.Sprintf(one, n))
			}
		}
	}
}

// done is the last delta of a stream.
const done = `{"delta_seq":%d,"stream_id":"s 1","ts":"2026-01-02T03:04:05Z","type":"done","payload":{"answer":"seven"}}`

// chunk is a delta of text.
func chunk(text string) string {
	return `{"delta_seq":%d,"type":"chunk","payload":{"text":"` + text + `"}}`
}

// outgoing is an outbox message of agent boss.
func outgoing(id string, kind mail.Type, to, body string) swarm.Delivery {
	return swarm.Delivery{
		Conversation: "6f1c0e1a-52f0-4a0b-9d55-0c6f7d0b1a11", Hops: 1, Task: swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default"}, Task: "t"},
		Wrapper: mail.Interswarm{
			MessageID: id, SourceSwarm: "hive", Type: kind, TaskOwner: "user:ann@hive", Timestamp: "2026-01-02T03:04:05.000Z",
			Payload: mail.Payload{
				TaskID: "t", ID: "request-" + id, Subject: "s", Body: body, Sender: mail.Address{Type: mail.Agent, Name: "boss@hive"},
				Recipients: []mail.Address{{Type: mail.Agent, Name: to + "@lab"}},
			},
		},
	}
}

// carry carries a message to x, which must end in a state.
func (o *out) carry(t *testing.T, what string, d swarm.Delivery, want gateway.CarriedState) gateway.Carried {
	t.Helper()
	got := o.g.Carry(t.Context(), o.p, d)
	if got.State != want {
		t.Errorf("%s: %+v", what, got)
	}
	return got
}

// TestCarryAsk (U-020, U-023, U-034, U-042, U-051, U-065, U-080): a request is a signed ask with a capability token,
// whose answer comes on a stream: in parts of it, each of which acknowledges what came
// before. Its pieces are shown, and a repeat asks nothing.
func TestCarryAsk(t *testing.T) {
	t.Parallel()
	overBindings(t, testCarryAsk)
}

func testCarryAsk(t *testing.T, o *out) {
	o.lab.does(streamAt, events(2, chunk("six "), `{"delta_seq":%d,"type":"progress","payload":{"pct":50,"text":"half"}}`, chunk("seven"), done))
	d := outgoing("m1", mail.Request, "x", `{"how":"many"}`)
	o.carry(t, "a request", d, gateway.Taken)
	o.carry(t, "its repeat", d, gateway.Taken)
	got, streams := o.lab.take()
	if len(got) != 1 || strings.Join(streams, " ") != " 1" {
		t.Fatalf("%d envelopes, streams from %q", len(got), streams)
	}
	e := got[0]
	if e.Intent != envelope.Ask || e.From != agentDID("boss") || e.To[0] != labDID || e.Body.Type != "application/json" || e.Body.Content != `{"how":"many"}` ||
		string(e.Ext["x-conversation"]) != `"6f1c0e1a-52f0-4a0b-9d55-0c6f7d0b1a11"` || string(e.Ext["x-hops"]) != "1" || string(e.Ext["x-subject"]) != `"s"` {
		t.Errorf("%+v", e.Envelope)
	}
	asked := o.rec.take()
	if len(asked) != 1 || asked[0].Kind != gateway.Answers || asked[0].Body != "seven" || asked[0].Of.Wrapper.Payload.ID != "request-m1" || asked[0].Sent {
		t.Errorf("%+v", asked)
	}
	var shown []string
	for _, s := range o.rt.Shown() {
		shown = append(shown, fmt.Sprintf("%s %d %s", s.Piece.Kind, s.Piece.N, s.Piece.Text))
	}
	if text := strings.Join(shown, ", "); text != "chunk 0 six , progress 1 half, chunk 1 seven" {
		t.Errorf("shown are %s", text)
	}
}

// TestCarryAgain: an attempt that is made again has the bytes of the one before but for its
// token, and goes on with its stream. After one that has not arrived the time is another.
func TestCarryAgain(t *testing.T) {
	t.Parallel()
	overBindings(t, testCarryAgain)
}

func testCarryAgain(t *testing.T, o *out) {
	fails := func(status int) func(http.ResponseWriter, envelope.Signed) {
		return func(w http.ResponseWriter, _ envelope.Signed) { w.WriteHeader(status) }
	}
	for _, kind := range []mail.Type{mail.Request, mail.Broadcast} {
		d := outgoing("again "+string(kind), kind, "x", "how many?")
		for status, want := range map[int]gateway.CarriedState{http.StatusServiceUnavailable: gateway.Later, http.StatusTooManyRequests: gateway.Later} {
			o.lab.does(fails(status), nil)
			o.carry(t, fmt.Sprint(kind, status), d, want)
		}
		o.lab.take()
		o.lab.does(fails(http.StatusInternalServerError), nil)
		o.carry(t, "a failing partner", d, gateway.Unanswered)
		o.lab.does(fails(http.StatusServiceUnavailable), nil)
		o.carry(t, "a busy partner", d, gateway.Later)
		o.lab.does(streamAt, events(9, done))
		o.rec.failNext(errors.New("the store is away for a moment"))
		if kind == mail.Broadcast {
			o.rec.failNext(nil)
		}
		o.carry(t, "at last", d, gateway.Taken)
		got, _ := o.lab.take()
		if len(got) != 3 {
			t.Fatalf("%s: %d envelopes", kind, len(got))
		}
		first, err := got[0].Digest()
		last, lastErr := got[2].Digest()
		if err != nil || lastErr != nil || first != last || !got[0].Time.Equal(got[2].Time) {
			t.Errorf("%s: %+v, and again %+v", kind, got[0].Envelope, got[2].Envelope)
		}
		if asked := o.rec.take(); (len(asked) == 1) != (kind == mail.Request) {
			t.Errorf("%s: brought %+v", kind, asked)
		}
	}
}

// TestCarryConversation (U-008, D-U16): a later envelope cites the one before by the hash
// that its recipient has.
func TestCarryConversation(t *testing.T) {
	t.Parallel()
	overBindings(t, testCarryConversation)
}

func testCarryConversation(t *testing.T, o *out) {
	o.carry(t, "one", outgoing("c1", mail.Broadcast, "x", "one"), gateway.Taken)
	o.carry(t, "two", outgoing("c2", mail.Broadcast, "x", "two"), gateway.Taken)
	got, _ := o.lab.take()
	var sum string
	for s := range got[0].Sums {
		sum = fmt.Sprintf("sha256:%x", s)
		break
	}
	if cites := got[1].Context; len(cites) != 1 || cites[0].ID != got[0].ID || cites[0].Hash != sum || len(got[0].Context) > 0 || got[0].Intent != envelope.Inform {
		t.Errorf("%+v", got[1].Envelope)
	}
}

// TestCarryResponse (U-083, U-087, U-089, U-104): an answer may be in the response itself. What a partner signs is its answer, be
// it a no; what it does not is none.
func TestCarryResponse(t *testing.T) {
	t.Parallel()
	overBindings(t, testCarryResponse)
}

func testCarryResponse(t *testing.T, o *out) {
	text := func(e *envelope.Envelope) {
		e.Ext = map[string]json.RawMessage{"x-subject": json.RawMessage(`"the sum"`)}
	}
	for name, c := range map[string]struct {
		does          func(http.ResponseWriter, envelope.Signed)
		state         gateway.CarriedState
		subject, body string // of the answer, or of the reason
	}{
		"confirm":   {o.lab.answers(200, envelope.Confirm, "text/plain", "four", text), gateway.Taken, "the sum", "four"},
		"inform":    {o.lab.answers(200, envelope.Inform, "application/json", "4"), gateway.Taken, "", "4"},
		"deny":      {o.lab.answers(200, envelope.Deny, "text/plain", "not that"), gateway.Taken, "[DENIED]", "not that"},
		"error":     {o.lab.answers(404, envelope.Error, "application/json", `{"code":"4.04","message":"who?"}`), gateway.Taken, "[4.04]", "who?"},
		"busy":      {o.lab.answers(504, envelope.Error, "application/json", `{"code":"5.04","message":"not now","retry":true,"retry_after":7}`), gateway.Later, "", "not now"},
		"broken":    {o.lab.answers(500, envelope.Error, "application/json", `{"code":"5.00","message":"oh"}`), gateway.Unanswered, "", "oh"},
		"elsewhere": {o.lab.answers(200, envelope.Confirm, "text/plain", "x", func(e *envelope.Envelope) { e.To = []string{labDID} }), gateway.Refused, "", "it is not to"},
		"other":     {o.lab.answers(200, envelope.Confirm, "text/plain", "x", func(e *envelope.Envelope) { e.ReplyTo = envelope.NewID() }), gateway.Refused, "", "reply_to"},
		"spoofed":   {o.lab.answers(200, envelope.Confirm, "text/plain", "x", func(e *envelope.Envelope) { e.From = "did:web:shop.example" }), gateway.Refused, "", "it is from did:web:shop.example"},
		"unsigned": {func(w http.ResponseWriter, s envelope.Signed) {
			w.Header().Set("Content-Type", "application/uamp+json")
			_, _ = io.WriteString(w, strings.Replace(o.lab.reply(s, envelope.Confirm, "text/plain", "four"), "four", "five", 1))
		}, gateway.Refused, "", "does not count"},
		"problem": {func(w http.ResponseWriter, _ envelope.Signed) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"code":"4.03","detail":"who are you?"}`)
		}, gateway.Refused, "", "403: 4.03 who are you?"},
		"away": {func(w http.ResponseWriter, _ envelope.Signed) {
			w.Header().Set("Location", "https://elsewhere.example/v1/stream/1")
			w.WriteHeader(http.StatusAccepted)
		}, gateway.Refused, "", "not on the partner's own host"},
	} {
		if (name == "other" || name == "away") && !o.overHTTP() {
			continue // on a socket what names another envelope is no reply, and no address is told
		}
		o.lab.does(c.does, nil)
		got := o.carry(t, name, outgoing("response "+name, mail.Request, "x", "2+2"), c.state)
		asked := o.rec.take()
		if c.state != gateway.Taken {
			if !strings.Contains(got.Reason, c.body) || len(asked) > 0 || name == "busy" && got.Wait != 7*time.Second {
				t.Errorf("%s: %+v, %+v", name, got, asked)
			}
			continue
		}
		if len(asked) != 1 || asked[0].Subject != c.subject || asked[0].Body != c.body || (asked[0].Info["error"] == nil) != !strings.HasPrefix(c.subject, "[") {
			t.Errorf("%s: %+v", name, asked)
		}
	}
}

// TestCarryStreams (U-063, U-067, U-068): what streams bring, and streams that cannot be used.
func TestCarryStreams(t *testing.T) {
	t.Parallel()
	overBindings(t, testCarryStreams)
}

func testCarryStreams(t *testing.T, o *out) {
	png := []byte("\x89PNG\x00")
	deepPatches := []string{`{"delta_seq":%d,"type":"patch","payload":{"merge":{"a":{}}}}`}
	for n := range 11 { // each copy doubles the levels
		deepPatches = append(deepPatches, `{"delta_seq":%d,"type":"patch","payload":{"patch":[{"op":"copy","from":"/a","path":"`+strings.Repeat("/a", 1<<n+1)+`"}]}}`)
	}
	deepPatches = append(deepPatches, `{"delta_seq":%d,"type":"done"}`)
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		stream        func(http.ResponseWriter, *http.Request)
		state         gateway.CarriedState
		subject, body string
	}{
		"a number":    {events(9, `{"delta_seq":%d,"type":"done","payload":{"answer":4}}`), gateway.Taken, "", "4"},
		"chunks":      {events(1, chunk("a"), chunk("b"), `{"delta_seq":%d,"type":"done"}`), gateway.Taken, "", "ab"},
		"an image":    {events(9, `{"delta_seq":%d,"type":"chunk","payload":{"chunk_b64":"`+base64.StdEncoding.EncodeToString(png)+`"}}`, `{"delta_seq":%d,"type":"done","payload":{"mime":"image/png","size":5}}`), gateway.Taken, "", ""},
		"an error":    {events(9, `{"delta_seq":%d,"type":"error","payload":{"code":"5.00","message":"out of paper"}}`), gateway.Taken, "[5.00]", "out of paper"},
		"a cancel":    {events(9, `{"delta_seq":%d,"type":"cancel"}`), gateway.Taken, "[CANCELLED]", "The agent gives no reason."},
		"another sum": {events(9, chunk("a"), `{"delta_seq":%d,"type":"done","payload":{"sha256":"00"}}`), gateway.Refused, "", "sha256"},
		"patches":     {events(1, `{"delta_seq":%d,"type":"patch","payload":{"merge":{"a":[1]}}}`, `{"delta_seq":%d,"type":"patch","payload":{"patch":[{"op":"add","path":"/a/-","value":2}]}}`, `{"delta_seq":%d,"type":"done"}`), gateway.Taken, "", `{"a":[1,2]}`},
		"an answer":   {events(9, `{"delta_seq":%d,"type":"patch","payload":{"merge":{"a":1}}}`, `{"delta_seq":%d,"type":"done","payload":{"answer":"b"}}`), gateway.Taken, "", "b"},
		"text, patch": {events(9, `{"delta_seq":%d,"type":"patch","payload":{"merge":{"a":1}}}`, chunk("a"), `{"delta_seq":%d,"type":"done"}`), gateway.Taken, "", "a"},
		"bad patches": {events(9, `{"delta_seq":%d,"type":"patch","payload":{"patch":[{"op":"remove","path":"/a"}]}}`, `{"delta_seq":%d,"type":"done"}`), gateway.Refused, "", "do not apply"},
		"a deep one":  {events(30, deepPatches...), gateway.Refused, "", "the document that the patches make"},
		"no delta":    {events(9, `{"delta_seq":"%d"}`), gateway.Refused, "", "delta_seq"},
		"no end":      {status(http.StatusNoContent), gateway.Refused, "", "without its last delta"},
		"gone":        {status(http.StatusNotFound), gateway.Unanswered, "", "no more"},
	} {
		if name == "no end" && !o.overHTTP() {
			continue // a response without a delta has no counterpart among frames
		}
		o.lab.does(streamAt, c.stream)
		got := o.carry(t, name, outgoing("stream "+name, mail.Request, "x", "2+2"), c.state)
		asked := o.rec.take()
		if c.state != gateway.Taken {
			if !strings.Contains(got.Reason, c.body) || len(asked) > 0 {
				t.Errorf("%s: %+v, %+v", name, got, asked)
			}
			continue
		}
		if len(asked) != 1 || asked[0].Subject != c.subject || asked[0].Body != c.body {
			t.Errorf("%s: %+v", name, asked)
		}
		if name == "text, patch" && (len(asked[0].Parts) != 1 || string(asked[0].Parts[0].Data) != `{"a":1}`) {
			t.Errorf("%+v", asked)
		}
		if name == "an image" && (len(asked[0].Parts) != 1 || asked[0].Parts[0].Type != "image/png" || !bytes.Equal(asked[0].Parts[0].Data, png)) {
			t.Errorf("%+v", asked)
		}
	}
}

// TestCarryVerbs (U-082, U-086, V-U32, G-060): messages of the verbs propose and notify have these
// intents. A no to a proposal is its answer.
func TestCarryVerbs(t *testing.T) {
	t.Parallel()
	overBindings(t, testCarryVerbs)
}

func testCarryVerbs(t *testing.T, o *out) {
	for kind, intent := range map[mail.Type]envelope.Intent{mail.Request: envelope.Propose, mail.Broadcast: envelope.Notify} {
		d := outgoing("verb "+string(intent), kind, "x", "tea?")
		d.Wrapper.Payload.RoutingInfo = json.RawMessage(`{"remote_swarm":"lab","gateway":{"protocol":"uamp","type":"` + string(intent) + `"}}`)
		o.lab.does(o.lab.answers(200, envelope.Deny, "text/plain", "no tea"), nil)
		o.carry(t, string(intent), d, gateway.Taken)
		if got, _ := o.lab.take(); len(got) != 1 || got[0].Intent != intent {
			t.Errorf("%s: %d envelopes", intent, len(got))
		}
	}
	if asked := o.rec.take(); len(asked) != 1 || asked[0].Subject != "[DENIED]" || asked[0].Body != "no tea" {
		t.Errorf("%+v", asked)
	}
}
