package amptest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Socket is a WebSocket: one message a text. It reads all the time, so that pings have
// answers.
type Socket struct {
	conn *websocket.Conn
	came chan read
}

// read is what one read has brought.
type read struct {
	text []byte
	err  error
}

// Dial opens the WebSocket of a host beside an address for messages, with fields of its
// header.
func Dial(ctx context.Context, invoke string, header http.Header) (*Socket, error) {
	url := strings.Replace(strings.TrimSuffix(invoke, "invoke")+"ws", "http", "ws", 1)
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(2 << 20)
	s := &Socket{conn, make(chan read, 1000)}
	go func() {
		defer close(s.came)
		for {
			_, text, err := conn.Read(context.Background())
			s.came <- read{text, err}
			if err != nil {
				return
			}
		}
	}()
	return s, nil
}

// Send sends a text.
func (s *Socket) Send(ctx context.Context, text string) error {
	return s.conn.Write(ctx, websocket.MessageText, []byte(text))
}

// Read waits a minute for the next message. The error of a socket that the host has closed
// has the host's reason.
func (s *Socket) Read(ctx context.Context) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	text, err := s.ReadText(ctx)
	if err != nil {
		return Message{}, err
	}
	return Parse([]byte(text))
}

// ReadText waits for the next text.
func (s *Socket) ReadText(ctx context.Context) (string, error) {
	select {
	case r, open := <-s.came:
		if !open {
			return "", errors.New("the socket has ended")
		}
		return string(r.text), r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Close leaves without a word.
func (s *Socket) Close() { _ = s.conn.CloseNow() }
