package crash_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// TestWireNeverHeals cuts a wire for good at each step. The task ends within its
// time, once, with the right answer or an error that names what is wrong
// (R-085, G-02).
func TestWireNeverHeals(t *testing.T) {
	t.Parallel()
	const limits = "[limits]\ntask_timeout = \"6s\"\n"
	first := newChain(t, "2m", "") // nothing is cut, so that it has the right answer however long that takes
	want, passed := first.runUndisturbed(t)
	first.storedMail(t, []string{"calm"})
	short := []crossing{{"hive>depot", 1, false}, {"hive>depot", 1, true}, {"yard>depot", 1, false}, {"depot>hive", 1, true}}
	for _, at := range passed {
		if os.Getenv("SKEP_SOAK") == "" && !slices.Contains(short, at) {
			continue
		}
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			c := newChain(t, "1s", limits)
			c.watch("task", map[crossing]fault{at: {lost: true, cut: -1}})
			begun := time.Now()
			a, err := c.owner.PostMessage(t.Context(), client.Post{Task: "task", Key: "key-task", Body: chainTask()})
			if err != nil {
				t.Fatal(err)
			}
			right := a.Body == want || strings.Contains(a.Body, mail.SubjectRouterError) || a.Subject == mail.SubjectTaskTimeout
			if !right {
				t.Errorf("answer %+v", a)
			}
			if err := hosttest.Follow(t.Context(), c.owner, "task"); err != nil {
				t.Error("events:", err)
			}
			c.waitEnded(t, "task")
			t.Logf("%v: %s %s", time.Since(begun).Round(time.Millisecond), a.Subject, a.Body)
			c.storedMail(t, []string{"task"})
		})
	}
}
