package uamp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

// hive is a gateway on a listener, with the realm "lab" whose key is pinned.
type hive struct {
	rt     *gatewaytest.Runtime
	g      *uamp.Gateway
	server *httptest.Server
	client *http.Client
	own    seal.Key
	web    *web
	// release ends the turns of agent "slow".
	release chan struct{}
}

func newHive(t testing.TB, change func(*uamp.Options)) *hive {
	t.Helper()
	h := newUnstartedHive(t, change)
	h.server.Start()
	return h
}

// newUnstartedHive is newHive whose server has not started.
func newUnstartedHive(t testing.TB, change func(*uamp.Options)) *hive {
	t.Helper()
	h := &hive{client: http.DefaultClient, rt: gatewaytest.New(), own: key(t, labDID, private("l")), web: &web{}, release: make(chan struct{})}
	lab := gatewaytest.Realm("default", "lab")
	lab.May = gateway.Rights{gateway.MayAsk, gateway.MayTell}
	h.rt.Admit("lab-token", lab)
	h.rt.AddPartner(gateway.Partner{
		Name: "lab", Tenant: "default", IDs: []string{"did:web:lab.example:*"}, May: lab.May,
		Options: map[string]any{"keys": []string{string(h.own.Public().JWK())}},
	})
	h.rt.Admit("user-token", gatewaytest.User("default", "ann"))
	h.expose("calc", gatewaytest.Echo)
	h.expose("slow", func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
		select {
		case <-h.release:
			return gateway.Answer{Body: "done"}
		case <-ctx.Done():
			return gateway.Answer{Outcome: gateway.Cancelled, Body: "The request was cancelled."}
		}
	})
	o := uamp.Options{Runtime: h.rt, DID: hostDID, Keys: uamp.Keys{Current: private("h")}, Fetch: h.web}
	if change != nil {
		change(&o)
	}
	var err error
	if h.g, err = uamp.New(o); err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewUnstartedServer(gatewaytest.Listener(h.rt, h.g.Mounts()))
	h.server.Config.Protocols = new(http.Protocols)
	h.server.Config.Protocols.SetHTTP1(true)
	h.server.Config.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(func() {
		h.server.CloseClientConnections()
		h.rt.Close()
		h.server.Close()
	})
	return h
}

func (h *hive) expose(name string, run gatewaytest.Agent) {
	h.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: name, Entrypoint: name == "calc"}, run)
}

// exposeAsks shows the test what an agent gets.
func (h *hive) exposeAsks(name string) <-chan gateway.Ask {
	seen := make(chan gateway.Ask, 100)
	h.expose(name, func(_ context.Context, t *gatewaytest.Turn) gateway.Answer {
		seen <- t.Ask
		return gateway.Answer{Body: t.Ask.Body}
	})
	return seen
}

// agentDID is the DID of an agent of the hive.
func agentDID(name string) string { return hostDID + ":agents:hive:" + name }

// newAsk is an envelope of the realm, unsigned.
func newAsk(to, text string) envelope.Envelope {
	return envelope.Envelope{
		ID: envelope.NewID(), Time: time.Now(), From: labDID, To: []string{agentDID(to)}, Intent: envelope.Ask, Window: envelope.DefaultWindow,
		Body: envelope.NewBody("text/plain", []byte(text)),
	}
}

// signedBy is the text of an envelope with a signature.
func signedBy(t testing.TB, k seal.Key, e envelope.Envelope) string {
	t.Helper()
	sum, err := e.Sum()
	if err != nil {
		t.Fatal(err)
	}
	if e.Sig, err = k.Sign(sum); err != nil {
		t.Fatal(err)
	}
	text, err := e.Text()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// reply is what the host answers.
type reply struct {
	status         int
	header         http.Header
	text, location string
}

// post sends a body with a token.
func (h *hive) post(t *testing.T, token, body string, header ...string) reply {
	t.Helper()
	return h.call(t, http.MethodPost, "/v1/messages", token, body, append([]string{"Content-Type", "application/uamp+json;v=1"}, header...)...)
}

func (h *hive) call(t *testing.T, method, path, token, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rsp, err := h.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{rsp.StatusCode, rsp.Header, string(text), rsp.Header.Get("Location")}
}

// send signs an envelope of the realm and sends it.
func (h *hive) send(t *testing.T, e envelope.Envelope) reply {
	t.Helper()
	return h.post(t, "lab-token", signedBy(t, h.own, e))
}

// take sends an envelope that must be taken.
func (h *hive) take(t *testing.T, e envelope.Envelope) reply {
	t.Helper()
	r := h.send(t, e)
	if r.status != http.StatusAccepted || r.text != "" {
		t.Fatalf("%s: %d %s", e.Intent, r.status, r.text)
	}
	return r
}

// refused checks that an answer is a signed error of a code (U-104), of the agent that was
// asked or of the host.
func (h *hive) refused(t *testing.T, what string, r reply, want envelope.Code) {
	t.Helper()
	h.refusedBy(t, what, r, want, hostDID, calcDID, agentDID("slow"))
}

// refusedBy is refused with those who may have answered.
func (h *hive) refusedBy(t *testing.T, what string, r reply, want envelope.Code, from ...string) {
	t.Helper()
	var body struct {
		Code  envelope.Code
		Retry bool
	}
	s, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read([]byte(r.text))
	if err == nil {
		_, err = seal.Verify(s.Sig, s.Sums, []seal.PublicKey{keyOf(t, s.From)})
	}
	if err != nil || json.Unmarshal([]byte(s.Body.Content), &body) != nil || body.Code != want || r.status != want.Status() || !slices.Contains(from, s.From) || s.Intent != envelope.Error || body.Retry != want.Retry() {
		t.Errorf("%s: %d %s: %v, want %s", what, r.status, r.text, err, want)
	}
}

// keyOf is the public key of the hive, as the host or an agent shows it.
func keyOf(t *testing.T, id string) seal.PublicKey {
	t.Helper()
	k, err := seal.NewKey("", private("h"))
	if err != nil {
		t.Fatal(err)
	}
	return k.WithID(id + "#" + k.Public().Thumbprint()).Public()
}

// unsigned checks that an answer is a problem of a code.
func unsigned(t *testing.T, what string, r reply, want envelope.Code) {
	t.Helper()
	var body struct{ Code envelope.Code }
	if json.Unmarshal([]byte(r.text), &body) != nil || body.Code != want || r.status != want.Status() || r.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: %d %s, want %s", what, r.status, r.text, want)
	}
}

// read reads a stream from its start: its deltas, each as its line of data.
func (h *hive) read(t *testing.T, path string, header ...string) (lines []string) {
	t.Helper()
	r := h.call(t, http.MethodGet, path, "lab-token", "", header...)
	if r.status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, r.status, r.text)
	}
	for in := bufio.NewScanner(strings.NewReader(r.text)); in.Scan(); {
		if data, is := strings.CutPrefix(in.Text(), "data: "); is {
			lines = append(lines, data)
		}
	}
	return lines
}

// bomb is a content that is much larger than it seems.
func bomb(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// recordsOf are the records of a realm.
func (h *hive) recordsOf(t *testing.T, realm, kind string) []state.Record {
	t.Helper()
	list, err := h.rt.State().List(t.Context(), state.Key{Tenant: "default", Gateway: uamp.Name, Realm: realm, Kind: kind}, state.Key{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// delta reads the text of a delta.
func delta(t *testing.T, text string) envelope.Delta {
	t.Helper()
	d, err := envelope.Reader{Strict: true, MaxBytes: 1 << 20, MaxDepth: 64}.ReadDelta([]byte(text), "")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// overTLS sends an envelope to the gateway over TLS.
func overTLS(t *testing.T, h *hive, http2 bool, text string) (status, proto int) {
	t.Helper()
	server := httptest.NewUnstartedServer(gatewaytest.Listener(h.rt, h.g.Mounts()))
	server.EnableHTTP2 = http2
	server.StartTLS()
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/messages", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer lab-token")
	rsp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	return rsp.StatusCode, rsp.ProtoMajor
}
