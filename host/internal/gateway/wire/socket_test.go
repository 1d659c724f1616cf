package wire_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway/wire"
)

// TestReadSocketSlow: a message whose last fragment does not come ends its socket with the
// reason, though its peer reads and answers pings; a whole one is read.
func TestReadSocketSlow(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{true, false} {
		within := 50 * time.Millisecond
		if whole {
			within = time.Minute
		}
		got := make(chan error, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				got <- err
				return
			}
			defer conn.CloseNow()
			conn.SetReadLimit(-1)
			_, _, err = wire.ReadSocket(r.Context(), conn, 1<<20, wire.Within(within))
			got <- err
			_ = conn.Close(websocket.StatusNormalClosure, "")
		}))
		t.Cleanup(server.Close)
		conn, _, err := websocket.Dial(t.Context(), server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		w, err := conn.Writer(t.Context(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
		want := websocket.StatusPolicyViolation
		if whole {
			want = websocket.StatusNormalClosure
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != want {
			t.Errorf("whole %v: the peer has %v", whole, err)
		}
		if err := <-got; errors.Is(err, wire.ErrSlowMessage) == whole || whole && err != nil {
			t.Errorf("whole %v: %v", whole, err)
		}
	}
}
