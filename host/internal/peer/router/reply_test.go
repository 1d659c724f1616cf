package router_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A message is accepted, refused at once, or tried again.
func TestAnswers(t *testing.T) {
	t.Parallel()
	fail := func(status int, detail string) func(int, string) (int, string) {
		return func(int, string) (int, string) { return status, `{"detail":"` + detail + `"}` }
	}
	first := func(status int, body string) func(int, string) (int, string) {
		return func(n int, path string) (int, string) {
			if n == 1 {
				return status, body
			}
			return ok(n, path)
		}
	}
	for name, c := range map[string]struct {
		back   bool
		notice bool
		answer func(int, string) (int, string)
		paths  []string
		want   string // of the reason, empty for taken
	}{
		"wrong key":               {false, false, fail(401, "invalid role"), []string{"forward"}, "swarm 'depot' refuses it: 401 Unauthorized: invalid role"},
		"unknown agent":           {false, false, fail(404, "there is no agent 'x' in swarm 'depot'"), []string{"forward"}, "refuses it: 404"},
		"reference refuses":       {true, false, fail(500, "server failed to receive interswarm back message: x"), []string{"back"}, "refuses it: 500"},
		"conflict":                {false, false, fail(409, "another task"), []string{"forward"}, "refuses it: 409"},
		"redirect":                {false, false, fail(307, ""), []string{"forward"}, "refuses it: 307"},
		"busy":                    {false, false, first(503, "{}"), []string{"forward", "forward"}, ""},
		"broken":                  {false, false, first(502, "<html>"), []string{"forward", "forward"}, ""},
		"crashed":                 {false, false, first(500, "Internal Server Error"), []string{"forward", "forward"}, ""},
		"something else":          {false, false, first(200, "<html>"), []string{"forward", "forward"}, ""},
		"the peer forgot":         {true, false, first(400, `{"detail":"task is not running"}`), []string{"back", "forward"}, ""},
		"it forgot and was asked": {true, false, first(500, `{"detail":"server failed to receive interswarm back message: a task with ID 't' does not exist in swarm memory"}`), []string{"back", "forward"}, ""},
		"another task is not":     {true, false, fail(500, "server failed to receive interswarm back message: a task with ID 'u' does not exist in swarm memory"), []string{"back"}, "refuses it: 500"},
		"skep forgot":             {true, false, first(404, `{"detail":"task is not running: there is no task 't'"}`), []string{"back", "forward"}, ""},
		"the peer has it":         {false, false, first(500, `{"detail":"server failed to receive interswarm forward message: task exists"}`), []string{"forward", "back"}, ""},
		"both ways wrong":         {true, false, fail(404, "task is not running"), []string{"back", "forward"}, "refuses it: 404"},
		"each names the other":    {false, false, eachOther(t), []string{"forward", "back"}, "refuses it: 400"},
		"no such agent":           {false, false, fail(500, "server failed to receive interswarm forward message: agent does not exist"), []string{"forward"}, "agent does not exist"},
		"accepted":                {false, false, fail(202, ""), []string{"forward"}, "refuses it: 202"},
		"a notice of nothing":     {true, true, fail(404, "task is not running: there is no task 't'"), []string{"back"}, "refuses it: 404"},
		"a notice elsewhere":      {false, true, first(500, `{"detail":"server failed to receive interswarm forward message: task exists"}`), []string{"forward", "back"}, ""},
		"an unknown task too":     {true, false, fail(404, "there is no agent 'task' in swarm 'depot'"), []string{"back"}, "refuses it: 404"},
		"no instance":             {true, false, first(404, `{"detail":"no mail instance found for task with id t"}`), []string{"back", "forward"}, ""},
		"many faults":             {false, false, func(int, string) (int, string) { return 422, `{"detail":[{"loc":["body"], "msg":"field required"}]}` }, []string{"forward"}, `refuses it: 422 Unprocessable Entity: [{"loc":["body"],"msg":"field required"}]`},
		"nothing said":            {false, false, first(200, "null"), []string{"forward", "forward"}, ""},
		"an empty object":         {false, false, first(200, "{}"), []string{"forward", "forward"}, ""},
		"an error with 200":       {false, false, first(200, `{"status":"error","task_id":"t"}`), []string{"forward", "forward"}, ""},
		"another task":            {false, false, first(200, `{"status":null,"task_id":"u"}`), []string{"forward", "forward"}, ""},
		"no status":               {false, false, func(int, string) (int, string) { return 200, `{"task_id":"t"}` }, []string{"forward"}, ""},
		"an odd runner":           {false, false, func(int, string) (int, string) { return 200, `{"status":"success","local_runner":5}` }, []string{"forward"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := newFakePeer(t, c.answer), newFakeOutbox()
			peer := d.peer()
			peer.GiveUp = 20 * time.Second
			r := run(t, o, peers{"depot": peer})
			p := newDelivery(1, c.back)
			p.Notice = c.notice
			o.put(box("t", "depot"), p)
			r.Wake(box("t", "depot"))
			o.wait(t, 1)
			var want []string
			for _, p := range c.paths {
				want = append(want, "/interswarm/"+p+" "+id(1))
			}
			if got := d.requests(); !slices.Equal(got, want) {
				t.Errorf("requests %q, want %q", got, want)
			}
			if got := o.failed[id(1)]; !strings.Contains(got, c.want) || (c.want == "") != (len(o.taken) == 1) {
				t.Errorf("taken %q, failed %q, want %q", o.taken, o.failed, c.want)
			}
		})
	}
}

// eachOther answers for a peer whose two routes name each other. A message goes by each
// once.
func eachOther(t *testing.T) func(int, string) (int, string) {
	return func(n int, path string) (int, string) {
		switch {
		case n > 2:
			t.Errorf("the message comes a third time, by %s", path)
			return ok(n, path)
		case strings.HasSuffix(path, "forward"):
			return 500, `{"detail":"server failed to receive interswarm forward message: task exists"}`
		}
		return 400, `{"detail":"task is not running"}`
	}
}

// Of what the host itself has written, only the word that a task is over is done
// with when the peer does not know the task; a 404 about something else is not that.
func TestEndings(t *testing.T) {
	t.Parallel()
	for detail, taken := range map[string]bool{
		"task is not running":                               true,
		"task is not running: there is no task 't'":         true,
		"no mail instance found for task with id t":         true,
		"swarm 'depot' not found":                           false,
		"there is no agent 'taskmaster' in swarm 'depot'":   false,
		"no mail instance found for contributor: x:y@depot": false,
	} {
		d, o := newFakePeer(t, func(int, string) (int, string) { return 404, `{"detail":"` + detail + `"}` }), newFakeOutbox()
		r := run(t, o, peers{"depot": d.peer()})
		p := newDelivery(1, true)
		p.Notice, p.Ending = true, true
		o.put(box("t", "depot"), p)
		r.Wake(box("t", "depot"))
		o.wait(t, 1)
		if (len(o.taken) == 1) != taken || strings.Contains(o.failed[id(1)], detail) == taken || len(d.requests()) != 1 {
			t.Errorf("%s: taken %q, failed %q, requests %q", detail, o.taken, o.failed, d.requests())
		}
	}
}

// The peer's answer in place of an acceptance is in the reason when the message
// is given up.
func TestNotTaken(t *testing.T) {
	t.Parallel()
	d, o := newFakePeer(t, func(int, string) (int, string) { return 200, `{"status":"error","why":"full"}` }), newFakeOutbox()
	r := run(t, o, peers{"depot": d.peer()})
	o.put(box("t", "depot"), newDelivery(1, false))
	r.Wake(box("t", "depot"))
	o.wait(t, 1)
	if why := o.failed[id(1)]; !strings.Contains(why, `it does not say that it has taken the letter: {"status":"error","why":"full"}`) {
		t.Errorf("taken %q, failed %q", o.taken, why)
	}
}
