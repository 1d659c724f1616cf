package pages_test

import (
	"bytes"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/hosttest"
)

// TestOperatePage: an operator follows the page with a user's task that runs.
func TestOperatePage(t *testing.T) {
	t.Parallel()
	page, p, collector := hosttest.ReadText(t, "../../../docs/operate.md"), install(t), hosttest.StartCollector(t)
	var log hosttest.LogBuffer
	h, _ := hosttest.StartText(t, strings.ReplaceAll(hosttest.ScriptSwarm, `"crash"`, `"alice"`)+hosttest.CallerTables+"[console]\nlook = \"reason\"\n"+
		tracedAs(t, page, collector.URL), map[string]string{"COLLECTOR_TOKEN": "Bearer of-the-page"}, func(o *host.Options) { o.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	h.Key = hosttest.ScriptKey
	alice := h.Client(t)
	_, err := alice.PostAsync(t.Context(), client.Post{Task: "lamp", Subject: "a planted subject", Body: `[["sleep",{"ms":600000}]]`})
	if err != nil {
		t.Fatal(err)
	}
	tried, dir := 0, t.TempDir()
	for _, s := range consolesIn(page) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "PATH="+filepath.Dir(p.path)+":$PATH; "+strings.ReplaceAll(s.command, "127.0.0.1:8001", h.AdminAddr()))
		cmd.Env = append(p.env[:len(p.env):len(p.env)], "SKEP_URL="+h.URL(), "SKEP_TOKEN="+hosttest.OperatorKey)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || s.output != "" && !s.matches(string(out)) || strings.Contains(string(out), "planted") != strings.Contains(s.command, "skep look") {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
		tried++
	}
	if tried != 17 {
		t.Errorf("%d commands", tried)
	}
	if !bytes.Contains(log.Bytes(), []byte(`"component":"api"`)) {
		t.Errorf("the log has no line that only the set level lets through:\n%s", log.Bytes())
	}
	traced := collector.Wait(t, "invoke_workflow hive", 1)
	if raw, headers := collector.Received(); headers[0].Get("Authorization") != "Bearer of-the-page" || strings.Contains(string(raw), "planted") {
		t.Errorf("the collector has %v, of %v", traced, headers)
	}
	told := false
	for e, err := range alice.Log(t.Context(), "lamp", 0, lastEvent(t, alice, "lamp")) {
		told = told || e.Name == "task_look" && strings.Contains(e.Description, "operator op reads this task") && strings.Contains(e.Description, "the lamp stays dark")
		if err != nil {
			t.Fatal(err)
		}
	}
	if !told {
		t.Error("the owner does not read of the look")
	}
	if got, err := alice.Task(t.Context(), "lamp"); err != nil || got.State != "cancelled" || !strings.Contains(got.Answer, "operator op") {
		t.Errorf("the task is %s, %q, %v", got.State, got.Answer, err)
	}
}

// tracedAs returns the table of a page that names a collector, with the URL of one that is there, for
// all traces instead of a part.
func tracedAs(t *testing.T, page, url string) string {
	t.Helper()
	_, rest, _ := strings.Cut(page, "```toml\n[telemetry]\n")
	table, _, found := strings.Cut(rest, "```")
	if !found || !strings.Contains(table, "http://127.0.0.1:4318") || !strings.Contains(table, "sample = 0.05") {
		t.Fatalf("the page's table is %q", table)
	}
	return "[telemetry]\n" + strings.NewReplacer("http://127.0.0.1:4318", url, "sample = 0.05", "sample = 1").Replace(table)
}

func lastEvent(t *testing.T, c *client.Client, task string) int64 {
	got, err := c.Task(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return got.Cursor
}
