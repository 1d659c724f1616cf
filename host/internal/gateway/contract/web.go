package contract

import (
	"net/http"
	"net/http/httptest"
	"skep/host/internal/hosttest"
	"strings"
	"sync"
	"testing"
)

// web is a server that agents call: it counts the requests of each path, and holds those
// below /hold/ until they are released.
type web struct {
	url    string
	mu     sync.Mutex
	seen   map[string]int
	bodies map[string]string
	// came is closed with the first request of a path, over with the end of the last.
	came, over, release map[string]chan struct{}
}

func newWeb(t *testing.T) *web {
	t.Helper()
	w := &web{seen: map[string]int{}, bodies: map[string]string{}, came: map[string]chan struct{}{}, over: map[string]chan struct{}{}, release: map[string]chan struct{}{}}
	server := httptest.NewServer(w)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	w.url = server.URL
	return w
}

// channel returns the channel of a path, made when it is first asked for.
func (w *web) channel(of map[string]chan struct{}, path string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of[path] == nil {
		of[path] = make(chan struct{})
	}
	return of[path]
}

// ServeHTTP implements http.Handler.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	came, over := w.channel(w.came, r.URL.Path), w.channel(w.over, r.URL.Path)
	w.mu.Lock()
	w.seen[r.URL.Path]++
	if w.seen[r.URL.Path] == 1 {
		close(came)
		defer close(over)
	}
	w.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/hold/") {
		select {
		case <-w.channel(w.release, r.URL.Path):
		case <-r.Context().Done():
		}
	}
	w.write(rw, r.URL.Path)
}

func (w *web) count(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[path]
}

// hold is the step of a script that waits for the release of a key.
func (w *web) hold(key string) hosttest.Step { return w.get("/hold/" + key) }

// get is the step of a script that calls a path.
func (w *web) get(path string) hosttest.Step {
	return hosttest.Step{"http.fetch", hosttest.Args{"method": "GET", "url": w.url + path}}
}

func (w *web) held(t *testing.T, key string) {
	t.Helper()
	until(t, "an agent waits for "+key, w.channel(w.came, "/hold/"+key))
}

func (w *web) free(key string) { close(w.channel(w.release, "/hold/"+key)) }
