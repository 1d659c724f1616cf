package crash_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/iacp/iacptest"
)

// soakUnread is how long a caller that reads nothing keeps its connection.
const soakUnread = 3 * time.Second

// iacpCaller asks over a connection, and opens another one after an error.
func (s *soak) iacpCaller() *soakCaller {
	var c *iacptest.Conn
	leave := func() {
		if c != nil {
			_ = c.Close()
			c = nil
		}
	}
	send := func(q iacptest.Message, limit time.Duration) (err error) {
		if c == nil {
			if c, err = s.dialIACP(limit); err != nil {
				return err
			}
		}
		if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
			return err
		}
		return c.Send(q.Text())
	}
	return &soakCaller{name: "iacp", leave: leave, spoil: s.spoilIACP,
		prepare: func(_, text string) func(time.Duration) (string, error) {
			q := iacpQuestion(text)
			return func(limit time.Duration) (answer string, err error) {
				if err = send(q, limit); err == nil {
					answer, err = readIACP(c, q.ID)
				}
				if err != nil {
					leave()
				}
				return answer, err
			}
		},
		stop: func(texts []string) error {
			defer leave()
			for _, text := range texts {
				if err := send(iacpQuestion(text), soakLimit); err != nil {
					return err
				}
			}
			time.Sleep(soakUnread)
			return nil
		},
	}
}

func iacpQuestion(text string) iacptest.Message {
	return iacptest.New("task_request", "guest-1", "goal", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"body": text}})
}

func (s *soak) dialIACP(limit time.Duration) (*iacptest.Conn, error) {
	raw, err := tls.Dial("tcp", s.iacp, s.e.TLS())
	if err != nil {
		return nil, err
	}
	c := iacptest.Begun(raw)
	err = raw.SetDeadline(time.Now().Add(limit))
	if err == nil {
		err = c.Begin(soakKey + "iacp")
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

// readIACP reads the answer to a question.
func readIACP(c *iacptest.Conn, id string) (string, error) {
	for {
		m, err := c.Read()
		switch {
		case err != nil:
			return "", err
		case m.Parent != id || m.Type == "acknowledgment":
		case m.Type != "task_response":
			return "", errors.New(m.Raw)
		default:
			return m.Raw, nil
		}
	}
}

// spoilIACP sends a frame that is no message. It is refused by an error or the end of the connection.
func (s *soak) spoilIACP() error {
	c, err := s.dialIACP(soakLimit)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Send([]byte(`{"nonsense":`)); err != nil {
		return err
	}
	for { // past registrations of the host's agents
		switch m, err := c.Read(); {
		case err != nil && os.IsTimeout(err):
			return fmt.Errorf("%w: %w", errTaken, err)
		case err != nil || strings.Contains(m.Raw, "INVALID_MESSAGE_FORMAT"):
			return nil
		}
	}
}

// ampSocketCaller asks over a WebSocket, and opens another one after an error.
func (s *soak) ampSocketCaller() *soakCaller {
	h := s.http("/amp/v1/ws", soakKey+"amp")
	var c *websocket.Conn
	leave := func() {
		if c != nil {
			_ = c.CloseNow()
			c = nil
		}
	}
	send := func(ctx context.Context, text string) (err error) {
		if c == nil {
			c, _, err = websocket.Dial(ctx, strings.Replace(h.url, "https", "wss", 1), &websocket.DialOptions{
				HTTPClient: &http.Client{Transport: h.Transport}, HTTPHeader: http.Header{"Authorization": {"Bearer " + h.key}},
			})
			if err != nil {
				return err
			}
		}
		return c.Write(ctx, websocket.MessageText, []byte(text))
	}
	ask := func(limit time.Duration, text, id, kind string) (answer string, err error) {
		ctx, cancel := context.WithTimeout(s.t.Context(), limit)
		defer cancel()
		if err = send(ctx, text); err == nil {
			answer, err = readAMP(ctx, c, id, kind)
		}
		if err != nil {
			leave()
		}
		return answer, err
	}
	return &soakCaller{name: "amp-socket", leave: leave,
		spoil: func() error { _, err := ask(soakLimit, `{"nonsense":`, "", "error"); return err },
		prepare: func(id, text string) func(time.Duration) (string, error) {
			q := ampQuestion("guest-2", id, text)
			return func(limit time.Duration) (string, error) { return ask(limit, q.Text(), id, "response") }
		},
		stop: func(texts []string) error {
			defer leave()
			for _, text := range texts {
				id := strings.TrimSuffix(strings.TrimPrefix(text, "question "), ";")
				if err := send(s.t.Context(), ampQuestion("guest-2", id, text).Text()); err != nil {
					return err
				}
			}
			time.Sleep(soakUnread)
			return nil
		},
	}
}

// readAMP reads the message of a type about another one.
func readAMP(ctx context.Context, c *websocket.Conn, id, kind string) (string, error) {
	for {
		_, text, err := c.Read(ctx)
		if err != nil {
			return "", err
		}
		m, err := amptest.Parse(text)
		switch {
		case err != nil:
			return "", err
		case m.Header("correlation_id") != id:
		case m.Message.Type != kind:
			return "", errors.New(m.Text())
		default:
			return m.Text(), nil
		}
	}
}
