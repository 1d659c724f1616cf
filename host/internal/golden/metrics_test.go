package golden_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	series = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	label  = regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
)

// The metrics of a host that has done one task: help, type, names of labels. Prometheus' own tool
// finds nothing wrong with them.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newShell(t, "busy")
	h := s.serve("-c", s.file("swarm.toml"), "--data", s.file("data"))
	s.write("token", variables["ALICE_KEY"])
	body := `[["send_request",{"target":"math","subject":"s","body":"hello"}],["metric",{"name":"seen","value":1}],` +
		`["http.fetch",{"method":"GET","url":"https://api.example.com"}],["llm.chat",{"model":"default","messages":[{"role":"user","content":"Tea?"}]}],["await_message",{}]]`
	if code, _, stderr := s.run("send", "--url", h.url, "--token-file", s.file("token"), body); code != 0 {
		t.Fatalf("send: exit code %d, %s", code, stderr)
	}
	rsp, err := http.Get(h.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("promtool", func(t *testing.T) { lintMetrics(t, text) })
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		m := series.FindStringSubmatch(line)
		switch {
		case m != nil:
			var labels []string
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				labels = append(labels, l[1])
			}
			line = fmt.Sprintf("%s %s", m[1], strings.Join(labels, " "))
		case !strings.HasPrefix(line, "# "):
			t.Errorf("%q is no series", line)
		}
		names[strings.TrimSpace(line)] = true
	}
	golden(t, "api/metrics.txt", strings.Join(slices.Sorted(maps.Keys(names)), "\n")+"\n")
}

// lintMetrics has promtool judge a page of metrics by
// https://prometheus.io/docs/practices/naming/.
func lintMetrics(t *testing.T, page []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), promtool(t), "check", "metrics")
	cmd.Stdin = bytes.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
