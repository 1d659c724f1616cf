//go:build unix

package cluster_test

import (
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// effects is a web server that keeps every request. Each call of a task has a path of its own:
// /TASK/NUMBER.
type effects struct {
	url string

	mu    sync.Mutex
	calls map[string][]effect // by path
	// last is when a task had its last effect, stalls the longest time between two of one task, by what
	// disturbed the hosts then.
	last        map[string]time.Time
	stalls      map[string]time.Duration
	disturbance string
}

// effect is one request as it arrived.
type effect struct{ key, body string }

func newEffects(t *testing.T) *effects {
	t.Helper()
	e := &effects{calls: map[string][]effect{}, last: map[string]time.Time{}, stalls: map[string]time.Duration{}, disturbance: "calm"}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// effectTime is how long an effect takes at most.
const effectTime = 150 * time.Millisecond

// ServeHTTP answers with the path, after a while.
func (e *effects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its host is gone
	}
	task, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	e.mu.Lock()
	e.calls[r.URL.Path] = append(e.calls[r.URL.Path], effect{r.Header.Get("Idempotency-Key"), string(body)})
	e.mu.Unlock()
	e.see(task)
	time.Sleep(rand.N(effectTime))
	_, _ = io.WriteString(w, "re:"+r.URL.Path)
}

// see notes an effect of a task.
func (e *effects) see(task string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if before, has := e.last[task]; has {
		e.stalls[e.disturbance] = max(e.stalls[e.disturbance], now.Sub(before))
	}
	e.last[task] = now
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

// check checks the effects of a task: the one that is never repeated took place as its answer says,
// the others at least once, each time the same, with a key that no other effect has. It returns how
// many were repeated.
func (e *effects) check(t *testing.T, task string, onceAnswered bool, keys map[string]string) (repeated int) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	once := e.calls["/"+task+"/0"]
	if len(once) > 1 || onceAnswered && len(once) != 1 {
		t.Errorf("%s: what is not to be repeated took place %d times; answered: %v", task, len(once), onceAnswered)
	}
	for _, path := range []string{"/" + task + "/1", "/" + task + "/2"} {
		all := e.calls[path]
		if len(all) == 0 {
			t.Errorf("%s did not take place", path)
			continue
		}
		if other := keys[all[0].key]; all[0].key == "" || other != "" {
			t.Errorf("%s has the key %q, of %q", path, all[0].key, other)
		}
		keys[all[0].key] = path
		if slices.ContainsFunc(all, func(again effect) bool { return again != all[0] }) {
			t.Errorf("%s was sent otherwise: %v", path, all)
		}
		repeated += len(all) - 1
	}
	return repeated
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
