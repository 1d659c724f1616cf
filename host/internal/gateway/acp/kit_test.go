package acp_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
)

// site is a gateway on a listener, with a realm "acme" whose agents are agent*.
type site struct {
	rt     *gatewaytest.Runtime
	g      *acp.Gateway
	server *httptest.Server
	acptest.Client
	// release ends the turns of agent "slow".
	release chan struct{}
}

func newSite(t *testing.T, change func(*acp.Options)) *site {
	t.Helper()
	s := &site{rt: gatewaytest.New(), release: make(chan struct{})}
	s.admit("acme-token", "acme", "agent*")
	s.rt.Admit("user-token", gatewaytest.User("default", "ann"))
	s.expose("calc", gatewaytest.Echo)
	s.expose("slow", s.slow)
	s.expose("fails", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Outcome: gateway.Failed, Body: "The agent could not complete the request."}
	})
	s.expose("late", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Outcome: gateway.TimedOut, Body: "The time for the request is over."}
	})
	o := acp.Options{Runtime: s.rt}
	if change != nil {
		change(&o)
	}
	s.g = acp.New(o)
	s.server = httptest.NewServer(gatewaytest.Listener(s.rt, s.g.Mounts()))
	s.Client = acptest.Client{URL: s.server.URL + "/acp/v1/messages", Token: "acme-token", HTTP: s.server.Client()}
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.rt.Close()
		s.server.Close()
	})
	return s
}

// admit lets a partner in.
func (s *site) admit(token, name string, ids ...string) {
	c := gatewaytest.Realm("default", name)
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayTell}
	s.rt.Admit(token, c)
	s.rt.AddPartner(gateway.Partner{Name: name, Tenant: "default", IDs: ids, May: c.May})
}

func (s *site) expose(name string, run gatewaytest.Agent) {
	s.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: name}, run)
}

func (s *site) slow(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
	select {
	case <-s.release:
		return gateway.Answer{Body: "done"}
	case <-ctx.Done():
		return gateway.Answer{Outcome: gateway.Cancelled}
	}
}

// exposeAsks shows the test what an agent gets.
func (s *site) exposeAsks(name string) <-chan gateway.Ask {
	seen := make(chan gateway.Ask, 100)
	s.expose(name, func(_ context.Context, t *gatewaytest.Turn) gateway.Answer {
		seen <- t.Ask
		return gateway.Answer{Body: t.Ask.Body}
	})
	return seen
}

// send sends a message and returns what came back.
func (s *site) send(t *testing.T, m acptest.Message, header ...string) acptest.Reply {
	t.Helper()
	return s.sendText(t, m.Text(), header...)
}

func (s *site) sendText(t *testing.T, text string, header ...string) acptest.Reply {
	t.Helper()
	r, err := s.Send(text, header...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
