package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
)

// messageSize is about what a wrapper of the benchmark is.
const messageSize = 1 << 10

// relay is one of two servers that do what two hosts do, and nothing more: a
// request goes over, is answered 200, and the other side calls back.
type relay struct {
	cl *http.Client
	// db stores each message out and in; nil stores none.
	db *sql.DB

	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// relayJob serves one relay. With a directory it stores messages there.
func relayJob(_ context.Context, p pipe, args []string) error {
	s, err := openRelay(args)
	if err != nil {
		return err
	}
	defer s.close()
	return p.serveHTTP(s.routes())
}

// openRelay stores messages in the directory, if one is given: in SQLite, synced at
// each.
func openRelay(dir []string) (*relay, error) {
	s := &relay{cl: clientOf(64), waiting: map[string]chan struct{}{}}
	if len(dir) == 0 {
		return s, nil
	}
	db, err := sql.Open("sqlite", filepath.Join(dir[0], "letters.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE letters (id TEXT, body BLOB)"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.db = db
	return s, nil
}

func (s *relay) close() {
	s.cl.CloseIdleConnections()
	if s.db != nil {
		_ = s.db.Close()
	}
}

func (s *relay) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /start", s.start)
	mux.HandleFunc("POST /forward", s.forward)
	mux.HandleFunc("POST /back", s.back)
	return mux
}

// keep stores a message.
func (s *relay) keep(id, way string) error {
	if s.db == nil {
		return nil
	}
	_, err := s.db.Exec("INSERT INTO letters VALUES (?, ?)", id+way, []byte(relayMessage))
	return err
}

var relayMessage = strings.Repeat("x", messageSize)

// start makes the round trip of a message: its query has where, from where, and an
// id.
func (s *relay) start(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	answered := make(chan struct{})
	s.mu.Lock()
	s.waiting[q.Get("id")] = answered
	s.mu.Unlock()
	if err := s.send(q.Get("to")+"/forward?"+r.URL.RawQuery, q.Get("id"), "out"); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	select {
	case <-answered:
		_, _ = io.WriteString(w, "answered")
	case <-r.Context().Done():
	}
}

// forward stores a message, responds, and answers it by another call.
func (s *relay) forward(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if _, err := io.Copy(io.Discard, r.Body); err != nil || s.keep(q.Get("id"), "in") != nil {
		http.Error(w, "not kept", http.StatusInternalServerError)
		return
	}
	go func() { _ = s.send(q.Get("from")+"/back?id="+q.Get("id"), q.Get("id"), "out") }()
}

func (s *relay) back(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if _, err := io.Copy(io.Discard, r.Body); err != nil || s.keep(id, "in") != nil {
		http.Error(w, "not kept", http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered := s.waiting[id]; answered != nil {
		delete(s.waiting, id)
		close(answered)
	}
}

func (s *relay) send(url, id, way string) error {
	if err := s.keep(id, way); err != nil {
		return err
	}
	return postTo(url, relayMessage).expect(s.cl, "")
}
