package amp_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
)

// Bounds of one idle socket or call, both sides of it.
const (
	mostIdleBytes      = 256 << 10 // heap and stacks; 87 KiB of a WebSocket and 157 KiB of a call on a connection of its own were measured
	mostIdleGoroutines = 18        // 4 of a WebSocket and 15 of such a call were measured
)

// TestIdleMemory (M-094, M-097): a WebSocket and a call of gRPC cost so much while they say nothing;
// the one beyond the limit of the realm is refused with the setting's name, and a message of another
// on an open one, and of another realm, is answered beside all of them. SKEP_TEST_SOCKETS is
// another number. It is not parallel: it looks at the whole process.
func TestIdleMemory(t *testing.T) {
	n := gatewaytest.Sockets(100)
	for kind, open := range map[string]func(t *testing.T, s *site, token, agent string) (refused string){
		"WebSocket": func(t *testing.T, s *site, token, agent string) string {
			question := amptest.Mail(agent, "echo", "x").Text()
			c := s.dial(t, token)
			err := c.Send(t.Context(), question)
			for tries := 0; tries < 10 && errors.Is(err, net.ErrClosed); tries++ { // it was refused before it could be read why
				c = s.dial(t, token)
				err = c.Send(t.Context(), question)
			}
			if err != nil {
				return err.Error()
			}
			m, err := c.Read(t.Context())
			if err == nil && m.Message.Type != "response" {
				t.Fatalf("got %s", m.Text())
			}
			return textOf(err)
		},
		"gRPC": func(t *testing.T, s *site, token, agent string) string {
			on := s.connect(t, bearer(token)...)
			_ = on.Send(rawMessage(amptest.Mail(agent, "echo", "x"))) // Recv has the error
			_, err := on.Recv()
			if err != nil && status.Code(err) != codes.ResourceExhausted {
				t.Fatal(err)
			}
			return textOf(err)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			s := newSite(t, func(o *amp.Options) { o.Sessions, o.Runtime = n, gatewaytest.Unrecorded{Runtime: o.Runtime} })
			s.admit("other-token", gateway.Partner{Name: "other", IDs: []string{"other-*"}})
			opened := func(token, agent string) {
				t.Helper()
				if refused := open(t, s, token, agent); refused != "" {
					t.Fatal(refused)
				}
			}
			opened(token, "agent-0")
			before, idle := gatewaytest.Footprint()
			for i := range n - 1 {
				opened(token, fmt.Sprint("agent-", i+1))
			}
			after, running := gatewaytest.Footprint()
			each, goroutines := (after-before)/int64(n-1), (running-idle)/(n-1)
			told := fmt.Sprintf("%d: %d bytes and %d goroutines each", n, each, goroutines)
			t.Log(told)
			if got := s.g.Health().Connections; each > mostIdleBytes || goroutines > mostIdleGoroutines || got != n {
				t.Errorf("%s; %d are open", told, got)
			}
			if why := open(t, s, token, "agent-more"); !strings.Contains(why, "raise sessions of [gateways.amp]") {
				t.Errorf("one more has %q", why)
			}
			opened("other-token", "other-1")
			wantText(t, s.send(t, amptest.Mail("agent-1", "echo", "beside them")), "beside them")
		})
	}
}

// textOf is the text of an error, empty for none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
