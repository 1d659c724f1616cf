package crash_test

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

// poison loops for longer than the test waits. That the host dies while it
// computes is what the test does to it.
const poison = `[["loop",{}]]`

const poisonOperator = `
[[auth.keys]]
id = "op"
role = "operator"
key = "an-operators-key-for-the-test"
`

// killWhileComputing kills a running host while a turn computes: the one of an id, or any.
// It returns the turn's id. A host whose turn began to wait before the kill came is started
// again: that death does not count.
func killWhileComputing(t *testing.T, v *hosttest.Process, c *client.Client, id string) string {
	t.Helper()
	if _, err := c.Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		for _, one := range computingTurns(v) {
			if id != "" && id != one {
				continue
			}
			if v.Kill(); slices.Contains(computingTurns(v), one) {
				return one
			}
			v.Start()
			if _, err := c.Root(t.Context()); err != nil {
				t.Fatal(err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no turn computes")
		}
	}
}

// computingTurns returns the ids of the turns that compute: a slot has the state 3 in its
// first byte, and the id in those from 8 to 40.
func computingTurns(v *hosttest.Process) (ids []string) {
	content, err := os.ReadFile(filepath.Join(v.Dir, ".skep", "running"))
	for i := 64; err == nil && i+64 <= len(content); i += 64 {
		if content[i] == 3 {
			ids = append(ids, string(content[i+8:i+40]))
		}
	}
	return ids
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
	id := ""
	for range 3 {
		id = killWhileComputing(t, v, c, id)
		v.Start()
	}
	wantAnswer(t, c, "beside", "boss got [")
	killWhileComputing(t, v, c, id) // the slot of the other turn is freed after its answer
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
