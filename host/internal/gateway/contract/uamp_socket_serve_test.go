package contract_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/uamp/envelope"
)

// serveUAMPSocket runs a foreign agent that answers over WebSockets.
func serveUAMPSocket(t testing.TB, address string, handle contract.Handler) (string, func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &uampServer{handle: handle, asked: map[envelope.ID]*uampStream{}}
	ctx, cancel := context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /uamp/1/ws", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(4 << 20)
		frames := &uampConn{Conn: conn}
		own := &uampServed{s: s, next: frames.next, reading: map[string]bool{}, send: func(ctx context.Context, text []byte) {
			_ = conn.Write(ctx, websocket.MessageBinary, append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
		}}
		own.serve(ctx)
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() {
		cancel()
		_ = server.Close()
	}
}

// uampServed is a socket of the foreign agent, or a call of gRPC with the same frames.
type uampServed struct {
	s    *uampServer
	next func(context.Context) ([]byte, error)
	send func(context.Context, []byte)

	mu      sync.Mutex
	reading map[string]bool
}

// serve takes frames until the socket ends, and with it what was asked on it.
func (c *uampServed) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		text, err := c.next(ctx)
		if err != nil {
			return
		}
		var ack struct {
			Seq     *int   `json:"delta_seq"`
			Stream  string `json:"stream_id"`
			Payload struct{ Ack int }
		}
		if json.Unmarshal(text, &ack) == nil && ack.Seq != nil {
			if x := c.s.find(envelope.ID(ack.Stream[len("str-"):])); x != nil {
				c.write(ctx, x, ack.Stream, ack.Payload.Ack+1)
			}
			continue
		}
		e, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read(bytes.Clone(text))
		if err != nil || e.Sig == "" {
			return
		}
		c.take(ctx, e.Envelope)
	}
}

// take handles an envelope, and confirms that it has come.
func (c *uampServed) take(ctx context.Context, e envelope.Envelope) {
	if e.Intent == envelope.Inform {
		_, _ = c.s.handle(ctx, uampMessage(e), func(contract.Piece) {})
	}
	if x := c.s.find(e.ReplyTo); e.Intent == envelope.Cancel && x != nil {
		x.cancel()
	}
	receipt := envelope.Envelope{
		ID: envelope.NewID(), Time: time.Now(), From: e.To[0], To: []string{e.From}, Intent: envelope.Progress, ReplyTo: e.ID,
		Window: envelope.DefaultWindow, Body: envelope.NewBody("application/json", []byte(`{"accepted":true}`)),
	}
	if e.Intent == envelope.Ask {
		receipt.Stream = e.Stream
	}
	key := uampKey("foreign").key
	c.send(ctx, signedText(receipt, key.WithID(receipt.From+"#key")))
	if e.Intent == envelope.Ask {
		c.write(ctx, c.s.ask(ctx, e), e.Stream, 0)
	}
}

// write writes a stream from a delta on, unless it is being written.
func (c *uampServed) write(ctx context.Context, x *uampStream, name string, next int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading[name] {
		return
	}
	c.reading[name] = true
	go func() {
		for {
			list, ended, more := x.after(next)
			for _, text := range list {
				c.send(ctx, inUAMPStream(text, name))
				next++
			}
			if ended {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// inUAMPStream is a delta under the name that the asker has given its stream.
func inUAMPStream(text, name string) []byte {
	var d map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		panic(err)
	}
	d["stream_id"] = quoted(name)
	return quoted(d)
}
