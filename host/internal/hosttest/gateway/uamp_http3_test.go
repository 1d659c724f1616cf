package gateway_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/hosttest"
)

// client3 is a client of HTTP/3 with a connection of its own.
func (s *uampSite) client3(t *testing.T) *http.Client {
	t.Helper()
	tr := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots, ServerName: "hive.example"}}
	t.Cleanup(func() { _ = tr.Close() })
	return &http.Client{Transport: tr}
}

// TestUAMPOverHTTP3 (U-052, U-053, U-056, V-U22, V-U38): an envelope comes over HTTP/3, at the
// port that the answers over HTTP/2 announce. Its stream is read by the number of the QUIC
// stream on its connection, and by its name everywhere; each binding goes on where another
// has stopped.
func TestUAMPOverHTTP3(t *testing.T) {
	t.Parallel()
	s := newUAMPSite(t, "http3 = true")
	two := s.client(t, func(*tls.Config, *http.Transport) {})
	announced, _ := s.send(t, two, http.MethodGet, "/.well-known/did.json", "", "")
	if got, want := announced.Header.Get("Alt-Svc"), `h3=":`+s.Addr()[strings.LastIndexByte(s.Addr(), ':')+1:]+`"; ma=3600`; got != want {
		t.Errorf("Alt-Svc is %q, want %q", got, want)
	}
	three, elsewhere := s.client3(t), s.client3(t)
	if rsp, text := s.send(t, three, http.MethodPost, "/v1/messages", "", s.newAsk(t)); rsp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a credential: %s %s", rsp.Status, text)
	}
	rsp, text := s.send(t, three, http.MethodPost, "/v1/messages", labToken, s.newAsk(t))
	at, number := rsp.Header.Get("Location"), rsp.Header.Get("UAMP-QUIC-Stream")
	if rsp.StatusCode != http.StatusAccepted || at == "" || number != "4" || rsp.ProtoMajor != 3 {
		t.Fatalf("%s %v %s", rsp.Status, rsp.Header, text)
	}
	_, begin := s.send(t, three, http.MethodGet, "/v1/stream/"+number, labToken, "")
	if strings.Count(begin, "data: ") != 2 || !strings.Contains(begin, strings.TrimPrefix(at, "/v1/stream/")) {
		t.Errorf("by its number: %s", begin)
	}
	for _, c := range []*http.Client{elsewhere, two} {
		if rsp, text := s.send(t, c, http.MethodGet, "/v1/stream/"+number, labToken, ""); rsp.StatusCode != http.StatusNotFound {
			t.Errorf("by its number on another connection: %s %s", rsp.Status, text)
		}
		if _, again := s.send(t, c, http.MethodGet, at, labToken, ""); deltasOf(again) != deltasOf(begin) {
			t.Errorf("by its name on another connection: %s", again)
		}
	}
	if _, end := s.send(t, elsewhere, http.MethodGet, at, labToken, "", "Last-Event-ID", "1"); !strings.Contains(end, `"type":"done"`) {
		t.Errorf("the end: %s", end)
	}
	if rsp, _ := s.send(t, three, http.MethodGet, "/v1/stream/8", labToken, ""); rsp.StatusCode != http.StatusNotFound {
		t.Errorf("a number of no envelope: %s", rsp.Status)
	}
	s.Restart()
	if _, again := s.send(t, s.client3(t), http.MethodGet, at, labToken, ""); deltasOf(again) != deltasOf(begin) {
		t.Errorf("after a restart: %s", again)
	}
}

// TestUAMPQUICStreamID (U-053, V-U38): in the profile strict the stream of an envelope without a
// stream_id is called by the number of its QUIC stream on that connection, in Location, in its deltas
// and in what is sent about it; elsewhere by its name. Another envelope of the connection cannot
// have the number as its stream_id, and one with a stream_id keeps that.
func TestUAMPQUICStreamID(t *testing.T) {
	t.Parallel()
	s := newUAMPSite(t, "http3 = true\nprofile = \"strict\"")
	three, elsewhere := s.client3(t), s.client3(t)
	ask, name := s.askFor(t, "a", "b")
	rsp, text := s.send(t, three, http.MethodPost, "/v1/messages", labToken, ask)
	if got := rsp.Header.Get("Location"); rsp.StatusCode != http.StatusAccepted || got != "/v1/stream/0" || rsp.Header.Get("UAMP-QUIC-Stream") != "0" {
		t.Fatalf("%s %v %s", rsp.Status, rsp.Header, text)
	}
	_, begin := s.send(t, three, http.MethodGet, "/v1/stream/0", labToken, "")
	if strings.Count(begin, `"stream_id":"0"`) != 2 || strings.Count(begin, "data: ") != 2 {
		t.Errorf("by its number: %s", begin)
	}
	if _, again := s.send(t, elsewhere, http.MethodGet, "/v1/stream/"+name, labToken, ""); deltasOf(again) != strings.ReplaceAll(deltasOf(begin), `"stream_id":"0"`, `"stream_id":"`+name+`"`) {
		t.Errorf("by its name: %s", again)
	}
	if rsp, text := s.send(t, elsewhere, http.MethodGet, "/v1/stream/0", labToken, ""); rsp.StatusCode != http.StatusNotFound {
		t.Errorf("by its number elsewhere: %s %s", rsp.Status, text)
	}
	about := func(e envelope.Envelope) string {
		e.Stream = "0"
		return s.sign(t, e)
	}
	if rsp, text := s.send(t, three, http.MethodPost, "/v1/messages", labToken, about(envelope.Envelope{Intent: envelope.Progress, Body: envelope.NewBody("application/json", []byte(`{"ack":1}`))})); rsp.StatusCode != http.StatusAccepted {
		t.Errorf("an acknowledgement by its number: %s %s", rsp.Status, text)
	}
	taken := about(envelope.Envelope{Intent: envelope.Ask, Body: envelope.NewBody("text/plain", []byte(hosttest.Script(hosttest.Step{"task_complete", hosttest.Args{"finish_message": "x"}})))})
	if rsp, text := s.send(t, three, http.MethodPost, "/v1/messages", labToken, taken); rsp.StatusCode != http.StatusConflict || !strings.Contains(text, "4.09") {
		t.Errorf("another envelope with the number: %s %s", rsp.Status, text)
	}
	if rsp, text := s.send(t, elsewhere, http.MethodPost, "/v1/messages", labToken, taken); rsp.Header.Get("Location") != "/v1/stream/0" {
		t.Errorf("the same elsewhere: %s %s", rsp.Status, text)
	} else if _, text := s.send(t, elsewhere, http.MethodGet, "/v1/stream/0", labToken, ""); !strings.Contains(text, `"stream_id":"0"`) || !strings.Contains(text, `"type":"done"`) {
		t.Errorf("its stream: %s", text)
	}
}

// TestUAMPClientOfOthers (U-052): the client of the ngtcp2 project reads documents over HTTP/3,
// also on a connection that resumes one before with early data.
func TestUAMPClientOfOthers(t *testing.T) {
	t.Parallel()
	program := hosttest.SystemProgram(t, "gtlsclient")
	s := newUAMPSite(t, "http3 = true")
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second with the session and the token of the first
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), program, "--quiet", "--exit-on-all-streams-close", "--timeout=10s", "--download="+dir,
			"--session-file="+filepath.Join(s.Dir, "session"), "--tp-file="+filepath.Join(s.Dir, "parameters"),
			host, port, "https://hive.example/.well-known/did.json", "https://hive.example/.well-known/agent-hub.json")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, name := range []string{"did.json", "agent-hub.json"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), "did:web:hive.example") {
				t.Errorf("%s: %s %v", name, text, err)
			}
		}
	}
}
