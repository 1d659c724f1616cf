package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"skep/host/internal/hosttest"
)

// A file that bounds no turns has as many at once as there are: the default of 64
// would give a single user 16, and the request that all of them wait for would
// never come.
func TestTurnsWithoutABound(t *testing.T) {
	t.Parallel()
	const posts = 20
	var (
		mu   sync.Mutex
		here int
		all  = make(chan struct{})
	)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if here++; here == posts {
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(site.Close)
	h, _ := hosttest.StartText(t, fmt.Sprintf(`schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
allow = { http = [%q], http_private = true }
[limits]
turns = 0
`, site.URL), nil)
	var wait sync.WaitGroup
	for i := range posts {
		wait.Go(func() {
			a := h.Answer(t, fmt.Sprint("t", i),
				hosttest.Step{"http.fetch", hosttest.Args{"method": "GET", "url": site.URL}},
				hosttest.Step{"task_complete", hosttest.Args{"finish_message": "done"}})
			if a.Body != "done" {
				t.Errorf("task %d: %q", i, a.Body)
			}
		})
	}
	wait.Wait()
}
