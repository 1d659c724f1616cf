package crash_test

import (
	"context"
	"fmt"
	"regexp"

	"skep/host/client"
)

// trace is all that a task has left behind, without ids, times and costs.
type trace struct {
	Events    []string
	Histories map[string][]string
}

// traces reads what every task has left behind, and checks it as far as one run
// can be checked by itself.
func (r *httpRun) traces() map[string]trace {
	r.t.Helper()
	all := map[string]trace{}
	for n := range r.tasks {
		id := httpTaskID(n)
		checkTask(r.t, r.cl, id)
		one, err := readTrace(r.t.Context(), r.cl, id)
		if err != nil {
			r.t.Errorf("%s: %v", id, err)
		}
		all[id] = one
	}
	return all
}

func readTrace(ctx context.Context, c *client.Client, id string) (trace, error) {
	names := &renaming{names: map[string]string{}}
	one := trace{Histories: map[string][]string{}}
	for e, err := range c.Stream(ctx, id, 0) {
		if err != nil {
			return one, err
		}
		one.Events = append(one.Events, names.plain(fmt.Sprintf("%s: %s %s %s", e.Name, e.Description, e.Extra, e.Response)))
	}
	for _, agent := range []string{"boss", "math"} {
		h, err := c.History(ctx, id, agent, 0, 100)
		if err != nil {
			return one, err
		}
		for _, e := range h.Entries {
			one.Histories[agent] = append(one.Histories[agent], names.plain(string(e)))
		}
	}
	return one, nil
}

// renaming gives ids names in the order in which they come up, so that what
// refers to the same thing still does.
type renaming struct{ names map[string]string }

// Computing time is never the same; fuel depends a little on the ids read.
var (
	aCost = regexp.MustCompile(`"cpu_ms":[0-9.e+-]+,"fuel":\d+`)
	anID  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	aTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(\+00:00|Z)`)
)

func (r *renaming) plain(text string) string {
	text = aCost.ReplaceAllString(text, "COST")
	text = aTime.ReplaceAllString(text, "TIME")
	return anID.ReplaceAllStringFunc(text, func(id string) string {
		if r.names[id] == "" {
			r.names[id] = fmt.Sprintf("ID-%d", len(r.names)+1)
		}
		return r.names[id]
	})
}
