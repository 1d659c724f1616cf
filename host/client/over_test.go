package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTaskEndsMeanwhile: a task that has ended when its host is back is read to
// its end.
func TestTaskEndsMeanwhile(t *testing.T) {
	t.Parallel()
	n := 0
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() == "/skep/v1/tasks/a%2Fb" {
			reply(w, 200, `{"task_id":"a/b","is_running":false,"cursor":9}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if n++; n == 1 {
			fmt.Fprint(w, event(1, "a"))
			return
		}
		fmt.Fprint(w, event(2, "b")+finish)
	})
	got, err := follow(eventually(t), c, 0)
	if diff := cmp.Diff([]string{"1 a", "2 b", "9 task_complete"}, got); diff != "" || err != nil {
		t.Errorf("err = %v; events (-want +got):\n%s", err, diff)
	}
}

// TestTaskGoesMeanwhile wants the host's word on a task that it does not know any
// more, and on a log that lacks what its task says.
func TestTaskGoesMeanwhile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		body   string
		want   error
	}{
		{404, `{"detail":"gone"}`, &Error{404, "gone", ""}},
		{200, `{"task_id":"a/b","is_running":false,"cursor":9}`, errShort},
	} {
		c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.EscapedPath() == "/skep/v1/tasks/a%2Fb" {
				reply(w, tc.status, tc.body)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			if r.Header.Get("Last-Event-ID") == "" {
				fmt.Fprint(w, event(1, "a"))
			}
		})
		got, err := follow(eventually(t), c, 0)
		if len(got) != 1 || err == nil || !strings.Contains(err.Error(), tc.want.Error()) {
			t.Errorf("events %v, err = %v; want one and %v", got, err, tc.want)
		}
	}
}
