package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/julienschmidt/httprouter"
)

// TestBareReaders: a reader of the bare server gets as many events as the gate
// was opened for, of the size that was asked.
func TestBareReaders(t *testing.T) {
	t.Parallel()
	s := newSignal()
	router := httprouter.New()
	router.GET("/events", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) { bareEvents(w, r, s) })
	router.Handler(http.MethodPost, "/open", s)
	srv := httptest.NewServer(router)
	defer srv.Close()
	a := &bareReaders{srv.URL}
	stream, before, err := a.begin(srv.Client())
	if err != nil || before != 0 {
		t.Fatalf("begin = %d before, %v", before, err)
	}
	ready, got := make(chan struct{}, 1), make(chan reader, 1)
	go func() { got <- readEvents(t.Context(), stream, before, ready) }()
	<-ready
	if err := a.burst(srv.Client(), burst{events: 3, size: 100}); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.err != nil || r.frames != 3 || r.first.IsZero() || r.last.Before(r.first) {
		t.Errorf("reader got %+v, want 3 events", r)
	}
}

func TestReadersAgree(t *testing.T) {
	t.Parallel()
	now := time.Now()
	whole := func(n int) []reader {
		all := make([]reader, readersOfTask)
		for i := range all {
			all[i] = reader{frames: 2, bytes: 20, first: now.Add(time.Second), last: now.Add(2 * time.Second)}
		}
		all[n].first = now.Add(time.Second / 2)
		return all
	}
	short, failed := whole(1), whole(1)
	short[7].frames = 1
	failed[7].err = errors.New("cut")
	for name, all := range map[string][]reader{"short": short, "failed": failed} {
		if s, err := together(sentBy(all), now); err == nil {
			t.Errorf("%s: %+v, want an error", name, s)
		}
	}
	s, err := together(sentBy(whole(3)), now)
	want := sent{frames: 2 * readersOfTask, bytes: 20 * readersOfTask, whole: 2 * time.Second, delivery: 3 * time.Second / 2}
	if err != nil || s != want {
		t.Errorf("together = %+v, %v; want %+v", s, err, want)
	}
}

func sentBy(all []reader) <-chan reader {
	c := make(chan reader, len(all))
	for _, r := range all {
		c <- r
	}
	return c
}
