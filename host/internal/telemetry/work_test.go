package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"skep/host/internal/swarm"
	"skep/host/internal/telemetry"
	"skep/spec/mail"
)

var taskOfAcme = swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "acme", Swarm: "hive"}, Task: "t-1"}

// observed returns an observer with its registry and its log.
func observed(t *testing.T, tenantLabels ...bool) (*telemetry.Work, *prometheus.Registry, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	w := telemetry.NewWork(slog.New(slog.NewJSONHandler(&log, nil)), len(tenantLabels) > 0)
	registry := prometheus.NewRegistry()
	if err := w.Register(registry); err != nil {
		t.Fatal(err)
	}
	return w, registry, &log
}

// logged returns the lines of a log without their times.
func logged(t *testing.T, log *bytes.Buffer) (lines []string) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "time")
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(raw))
	}
	return lines
}

func TestWork(t *testing.T) {
	t.Parallel()
	w, registry, log := observed(t)
	at := time.Now()
	turn := func(f *swarm.Failure) *swarm.CommittedTurn {
		return &swarm.CommittedTurn{N: 1, Agent: "math", Failure: f, Queued: time.Millisecond, Wall: time.Second, Usage: swarm.Usage{CPU: 500 * time.Millisecond}}
	}
	w.Committed(swarm.Change{Task: taskOfAcme, To: swarm.StateRunning, Queued: []swarm.MailShape{{Type: mail.Request}}})
	w.Committed(swarm.Change{Task: taskOfAcme, From: swarm.StateRunning, To: swarm.StatePaused, Turn: &swarm.CommittedTurn{N: 1, Agent: "math", Suspended: true}})
	w.Committed(swarm.Change{Task: taskOfAcme, From: swarm.StatePaused, To: swarm.StateRunning})
	w.Committed(swarm.Change{Task: taskOfAcme, From: swarm.StateRunning, To: swarm.StateRunning, Turn: turn(nil), Queued: []swarm.MailShape{{Type: mail.Request}, {Type: mail.Broadcast}}})
	failure := &swarm.Failure{Cause: "fuel", Limit: "fuel", Message: "a text that is not for operators"}
	unanswered := turn(&swarm.Failure{Cause: "failed", Message: "a text that is not for operators"})
	unanswered.ModelFailures = []swarm.ModelFailure{{Model: "big-1", Kind: "unavailable", Cause: "models.big: connection refused", Count: 2}}
	w.Committed(swarm.Change{Task: taskOfAcme, From: swarm.StateRunning, To: swarm.StateRunning, Turn: unanswered})
	w.Committed(swarm.Change{Task: taskOfAcme, From: swarm.StateRunning, To: swarm.StateFailed, Created: at.Add(-time.Minute), At: at, Turn: turn(failure)})
	want := `
# HELP skep_messages_total Messages that were queued for agents, by type.
# TYPE skep_messages_total counter
skep_messages_total{type="broadcast"} 1
skep_messages_total{type="request"} 2
# HELP skep_tasks_total Changes of tasks' states, by the state after.
# TYPE skep_tasks_total counter
skep_tasks_total{state="failed"} 1
skep_tasks_total{state="paused"} 1
skep_tasks_total{state="running"} 2
# HELP skep_turn_cpu_seconds_total Computing time of turns, by agent.
# TYPE skep_turn_cpu_seconds_total counter
skep_turn_cpu_seconds_total{agent="math"} 1.5
# HELP skep_turns_total Turns that have ended, by agent and how: ok, or the cause of the failure.
# TYPE skep_turns_total counter
skep_turns_total{agent="math",exit="failed"} 1
skep_turns_total{agent="math",exit="fuel"} 1
skep_turns_total{agent="math",exit="ok"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "skep_messages_total", "skep_tasks_total", "skep_turn_cpu_seconds_total", "skep_turns_total"); err != nil {
		t.Error(err)
	}
	for name, n := range map[string]int{"skep_turn_duration_seconds": 1, "skep_turn_queued_seconds": 1, "skep_task_duration_seconds": 1} {
		if got, err := testutil.GatherAndCount(registry, name); err != nil || got != n {
			t.Errorf("%s has %d series, %v", name, got, err)
		}
	}
	wantLog := []string{
		`{"agent":"math","level":"INFO","msg":"a task waits for a person","swarm":"hive","task_id":"t-1","tenant":"acme"}`,
		`{"agent":"math","cause":"failed","key":"","level":"INFO","model":"big-1","model_cause":"models.big: connection refused","msg":"a turn has failed","swarm":"hive","task_id":"t-1","tenant":"acme","turn":1}`,
		`{"agent":"math","cause":"fuel","key":"[agents.math] fuel","level":"INFO","msg":"a turn has failed","swarm":"hive","task_id":"t-1","tenant":"acme","turn":1}`,
		`{"after":"1m0s","level":"INFO","msg":"a task has failed","state":"failed","swarm":"hive","task_id":"t-1","tenant":"acme"}`,
	}
	if got := strings.Join(logged(t, log), "\n"); got != strings.Join(wantLog, "\n") {
		t.Errorf("the log:\n%s", got)
	}
	if lint, err := testutil.GatherAndLint(registry); err != nil || len(lint) > 0 {
		t.Errorf("%v, %v", lint, err)
	}
}

// A tenant whose turns fail without end fills no log, and hides no other's failures.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	w, _, log := observed(t)
	fail := func(tenant, cause string) {
		key := taskOfAcme
		key.Tenant = tenant
		w.Committed(swarm.Change{Task: key, From: swarm.StateRunning, To: swarm.StateRunning,
			Turn: &swarm.CommittedTurn{Agent: "math", Failure: &swarm.Failure{Cause: cause}}})
	}
	for range 1000 {
		fail("acme", "fuel")
	}
	fail("acme", "trap")
	fail("other", "fuel")
	lines := logged(t, log)
	if len(lines) != 12 || !strings.Contains(lines[10], "trap") || !strings.Contains(lines[11], `"tenant":"other"`) {
		t.Errorf("%d lines: %s", len(lines), strings.Join(lines, "\n"))
	}
}

// Names of agents become labels up to a number: tenants may load ever new ones.
func TestAgentLabelsAreBounded(t *testing.T) {
	t.Parallel()
	w, registry, _ := observed(t)
	for i := range 1000 {
		w.Committed(swarm.Change{Task: taskOfAcme, From: swarm.StateRunning, To: swarm.StateRunning, Turn: &swarm.CommittedTurn{Agent: fmt.Sprint("agent", i)}})
	}
	if n, err := testutil.GatherAndCount(registry, "skep_turns_total"); err != nil || n != 201 {
		t.Errorf("%d series, %v", n, err)
	}
}

// Tenants become labels up to a number, where the operator wants them, and leave with their
// numbers.
func TestTenantLabels(t *testing.T) {
	t.Parallel()
	w, registry, _ := observed(t, true)
	post := func(tenant string) {
		key := taskOfAcme
		key.Tenant = tenant
		w.Committed(swarm.Change{Task: key, To: swarm.StateRunning})
	}
	for i := range 500 {
		post(fmt.Sprint("tenant", i))
	}
	count := func(want int) {
		t.Helper()
		if n, err := testutil.GatherAndCount(registry, "skep_tasks_total"); err != nil || n != want {
			t.Errorf("%d series, %v; want %d", n, err, want)
		}
	}
	count(101)
	w.DropTenant("tenant7")
	count(100)
	post("new")
	count(101)
	families, err := registry.Gather()
	if err != nil || strings.Contains(fmt.Sprint(families), "tenant7\"") || !strings.Contains(fmt.Sprint(families), `value:"new"`) {
		t.Errorf("%v, %v", families, err)
	}
}
