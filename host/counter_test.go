package host_test

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// lifeHeader tells the counter which life of the host has sent a request.
const lifeHeader = "X-Life"

// sent is one request as it arrived.
type sent struct{ life, key, what string }

// counter is a web server that knows every request. Each call of a task has a
// path of its own: /TASK/NUMBER.
type counter struct {
	url string

	mu    sync.Mutex
	calls map[string][]sent // by path
	// held, where it is not nil, takes the path of the next new call, which then
	// gets no answer before release.
	held    chan string
	release chan struct{}
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{calls: map[string][]sent{}}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

// ServeHTTP answers after a short while, with what the request was.
func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its host is gone
	}
	what := fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body)
	c.arrive(r.URL.Path, sent{r.Header.Get(lifeHeader), r.Header.Get("Idempotency-Key"), what})
	time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	_, _ = io.WriteString(w, answerTo(r.URL.Path))
}

// answerTo is the one answer of a path.
func answerTo(path string) string { return "re:" + path }

func (c *counter) arrive(path string, s sent) {
	c.mu.Lock()
	c.calls[path] = append(c.calls[path], s)
	held, release := c.held, c.release
	if held == nil || len(c.calls[path]) > 1 {
		c.mu.Unlock()
		return
	}
	c.held = nil
	c.mu.Unlock()
	held <- path
	<-release
}

// hold keeps the next new call waiting until the function it returns is called.
func (c *counter) hold() (path <-chan string, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(chan string, 1)
	c.held, c.release = held, make(chan struct{})
	done := c.release
	return held, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = nil
		close(done)
	}
}

// take returns what has arrived and forgets it.
func (c *counter) take() map[string][]sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.calls
	c.calls = map[string][]sent{}
	return all
}

// settled reports whether a host's life has left nothing of the one before
// open: the last call of every task that goes on was first sent in this life.
func (c *counter) settled(life string, ended func(task string) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := map[string]string{} // path by task; the numbers have one digit
	for _, path := range slices.Sorted(maps.Keys(c.calls)) {
		last[taskOf(path)] = path
	}
	for task, path := range last {
		if !ended(task) && c.calls[path][0].life != life {
			return false
		}
	}
	return true
}

// taskOf is the task of a path.
func taskOf(path string) string { return path[1 : len(path)-2] }
