package crash_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// httpSwarm takes the address of the request log. Its secret shows which
// life of the host has sent a request.
const httpSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "instance", http = ["GET,POST %[1]s"], http_private = true, secrets = ["life"] }
[agents.math]
source = "file:script.wasm"
comm_targets = ["boss"]
allow = { kv = "instance", http = ["GET,POST %[1]s"], http_private = true, secrets = ["life"] }
[secrets.life]
value = "env::` + hosttest.LifeEnv + `"
hosts = ["%[1]s"]
header = "` + lifeHeader + `"
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// httpCalls is the number of requests a task makes.
const httpCalls = 5

// httpTask is the body of a task, and its answer: requests and values of both
// agents, in three turns. A timer ends half of the tasks.
func httpTask(url, id string, timed bool) (body, want string) {
	get := func(n int) hosttest.Step {
		return hosttest.Step{"http.fetch", hosttest.Args{"method": "GET", "url": fmt.Sprintf("%s/%s/%d", url, id, n)}}
	}
	post := func(n int, text string) hosttest.Step {
		return hosttest.Step{"http.fetch", hosttest.Args{"method": "POST", "url": fmt.Sprintf("%s/%s/%d", url, id, n), "body": text}}
	}
	put, cas := "put/"+id, "cas/"+id
	end := []hosttest.Step{{"task_complete", hosttest.Args{"finish_message": "{{0}} {{1}} {{2}}"}}}
	if timed {
		end = []hosttest.Step{{"timer.set", hosttest.Args{"after": "40ms", "body": "{{0}} {{1}} {{2}}"}}, {"await_message", hosttest.Args{}}}
	}
	last := hosttest.Script(append([]hosttest.Step{get(4), {"kv.get", hosttest.Args{"key": put}}, {"kv.get", hosttest.Args{"key": cas, "scope": "instance"}}}, end...)...)
	math := hosttest.Script(post(2, "two"),
		hosttest.Step{"kv.cas", hosttest.Args{"key": cas, "expect": nil, "value": "{{0}}", "scope": "instance"}},
		post(3, "{{0}}"),
		hosttest.Step{"kv.cas", hosttest.Args{"key": cas, "expect": "{{0}}", "value": "{{0}}+{{2}}", "scope": "instance"}},
		hosttest.Step{"send_response", hosttest.Args{"target": "boss", "subject": "{{1}} {{3}}", "body": last}})
	body = hosttest.Script(get(0), post(1, "{{0}}"),
		hosttest.Step{"kv.put", hosttest.Args{"key": put, "value": "{{0}}+{{1}}"}},
		hosttest.Step{"send_request", hosttest.Args{"target": "math", "subject": "{{1}}", "body": math}},
		hosttest.Step{"await_message", hosttest.Args{}})
	want = hosttest.AnswerTo("/"+id+"/4") + " " + httpValues(id)
	if timed {
		want = "boss got [::timer::] " + want
	}
	return body, want
}

// httpValues are what a task leaves under its two keys.
func httpValues(id string) string {
	re := func(n int) string { return hosttest.AnswerTo(fmt.Sprintf("/%s/%d", id, n)) }
	return re(0) + "+" + re(1) + " " + re(2) + "+" + re(3)
}

// httpRun is one run of all tasks on a host of its own.
type httpRun struct {
	t     *testing.T
	c     *requestLog
	v     *hosttest.Process
	cl    *client.Client
	tasks int

	mu    sync.Mutex
	ended map[string]bool
	over  chan struct{} // closed when all have ended
}

func newHTTPRun(t *testing.T, c *requestLog, tasks int) *httpRun {
	t.Helper()
	v := hosttest.StartProcess(t, fmt.Sprintf(httpSwarm, c.url))
	return &httpRun{t: t, c: c, v: v, cl: v.Client(), tasks: tasks, ended: map[string]bool{}, over: make(chan struct{})}
}

func httpTaskID(n int) string { return fmt.Sprintf("task-%03d", n) }

// work posts all tasks, from 16 clients.
func (r *httpRun) work() {
	const clients = 16
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for n := c; n < r.tasks; n += clients {
				id := httpTaskID(n)
				body, want := httpTask(r.c.url, id, n%4 < 2)
				post := client.Post{Task: id, Key: "key-" + id, Body: body}
				if err := hosttest.CheckAnswer(r.t.Context(), r.cl, post, n%2 == 0, want); err != nil {
					r.t.Errorf("%s: %v", id, err)
				}
				r.end(id)
			}
		})
	}
	wg.Wait()
	close(r.over)
}

func (r *httpRun) end(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[task] = true
}

func (r *httpRun) hasEnded(task string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[task]
}

func (r *httpRun) endedTasks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ended)
}

// killRepeatedly kills the host as the work goes on: in turns while a request waits for
// its answer, whose paths it returns, and at random. It kills again when
// nothing of the life before is open any more, so that no request is hit twice.
func (r *httpRun) killRepeatedly(kills int) (hit []string) {
	for n := range kills {
		r.until("the work goes on", func() bool { return r.endedTasks() >= r.tasks*n/kills })
		if n%2 == 0 {
			path, release := r.c.hold()
			select {
			case p := <-path:
				hit = append(hit, p)
			case <-r.over:
			}
			r.v.Kill()
			release()
		} else {
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			r.v.Kill()
		}
		r.v.Start()
		life := hosttest.LifeName(r.v.Life)
		r.until("what was open has gone on", func() bool { return r.c.settled(life, r.hasEnded) })
	}
	return hit
}

func (r *httpRun) until(what string, ok func() bool) {
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Errorf("%s: not within three minutes", what)
			return
		}
	}
}

// values reads the keys of all tasks in tasks of their own.
func (r *httpRun) values() {
	r.t.Helper()
	const some = 50
	for from := 0; from < r.tasks; from += some {
		var steps []hosttest.Step
		var places, want []string
		for n := from; n < min(from+some, r.tasks); n++ {
			steps = append(steps, hosttest.Step{"kv.get", hosttest.Args{"key": "put/" + httpTaskID(n)}},
				hosttest.Step{"kv.get", hosttest.Args{"key": "cas/" + httpTaskID(n), "scope": "instance"}})
			places = append(places, fmt.Sprintf("{{%d}} {{%d}}", len(steps)-2, len(steps)-1))
			want = append(want, httpValues(httpTaskID(n)))
		}
		steps = append(steps, hosttest.Step{"task_complete", hosttest.Args{"finish_message": strings.Join(places, "\n")}})
		id := fmt.Sprintf("values-%d", from)
		if err := hosttest.CheckAnswer(r.t.Context(), r.cl, client.Post{Task: id, Key: id, Body: hosttest.Script(steps...)}, false, strings.Join(want, "\n")); err != nil {
			r.t.Errorf("%s: %v", id, err)
		}
	}
}

// checkCalls wants every call of every task, each with one key of its own and at
// most one repetition, by another life of the host and before the next call. It
// returns the paths of those that were repeated.
func checkCalls(t *testing.T, calls map[string][]sent, tasks int) (repeated []string) {
	t.Helper()
	if len(calls) != tasks*httpCalls {
		t.Errorf("%d calls, want %d", len(calls), tasks*httpCalls)
	}
	owner := map[string]string{} // by key
	before := ""
	for _, path := range slices.Sorted(maps.Keys(calls)) {
		all := calls[path]
		first, last := all[0], all[len(all)-1]
		if other := owner[first.key]; first.key == "" || other != "" {
			t.Errorf("%s has the key %q, of %q", path, first.key, other)
		}
		owner[first.key] = path
		switch {
		case len(all) > 2:
			t.Errorf("%s was sent %d times: %v", path, len(all), all)
		case first.key != last.key || first.what != last.what:
			t.Errorf("%s was sent otherwise: %v", path, all)
		case len(all) == 2 && first.life >= last.life:
			t.Errorf("%s was sent twice though the host lived on: %v", path, all)
		case len(all) == 2:
			repeated = append(repeated, path)
		}
		if before != "" && taskOf(before) == taskOf(path) {
			if again := calls[before][len(calls[before])-1].life; again > first.life {
				t.Errorf("%s was sent again in %s, though its answer was used in %s", before, again, first.life)
			}
		}
		before = path
	}
	return repeated
}

// TestKillHTTP: tasks whose agents call the web, keep values and set timers,
// while the host is killed and started again. Every request takes place once, or
// once more under the same key where a kill fell between it and its answer;
// every accepted task ends, with the messages, events, histories and values of an
// undisturbed run.
func TestKillHTTP(t *testing.T) {
	t.Parallel()
	tasks, kills := 64, 4
	if os.Getenv("SKEP_SOAK") != "" {
		tasks, kills = 900, 40
	}
	if testing.Short() {
		tasks, kills = 24, 2
	}
	c := newRequestLog(t)

	calm := newHTTPRun(t, c, tasks)
	calm.work()
	if again := checkCalls(t, c.takeCalls(), tasks); len(again) > 0 {
		t.Errorf("sent twice without a kill: %v", again)
	}
	want := calm.traces()
	calm.values()
	calm.v.Kill()

	r := newHTTPRun(t, c, tasks)
	var hit []string
	var wg sync.WaitGroup
	wg.Go(func() { hit = r.killRepeatedly(kills) })
	r.work()
	wg.Wait()
	repeated := checkCalls(t, c.takeCalls(), tasks)
	for _, path := range hit {
		if !slices.Contains(repeated, path) {
			t.Errorf("%s was never sent again, though its host was killed before the answer", path)
		}
	}
	if len(hit) == 0 {
		t.Error("no kill fell between a request and its answer")
	}
	if diff := cmp.Diff(want, r.traces()); diff != "" {
		t.Errorf("the tasks differ from those of a calm run (-calm +killed):\n%s", diff)
	}
	r.values()
	t.Logf("%d tasks, %d requests, %d lives, %d requests sent again, %d of them held", tasks, tasks*httpCalls, r.v.Life, len(repeated), len(hit))
}
