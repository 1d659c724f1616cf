package gateway_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestUAMPCurl (U-040, U-050, U-051, U-065, U-104): curl posts a signed envelope over HTTP/2, reads
// the stream at its Location in two windows, and gets the signed error of one that was altered.
// One that is larger than the listener reads is refused in the same form as one that is larger than
// max_body. HTTP/1.1 is answered with 505.
func TestUAMPCurl(t *testing.T) {
	t.Parallel()
	s := newUAMPSite(t, "")
	program := hosttest.SystemProgram(t, "curl")
	port := s.Addr()[strings.LastIndexByte(s.Addr(), ':')+1:]
	base := "https://hive.example:" + port
	// curl returns a response with its header, as curl has written it.
	curl := func(body, path string, flags ...string) string {
		t.Helper()
		flags = append(flags, "--silent", "--show-error", "--include", "--max-time", "60", "--cacert", filepath.Join(s.Dir, "ca.pem"),
			"--resolve", "hive.example:"+port+":127.0.0.1", "--header", "Authorization: Bearer "+labToken, base+path)
		if body != "" {
			flags = append(flags, "--data-binary", "@-", "--header", "Content-Type: application/uamp+json;v=1")
		}
		cmd := exec.CommandContext(t.Context(), program, flags...)
		cmd.Stdin = strings.NewReader(body)
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return string(text)
	}
	ask, stream := s.askFor(t, "a", "b")
	at := "/v1/stream/" + stream
	if got := curl(ask, "/v1/messages", "--http2"); !strings.HasPrefix(got, "HTTP/2 202") || !strings.Contains(got, "location: "+at+"\r\n") {
		t.Fatalf("%s", got)
	}
	begin, end := curl("", at, "--http2", "--no-buffer"), curl("", at, "--http2", "--no-buffer", "--header", "Last-Event-ID: 1")
	for name, text := range map[string]string{"\nid: 0": begin, "\nid: 1": begin, `"text":"b"`: begin, "\nid: 2": end, `"type":"done"`: end} {
		if !strings.HasPrefix(text, "HTTP/2 200") || !strings.Contains(text, "text/event-stream") || !strings.Contains(text, name) {
			t.Errorf("%s is not in %s", name, text)
		}
	}
	if strings.Contains(begin, "\nid: 2") || strings.Contains(end, "\nid: 1") {
		t.Errorf("the windows are\n%s\nand\n%s", begin, end)
	}
	altered := strings.Replace(s.newAsk(t), "done", "gone", 1)
	if got := curl(altered, "/v1/messages", "--http2"); !strings.HasPrefix(got, "HTTP/2 401") || !strings.Contains(got, `"intent":"error"`) || !strings.Contains(got, `"sig":`) {
		t.Errorf("altered: %s", got)
	}
	for _, size := range []int{1<<20 + 1, 2 << 20, 5 << 20} {
		if got := curl(strings.Repeat(" ", size), "/v1/messages", "--http2"); !strings.HasPrefix(got, "HTTP/2 413") || !strings.Contains(got, "content-type: application/problem+json\r\n") || !strings.Contains(got, `"code":"4.13"`) {
			t.Errorf("%d bytes: %s", size, got)
		}
	}
	if got := curl(s.newAsk(t), "/v1/messages", "--http1.1"); !strings.HasPrefix(got, "HTTP/1.1 505 "+http.StatusText(http.StatusHTTPVersionNotSupported)) {
		t.Errorf("over HTTP/1.1: %s", got)
	}
}
