package isolation

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// heard keeps all that the host has told the hostile tenant, headers included.
type heard struct {
	mu        sync.Mutex
	text      bytes.Buffer
	transport http.Transport
}

func (h *heard) client() *http.Client { return &http.Client{Transport: h} }

func (h *heard) close() { h.transport.CloseIdleConnections() }

// RoundTrip implements [http.RoundTripper].
func (h *heard) RoundTrip(r *http.Request) (*http.Response, error) {
	rsp, err := h.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	err = rsp.Header.Write(&head)
	_, _ = h.Write(head.Bytes())
	rsp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(rsp.Body, h), rsp.Body}
	return rsp, err
}

// Write keeps a piece; it never fails.
func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) has(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.text.String(), text)
}

// logbook keeps the host's log.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps a piece; it never fails.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// line is one line of an agent's log.
type line struct {
	Message string `json:"msg"`
	Tenant  string `json:"tenant"`
	Agent   string `json:"agent"`
	Task    string `json:"task_id"`
}

// agents returns what agents have logged so far.
func (l *logbook) agents() (lines []line, err error) {
	l.mu.Lock()
	text := bytes.Clone(l.text.Bytes())
	l.mu.Unlock()
	for dec := json.NewDecoder(bytes.NewReader(text)); dec.More(); {
		var x line
		if err := dec.Decode(&x); err != nil {
			return nil, err
		}
		if x.Agent != "" && x.Task != "" {
			lines = append(lines, x)
		}
	}
	return lines, nil
}
