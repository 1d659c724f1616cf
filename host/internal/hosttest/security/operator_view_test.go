package security_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// viewedSwarm has users whose tasks an operator sees from outside.
const viewedSwarm = hosttest.ScriptSwarm + hosttest.CallerTables

// What a user says shows nowhere that operators look beside tasks: not in the live feed, on the
// operators' listener, in the audit log, nor in the host's log, also where an agent logs
// it. The owner reads that in the task's log.
func TestOperatorsViewsShowNoContent(t *testing.T) {
	t.Parallel()
	h, log := hosttest.StartText(t, viewedSwarm, nil)
	h.Key = hosttest.ScriptKey
	feed := openPulse(t, h.URL())
	if line, err := feed.ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	c := h.Client(t)
	p := func(n int) string { return fmt.Sprintf("planted-%d-text", n) }
	for n, body := range []string{
		hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": "math", "subject": p(1), "body": p(2)}}, hosttest.Step{"emit", hosttest.Args{"kind": "note", "text": p(3)}}),
		hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": p(4), "subject": p(5), "body": p(6)}}),
		hosttest.Script(hosttest.Step{"trap", hosttest.Args{"why": p(7)}}),
		hosttest.Script(hosttest.Step{p(8), hosttest.Args{p(9): p(10)}}),
		p(11),
		hosttest.Script(hosttest.Step{"log", hosttest.Args{"level": "error", "message": p(12), "fields": hosttest.Args{p(13): p(14)}}}),
	} {
		if _, err := c.PostAsync(t.Context(), client.Post{Task: fmt.Sprintf("task-%d", n), Subject: p(20 + n), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.PostMessage(t.Context(), client.Post{Task: "task-last", Subject: p(30), Body: `[["task_complete",{"finish_message":"` + p(31) + `"}]]`}); err != nil {
		t.Fatal(err)
	}
	seen, events := "", 0
	for over := false; !over; {
		line, err := feed.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after\n%s", err, seen)
		}
		if seen += line; strings.HasPrefix(line, "data: ") {
			events++
		}
		over = strings.Contains(line, "task-last") && strings.Contains(line, `"completed"`)
	}
	views := map[string]string{"the live feed": seen, "the log": string(log.Bytes()), "the audit log": string(auditFile(t, h))}
	for _, path := range []string{"/metrics", "/readyz?verbose", "/livez", "/version", "/"} {
		_, views[path] = hosttest.Fetch(t, http.DefaultClient, "http://"+h.AdminAddr()+path)
	}
	for name, text := range views {
		if strings.Contains(text, "planted-") {
			t.Errorf("%s shows what a user has said:\n%s", name, text)
		}
	}
	hosttest.Eventually(t, "the host's log says that an agent has logged, and the owner reads what", func() bool {
		record, err := c.Record(t.Context(), "task-5")
		return err == nil && bytes.Contains(record.Raw, []byte(`"agent_logged"`)) && bytes.Contains(record.Raw, []byte(p(12))) && bytes.Contains(record.Raw, []byte(p(14))) &&
			bytes.Contains(log.Bytes(), []byte("an agent has logged; the task's log has its words"))
	})
	if bytes.Contains(log.Bytes(), []byte("planted-")) {
		t.Errorf("the host's log shows what an agent has logged:\n%s", log.Bytes())
	}
	record, err := c.Record(t.Context(), "task-last")
	if err != nil || !bytes.Contains(record.Raw, []byte(p(31))) || events < 10 {
		t.Errorf("the owner does not see %s, or the feed has only %d events: %v", p(31), events, err)
	}
}

// auditFile is the file of the audit log.
func auditFile(t *testing.T, h *hosttest.Host) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.Data, "audit.log"))
	if err != nil || len(raw) == 0 {
		t.Fatalf("the audit log has %d bytes, %v", len(raw), err)
	}
	return raw
}

// openPulse opens the live feed as an operator.
func openPulse(t *testing.T, url string) *bufio.Reader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/skep/v1/pulse", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+hosttest.OperatorKey)
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rsp.Body.Close() })
	if rsp.StatusCode != http.StatusOK {
		t.Fatal(rsp.Status)
	}
	return bufio.NewReader(rsp.Body)
}
