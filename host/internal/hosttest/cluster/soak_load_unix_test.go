//go:build unix

package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// soakSwarm takes the address of the effects. What boss sends has no key and is never repeated.
const soakSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "instance", http_no_key = ["POST %[1]s"], http_private = true, retry_in_doubt = false }
[agents.math]
source = "file:script.wasm"
comm_targets = ["boss"]
allow = { kv = "instance", http = ["POST %[1]s"], http_private = true }
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// soakPair is how many tasks contend for one value, soakValues how many values there are: an instance has
// 1,000 at most.
const (
	soakPair   = 2
	soakValues = 500
)

// soakClaim is what a task contends for: a value that each of its claims replaces.
func soakClaim(n int64) hosttest.Step {
	pair := n / soakPair
	args := hosttest.Args{"key": fmt.Sprint("claim/", pair%soakValues), "expect": nil, "value": fmt.Sprint(pair / soakValues), "scope": "instance"}
	if again := pair / soakValues; again > 0 {
		args["expect"] = fmt.Sprint(again - 1)
	}
	return hosttest.Step{"kv.cas", args}
}

// awaitClaim waits for the tasks that contended for the same value before a task.
func (s *soak) awaitClaim(n int64) {
	first := n - n%soakPair - soakPair*soakValues
	s.until("a value is claimed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for of := max(first, 0); of < first+soakPair; of++ {
			if _, has := s.answers[soakTask(of)]; !has {
				return false
			}
		}
		return true
	})
}

func soakTask(n int64) string { return fmt.Sprintf("soak-%06d", n) }

// soakPost is the post of a task: an effect without a key, a sleep, a request to another agent, who
// has effects with keys and contends for a value of two tasks, another effect without a key, and a timer that
// ends it.
func soakPost(url string, n int64) client.Post {
	id := soakTask(n)
	send := func(at, slept int, body string) hosttest.Step {
		return hosttest.Step{"http.fetch", hosttest.Args{"method": "POST", "url": fmt.Sprintf("%s/%s/%d?slept=%d", url, id, at, slept), "body": body}}
	}
	long := 100 + rand.IntN(200)
	sleep := hosttest.Step{"sleep", hosttest.Args{"ms": long}}
	await := hosttest.Step{"await_message", hosttest.Args{}}
	last := hosttest.Script(send(3, 0, "three"), hosttest.Step{"kv.get", hosttest.Args{"key": "once", "scope": "task"}},
		hosttest.Step{"timer.set", hosttest.Args{"after": "150ms", "body": "{{1}} {{0}}"}}, await)
	math := hosttest.Script(send(1, long, "one"), sleep, soakClaim(n),
		send(2, long, "{{2}}"), hosttest.Step{"send_response", hosttest.Args{"target": "boss", "subject": "s", "body": last}})
	body := hosttest.Script(send(0, 0, "zero"), hosttest.Step{"kv.put", hosttest.Args{"key": "once", "value": "{{0}}", "scope": "task"}}, sleep,
		hosttest.Step{"send_request", hosttest.Args{"target": "math", "subject": "s", "body": math}}, await)
	return client.Post{Task: id, Key: "key-" + id, Body: body}
}

// ask posts a task and waits for its answer.
func (s *soak) ask(n int64) {
	ctx, cancel := context.WithTimeout(s.t.Context(), s.form.patience)
	defer cancel()
	s.awaitClaim(n)
	id, at := soakTask(n), rand.IntN(len(s.hosts))
	for s.hosts[at].down.Load() {
		at = (at + 1) % len(s.hosts)
	}
	c := s.clients[at]
	post := soakPost(s.effects.url, n)
	if n%3 == 0 {
		if _, err := c.PostAsync(ctx, post); err != nil {
			s.fault(lostTask, "%s: post: %v", id, err)
			return
		}
		if err := hosttest.Follow(ctx, c, id); err != nil {
			s.fault(wrongMail, "%s: events: %v", id, err)
			return
		}
	}
	a, err := c.PostMessage(ctx, post)
	if err != nil {
		s.fault(lostTask, "%s: answer: %v", id, err)
		return
	}
	s.effects.forget(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[id] = a.Body
}

// answered is how many tasks have been answered.
func (s *soak) answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answers)
}
