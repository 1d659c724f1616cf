package federation_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"skep/host/internal/hosttest"
)

// A task of two hosts is one trace: each host tells of its own part, and the parts hang
// together.
func TestSpansOverTwoHosts(t *testing.T) {
	t.Parallel()
	collector := hosttest.StartCollector(t)
	u := newFederation(t, "1m", []string{"hive", "depot"})
	for name, site := range u.sites {
		site.Write(hosttest.ReadText(t, filepath.Join(site.Dir, "swarm.toml")) + fmt.Sprintf("[telemetry]\nendpoint = %q\n", collector.URL))
		u.restart(name)
	}
	if a := u.ask(t, "hive", "t1", hosttest.RequestOf("boss@depot", "valves?")); a.Body != "boss got [::interswarm_task_complete::] boss got [s] valves?" {
		t.Fatalf("answer %+v", a)
	}
	collector.Wait(t, "invoke_workflow depot", 1)
	spans := collector.Wait(t, "invoke_workflow hive", 1)
	above := map[string]hosttest.Span{}
	count := map[string]int{}
	for _, s := range spans {
		count[s.Attributes["skep.swarm"]+" "+s.Name]++
		above[s.ID] = s
		if s.Trace != spans[0].Trace {
			t.Errorf("another trace: %+v", s)
		}
	}
	want := map[string]int{"hive invoke_workflow hive": 1, "hive invoke_agent boss": 2, "depot invoke_workflow depot": 1, "depot invoke_agent boss": 1}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", count, want)
	}
	depot := hosttest.Named(spans, "invoke_workflow depot")[0]
	if from := above[depot.Parent]; from.Name != "invoke_agent boss" || from.Attributes["skep.swarm"] != "hive" {
		t.Errorf("depot's part lies below %+v", from)
	}
	for _, s := range spans {
		if _, has := above[s.Parent]; !has && s.Parent != "" {
			t.Errorf("nothing is above %+v", s)
		}
	}
}
