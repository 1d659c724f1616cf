package iacp_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"skep/host/internal/gateway/iacp/iacptest"
)

// TestLeavesWithPending (I-058, V-I16): a host that stops, and a peer that closes, get through what is
// pending: three questions have their answers, each once, before the connection ends.
func TestLeavesWithPending(t *testing.T) {
	t.Parallel()
	for name, peerCloses := range map[string]bool{"the host stops": false, "the peer closes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := make(chan error, 1)
			t.Run("site", func(t *testing.T) {
				s := newSite(t)
				agent := newSlowAgent(s)
				c, err := iacptest.Dial(s.addr, token, "ack")
				if err != nil {
					t.Fatal(err)
				}
				asked := map[string]bool{}
				for range 3 {
					m := slowTask(0)
					asked[m.ID] = true
					exchange(t, c, m, "ack")
				}
				if peerCloses {
					if err := c.Send(iacptest.New("connection_close", "depot-1", "", map[string]any{"reason": "enough"}).Text()); err != nil {
						t.Fatal(err)
					}
					go func() { left <- readPending(c, agent, asked) }()
					return
				}
				go func() {
					m, err := c.Read()
					if err == nil && m.Type != "connection_close" {
						err = fmt.Errorf("the host leaves with %s", m.Raw)
					}
					left <- errors.Join(err, readPending(c, agent, asked))
				}()
			})
			if err := <-left; err != nil {
				t.Error(err)
			}
		})
	}
}

// readPending lets an agent answer, and reads an answer to each question and then the end.
func readPending(c *iacptest.Conn, agent *slowAgent, asked map[string]bool) error {
	defer c.Close()
	for n := range 3 {
		agent.answers <- fmt.Sprint(n)
	}
	for len(asked) > 0 {
		m, err := c.Read()
		switch {
		case err != nil:
			return fmt.Errorf("%d answers are missing: %w", len(asked), err)
		case m.Type == "connection_close":
			continue
		case m.Type != "task_response" || !asked[m.Parent]:
			return fmt.Errorf("got %s", m.Raw)
		}
		delete(asked, m.Parent)
		if err := c.Send(m.Reply("ack", map[string]any{"message_id": m.ID}).Text()); err != nil {
			return err
		}
	}
	for {
		m, err := c.Read()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if m.Type != "connection_close" {
			return fmt.Errorf("then it gets %s", m.Raw)
		}
	}
}
