package golden_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// deploy holds what operators load into Prometheus and Grafana.
const deploy = "../../docs/deploy/"

// TestDeployedMetrics has all metrics of the rules and the dashboard be such that a busy host
// exports, as TestMetrics finds them.
func TestDeployedMetrics(t *testing.T) {
	t.Parallel()
	var exported []string
	for line := range strings.Lines(hosttest.ReadText(t, "testdata/api/metrics.txt")) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		exported = append(exported, name)
	}
	for _, file := range []string{"prometheus/rules.yml", "grafana/skep.json"} {
		names := regexp.MustCompile(`\bskep_[a-z_]+`).FindAllString(hosttest.ReadText(t, deploy+file), -1)
		if len(names) < 5 {
			t.Errorf("%s has %d metrics", file, len(names))
		}
		for _, name := range names {
			if !slices.Contains(exported, name) {
				t.Errorf("%s: no host exports %s", file, name)
			}
		}
	}
	var board struct {
		Panels []struct{ Title string } `json:"panels"`
	}
	if raw, err := os.ReadFile(deploy + "grafana/skep.json"); err != nil || json.Unmarshal(raw, &board) != nil || len(board.Panels) == 0 {
		t.Error("the dashboard cannot be read")
	}
}

// TestAlertPages: each alert has a section that says what to do, and a test of when it is due and
// when not; each section has an alert.
func TestAlertPages(t *testing.T) {
	t.Parallel()
	all := func(pattern, file string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(hosttest.ReadText(t, file), -1) {
			names = append(names, m[1])
		}
		return names
	}
	alerts := all(`(?m)^ +- alert: (\w+)$`, deploy+"prometheus/rules.yml")
	if len(alerts) < 10 {
		t.Errorf("%d alerts", len(alerts))
	}
	for what, got := range map[string][]string{
		"sections":         all(`(?m)^## (\w+)$`, "../../docs/alerts.md"),
		"tests of due":     all(`(?m)^ +- name: (\w+) is due$`, deploy+"prometheus/rules_test.yml"),
		"tests of not due": all(`(?m)^ +- name: (\w+) is not due$`, deploy+"prometheus/rules_test.yml"),
	} {
		if !slices.Equal(got, alerts) {
			t.Errorf("%s: %v, want %v", what, got, alerts)
		}
	}
}

// TestAlerts has Prometheus' own tool run the rules: each alert is due on a host with its fault
// and not on one without (https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/).
func TestAlerts(t *testing.T) {
	t.Parallel()
	tool := promtool(t)
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = deploy + "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// promtool is Prometheus' own tool; a test without it is skipped, but fails in CI.
func promtool(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if guests.ToolchainsRequired() {
			t.Fatal(err)
		}
		t.Skip("promtool is not here; Debian has it in the package prometheus")
	}
	return tool
}
