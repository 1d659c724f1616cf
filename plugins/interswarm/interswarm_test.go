package main

import (
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestActions(t *testing.T) {
	t.Parallel()
	root := `{"name":"mail","status":"running","swarm":{"name":"depot","entrypoint":"stock"}}`
	for name, c := range map[string]struct {
		action, path, says string
		status             int
		want               string
		fault              skep.Code
	}{
		"pong":           {"ping_swarm", "/", root, 200, `"pong"`, 0},
		"something else": {"ping_swarm", "/", `{"name":"mail","status":"running","swarm":"depot"}`, 200, "", skep.Upstream},
		"half a swarm":   {"ping_swarm", "/", `{"name":"mail","status":"running","swarm":{"name":"depot"}}`, 200, "", skep.Upstream},
		"down":           {"ping_swarm", "/", root, 503, "", skep.Upstream},
		"health":         {"get_swarm_health", "/health", `{"status":"healthy"}`, 200, `"healthy"`, 0},
		"no health":      {"get_swarm_health", "/health", `{}`, 200, "", skep.Upstream},
		"registry": {"get_swarm_registry", "/swarms", `{"swarms":[{"swarm_name":"a","base_url":"https://a.example"},{"name":"b","base_url":"https://b.example"},
			{"name":"c\nd@https://d.example","base_url":""}]}`, 200, `"a@https://a.example\nb@https://b.example"`, 0},
		"no swarms": {"get_swarm_registry", "/swarms", `{"swarms":[]}`, 200, `""`, 0},
		"unknown":   {"get_swarm", "", "", 200, "", skep.Unsupported},
	} {
		in := skeptest.Input{World: &skeptest.World{HTTP: func(r skep.FetchRequest) (skep.FetchResponse, error) {
			if r.URL != "https://depot.example"+c.path {
				t.Errorf("%s: asked %s", name, r.URL)
			}
			return skep.FetchResponse{Status: c.status, Body: []byte(c.says)}, nil
		}}}
		answer, fault := skeptest.ActIn(Looker{}, c.action, map[string]any{"url": "https://depot.example/"}, in)
		if (fault == nil) != (c.fault == 0) || fault != nil && fault.Code != c.fault || string(answer) != c.want {
			t.Errorf("%s: %s, %v", name, answer, fault)
		}
	}
	if _, fault := skeptest.Act(Looker{}, "ping_swarm", map[string]any{"url": 7}); fault == nil || fault.Code != skep.Invalid {
		t.Error(fault)
	}
	if _, fault := skeptest.Act(Looker{}, "ping_swarm", map[string]any{"url": "https://a.example"}); fault == nil || fault.Code != skep.Denied {
		t.Error(fault)
	}
	if out := skeptest.Run(Looker{}, skeptest.Input{}); out.Err == nil || out.Err.Code != skep.Unsupported {
		t.Error(out.Err)
	}
}
