package contract_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/uamp/envelope"
)

// uampServer is a foreign host with one agent. Its streams have no end of a window.
type uampServer struct {
	handle contract.Handler
	mu     sync.Mutex
	asked  map[envelope.ID]*uampStream
}

// uampStream is the stream with the answer to an envelope.
type uampStream struct {
	id     envelope.ID
	cancel context.CancelFunc
	mu     sync.Mutex
	deltas []string
	ended  bool
	more   chan struct{} // closed and replaced by each delta
}

// newUAMPHandler answers requests of HTTP. Their contexts have the one of the connection.
func newUAMPHandler(handle contract.Handler) http.Handler {
	s := &uampServer{handle: handle, asked: map[envelope.ID]*uampStream{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.message)
	mux.HandleFunc("GET /v1/stream/{id}", s.stream)
	return mux
}

// connKey is the key of a request's context for the context of its connection: what was asked
// on it ends when the host at its other end is gone.
type connKey struct{}

// serveUAMP runs a foreign agent that answers over HTTP/2 with a certificate.
func (c uampCertificate) serve(t testing.TB, address string, handle contract.Handler) (string, func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var ends sync.Map // of the connections
	server := &http.Server{
		Handler: newUAMPHandler(handle), TLSConfig: &tls.Config{Certificates: []tls.Certificate{c.pair}}, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			of, end := context.WithCancel(context.Background())
			ends.Store(conn, end)
			return context.WithValue(ctx, connKey{}, of)
		},
		ConnState: func(conn net.Conn, s http.ConnState) {
			if end, ok := ends.Load(conn); ok && s == http.StateClosed {
				end.(context.CancelFunc)()
			}
		},
	}
	go func() { _ = server.ServeTLS(l, "", "") }()
	return "https://" + l.Addr().String(), func() { _ = server.Close() }
}

func (s *uampServer) message(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read(text)
	if err != nil || e.Sig == "" || r.Header.Get("Authorization") == "" {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	conn, _ := r.Context().Value(connKey{}).(context.Context)
	if e.Intent != envelope.Ask && r.ProtoMajor < 3 {
		w.Header().Set("Connection", "close") // a connection that is kept would be counted by case 30
	}
	switch e.Intent {
	case envelope.Ask:
		w.Header().Set("Location", "/v1/stream/"+string(s.ask(conn, e.Envelope).id))
	case envelope.Inform:
		_, _ = s.handle(r.Context(), uampMessage(e.Envelope), func(contract.Piece) {})
	case envelope.Cancel:
		if x := s.find(e.ReplyTo); x != nil {
			x.cancel()
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// uampMessage is an envelope as the suite sees it.
func uampMessage(e envelope.Envelope) contract.Message {
	m := contract.Message{ID: string(e.ID), Text: e.Body.Content, To: e.To[0]}
	_ = json.Unmarshal(e.Ext["x-hops"], &m.Hops)
	_ = json.Unmarshal(e.Ext["x-conversation"], &m.Thread)
	return m
}

func (s *uampServer) find(id envelope.ID) *uampStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[id]
}

// ask begins to work on an envelope; a repeat has the same stream.
func (s *uampServer) ask(ctx context.Context, e envelope.Envelope) *uampStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.asked[e.ID]; x != nil {
		return x
	}
	ctx, cancel := context.WithCancel(ctx)
	x := &uampStream{id: e.ID, cancel: cancel, more: make(chan struct{})}
	s.asked[e.ID] = x
	go func() {
		defer cancel()
		got, err := s.handle(ctx, uampMessage(e), func(p contract.Piece) {
			if p.Chunk != "" {
				x.add(envelope.DeltaChunk, map[string]any{"text": p.Chunk})
			}
		})
		var no *contract.Refused
		switch {
		case errors.As(err, &no):
			x.add(envelope.DeltaError, map[string]any{"code": "4.00", "message": no.Text})
		case got.Status == contract.Failed:
			x.add(envelope.DeltaError, map[string]any{"code": "5.00", "message": got.Text})
		case got.Status == contract.Cancelled:
			x.add(envelope.DeltaCancel, map[string]any{"reason": got.Text})
		default:
			x.add(envelope.DeltaDone, map[string]any{"answer": got.Text})
		}
	}()
	return x
}

// add adds a delta.
func (x *uampStream) add(kind envelope.DeltaType, payload any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	text, err := json.Marshal(envelope.Delta{Seq: len(x.deltas), Stream: string(x.id), Time: time.Now(), Type: kind, Payload: quoted(payload)})
	if err != nil {
		panic(err)
	}
	x.deltas, x.ended = append(x.deltas, string(text)), kind.Ends()
	close(x.more)
	x.more = make(chan struct{})
}

func (x *uampStream) after(n int) (list []string, ended bool, more <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.deltas[min(n, len(x.deltas)):], x.ended, x.more
}

func (s *uampServer) stream(w http.ResponseWriter, r *http.Request) {
	x := s.find(envelope.ID(r.PathValue("id")))
	if x == nil {
		http.NotFound(w, r)
		return
	}
	next := 0
	if last, err := strconv.Atoi(r.Header.Get("Last-Event-ID")); err == nil {
		next = last + 1
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		list, ended, more := x.after(next)
		for _, text := range list {
			_, _ = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", next, text)
			next++
		}
		_ = http.NewResponseController(w).Flush()
		if ended {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}
