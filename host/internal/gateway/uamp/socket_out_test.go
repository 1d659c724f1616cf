package uamp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// overFrames runs a test once for each binding by which the partner is sent frames.
func overFrames(t *testing.T, test func(*testing.T, *out)) {
	t.Helper()
	overSome(t, []string{"websocket", "grpc"}, test)
}

// TestSocketOutShared (U-054, U-055, U-056, U-057): envelopes to one partner share a socket, or a
// call of gRPC, at the same time and one after the other, and each gets the deltas of its own
// stream.
func TestSocketOutShared(t *testing.T) {
	t.Parallel()
	overFrames(t, testSocketOutShared)
}

func testSocketOutShared(t *testing.T, o *out) {
	var opened atomic.Int32
	o.p.URL = serveClear(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/uamp/1/ws" || r.URL.Path == "/uamp.v1.Agent/Stream" {
			opened.Add(1)
		}
		o.lab.ServeHTTP(w, r)
	})).URL
	o.lab.does(nil, func(w http.ResponseWriter, r *http.Request) {
		events(9, chunk("for "+strings.TrimPrefix(r.URL.Path, "/v1/stream/")), `{"delta_seq":%d,"type":"done"}`)(w, r)
	})
	o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
		w.Header().Set("Location", "/v1/stream/"+s.Stream)
		w.WriteHeader(http.StatusAccepted)
	}, o.lab.stream)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			o.carry(t, "asked", outgoing(fmt.Sprint("shared ", n), mail.Request, "x", "how many?"), gateway.Taken)
		})
	}
	all.Wait()
	o.carry(t, "told", outgoing("shared", mail.Broadcast, "x", "news"), gateway.Taken)
	if n := opened.Load(); n != 1 {
		t.Errorf("%d sockets", n)
	}
	asked := o.rec.take()
	for _, a := range asked {
		if want := "for str-" + strings.TrimPrefix(a.ID, "answer:"); a.Body != want {
			t.Errorf("%q, want %q", a.Body, want)
		}
	}
	if len(asked) != 20 {
		t.Errorf("%d answers", len(asked))
	}
}

// TestSocketOutResumes (U-062, U-064, U-065, V-U39): a stream that breaks off with its socket is
// read on over another from the delta after the last one, each delta once.
func TestSocketOutResumes(t *testing.T) {
	t.Parallel()
	overFrames(t, testSocketOutResumes)
}

func testSocketOutResumes(t *testing.T, o *out) {
	server := serveClear(t, o.lab)
	o.p.URL = server.URL
	broken := false
	o.lab.does(streamAt, func(w http.ResponseWriter, r *http.Request) {
		switch last := r.Header.Get("Last-Event-ID"); {
		case last == "":
			events(2, chunk("a"), chunk("b"), chunk("c"), done)(w, r)
		case !broken:
			broken = true
			for len(o.rt.Shown()) < 2 && t.Context().Err() == nil { // the host has both
				time.Sleep(time.Millisecond)
			}
			go server.CloseClientConnections()
			w.WriteHeader(http.StatusInternalServerError)
		default:
			events(9, chunk("a"), chunk("b"), chunk("c"), `{"delta_seq":%d,"type":"done"}`)(w, r)
		}
	})
	o.carry(t, "asked", outgoing("resumed", mail.Request, "x", "how many?"), gateway.Taken)
	if asked := o.rec.take(); len(asked) != 1 || asked[0].Body != "abc" {
		t.Errorf("%+v", asked)
	}
	got, streams := o.lab.take()
	if len(got) != 1 || streams[len(streams)-1] != "1" {
		t.Errorf("%d envelopes, streams after %q", len(got), streams)
	}
}

// TestSocketOutToHost (U-054, U-055, U-056, U-061, U-062, V-U24): a gateway of ours is called by
// WebSocket or gRPC by another: more deltas than a window go, each acknowledged in time.
func TestSocketOutToHost(t *testing.T) {
	t.Parallel()
	overFrames(t, testSocketOutToHost)
}

func testSocketOutToHost(t *testing.T, o *out) {
	h := newHive(t, nil)
	h.expose("talks", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		for n := range 3000 {
			turn.Chunk(fmt.Sprint(n, " "))
		}
		return gateway.Answer{Body: `{"end":true}`}
	})
	o.host(t, h)
	o.carry(t, "asked", outgoing("host", mail.Request, "talks", "go"), gateway.Taken)
	if asked := o.rec.take(); len(asked) != 1 || !strings.Contains(asked[0].Body, `"end":true`) {
		t.Errorf("%.200v", asked)
	}
	if n := len(o.rt.Shown()); n != 3000 {
		t.Errorf("%d chunks are shown", n)
	}
	o.carry(t, "nobody is asked", outgoing("nobody", mail.Request, "nobody", "go"), gateway.Taken)
	if asked := o.rec.take(); len(asked) != 1 || asked[0].Subject != "[4.04]" {
		t.Errorf("%+v", asked)
	}
}

// host has the partner of o be a hive, whose realm "lab" is o.
func (o *out) host(t *testing.T, h *hive) {
	t.Helper()
	mine := string(keyOf(t, agentDID("boss")).JWK())
	lab, _ := h.rt.Partner("lab")
	lab.IDs, lab.Options = []string{hostDID + ":*"}, map[string]any{"keys": []string{mine}}
	h.rt.AddPartner(lab)
	o.p.URL, o.p.Client = h.server.URL, &http.Client{Transport: withToken{"lab-token", clearClient(t).Transport}}
	o.p.IDs = []string{agentDID("") + "*"}
	o.p.Options["keys"] = []string{mine}
	o.rt.AddPartner(o.p)
}

// withToken shows a token with each request.
type withToken struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

// TestFindService (U-034, U-057): a partner without a url is called as the document of the agent
// offers it, at the host of the DID alone.
func TestFindService(t *testing.T) {
	t.Parallel()
	messages, socket, call := "UAMPMessages https://lab.example/v1/messages", "UAMPWebSocket wss://lab.example/uamp/1/ws", "UAMPGrpc https://lab.example"
	for name, c := range map[string]struct {
		services, path string
		state          gateway.CarriedState
		reason         string
	}{
		"HTTP":           {messages, "/v1/messages", gateway.Taken, ""},
		"a socket":       {socket, "/uamp/1/ws", gateway.Taken, ""},
		"gRPC":           {call, "/uamp.v1.Agent/Stream", gateway.Taken, ""},
		"a socket, gRPC": {call + " " + socket, "/uamp/1/ws", gateway.Taken, ""},
		"HTTP and more":  {socket + " " + messages, "/v1/messages", gateway.Taken, ""},
		"nothing":        {"", "", gateway.Refused, "offers no service of UAMP"},
		"another host":   {strings.Replace(socket, "lab.example", "shop.example", 1), "", gateway.Refused, "not at the host of the DID"},
		"without TLS":    {strings.Replace(socket, "wss:", "ws:", 1), "", gateway.Refused, "no address of https or wss"},
		"another path":   {strings.Replace(messages, "v1", "v2", 1), "", gateway.Refused, "its path is not /v1/messages"},
		"an unknown one": {strings.Replace(messages, "UAMPMessages", "Mailbox", 1), "", gateway.Refused, "offers no service of UAMP"},
	} {
		o := newOut(t)
		id, err := did.Parse(labDID)
		if err != nil {
			t.Fatal(err)
		}
		d := did.Document{ID: labDID}
		for words := strings.Fields(c.services); len(words) > 0; words = words[2:] {
			d.Services = append(d.Services, did.Service{ID: "#" + words[0], Type: words[0], Endpoint: words[1]})
		}
		o.web.documents = map[string]did.Document{id.URL(): d}
		paths := make(chan string, 10)
		to := strings.TrimPrefix(o.p.URL, "http://")
		o.p.URL, o.p.Client = "", &http.Client{Transport: atServer{to, paths, clearClient(t).Transport}}
		o.rt.AddPartner(o.p)
		got := o.carry(t, name, outgoing("find "+name, mail.Broadcast, "x", "news"), c.state)
		if !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: %s", name, got.Reason)
		}
		if c.path != "" && (<-paths != "/agents/x/agent-manifest.json" || <-paths != c.path) || len(paths) > 0 {
			t.Errorf("%s: another address is called", name)
		}
	}
	o := newOut(t)
	o.p.URL = ""
	o.carry(t, "no document", outgoing("find", mail.Broadcast, "x", "news"), gateway.Later)
}

// atServer sends requests for any host to a server, and tells their paths.
type atServer struct {
	to    string
	paths chan string
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (a atServer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.paths <- r.URL.Path
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", a.to
	return a.next.RoundTrip(r)
}

// TestSocketOutRefused (U-104): a partner that lets no one in, or is away, is told apart before an
// envelope has left by WebSocket. By gRPC the envelope may leave before the call is refused.
func TestSocketOutRefused(t *testing.T) {
	t.Parallel()
	overFrames(t, testSocketOutRefused)
}

func testSocketOutRefused(t *testing.T, o *out) {
	for code, want := range map[int]gateway.CarriedState{
		http.StatusUnauthorized: gateway.Refused, http.StatusServiceUnavailable: gateway.Later, http.StatusInternalServerError: gateway.Later, http.StatusOK: gateway.Later,
	} {
		o.p.URL = serveClear(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })).URL
		got := o.g.Carry(t.Context(), o.p, outgoing(fmt.Sprint("refused ", code), mail.Request, "x", "how many?"))
		left := o.p.Options["binding"] == "grpc" && (code == http.StatusInternalServerError || code == http.StatusOK) && got.State == gateway.Unanswered
		if got.State != want && !left {
			t.Errorf("%d: %+v", code, got)
		}
	}
	away := httptest.NewServer(nil)
	o.p.URL = away.URL
	away.Close()
	o.carry(t, "away", outgoing("away", mail.Request, "x", "how many?"), gateway.Later)
}

// TestSocketOutSilent: a partner that does not answer the handshake of a WebSocket has not got the
// envelope.
func TestSocketOutSilent(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.p.Options["binding"] = "websocket"
	o.p.Timeout = 50 * time.Millisecond
	o.p.URL = serveClear(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })).URL
	o.carry(t, "no answer to the handshake", outgoing("silent", mail.Broadcast, "x", "news"), gateway.Later)
}

// TestSocketOutEnds (U-055): a host that stops ends its sockets and calls to partners, with streams
// that are open.
func TestSocketOutEnds(t *testing.T) {
	t.Parallel()
	overFrames(t, testSocketOutEnds)
}

func testSocketOutEnds(t *testing.T, o *out) {
	ended := make(chan struct{}, 9)
	o.p.URL = serveClear(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.lab.ServeHTTP(w, r)
		if r.URL.Path == "/uamp/1/ws" || r.URL.Path == "/uamp.v1.Agent/Stream" {
			ended <- struct{}{}
		}
	})).URL
	reading, release := make(chan struct{}, 9), make(chan struct{})
	o.lab.does(streamAt, func(http.ResponseWriter, *http.Request) {
		reading <- struct{}{}
		<-release
	})
	ctx, leave := context.WithCancel(t.Context())
	var carried sync.WaitGroup
	carried.Go(func() { o.g.Carry(ctx, o.p, outgoing("ends", mail.Request, "x", "how many?")) })
	<-reading
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := o.g.Run(stopped); err != nil {
		t.Error(err)
	}
	<-ended // its attempt waits for the stream
	leave()
	close(release)
	carried.Wait()
}
