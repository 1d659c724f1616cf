package amp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
)

const token = "acme-token"

// site is a gateway on a listener, with a realm "acme" whose agents are agent*.
type site struct {
	rt     *gatewaytest.Runtime
	g      *amp.Gateway
	server *httptest.Server
	amptest.Client
	// release ends the turns of agent "slow".
	release  chan struct{}
	partners []gateway.Partner
}

func newSite(t *testing.T, changes ...func(*amp.Options)) *site {
	t.Helper()
	s := &site{rt: gatewaytest.New(), release: make(chan struct{})}
	s.admit(token, gateway.Partner{Name: "acme", IDs: []string{"agent*"}})
	s.rt.Admit("user-token", gatewaytest.User("default", "ann"))
	s.expose("echo", gatewaytest.Echo, gateway.Capability{
		ID: "text-analysis", Version: "1.2", Description: "repeats",
		Input:  []byte(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
		Output: []byte(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
	})
	s.expose("slow", s.slow)
	s.expose("fails", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Outcome: gateway.Failed, Body: "The agent could not complete the request."}
	})
	s.expose("late", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Outcome: gateway.TimedOut, Body: "The time for the request is over."}
	})
	o := amp.Options{Runtime: s.rt, Partners: func() []gateway.Partner { return s.partners }}
	for _, change := range changes {
		change(&o)
	}
	s.g = amp.New(o)
	s.server = httptest.NewUnstartedServer(gatewaytest.Listener(s.rt, s.g.Mounts()))
	s.server.Config.Protocols = new(http.Protocols)
	s.server.Config.Protocols.SetHTTP1(true)
	s.server.Config.Protocols.SetUnencryptedHTTP2(true) // gRPC needs it
	s.server.Start()
	s.Client = amptest.Client{URL: s.server.URL + "/aip/v1/invoke", Token: token}
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.rt.Close()
		s.server.Close()
	})
	return s
}

// admit lets a partner in, with a token unless that is empty.
func (s *site) admit(token string, p gateway.Partner) {
	c := gatewaytest.Realm("default", p.Name)
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayRegister, gateway.MayContexts}
	if token != "" {
		s.rt.Admit(token, c)
	}
	p.Tenant, p.May = "default", c.May
	s.rt.AddPartner(p)
	s.partners = append(s.partners, p)
}

func (s *site) expose(name string, run gatewaytest.Agent, capabilities ...gateway.Capability) {
	s.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: name, Capabilities: capabilities}, run)
}

func (s *site) slow(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
	select {
	case <-s.release:
		return gateway.Answer{Body: "done"}
	case <-ctx.Done():
		return gateway.Answer{Outcome: gateway.Cancelled}
	}
}

// send sends a message and returns the message that came back.
func (s *site) send(t *testing.T, m amptest.Message, header ...string) amptest.Reply {
	t.Helper()
	return s.post(t, m.Text(), header...)
}

func (s *site) post(t *testing.T, text string, header ...string) amptest.Reply {
	t.Helper()
	r, err := s.Post(text, header...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Message == nil && r.Text != "" {
		t.Fatalf("no message: %d %s", r.Status, r.Text)
	}
	return r
}

// wantFault fails unless a reply is an error message.
func wantFault(t *testing.T, r amptest.Reply, status int, wantCode, wantReason string) {
	t.Helper()
	if r.Message == nil || r.Message.Message.Type != "error" {
		t.Fatalf("no error message: %d %s", r.Status, r.Text)
	}
	code, _, reason := r.Message.Fault()
	if r.Status != status || code != wantCode || reason != wantReason {
		t.Errorf("got %d %s %s, want %d %s %s: %s", r.Status, code, reason, status, wantCode, wantReason, r.Text)
	}
}

// wantText fails unless a reply is a response whose result has a text.
func wantText(t *testing.T, r amptest.Reply, want string) {
	t.Helper()
	if r.Message == nil || r.Message.Message.Payload["status"] != "success" || r.Message.Result()["text"] != want {
		t.Fatalf("got %d %s, want %q", r.Status, strings.TrimSpace(r.Text), want)
	}
}
