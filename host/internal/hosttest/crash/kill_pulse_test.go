package crash_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/hosttest"
)

// pulseReader reads the feed of a host as its user.
type pulseReader struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Scanner
}

// followPulse opens the feed behind the event with the id last.
func followPulse(t *testing.T, p *hosttest.Process, last string) *pulseReader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Addr+"/skep/v1/pulse", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+hosttest.ScriptKey)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatal("the feed is answered with", resp.Status)
	}
	return &pulseReader{t, resp.Body, bufio.NewScanner(resp.Body)}
}

// next reads an event that is not a ping. Its name is empty where the feed has ended.
func (r *pulseReader) next() (id, name, data string) {
	for r.in.Scan() {
		field, value, _ := strings.Cut(strings.TrimRight(r.in.Text(), "\r"), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if name != "ping" {
				return id, name, data
			}
		}
	}
	return "", "", ""
}

// readReset reads a reset and checks its reason.
func (r *pulseReader) readReset(reason string) (id string) {
	r.t.Helper()
	id, name, data := r.next()
	if name != "reset" || !strings.Contains(data, `"reason":"`+reason+`"`) {
		r.t.Fatalf("%s %s comes first, want a reset for %q", name, data, reason)
	}
	return id
}

// readTask reads up to the end of a task, and returns the last id.
func (r *pulseReader) readTask(task string) (id string) {
	r.t.Helper()
	for {
		id, name, data := r.next()
		if name == "" {
			r.t.Fatal("the feed has ended before task", task, r.in.Err())
		}
		if !strings.Contains(data, `"task_id":"`+task+`"`) {
			r.t.Errorf("%s %s comes, want task %s alone", name, data, task)
		}
		if name == "task" && strings.Contains(data, `"state":"completed"`) {
			return id
		}
	}
}

// A reader of the feed of a host that is killed comes again with its last id: it learns by a reset
// that this is another life of the host, and has what happens from then on. One that comes again to
// the same life has what it missed and no reset. A host that stops in order ends the feeds
// of its readers and does not wait for them.
func TestKillPulse(t *testing.T) {
	t.Parallel()
	p := hosttest.StartProcess(t, hosttest.ScriptSwarm)
	run := func(task string) {
		t.Helper()
		if err := crashTask(t.Context(), p.Client(), task, false); err != nil {
			t.Fatal(err)
		}
	}
	p.Client()
	reader := followPulse(t, p, "")
	reader.readReset("new")
	run("t1")
	last := reader.readTask("t1")
	_ = reader.body.Close()
	run("t2")
	reader = followPulse(t, p, last)
	last = reader.readTask("t2")

	p.Kill()
	if _, name, data := reader.next(); name != "" || reader.in.Err() == nil {
		t.Errorf("a feed of a killed host has %s %s and ends with %v", name, data, reader.in.Err())
	}
	p.Start()
	p.Client()
	reader = followPulse(t, p, last)
	if again := reader.readReset("incarnation"); again == last {
		t.Error("two lives of a host have the same id", again)
	}
	run("t3")
	reader.readTask("t3")

	p.Signal(syscall.SIGTERM)
	if _, name, data := reader.next(); name != "" || reader.in.Err() != nil {
		t.Errorf("a feed of a host that stops has %s %s and ends with %v", name, data, reader.in.Err())
	}
	if code, _ := p.End(); code != 0 {
		t.Error("the host ends with", code)
	}
}
