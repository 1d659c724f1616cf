package uamp_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

// TestAsk (V-U22, U-050, U-051, U-080): the document's example C.1. An ask is taken, and its
// stream has the answer.
func TestAsk(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.expose("calc", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Body: "4", At: time.Unix(1e9, 0)}
	})
	r := h.take(t, newAsk("calc", "2+2"))
	if !strings.HasPrefix(r.location, "/v1/stream/str-") {
		t.Fatal(r.location)
	}
	lines := h.read(t, r.location)
	if len(lines) != 1 {
		t.Fatal(lines)
	}
	d := delta(t, lines[0])
	if d.Seq != 0 || d.Type != envelope.DeltaDone || string(d.Payload) != `{"answer":4,"type":"application/json"}` || "/v1/stream/"+d.Stream != r.location {
		t.Error(lines[0])
	}
	named := newAsk("calc", "2+2")
	named.Stream = "str/1?"
	if r := h.take(t, named); r.location != "/v1/stream/str%2F1%3F" || delta(t, h.read(t, r.location)[0]).Stream != named.Stream {
		t.Error(r.location)
	}
}

// TestDelivered (U-011, U-081): what an agent gets of an envelope.
func TestDelivered(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	seen := h.exposeAsks("calc")
	e := newAsk("calc", "first line\nsecond")
	e.To = append(e.To, "did:web:elsewhere.example", agentDID("calc"))
	e.Ext = map[string]json.RawMessage{"x-hops": json.RawMessage("3"), "traceparent": json.RawMessage(`"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`)}
	h.take(t, e)
	got := <-seen
	if got.ID != string(e.ID) || got.From != labDID || got.Body != "first line\nsecond" || got.Subject != "first line second" || got.Hops != 3 || got.Kind != gateway.Asks || got.Trace.Parent() == "" {
		t.Errorf("%+v", got)
	}
	if got.Info["type"] != "ask" || got.Info["message_id"] != e.ID.String() || got.Info["sender"] != labDID {
		t.Errorf("%v", got.Info)
	}
	for intent, want := range map[envelope.Intent]string{envelope.Propose: "PROPOSE: deal", envelope.Subscribe: "SUBSCRIBE: deal"} {
		e := newAsk("calc", "deal")
		e.Intent = intent
		if r := h.take(t, e); r.location == "" {
			t.Error(intent, "has no stream")
		}
		if got := <-seen; got.Subject != want || got.Kind != gateway.Asks {
			t.Errorf("%s: %+v", intent, got)
		}
	}
	host := newAsk("calc", "to the host")
	host.To = []string{hostDID}
	h.take(t, host)
	<-seen
	binary := newAsk("calc", "")
	binary.Body = envelope.Body{Type: "image/png", Content: base64.StdEncoding.EncodeToString([]byte("\x89PNG")), Encoding: "base64", Compression: "none"}
	h.take(t, binary)
	if got := <-seen; got.Body != "" || len(got.Parts) != 1 || got.Parts[0].Type != "image/png" || string(got.Parts[0].Data) != "\x89PNG" {
		t.Errorf("%+v", got)
	}
	for _, intent := range []envelope.Intent{envelope.Inform, envelope.Notify} {
		e := newAsk("calc", "news")
		e.Intent = intent
		if r := h.take(t, e); r.location != "" {
			t.Error(intent, r.location)
		}
		if got := <-seen; got.Kind != gateway.Tells {
			t.Errorf("%s: %+v", intent, got)
		}
	}
}

// TestConversation (D-U16): an envelope goes on with the conversation of one that it
// cites, whose hash must be right.
func TestConversation(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	history := make(chan int, 10)
	h.expose("calc", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		history <- len(turn.History)
		return gateway.Answer{Body: "ok"}
	})
	first := newAsk("calc", "one")
	h.take(t, first)
	next := newAsk("calc", "two")
	next.ReplyTo = first.ID
	cited, sum := newAsk("calc", "three"), [32]byte{}
	var err error
	if sum, err = first.Sum(); err != nil {
		t.Fatal(err)
	}
	cited.Context = []envelope.Reference{{ID: first.ID, Hash: fmt.Sprintf("sha256:%x", sum)}}
	other := newAsk("calc", "four")
	other.ReplyTo = envelope.NewID()
	named := newAsk("calc", "five")
	named.Ext = map[string]json.RawMessage{"x-conversation": json.RawMessage(`"c1"`)}
	again := newAsk("calc", "six")
	again.Ext = named.Ext
	want := []int{0, 1, 2, 0, 0, 1}
	for i, e := range []envelope.Envelope{first, next, cited, other, named, again} {
		if i > 0 {
			h.take(t, e)
		}
		if n := <-history; n != want[i] {
			t.Errorf("%s: %d messages before", e.Body.Content, n)
		}
	}
	cited.ID, cited.Context[0].Hash = envelope.NewID(), "sha256:"+strings.Repeat("0", 64)
	h.refused(t, "another hash", h.send(t, cited), envelope.IllegalState)
}

// TestRefusedEnvelopes (U-001, U-015, U-022, U-023, U-042, U-045, U-104, V-U05, V-U06, V-U07, V-U08,
// V-U10, V-U11, V-U12, V-U18, V-U21, V-U34, contract case 28): what does not count reaches no agent,
// and nothing of it is kept.
func TestRefusedEnvelopes(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.MaxBody = 4 << 10 })
	seen := h.exposeAsks("calc")
	good := signedBy(t, h.own, newAsk("calc", "2+2"))
	with := func(change func(*envelope.Envelope)) string {
		e := newAsk("calc", "2+2")
		change(&e)
		return signedBy(t, h.own, e)
	}
	header := func(alg string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+alg+`","kid":"`+h.own.Public().ID+`"}`)) + ".." + base64.RawURLEncoding.EncodeToString(make([]byte, 64))
	}
	forge := func(sig string) string {
		var e map[string]any
		if err := json.Unmarshal([]byte(good), &e); err != nil {
			t.Fatal(err)
		}
		e["sig"] = sig
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		text string
		want envelope.Code
	}{
		"a changed byte":       {strings.Replace(good, "2+2", "2+3", 1), envelope.Unauthenticated},
		"another key":          {signedBy(t, key(t, labDID, private("e")), newAsk("calc", "2+2")), envelope.Unauthenticated},
		"a key of another DID": {signedBy(t, key(t, "did:web:evil.example", private("l")), newAsk("calc", "2+2")), envelope.Unauthenticated},
		"alg none":             {forge(header("none")), envelope.Unauthenticated},
		"alg HS256":            {forge(header("HS256")), envelope.Unauthenticated},
		"alg RS256":            {forge(header("RS256")), envelope.Unauthenticated},
		"another type of key":  {forge(header("ES256")), envelope.Unauthenticated},
		"another sender":       {with(func(e *envelope.Envelope) { e.From = "did:web:evil.example" }), envelope.Unauthorized},
		"from the past":        {with(func(e *envelope.Envelope) { e.Time = time.Now().Add(-time.Hour) }), envelope.Unauthenticated},
		"from the future":      {with(func(e *envelope.Envelope) { e.Time = time.Now().Add(time.Hour) }), envelope.Unauthenticated},
		"an unknown agent":     {with(func(e *envelope.Envelope) { e.To = []string{agentDID("nobody")} }), envelope.UnknownRecipient},
		"nobody here":          {with(func(e *envelope.Envelope) { e.To = []string{"did:web:elsewhere.example"} }), envelope.UnknownRecipient},
		"two agents":           {with(func(e *envelope.Envelope) { e.To = append(e.To, agentDID("slow")) }), envelope.Unauthorized},
		"an unknown member":    {strings.Replace(good, `{"body"`, `{"x":1,"body"`, 1), envelope.Malformed},
		"two bodies":           {strings.Replace(good, `{"body"`, `{"body":{"type":"text/plain","content":"3+3"},"body"`, 1), envelope.Malformed},
		"no signature":         {strings.Replace(good, `"sig"`, `"gis"`, 1), envelope.Malformed},
		"no type of media":     {with(func(e *envelope.Envelope) { e.Body.Type = "no type" }), envelope.Unsupported},
		"a bomb": {with(func(e *envelope.Envelope) {
			e.Body.Content, e.Body.Encoding, e.Body.Compression = bomb(t), "base64", "gzip"
		}), envelope.TooLarge},
		"no capability":             {with(func(e *envelope.Envelope) { e.CapToken = "eyJ" }), envelope.Unauthenticated},
		"a confirm without a cause": {with(func(e *envelope.Envelope) { e.Intent, e.ReplyTo = envelope.Confirm, envelope.NewID() }), envelope.UnknownRecipient},
		"a cancel of nothing":       {with(func(e *envelope.Envelope) { e.Intent = envelope.Cancel }), envelope.Malformed},
		"a cancel of an unknown":    {with(func(e *envelope.Envelope) { e.Intent, e.ReplyTo = envelope.Cancel, envelope.NewID() }), envelope.UnknownRecipient},
	} {
		r := h.post(t, "lab-token", c.text)
		if strings.Contains(name, "bodies") { // nothing of it is read
			unsigned(t, name, r, c.want)
			continue
		}
		h.refused(t, name, r, c.want)
	}
	for to, from := range map[string]string{calcDID: calcDID, hostDID: hostDID, agentDID("nobody"): hostDID} {
		e := newAsk("calc", "x")
		e.To, e.CapToken = []string{to}, "eyJ"
		h.refusedBy(t, "who refuses "+to, h.send(t, e), envelope.Unauthenticated, from)
	}
	for to, want := range map[string]string{
		agentDID("nobody"): "\"" + agentDID("nobody") + "\"; agents here are " + hostDID + ":agents:SWARM:AGENT", "did:web:other.example:agents:hive:calc": "none in to is of this host, " + hostDID,
	} {
		e := newAsk("calc", "x")
		e.To = []string{to}
		var body struct{ Message string }
		s, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read([]byte(h.send(t, e).text))
		if err == nil {
			err = json.Unmarshal([]byte(s.Body.Content), &body)
		}
		if err != nil || !strings.HasSuffix(body.Message, want) {
			t.Errorf("%s: %q, %v", to, body.Message, err)
		}
	}
	unsigned(t, "no JSON", h.post(t, "lab-token", "{"), envelope.Malformed)
	unsigned(t, "half a character", h.post(t, "lab-token", strings.Replace(good, "2+2", `\ud800`, 1)), envelope.Malformed)
	unsigned(t, "too large", h.post(t, "lab-token", good+strings.Repeat(" ", 4<<10)), envelope.TooLarge)
	unsigned(t, "no credential", h.post(t, "", good), envelope.Unauthenticated)
	unsigned(t, "a token in the query", h.call(t, http.MethodPost, "/v1/messages?access_token=lab-token", "", good), envelope.Unauthenticated)
	empty := h.post(t, "lab-token", "")
	if unsigned(t, "no body", empty, envelope.Malformed); !strings.Contains(empty.text, "no body") {
		t.Error(empty.text)
	}
	unsigned(t, "another media type", h.post(t, "lab-token", good, "Content-Type", "text/plain"), envelope.Unsupported)
	unsigned(t, "another version", h.post(t, "lab-token", good, "Content-Type", "application/uamp+json;v=2"), envelope.Unsupported)
	for _, kind := range []string{"application/uamp+json;charset=latin1", "application/json;v=2", "application/json;charset", "application/uamp+json, text/plain", "json"} {
		unsigned(t, kind, h.post(t, "lab-token", good, "Content-Type", kind), envelope.Unsupported)
	}
	for _, coding := range []string{"gzip", "br", "identity, gzip", "x"} {
		unsigned(t, coding, h.post(t, "lab-token", good, "Content-Encoding", coding), envelope.Unsupported)
	}
	h.refused(t, "a user", h.post(t, "user-token", good), envelope.Unauthorized)
	failed := newAsk("calc", "x")
	failed.Intent = envelope.Error
	unsigned(t, "an error about nothing", h.send(t, failed), envelope.UnknownRecipient)
	if n := h.web.fetched.Load(); n != 0 || len(seen) != 0 {
		t.Errorf("%d fetches, %d messages", n, len(seen))
	}
	for _, e := range h.rt.Events() {
		if e.Verdict != "refused" || e.Reason == "" {
			t.Errorf("%+v", e)
		}
	}
	if list := h.recordsOf(t, "lab", "stream"); len(list) != 0 {
		t.Errorf("%v", list)
	}
}

// TestBodyBreaksOff: an envelope whose body is shorter than its Content-Length is refused as malformed,
// with the code.
func TestBodyBreaksOff(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	conn, err := net.Dial("tcp", h.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer lab-token\r\nContent-Type: application/uamp+json\r\nContent-Length: 50\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	rsp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil || !strings.Contains(string(text), "breaks off after 2 bytes, and its Content-Length is 50") {
		t.Errorf("%s, %v", text, err)
	}
	unsigned(t, "cut off", reply{status: rsp.StatusCode, header: rsp.Header, text: string(text)}, envelope.Malformed)
}

// TestMediaTypes (U-015): what the page names is taken as an envelope.
func TestMediaTypes(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	for _, kind := range []string{"application/uamp+json", "Application/UAMP+JSON; v=1", "application/uamp+json;v=1;charset=UTF-8", "application/json", ""} {
		if r := h.post(t, "lab-token", signedBy(t, h.own, newAsk("calc", "x")), "Content-Type", kind, "Content-Encoding", "identity"); r.status != http.StatusAccepted {
			t.Errorf("%q: %d %s", kind, r.status, r.text)
		}
	}
}

// TestRepeat (G-025, V-U20, contract cases 11 and 12): a repeat has the same answer, whatever the
// time is, and another envelope under a used id is refused.
func TestRepeat(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	late := newHive(t, func(o *uamp.Options) { o.Runtime, o.ClockSkew = h.rt, time.Nanosecond })
	seen := h.exposeAsks("calc")
	e := newAsk("calc", "2+2")
	e.Stream = "mine"
	text := signedBy(t, h.own, e)
	first := h.post(t, "lab-token", text)
	for _, h := range []*hive{h, late, h} {
		if r := h.post(t, "lab-token", text); r.status != http.StatusAccepted || r.location != first.location {
			t.Errorf("%d %s", r.status, r.text)
		}
	}
	altered := e
	altered.Body.Content = "3+3"
	h.refused(t, "altered", h.send(t, altered), envelope.IllegalState)
	old := e
	old.Time = time.Now().Add(-time.Hour) // it is known, and not the same
	h.refused(t, "older", h.send(t, old), envelope.IllegalState)
	late.refused(t, "a new one, late", late.send(t, newAsk("calc", "2+2")), envelope.Unauthenticated)
	if len(seen) != 1 {
		t.Errorf("%d turns", len(seen))
	}
}

// TestStreamOfAnother (D-U11, D-U13): a stream_id whose stream has not ended is no other
// envelope's.
func TestStreamOfAnother(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	e, other := newAsk("slow", "x"), newAsk("slow", "y")
	e.Stream, other.Stream = "mine", "mine"
	at := h.take(t, e).location
	h.refused(t, "a live stream", h.send(t, other), envelope.MissingSeq)
	close(h.release)
	h.read(t, at)
	h.take(t, other)
	if r := h.call(t, http.MethodGet, "/v1/stream/theirs", "lab-token", ""); r.status != http.StatusNotFound {
		t.Errorf("%d %s", r.status, r.text)
	}
}

// TestCancel (V-U30, U-085, U-092): who has sent an ask withdraws it, by its id or stream;
// what is over stays as it is.
func TestCancel(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	withdraw := func(e envelope.Envelope) envelope.Envelope {
		c := newAsk("slow", "")
		c.Intent, c.ReplyTo = envelope.Cancel, e.ID
		return c
	}
	e := newAsk("slow", "x")
	at := h.take(t, e).location
	foreign := withdraw(e)
	foreign.From = "did:web:lab.example:agents:y"
	h.refused(t, "another sender", h.post(t, "lab-token", signedBy(t, h.own.WithID(foreign.From+"#k"), foreign)), envelope.Unauthorized)
	h.take(t, withdraw(e))
	lines := h.read(t, at)
	if d := delta(t, lines[len(lines)-1]); d.Type != envelope.DeltaCancel {
		t.Error(lines)
	}
	h.take(t, withdraw(e))
	named := newAsk("slow", "x")
	named.Stream = "mine"
	at = h.take(t, named).location
	byStream := withdraw(named)
	byStream.ReplyTo, byStream.Stream = "", "mine"
	h.take(t, byStream)
	if lines := h.read(t, at); delta(t, lines[len(lines)-1]).Type != envelope.DeltaCancel {
		t.Error(lines)
	}
	for _, event := range h.rt.Events() {
		if event.Type == string(envelope.Cancel) && event.Verdict != "accepted" && event.Verdict != "refused" {
			t.Errorf("a cancel is logged as %s", event.Verdict)
		}
	}
}

// TestStoreFails: what the store could not do is the host's fault, and the sender may repeat
// the same envelope (U-104, U-105, V-U35).
func TestStoreFails(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	seen := h.exposeAsks("calc")
	e := newAsk("calc", "2+2")
	h.rt.FailNext("Ask", errors.New("disk I/O error"))
	r := h.send(t, e)
	h.refused(t, "the store fails", r, envelope.Internal)
	if strings.Contains(r.text, "disk") || r.header.Get("Retry-After") == "" {
		t.Error(r.text)
	}
	h.rt.FailNext("Ask", fmt.Errorf("too many: %w", gateway.ErrBusy))
	r = h.send(t, e)
	h.refused(t, "a limit", r, envelope.Busy)
	if r.status != http.StatusGatewayTimeout || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %v", r.status, r.header)
	}
	h.rt.FailNext("Ask", gateway.ErrElsewhere)
	h.refused(t, "another host works on it", h.send(t, e), envelope.Busy)
	at := h.take(t, e).location
	h.rt.FailNext("Find", errors.New("disk I/O error"))
	unsigned(t, "a stream while the store fails", h.call(t, http.MethodGet, at, "lab-token", ""), envelope.Internal)
	if lines := h.read(t, at); len(lines) != 1 || len(seen) != 1 {
		t.Errorf("%v, %d turns", lines, len(seen))
	}
	h.rt.Drain()
	h.refused(t, "a host that stops", h.send(t, newAsk("calc", "2+2")), envelope.Busy)
}

// TestCapabilityIsNeeded (U-042): require_cap_token holds for each envelope, and a token for
// the agent lets it in.
func TestCapabilityIsNeeded(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.RequireToken = true })
	h.refused(t, "no token", h.send(t, newAsk("calc", "2+2")), envelope.Unauthorized)
	token, err := h.own.Grant(seal.Claims{Issuer: labDID, Audience: []string{calcDID}, Scope: []string{"uamp:ask"}, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	e := newAsk("calc", "2+2")
	e.CapToken = token
	h.take(t, e)
	e.ID, e.Intent = envelope.NewID(), envelope.Inform
	h.refused(t, "another intent", h.send(t, e), envelope.Unauthorized)
}

// TestForgedPosts (contract case 13): ten thousand senders are tested without the listener;
// these reach it, and no document is fetched for them.
func TestForgedPosts(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	for i := range 50 {
		e := newAsk("calc", "2+2")
		e.From = fmt.Sprintf("did:web:h%d.example", i)
		h.refused(t, e.From, h.send(t, e), envelope.Unauthorized)
	}
	if n := h.web.fetched.Load(); n != 0 {
		t.Errorf("%d fetches", n)
	}
}

// TestMissingRecipients (V-U33, D-U19): an envelope goes to the recipients that there are, and
// its sender is told of the others, be they unknown or not exposed. A repeat is told the same.
func TestMissingRecipients(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	seen := h.exposeAsks("calc")
	for _, intent := range []envelope.Intent{envelope.Ask, envelope.Inform} {
		e := newAsk("nobody", "to some")
		e.Intent = intent
		e.To = append(e.To, "did:web:elsewhere.example", calcDID)
		for range 2 {
			r := h.send(t, e)
			s, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read([]byte(r.text))
			if err == nil {
				_, err = seal.Verify(s.Sig, s.Sums, []seal.PublicKey{keyOf(t, hostDID)})
			}
			if err != nil || r.status != http.StatusAccepted || (r.location != "") != (intent == envelope.Ask) || s.From != hostDID || s.ReplyTo != e.ID ||
				!strings.Contains(s.Body.Content, `"4.04"`) || !strings.Contains(s.Body.Content, `"details":{"to":["`+agentDID("nobody")+`"]}`) {
				t.Errorf("%s: %d %s: %v", intent, r.status, r.text, err)
			}
		}
		if got := <-seen; got.Body != "to some" || len(seen) > 0 {
			t.Errorf("%+v", got)
		}
	}
}
