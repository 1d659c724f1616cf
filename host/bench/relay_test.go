package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// A round trip of a bare pair is what it is compared for: a message there and one
// back, each kept on both sides.
func TestRelays(t *testing.T) {
	t.Parallel()
	var sides []*relay
	var urls []string
	for range 2 {
		s, err := openRelay([]string{t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.close)
		server := httptest.NewServer(s.routes())
		t.Cleanup(server.Close)
		sides, urls = append(sides, s), append(urls, server.URL)
	}
	rsp, err := http.Post(urls[0]+"/start?id=1&from="+urls[0]+"&to="+urls[1], "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	if raw, err := io.ReadAll(rsp.Body); err != nil || string(raw) != "answered" {
		t.Errorf("%q, %v", raw, err)
	}
	for i, s := range sides {
		var n, bytes int
		if err := s.db.QueryRow("SELECT count(*), sum(length(body)) FROM letters").Scan(&n, &bytes); err != nil || n != 2 || bytes != 2*messageSize {
			t.Errorf("side %d keeps %d letters of %d bytes, %v", i, n, bytes, err)
		}
	}
}

// The computing time of a process grows.
func TestComputed(t *testing.T) {
	t.Parallel()
	if spent, err := computed(os.Getpid()); err != nil || spent < 0 {
		t.Errorf("%v, %v", spent, err)
	}
	if _, err := computed(-1); err == nil {
		t.Error("a process that is not has computed")
	}
}
