package acptest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Socket is a WebSocket: one message a text.
type Socket struct{ conn *websocket.Conn }

// Dial opens a WebSocket of the host at a URL.
func Dial(ctx context.Context, url, token string) (*Socket, error) {
	conn, _, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1)+"/acp/v1/ws", &websocket.DialOptions{
		Subprotocols: []string{"acp.v1"}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(2 << 20)
	return &Socket{conn}, nil
}

// Send sends a text.
func (s *Socket) Send(ctx context.Context, text string) error {
	return s.conn.Write(ctx, websocket.MessageText, []byte(text))
}

// Read reads the next message. The error of a socket that the host has closed has the
// host's reason.
func (s *Socket) Read(ctx context.Context) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	text, err := s.ReadText(ctx)
	if err != nil {
		return Message{}, err
	}
	return Parse(text)
}

// ReadText reads the next text.
func (s *Socket) ReadText(ctx context.Context) ([]byte, error) {
	_, text, err := s.conn.Read(ctx)
	return text, err
}

// Close leaves without a word.
func (s *Socket) Close() { _ = s.conn.CloseNow() }
