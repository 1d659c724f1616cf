package iacp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// TestRefusedConnections (I-053, I-060, I-062, I-063): a connection that ends before its peer is known has an
// event for the operator, with the peer's address and the reason. A check of health, and a peer that has
// left, have none.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	shake := iacptest.New("handshake", "depot-1", "", map[string]any{"versions": []string{"1.0"}})
	auth := iacptest.New("auth", "depot-1", "", map[string]any{"token": "another"})
	for name, c := range map[string]struct{ send, want string }{
		"half-open":          {"", "no whole message came within 0.1 s"},
		"garbage":            {strings.Repeat("\xde\xad", 500), "the frame is too large"},
		"another credential": {frame(string(shake.Text())) + frame(string(auth.Text())), "the credential is not valid here"},
		"a check of health":  {"GET /health HTTP/1.1\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(o *iacp.Options) {
				if name == "half-open" {
					impatient(o)
				}
			})
			raw := s.raw(t)
			if _, err := io.WriteString(raw, c.send); err != nil {
				t.Fatal(err)
			}
			ends(t, raw)
			_ = s.raw(t).Close() // and one that says nothing
			if c.want == "" {
				exchange(t, s.dial(t), task("after"), "task_response")
			}
			var reasons []string
			hosttest.Eventually(t, "an event", func() bool {
				reasons = nil
				for _, e := range s.rt.Events() {
					if e.Type == "connection" && e.Verdict == "refused" {
						reasons = append(reasons, e.Reason)
					}
				}
				return c.want == "" || len(reasons) > 0
			})
			if c.want == "" && len(reasons) > 0 || c.want != "" && (len(reasons) != 1 || !strings.HasPrefix(reasons[0], raw.LocalAddr().String()+": ") || !strings.Contains(reasons[0], c.want)) {
				t.Errorf("the events are %q", reasons)
			}
		})
	}
}

// TestPlainAtTLS (I-062): a peer that speaks IaCP without TLS, where it is with it, reads so.
func TestPlainAtTLS(t *testing.T) {
	t.Parallel()
	https := httptest.NewUnstartedServer(nil)
	https.StartTLS()
	t.Cleanup(https.Close)
	s := newSite(t, func(o *iacp.Options) {
		o.Listen = func(ctx context.Context) (net.Listener, error) {
			l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			return tls.NewListener(l, &tls.Config{Certificates: https.TLS.Certificates}), nil
		}
	})
	raw := s.raw(t)
	shake := iacptest.New("handshake", "depot-1", "", map[string]any{"versions": []string{"1.0"}})
	if _, err := io.WriteString(raw, frame(string(shake.Text()))); err != nil {
		t.Fatal(err)
	}
	if got := ends(t, raw); !strings.Contains(got, "the connection is without TLS, and IaCP is with it here") {
		t.Errorf("got %q", got)
	}
}

// TestAfterClose (I-058, I-055): after its connection_close a peer's heartbeats are acknowledged while an
// answer is due, what it wants besides is refused, and the end comes after the answer. Bytes that come
// later do not take the answer from it.
func TestAfterClose(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := newSlowAgent(s)
	c := s.dial(t, "ack")
	m := slowTask(0)
	exchange(t, c, m, "ack")
	heartbeat := iacptest.New("heartbeat", "depot-1", "", map[string]any{})
	for _, sent := range []iacptest.Message{iacptest.New("connection_close", "depot-1", "", map[string]any{}), heartbeat} {
		if err := c.Send(sent.Text()); err != nil {
			t.Fatal(err)
		}
	}
	readSilently(t, c, "heartbeat_ack")
	for _, kind := range []string{"agent_discover", "agent_register", "message_status"} {
		asked := iacptest.New(kind, "depot-1", "", map[string]any{"agent_info": map[string]any{"agent_id": "depot-1"}})
		if got := exchange(t, c, asked, "error_response"); got.Parent != asked.ID || !strings.Contains(fmt.Sprint(got.Payload["error_message"]), "being closed") {
			t.Errorf("%s: %s", kind, got.Raw)
		}
	}
	agent.answers <- "yes"
	acknowledge(t, c, readSilently(t, c, "task_response"))
	if _, err := c.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("then %v", err)
	}
}

// TestBytesAfterTheAnswer (I-058): what a peer sends after its connection_close, when it has its answers,
// does not reset the connection, which could take from it what it has not read.
func TestBytesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := newSlowAgent(s)
	c := s.dial(t)
	for _, m := range []iacptest.Message{slowTask(0), iacptest.New("connection_close", "depot-1", "", map[string]any{})} {
		if err := c.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	agent.answers <- "yes"
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.Conn, first); err != nil { // the answer is here
		t.Fatal(err)
	}
	for range 100 {
		if err := c.Send(iacptest.New("heartbeat", "depot-1", "", map[string]any{}).Text()); err != nil {
			t.Fatal(err)
		}
	}
	if rest, err := io.ReadAll(c.Conn); err != nil || !strings.Contains(string(rest), `"status":"completed"`) {
		t.Errorf("got %q, %v", rest, err)
	}
}
