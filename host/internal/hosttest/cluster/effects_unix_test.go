//go:build unix

package cluster_test

import (
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// effects is a web server that keeps every request. Each call of a task has a path of its own:
// /TASK/NUMBER.
type effects struct {
	url string
	// maxDelay is how long the answer of an effect takes at most.
	maxDelay time.Duration

	mu    sync.Mutex
	calls map[string][]effect // by path
	// doubled is how many effects without a key were repeated.
	doubled int
	// last is when the last effect of a task had its answer.
	last map[string]time.Time
	// stalls are the longest times from an answer to the next effect of its task, without what the task slept, by what
	// disturbed the hosts then.
	stalls      map[string]time.Duration
	disturbance string
}

// effect is one request as it arrived.
type effect struct{ key, body string }

func newEffects(t *testing.T, maxDelay time.Duration) *effects {
	t.Helper()
	e := &effects{maxDelay: maxDelay, calls: map[string][]effect{}, last: map[string]time.Time{}, stalls: map[string]time.Duration{}, disturbance: "calm"}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// ServeHTTP answers with the path, after a while. The parameter slept is how many milliseconds the task has slept
// before.
func (e *effects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its host is gone
	}
	slept, _ := strconv.Atoi(r.URL.Query().Get("slept"))
	task, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	e.add(r.URL.Path, effect{r.Header.Get("Idempotency-Key"), string(body)}, task, time.Duration(slept)*time.Millisecond)
	time.Sleep(rand.N(e.maxDelay))
	_, _ = io.WriteString(w, "re:"+r.URL.Path)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last[task] = time.Now()
}

// add notes an effect of a task that has slept before.
func (e *effects) add(path string, one effect, task string, slept time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls[path] = append(e.calls[path], one)
	if one.key == "" && len(e.calls[path]) > 1 {
		e.doubled++
	}
	if before, has := e.last[task]; has {
		e.stalls[e.disturbance] = max(e.stalls[e.disturbance], time.Since(before)-slept)
	}
}

// forget ends the watch over a task that has ended.
func (e *effects) forget(task string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.last, task)
}

// disturb names what disturbs the hosts from now on.
func (e *effects) disturb(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disturbance = name
}

// longestStalls are the longest stalls of a task, by what disturbed the hosts.
func (e *effects) longestStalls() map[string]time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.stalls)
}

// countDoubled is how many effects without a key were repeated.
func (e *effects) countDoubled() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.doubled
}

// callsOf are the requests of a path.
func (e *effects) callsOf(path string) []effect {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[path]
}

// body is what the first request of a path had as its body.
func (e *effects) body(path string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.calls[path]) == 0 {
		return ""
	}
	return e.calls[path][0].body
}
