package acp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestSocketRefused: a WebSocket without the subprotocol acp.v1 is not opened, and a
// binary frame ends one.
func TestSocketRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	url := strings.Replace(s.server.URL, "http", "ws", 1) + "/acp/v1/ws"
	o := websocket.DialOptions{HTTPClient: s.server.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer " + s.Token}}}
	conn, r, err := websocket.Dial(t.Context(), url, &o)
	if err == nil {
		_ = conn.CloseNow()
	}
	if err == nil || r == nil || r.StatusCode != http.StatusBadRequest {
		t.Fatalf("without a subprotocol: %v, %v", r, err)
	}
	o.Subprotocols = []string{"acp.v1"}
	conn, _, err = websocket.Dial(t.Context(), url, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	if err := conn.Write(t.Context(), websocket.MessageBinary, []byte(document)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("after a binary frame: %v", err)
	}
}
