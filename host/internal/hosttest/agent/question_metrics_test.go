package agent_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// The metrics have how many tasks wait for people, with how many questions, since when; and what
// the tenant has left of its quota, with its name where the operator wants that.
func TestQuestionMetrics(t *testing.T) {
	t.Parallel()
	file := strings.Replace(hosttest.ScriptSwarm, `entrypoint = "boss"`, "entrypoint = \"boss\"\nbreakpoint_tools = [\"help\"]", 1)
	h, _ := hosttest.StartText(t, file+"[tenants.default]\ntasks = 4\n[telemetry]\ntenant_labels = true\n", nil)
	h.Key = hosttest.ScriptKey
	c := h.Client(t)
	for _, id := range []string{"one", "two"} {
		if _, err := c.PostAsync(t.Context(), client.Post{Task: id, Body: hosttest.Script(hosttest.Step{"help", hosttest.Args{}})}); err != nil {
			t.Fatal(err)
		}
		hosttest.Eventually(t, "the task waits", func() bool {
			record, err := c.Record(t.Context(), id)
			return err == nil && strings.Contains(string(record.Raw), `"paused"`)
		})
	}
	_, text := hosttest.Fetch(t, http.DefaultClient, "http://"+h.AdminAddr()+"/metrics")
	for _, want := range []string{
		`skep_tasks_paused 2`, `skep_questions 2`, `skep_store_bytes [1-9]`, `skep_question_oldest_seconds (0\.|[1-9])`,
		`skep_quota_left_ratio\{quota="tasks",tenant="default"\} 1`, `skep_tasks_total\{state="paused",tenant="default"\} 2`,
	} {
		if !regexp.MustCompile("(?m)^" + want).MatchString(text) {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
}
