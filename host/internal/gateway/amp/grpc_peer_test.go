package amp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
)

// TestGRPCPeer (M-097, V-M35): another party's program without a library of gRPC asks, and has its answers,
// by the text of the service alone; it is shown why it is refused.
func TestGRPCPeer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, method := range []string{"Invoke", "Connect"} {
		call, err := amptest.BeginCall(t.Context(), s.server.URL, method, http.Header{"Authorization": {"Bearer " + token}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(call.Close)
		q := amptest.Mail("agent-1", "echo", "hello ☃")
		if err := errors.Join(call.Send(q.Text()), call.CloseSend()); err != nil {
			t.Fatal(err)
		}
		text, err := call.Read()
		if err != nil {
			t.Fatal(err)
		}
		if m := parsed(t, []byte(text)); m.Header("correlation_id") != q.Message.ID || m.Result()["text"] != "hello ☃" {
			t.Errorf("%s: got %s", method, text)
		}
		if _, err := call.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: then %v", method, err)
		}
		if code, why := call.End(); code != "0" {
			t.Errorf("%s: it ends with %s %s", method, code, why)
		}
	}
	call, err := amptest.BeginCall(t.Context(), s.server.URL, "Connect", http.Header{"Authorization": {"Bearer another"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(call.Close)
	if text, err := call.Read(); !errors.Is(err, io.EOF) {
		t.Fatalf("another token: %s, %v", text, err)
	}
	if code, why := call.End(); code != "16" || !strings.HasPrefix(why, "AUTHENTICATION_FAILED: ") {
		t.Errorf("another token: it ends with %s %s", code, why)
	}
}
