package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
)

// letterSize is about what a wrapper of the benchmark is.
const letterSize = 1 << 10

// bareSide is one of two servers that do what two hosts do, and nothing more: a
// request goes over, is answered 200, and the other side calls back.
type bareSide struct {
	url string
	cl  *http.Client
	// db keeps each letter that goes and comes, nil to keep none.
	db *sql.DB

	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// bareSideHere serves one until the parent closes in. With a directory it keeps
// letters there.
func bareSideHere(dir []string, in io.Reader) error {
	s, err := openSide(dir)
	if err != nil {
		return err
	}
	defer s.close()
	return serveHere(s.routes(), in)
}

// openSide keeps letters in the directory, if one is given: in SQLite, synced at
// each.
func openSide(dir []string) (*bareSide, error) {
	s := &bareSide{cl: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, waiting: map[string]chan struct{}{}}
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

func (s *bareSide) close() {
	s.cl.CloseIdleConnections()
	if s.db != nil {
		_ = s.db.Close()
	}
}

func (s *bareSide) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /start", s.start)
	mux.HandleFunc("POST /forward", s.forward)
	mux.HandleFunc("POST /back", s.back)
	return mux
}

// keep writes a letter.
func (s *bareSide) keep(id, way string) error {
	if s.db == nil {
		return nil
	}
	_, err := s.db.Exec("INSERT INTO letters VALUES (?, ?)", id+way, bareLetter)
	return err
}

var bareLetter = []byte(strings.Repeat("x", letterSize))

// start makes the round trip of a letter: its query has where, from where, and an
// id.
func (s *bareSide) start(w http.ResponseWriter, r *http.Request) {
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

// forward keeps a letter, and answers it by another call when it has told so.
func (s *bareSide) forward(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if _, err := io.Copy(io.Discard, r.Body); err != nil || s.keep(q.Get("id"), "in") != nil {
		http.Error(w, "not kept", http.StatusInternalServerError)
		return
	}
	go func() { _ = s.send(q.Get("from")+"/back?id="+q.Get("id"), q.Get("id"), "out") }()
}

func (s *bareSide) back(w http.ResponseWriter, r *http.Request) {
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

func (s *bareSide) send(url, id, way string) error {
	if err := s.keep(id, way); err != nil {
		return err
	}
	rsp, err := s.cl.Post(url, "application/json", bytes.NewReader(bareLetter))
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	if _, err := io.Copy(io.Discard, rsp.Body); err != nil {
		return err
	}
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, rsp.Status)
	}
	return nil
}
