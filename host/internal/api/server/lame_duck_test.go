package server

import (
	"log/slog"
	"net/http"
	"testing"

	"skep/host/internal/api/listener"
	"skep/host/internal/definition/config"
)

// A caller that comes while the host stops is answered, and told to connect anew. One that has heard it does not
// hold up the stop.
func TestLameDuck(t *testing.T) {
	public, err := listener.Open(t.Context(), "127.0.0.1:0", listener.Limits{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{log: slog.New(slog.DiscardHandler), opt: Options{Config: &config.Config{}}, publicListener: public}
	s.lameDuck.quiet = lameDuckTime
	s.public = &http.Server{Handler: s.lameDuck.wrap(http.NotFoundHandler())}
	served := make(chan error, 1)
	go func() { served <- public.Serve(s.public) }()
	ask := func() (last bool) {
		t.Helper()
		resp, err := http.Get(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.Close
	}
	if ask() {
		t.Error("told to connect anew before the host stops")
	}
	ended := make(chan struct{})
	close(ended)
	stopped := make(chan struct{})
	go func() {
		s.shutdown(ended)
		close(stopped)
	}()
	for !ask() {
	}
	<-stopped
	if err := <-served; err != nil {
		t.Error(err)
	}
}
