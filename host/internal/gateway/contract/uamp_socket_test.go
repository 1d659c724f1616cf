package contract_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/uamp/envelope"
)

// TestUAMPSocket (U-054, U-056, G-042): the contract of gateways, held by UAMP over
// WebSockets in both directions.
func TestUAMPSocket(t *testing.T) {
	t.Parallel()
	p := uampProtocol()
	dial := p.Dial
	p.Serve, p.Dial = serveUAMPSocket, func(t testing.TB, url, token string) contract.Client {
		return uampSocketClient{dial(t, url, token).(uampClient)}
	}
	p.Partner += fmt.Sprintf("\nbinding = \"websocket\"\nkeys = [%q, %q, %q]", uampKey("depot-1").key.Public().JWK(), uampKey("depot-7").key.Public().JWK(), uampKey("foreign").key.Public().JWK())
	contract.Run(t, p)
}

// uampSocketClient is a realm's agent that connects for each message.
type uampSocketClient struct{ uampClient }

// uampConn is its connection.
type uampConn struct {
	*websocket.Conn
	rest []byte
}

func (c uampSocketClient) connect(ctx context.Context) (*uampConn, error) {
	conn, rsp, err := websocket.Dial(ctx, c.url+"/uamp/1/ws", &websocket.DialOptions{HTTPClient: c.calls, HTTPHeader: http.Header{"Authorization": {"Bearer " + c.token}}})
	if err != nil && rsp != nil {
		err = &contract.Refused{Reason: uampStatuses[rsp.StatusCode], Text: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(4 << 20)
	return &uampConn{Conn: conn}, nil
}

func (c *uampConn) send(ctx context.Context, text []byte) error {
	return c.Write(ctx, websocket.MessageBinary, append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
}

// next reads a frame. The reason of a connection that was closed is a refusal.
func (c *uampConn) next(ctx context.Context) (text []byte, err error) {
	for len(c.rest) < 4 || len(c.rest) < 4+int(binary.BigEndian.Uint32(c.rest)) {
		_, message, err := c.Read(ctx)
		if err != nil {
			return nil, closedUAMP(err)
		}
		c.rest = append(c.rest, message...)
	}
	n := 4 + int(binary.BigEndian.Uint32(c.rest))
	text, c.rest = c.rest[4:n:n], c.rest[n:]
	return text, nil
}

// closedUAMP is why a connection ended.
func closedUAMP(err error) error {
	var closed websocket.CloseError
	if !errors.As(err, &closed) {
		return err
	}
	reasons := map[websocket.StatusCode]contract.Reason{
		websocket.StatusInvalidFramePayloadData: contract.Invalid, websocket.StatusUnsupportedData: contract.Invalid, websocket.StatusMessageTooBig: contract.Large,
		websocket.StatusPolicyViolation: contract.NoCredential, websocket.StatusTryAgainLater: contract.Busy, websocket.StatusGoingAway: contract.Stopping,
	}
	reason := reasons[closed.Code]
	if strings.Contains(closed.Reason, "too large") {
		reason = contract.Large
	}
	return &contract.Refused{Reason: reason, Text: closed.Reason}
}

// uampTold is what a frame of the host has.
type uampTold struct {
	Intent envelope.Intent
	Seq    *int `json:"delta_seq"`
	Body   struct{ Content string }
}

// Send implements [contract.Client].
func (c uampSocketClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	s, err := c.Post(ctx, c.Encode(m))
	if err != nil || m.Kind == contract.Tell {
		return s, err
	}
	return c.Read(ctx, m, 0, func(contract.Piece) {})
}

// Post implements [contract.Client]: it waits for the receipt.
func (c uampSocketClient) Post(ctx context.Context, body []byte) (s contract.State, err error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return s, err
	}
	defer conn.CloseNow()
	if err := conn.send(ctx, body); err != nil {
		return s, closedUAMP(err)
	}
	text, err := conn.next(ctx)
	if err != nil {
		return s, err
	}
	var m uampTold
	if err := json.Unmarshal(text, &m); err != nil {
		return s, err
	}
	if m.Intent == envelope.Error {
		return s, uampRefusal(0, text)
	}
	return contract.State{Status: contract.Working}, nil
}

// Read implements [contract.Client]. It acknowledges each delta.
func (c uampSocketClient) Read(ctx context.Context, m contract.Message, from int64, each func(contract.Piece)) (s contract.State, err error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return s, err
	}
	defer conn.CloseNow()
	var mu sync.Mutex
	reader := &uampReader{from: from, each: func(p contract.Piece) {
		mu.Lock()
		defer mu.Unlock()
		each(p)
	}}
	var opening sync.WaitGroup
	defer opening.Wait()
	defer conn.CloseNow()
	for first := true; !reader.ended; first = false {
		ack, err := json.Marshal(map[string]any{
			"delta_seq": max(0, reader.next-1), "stream_id": "str-" + string(uampID(m.ID)), "ts": c.at.UTC().Format("2006-01-02T15:04:05Z"), "type": "progress",
			"payload": map[string]any{"ack": reader.next - 1},
		})
		if err != nil {
			return s, err
		}
		if err := conn.send(ctx, ack); err != nil {
			return s, closedUAMP(err)
		}
		if first {
			opening.Go(func() {
				if conn.Ping(ctx) == nil { // the host has taken the acknowledgement before
					reader.each(contract.Piece{})
				}
			})
		}
		if err := c.readFrames(ctx, conn, reader); err != nil {
			return s, err
		}
	}
	reader.state.Thread = c.thread(m)
	return reader.state, nil
}

// readFrames reads frames until a delta has come.
func (c uampSocketClient) readFrames(ctx context.Context, conn *uampConn, reader *uampReader) error {
	for {
		text, err := conn.next(ctx)
		if err != nil {
			return err
		}
		var m uampTold
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		if m.Seq != nil {
			return reader.delta(string(text))
		}
		if m.Intent == envelope.Error {
			return uampRefusal(0, text)
		}
	}
}
