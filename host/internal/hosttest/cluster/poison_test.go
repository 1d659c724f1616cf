package cluster_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// poison computes for longer than the test waits. That its host dies then is what the test does.
const poison = `[["loop",{}]]`

// computesFor is how long a host whose turn the others must know of has computed it.
const computesFor = 2 * time.Second

// TestPoison: a turn at whose computing hosts die takes each of them down once at most, also those
// that are started again, and its agent is in quarantine then.
func TestPoison(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 3)
	clients := clientsOf(hosts)
	post := client.Post{Task: "poison", Key: "poison", Body: poison}
	if n := killComputing(t, hosts, clients[0], post); n < 2 {
		t.Errorf("the poison ended after %d deaths: one death convicts nobody", n)
	}
	wantConfined(t, hosts, true)
	a, err := clients[0].PostMessage(t.Context(), post)
	if err != nil || !strings.Contains(a.Body, "deaths of hosts") {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestTwoPoisons: each of two turns that kill the host that computes them takes each host down once at most, also
// where two hosts die of them at once.
func TestTwoPoisons(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 3)
	clients := clientsOf(hosts)
	var posts []client.Post
	for _, name := range []string{"first", "second"} {
		posts = append(posts, client.Post{Task: name, Key: name, Body: poison})
	}
	killComputing(t, hosts, clients[0], posts...)
	wantConfined(t, hosts, true)
}

// killComputing posts poison, kills each host that computes it until it has ended, and returns the number of deaths.
// No host may die more often than there are posts.
func killComputing(t *testing.T, hosts []*hosttest.Process, c *client.Client, posts ...client.Post) (n int) {
	t.Helper()
	for _, post := range posts {
		if _, err := c.PostAsync(t.Context(), post); err != nil {
			t.Fatal(err)
		}
	}
	deaths, most := make([]int, len(hosts)), len(posts)
	ended := func(post client.Post) bool {
		task, err := c.Task(t.Context(), post.Task)
		return err == nil && task.State != "running"
	}
	for deadline := time.Now().Add(loadTime); len(posts) > 0; posts = slices.DeleteFunc(posts, ended) {
		if time.Now().After(deadline) {
			t.Fatalf("the poison has not ended after %v deaths", deaths)
		}
		for i, p := range hosts {
			if !computesLong(p) {
				continue
			}
			if deaths[i]++; deaths[i] > most {
				t.Fatalf("host %d runs the poison again: %v", i, deaths)
			}
			n++
			p.Kill()
			p.Start()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return n
}

// computesLong reports whether a turn of a host is under way, and has been for a while.
func computesLong(p *hosttest.Process) bool {
	for began := time.Now(); time.Since(began) < computesFor; time.Sleep(10 * time.Millisecond) {
		if !runsTurn(p) {
			return false
		}
	}
	return true
}

// runsTurn reports whether a turn of a host computes or waits, as it does for a moment every
// millisecond: its slot begins with 3 or 2.
func runsTurn(p *hosttest.Process) bool {
	content, err := os.ReadFile(filepath.Join(p.Data(), "running"))
	for i := 64; err == nil && i+64 <= len(content); i += 64 {
		if content[i] == 3 || content[i] == 2 {
			return true
		}
	}
	return false
}
