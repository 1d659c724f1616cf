package crash_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
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

// killWhileComputing kills a running host when its file shows that a turn
// computes.
func killWhileComputing(t *testing.T, v *hosttest.Process, c *client.Client) {
	t.Helper()
	if _, err := c.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !computes(v); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no turn computes")
		}
	}
	v.Kill()
}

// computes looks for a slot whose turn computes: its first byte is 3.
func computes(v *hosttest.Process) bool {
	content, err := os.ReadFile(filepath.Join(v.Dir, ".skep", "running"))
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
	t.Parallel()
	if testing.Short() {
		t.Skip("starts six hosts")
	}
	v := hosttest.StartProcess(t, hosttest.ScriptSwarm+poisonOperator)
	c := v.Client()
	post := client.Post{Task: "poison", Key: "poison", Body: poison}
	if _, err := c.PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		killWhileComputing(t, v, c)
		v.Start()
	}
	wantAnswer(t, c, "beside", "boss got [")
	killWhileComputing(t, v, c)
	v.Start()
	a, err := c.PostMessage(t.Context(), post)
	if err != nil || !strings.Contains(a.Body, "computing at 4 deaths of the host") {
		t.Errorf("%+v, %v", a, err)
	}
	wantAnswer(t, c, "next", "in quarantine until `skep agent release boss`")

	// It outlives the host, and ends with the operator's word.
	v.Kill()
	v.Start()
	wantAnswer(t, c, "later", "in quarantine")
	op, err := client.New(client.Options{URL: "http://" + v.Addr, Token: "an-operators-key-for-the-test"})
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
	wantAnswer(t, c, "again", "boss got [")
}

func wantAnswer(t *testing.T, c *client.Client, task, want string) {
	t.Helper()
	a, err := c.PostMessage(t.Context(), client.Post{Task: task, Body: "hello"})
	if err != nil || !strings.Contains(a.Body, want) {
		t.Errorf("task %s: %+v, %v, want %q", task, a, err, want)
	}
}
