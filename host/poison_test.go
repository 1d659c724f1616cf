package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/client"
)

// poison loops for longer than the test waits. That the host dies while it
// computes is what the test does to it.
const poison = `[["loop",{}]]`

const poisonOperator = `
[[auth.keys]]
id = "op"
role = "operator"
key = "an-operators-key-for-the-test"
`

// killWhileComputing kills a host that is up when its file says that a turn
// computes.
func (v *victim) killWhileComputing(c *client.Client) {
	v.t.Helper()
	if _, err := c.Root(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !v.computes(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			v.t.Fatal("no turn computes")
		}
	}
	v.kill()
}

// computes looks for a slot whose turn computes: its first byte is 3.
func (v *victim) computes() bool {
	content, err := os.ReadFile(filepath.Join(v.dir, ".skep", "running"))
	for i := 64; err == nil && i+64 <= len(content); i += 64 {
		if content[i] == 3 {
			return true
		}
	}
	return false
}

// A turn at whose computing the host dies again and again is ended by the fifth
// host, and its agent is not run any more until it is released.
func TestPoison(t *testing.T) {
	if testing.Short() {
		t.Skip("starts six hosts")
	}
	v := newVictim(t, crashSwarm+poisonOperator)
	c := v.client()
	post := client.Post{Task: "poison", Key: "poison", Body: poison}
	if _, err := c.PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		v.killWhileComputing(c)
		v.start()
	}
	v.wantAnswer(c, "beside", "boss got [")
	v.killWhileComputing(c)
	v.start()
	a, err := c.PostMessage(t.Context(), post)
	if err != nil || !strings.Contains(a.Body, "computing at 4 deaths of the host") {
		t.Errorf("%+v, %v", a, err)
	}
	v.wantAnswer(c, "next", "in quarantine until `skep agent release boss`")

	// It outlives the host, and ends with the operator's word.
	v.kill()
	v.start()
	v.wantAnswer(c, "later", "in quarantine")
	op, err := client.New(client.Options{URL: "http://" + v.addr, Token: "an-operators-key-for-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	if err := c.ReleaseAgent(t.Context(), "", "boss"); err == nil {
		t.Error("a user released it")
	}
	if err := op.ReleaseAgent(t.Context(), "default", "boss"); err != nil {
		t.Fatal(err)
	}
	v.wantAnswer(c, "again", "boss got [")
}

func (v *victim) wantAnswer(c *client.Client, task, want string) {
	v.t.Helper()
	a, err := c.PostMessage(v.t.Context(), client.Post{Task: task, Body: "hello"})
	if err != nil || !strings.Contains(a.Body, want) {
		v.t.Errorf("task %s: %+v, %v, want %q", task, a, err, want)
	}
}
