package uamp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// tokenFile is a configuration with one partner.
type tokenFile struct{ cfg config.Config }

// Config implements [catalog.Definitions].
func (f *tokenFile) Config() *config.Config { return &f.cfg }

// Exposed implements [catalog.Definitions].
func (f *tokenFile) Exposed(string, string) []definition.ExposedAgent { return nil }

// tokenLab is a host of the partner whose tokens come from an endpoint, each another one.
type tokenLab struct {
	*hive
	given atomic.Int32
	// admits is how many of the tokens count.
	admits atomic.Int32
}

// newTokenLab has the partner of o be a hive that admits a number of tokens.
func newTokenLab(t *testing.T, o *out, admits int32) *tokenLab {
	t.Helper()
	l := &tokenLab{hive: newHive(t, nil)}
	l.admits.Store(admits)
	o.host(t, l.hive)
	lab := gatewaytest.Realm("default", "lab")
	lab.May = gateway.Rights{gateway.MayAsk, gateway.MayTell}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := l.given.Add(1)
		token := fmt.Sprint("token-", n)
		if n <= l.admits.Load() {
			l.rt.Admit(token, lab)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
	}))
	t.Cleanup(endpoint.Close)
	c := catalog.New(catalog.Options{Gateway: "uamp", HTTP2: true, Definitions: &tokenFile{config.Config{Gateways: []config.Gateway{{
		Name: "uamp", MaxBody: config.MiB, Partners: []config.Partner{{
			Name: "lab", Tenant: "default", URL: l.server.URL, Timeout: o.p.Timeout, AllowPrivate: true,
			Protocol: &config.UAMPPartner{OAuth: config.OAuth{TokenURL: endpoint.URL, ClientID: "hive", ClientSecret: "secret"}},
		}},
	}}}}})
	t.Cleanup(c.Close)
	p, ok := c.Partner("lab")
	if !ok {
		t.Fatal("no partner")
	}
	o.p.Client = p.Client
	o.rt.AddPartner(o.p)
	return l
}

// TestTokenRevoked (U-041, U-057): a token of OAuth that the partner revokes before its end is
// replaced once, and the same envelope is sent again, so that its agent has it once. A partner
// that refuses the other token as well has refused the envelope.
func TestTokenRevoked(t *testing.T) {
	t.Parallel()
	overSome(t, []string{"http", "websocket", "grpc"}, testTokenRevoked)
}

func testTokenRevoked(t *testing.T, o *out) {
	l := newTokenLab(t, o, 2)
	var runs atomic.Int32
	l.expose("counts", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		runs.Add(1)
		return gateway.Answer{Body: "4"}
	})
	asks := func(id string, want gateway.CarriedState, given int32) {
		t.Helper()
		got := o.carry(t, id, outgoing(id, mail.Request, "counts", id), want)
		if l.given.Load() != given {
			t.Errorf("%s: %d tokens after %+v, want %d", id, l.given.Load(), got, given)
		}
		n, answers := runs.Swap(0), o.rec.take()
		if has := len(answers) == 1 && answers[0].Body == "4"; want == gateway.Taken && (n != 1 || !has) || want != gateway.Taken && n+int32(len(answers)) > 0 {
			t.Errorf("%s: %d turns, %+v", id, n, answers)
		}
	}
	asks("first", gateway.Taken, 1)
	l.rt.Revoke("token-1")
	asks("replaced", gateway.Taken, 2)
	asks("kept", gateway.Taken, 2)
	l.rt.Revoke("token-2")
	asks("refused", gateway.Refused, 3)
	asks("refused again", gateway.Refused, 3)
}

// TestTokenRevokedWithinAnswer (U-041, U-057): a token that is revoked while an answer is read is
// replaced, and the answer is read on: the agent is not asked again.
func TestTokenRevokedWithinAnswer(t *testing.T) {
	t.Parallel()
	overSome(t, []string{"http", "websocket", "grpc"}, testTokenRevokedWithinAnswer)
}

func testTokenRevokedWithinAnswer(t *testing.T, o *out) {
	l := newTokenLab(t, o, 2)
	var runs atomic.Int32
	begun, release := make(chan struct{}, 9), make(chan struct{})
	l.expose("talks", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		runs.Add(1)
		turn.Chunk("be")
		begun <- struct{}{}
		<-release
		turn.Chunk("gun")
		return gateway.Answer{Body: "end"}
	})
	var carried sync.WaitGroup
	carried.Go(func() { o.carry(t, "asked", outgoing("asked", mail.Request, "talks", "go"), gateway.Taken) })
	<-begun
	eventually(t, func() bool { return len(o.rt.Shown()) == 1 })
	l.rt.Revoke("token-1")
	eventually(t, func() bool { return l.given.Load() == 2 })
	close(release)
	carried.Wait()
	if asked := o.rec.take(); len(asked) != 1 || !strings.Contains(asked[0].Body, "end") || runs.Load() != 1 || l.given.Load() != 2 {
		t.Errorf("%d turns, %d tokens: %+v", runs.Load(), l.given.Load(), asked)
	}
}

// renewingClient shows the tokens 1, 2 and so on, the next one after each that is rejected, up to most.
type renewingClient struct {
	next        http.RoundTripper
	token, most atomic.Int32
}

// RoundTrip implements [http.RoundTripper].
func (c *renewingClient) RoundTrip(r *http.Request) (*http.Response, error) {
	n := c.token.Load()
	if watch := gateway.TokenWatcher(r.Context()); watch != nil {
		watch(renewedToken{c, n})
	}
	return withToken{fmt.Sprint(n), c.next}.RoundTrip(r)
}

type renewedToken struct {
	of *renewingClient
	n  int32
}

// Confirm implements [gateway.ShownToken].
func (renewedToken) Confirm() {}

// Reject implements [gateway.ShownToken].
func (t renewedToken) Reject() bool {
	return t.n < t.of.most.Load() && t.of.token.CompareAndSwap(t.n, t.n+1)
}

// TestTokenRefusedByEnvelope (U-041, U-104): a partner may sign that it refuses the token of a
// connection that it has opened. Then the same envelope is sent again on another, once.
func TestTokenRefusedByEnvelope(t *testing.T) {
	t.Parallel()
	overFrames(t, func(t *testing.T, o *out) {
		for most, want := range map[int32]struct {
			state gateway.CarriedState
			sent  int
		}{1: {gateway.Refused, 1}, 2: {gateway.Taken, 2}, 9: {gateway.Refused, 2}} {
			c := &renewingClient{next: clearClient(t).Transport}
			c.token.Store(1)
			c.most.Store(most)
			o.p.Client = &http.Client{Transport: c}
			o.rt.AddPartner(o.p)
			o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
				if most == 2 && c.token.Load() == 2 {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				w.Header().Set("Content-Type", "application/uamp+json;v=1")
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, o.lab.reply(s, envelope.Error, "application/json", `{"code":"4.01","message":"who are you?"}`))
			}, nil)
			o.carry(t, fmt.Sprint(most, " tokens"), outgoing(fmt.Sprint("told ", most), mail.Broadcast, "x", "news"), want.state)
			got, _ := o.lab.take()
			if len(got) != want.sent || got[0].ID != got[len(got)-1].ID || string(got[0].Received()) != string(got[len(got)-1].Received()) {
				t.Errorf("with %d tokens %d envelopes are sent", most, len(got))
			}
		}
	})
}
