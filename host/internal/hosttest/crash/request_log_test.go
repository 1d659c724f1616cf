package crash_test

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

	"skep/host/internal/hosttest"
)

// lifeHeader names the life of the host that has sent a request.
const lifeHeader = "X-Life"

// sent is one request as it arrived.
type sent struct{ life, key, what string }

// requestLog is a web server that keeps every request. Each call of a task has a
// path of its own: /TASK/NUMBER.
type requestLog struct {
	url string

	mu    sync.Mutex
	calls map[string][]sent // by path
	// held, where it is not nil, takes the path of the next new call, which then
	// gets no answer before release.
	held    chan string
	release chan struct{}
}

func newRequestLog(t *testing.T) *requestLog {
	t.Helper()
	c := &requestLog{calls: map[string][]sent{}}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

// ServeHTTP answers after a short while, with what the request was.
func (c *requestLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its host is gone
	}
	what := fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body)
	c.arrive(r.URL.Path, sent{r.Header.Get(lifeHeader), r.Header.Get("Idempotency-Key"), what})
	time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	_, _ = io.WriteString(w, hosttest.AnswerTo(r.URL.Path))
}

func (c *requestLog) arrive(path string, s sent) {
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
func (c *requestLog) hold() (path <-chan string, release func()) {
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

// takeCalls returns what has arrived and forgets it.
func (c *requestLog) takeCalls() map[string][]sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.calls
	c.calls = map[string][]sent{}
	return all
}

// waitSettled reports whether a host's life has left nothing of the one before
// open: the last call of every task that goes on was first sent in this life.
func (c *requestLog) settled(life string, ended func(task string) bool) bool {
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
