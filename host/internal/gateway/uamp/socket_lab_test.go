package uamp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/frame"
)

// labSocket is a WebSocket to the lab, or a call of gRPC, on which it does what it does with
// requests of HTTP.
type labSocket struct {
	l *lab
	// send writes a frame, shut ends the connection.
	send func(text string)
	shut func(code websocket.StatusCode, reason string)

	mu sync.Mutex
	// streams are those that are written.
	streams map[string]bool
}

func (l *lab) serveSocket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"uamp.1"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	s := &labSocket{
		l: l, streams: map[string]bool{},
		send: func(text string) {
			_ = conn.Write(r.Context(), websocket.MessageBinary, frame.Append(nil, []byte(text)))
		},
		shut: func(code websocket.StatusCode, reason string) { _ = conn.Close(code, reason) },
	}
	frames := frame.NewDecoder(1<<20, true)
	for {
		kind, message, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		list, err := frames.Add(message, kind == websocket.MessageText)
		if err != nil {
			l.t.Errorf("the host sends %q: %v", message, err)
			return
		}
		for _, text := range list {
			s.take(bytes.Clone(text))
		}
	}
}

// take does with a frame what the lab does with a request.
func (s *labSocket) take(text []byte) {
	s.l.mu.Lock()
	frame := s.l.frame
	s.l.mu.Unlock()
	if frame != nil && frame(s, text) {
		return
	}
	var ack struct {
		Seq     *int   `json:"delta_seq"`
		Stream  string `json:"stream_id"`
		Payload struct{ Ack int }
	}
	if json.Unmarshal(text, &ack) == nil && ack.Seq != nil {
		s.stream(ack.Stream, ack.Payload.Ack+1)
		return
	}
	rsp := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, "/v1/messages", bytes.NewReader(text))
	req.Header.Set("Content-Type", "application/uamp+json;v=1")
	s.l.ServeHTTP(rsp, req)
	e, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read(text)
	if err != nil {
		s.l.t.Errorf("the host sends %s: %v", text, err)
		return
	}
	s.answer(e, rsp)
}

// answer sends a response as frames: one without a word for it closes the socket.
func (s *labSocket) answer(e envelope.Signed, rsp *httptest.ResponseRecorder) {
	stream := ""
	if _, name, has := strings.Cut(rsp.Header().Get("Location"), "/v1/stream/"); has {
		stream, _ = url.PathUnescape(name)
	}
	named := func(e *envelope.Envelope) { e.Stream = stream }
	switch kind := rsp.Header().Get("Content-Type"); {
	case strings.HasPrefix(kind, "application/uamp+json"):
		s.send(rsp.Body.String())
	case rsp.Code == http.StatusAccepted:
		s.send(s.l.reply(e, envelope.Progress, "application/json", `{"accepted":true}`, named))
	case rsp.Code == http.StatusTooManyRequests || rsp.Code == http.StatusServiceUnavailable:
		wait := 0
		_, _ = fmt.Sscan(rsp.Header().Get("Retry-After"), &wait)
		s.send(s.l.reply(e, envelope.Error, "application/json", fmt.Sprintf(`{"code":"5.04","message":"busy","retry":true,"retry_after":%d}`, wait)))
	case rsp.Code == http.StatusForbidden:
		var p struct{ Code, Detail string }
		_ = json.Unmarshal(rsp.Body.Bytes(), &p)
		s.shut(websocket.StatusPolicyViolation, fmt.Sprintf("%d: %s %s", rsp.Code, p.Code, p.Detail))
	default:
		s.shut(websocket.StatusInternalError, "the lab fails")
	}
	if stream != "" {
		s.stream(stream, 0)
	}
}

// stream writes a stream from a delta on, unless it is written already.
func (s *labSocket) stream(name string, next int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[name] {
		return
	}
	s.streams[name] = true
	go func() {
		if last := s.writeStream(name, next); last != "" {
			s.mu.Lock()
			delete(s.streams, name) // the host may ask for another under its name as soon as it has the last
			s.mu.Unlock()
			s.send(last)
		}
	}()
}

// writeStream writes a stream up to its last delta, which it returns, or what refuses it.
func (s *labSocket) writeStream(name string, next int) (last string) {
	for {
		rsp := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "/v1/stream/"+url.PathEscape(name), http.NoBody)
		if next > 0 {
			req.Header.Set("Last-Event-ID", fmt.Sprint(next-1))
		}
		s.l.ServeHTTP(rsp, req)
		before := next
		for line := range strings.Lines(rsp.Body.String()) {
			data, is := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !is {
				continue
			}
			text, ends := inStream(name, data)
			if ends {
				return text
			}
			s.send(text)
			next++
		}
		if rsp.Code != http.StatusOK {
			code := map[int]string{http.StatusNotFound: "4.04", http.StatusUnauthorized: "4.01", http.StatusForbidden: "4.03"}[rsp.Code]
			return fmt.Sprintf(`{"delta_seq":%d,"stream_id":%q,"ts":"2026-01-02T03:04:05Z","type":"error","payload":{"code":%q,"message":"no","details":{"ack":%d}}}`, next, name, code, next-1)
		}
		if next == before { // the lab has ended it
			s.shut(websocket.StatusInternalError, "the lab fails")
			return ""
		}
		time.Sleep(time.Millisecond)
	}
}

// inStream is a delta with the name of its stream, and whether it is the last.
func inStream(name, data string) (text string, last bool) {
	var d map[string]any
	if json.Unmarshal([]byte(data), &d) != nil {
		return data, false
	}
	d["stream_id"] = name
	if d["ts"] == nil {
		d["ts"] = "2026-01-02T03:04:05Z"
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return data, false
	}
	kind, _ := d["type"].(string)
	return string(raw), kind == "done" || kind == "error" || kind == "cancel"
}
