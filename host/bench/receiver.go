package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"
)

// receiver is a swarm that accepts every message.
type receiver struct {
	url    string
	server *httptest.Server
	got    atomic.Int64
	first  atomic.Int64
	last   atomic.Int64
}

func newReceiver() *receiver {
	s := &receiver{}
	mux := http.NewServeMux()
	take := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		now := time.Now().UnixNano()
		s.first.CompareAndSwap(0, now)
		s.last.Store(now)
		s.got.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"swarm":"sink","task_id":"t","status":"success","local_runner":"swarm:hive@sink"}`)
	}
	mux.HandleFunc("POST /interswarm/forward", take)
	mux.HandleFunc("POST /interswarm/back", take)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	s.server = httptest.NewServer(mux)
	s.url = s.server.URL
	return s
}

func (s *receiver) close() { s.server.Close() }

// drain has tasks of a host send a burst each, and counts from the first message to
// the last. The tasks end by their timeout, because no answer comes.
func (s *receiver) drain(on *child, tasks int) (n int, took time.Duration, err error) {
	s.got.Store(0)
	s.first.Store(0)
	each := []string{}
	for i := range burstOf {
		each = append(each, fmt.Sprintf(`["send_request",{"target":"math@sink","subject":"s%d","body":%q}]`, i, strings.Repeat("x", messageSize/2)))
	}
	body, err := json.Marshal(map[string]any{"body": "[" + strings.Join(each, ",") + "]", "kwargs": map[string]any{"timeout": 10}})
	if err != nil {
		return 0, 0, err
	}
	for range tasks {
		if err := async(on.url, string(body)).expect(http.DefaultClient, ""); err != nil {
			return 0, 0, err
		}
	}
	want := int64(tasks * burstOf)
	for end := time.Now().Add(time.Minute); s.got.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return 0, 0, errors.New("the letters do not come: " + fmt.Sprint(s.got.Load(), " of ", want))
		}
	}
	return int(want), time.Duration(s.last.Load() - s.first.Load()), nil
}
