package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// question is what the benchmark's provider is asked, as the text of the last
// message.
type question struct {
	// Tokens is how long the answer is; each is a piece of a stream.
	Tokens int `json:"tokens"`
	// Pause lies before each token, in nanoseconds. Without one all are sent as fast
	// as they go.
	Pause time.Duration `json:"pause,omitempty"`
	// Hold keeps the answer back until the next release.
	Hold bool `json:"hold,omitempty"`
}

// text is the question as an agent sends it.
func (q question) text() string {
	raw, err := json.Marshal(q)
	if err != nil {
		panic(err) // numbers always encode
	}
	return string(raw)
}

// questionBegins is how a question is found in a text.
const questionBegins = `{"tokens":`

// token is one token of every answer.
const token = " word"

// maxQuestion bounds a request, maxTokens an answer.
const (
	maxQuestion = 1 << 20
	maxTokens   = 100_000
)

// provider is a server of models that is as fast as one can be: what it sends was
// made before. It is safe for concurrent use.
type provider struct {
	mu   sync.Mutex
	held int
	open chan struct{} // closed by the next release
}

func newProvider() *provider { return &provider{open: make(chan struct{})} }

// providerJob serves models: without TLS at the address of the child, and over TLS at
// the one that GET /secure returns.
func providerJob(_ context.Context, p pipe, _ []string) error {
	mux := newProvider().handler()
	end, err := secure(mux)
	if err != nil {
		return err
	}
	defer end()
	return p.serveHTTP(mux)
}

// secure serves a handler over TLS as well, and lets it tell where, and what is to
// be trusted there.
func secure(mux *http.ServeMux) (end func(), err error) {
	cert, trust, err := certificate()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	go func() { _ = srv.ServeTLS(l, "", "") }()
	mux.HandleFunc("GET /secure", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "https://"+l.Addr().String()) })
	mux.HandleFunc("GET /trust", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(trust) })
	return func() { _ = srv.Close() }, nil
}

func (p *provider) handler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", p.answers(openaiWire))
	mux.HandleFunc("POST /v1/messages", p.answers(anthropicWire))
	mux.HandleFunc("GET /held", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, p.holds()) })
	mux.HandleFunc("POST /release", func(http.ResponseWriter, *http.Request) { p.release() })
	return mux
}

func (p *provider) holds() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// release lets all answers go that are held.
func (p *provider) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.open)
	p.open = make(chan struct{})
}

// wait holds an answer. It returns false when the caller has left.
func (p *provider) wait(ctx context.Context) bool {
	p.mu.Lock()
	p.held++
	open := p.open
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held--
	}()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

// wire is how a provider says things.
type wire struct {
	begin, piece, end string
	// whole is an answer that is not streamed; %s is its text.
	whole string
}

func (p *provider) answers(wire wire) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, streamed, err := readQuestion(http.MaxBytesReader(w, r.Body, maxQuestion))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch {
		case q.Hold && !p.wait(r.Context()):
		case !streamed:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, wire.whole, strings.Repeat(token, q.Tokens))
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			wire.stream(w, q)
		}
	}
}

// stream sends all at once, or each token when its time has come.
func (wire wire) stream(w http.ResponseWriter, q question) {
	if q.Pause == 0 {
		_, _ = io.WriteString(w, wire.begin+strings.Repeat(wire.piece, q.Tokens)+wire.end)
		return
	}
	flush := http.NewResponseController(w).Flush
	_, _ = io.WriteString(w, wire.begin)
	next := time.Now()
	for range q.Tokens {
		next = next.Add(q.Pause)
		time.Sleep(time.Until(next))
		if _, err := io.WriteString(w, wire.piece); err != nil || flush() != nil {
			return
		}
	}
	_, _ = io.WriteString(w, wire.end)
}

// readQuestion finds the question in a request of either provider's format.
func readQuestion(body io.Reader) (q question, streamed bool, err error) {
	var req struct {
		Stream   bool `json:"stream"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(body).Decode(&req); err != nil {
		return q, false, err
	}
	if len(req.Messages) == 0 {
		return q, false, fmt.Errorf("a request without messages")
	}
	text, err := textOf(req.Messages[len(req.Messages)-1].Content)
	if err != nil {
		return q, false, err
	}
	_, own, found := strings.Cut(text, questionBegins) // agents put a frame around it
	if !found {
		return q, false, fmt.Errorf("the last message has no question")
	}
	if err := json.NewDecoder(strings.NewReader(questionBegins + own)).Decode(&q); err != nil {
		return q, false, fmt.Errorf("the last message has no question: %w", err)
	}
	if q.Tokens < 1 || q.Tokens > maxTokens {
		return q, false, fmt.Errorf("%d tokens are asked for, from 1 to %d", q.Tokens, maxTokens)
	}
	return q, req.Stream, nil
}

// textOf is a content's text: itself, or its one block's.
func textOf(content json.RawMessage) (text string, err error) {
	if json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var blocks []struct{ Text string }
	if err := json.Unmarshal(content, &blocks); err != nil || len(blocks) != 1 {
		return "", fmt.Errorf("the last message has no text of its own")
	}
	return blocks[0].Text, nil
}
