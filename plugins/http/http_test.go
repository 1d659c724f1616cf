package main

import (
	"encoding/json"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestActions(t *testing.T) {
	t.Parallel()
	var got skep.FetchRequest
	in := skeptest.Input{World: &skeptest.World{HTTP: func(r skep.FetchRequest) (skep.FetchResponse, error) {
		got = r
		return skep.FetchResponse{Status: 201, Body: []byte("made \xff")}, nil
	}}}
	for name, c := range map[string]struct {
		action, args, method, body, kind, want string
	}{
		"get":         {"http_get", `{"url":"https://a.example"}`, "GET", "", "", `"made �"`},
		"with status": {"http_head", `{"url":"https://a.example","status":true}`, "HEAD", "", "", `"HTTP 201\nmade �"`},
		"post":        {"http_post", `{"url":"https://a.example","body":{"n":1}}`, "POST", `{"n":1}`, "application/json", `"made �"`},
		"own type": {"http_put", `{"url":"https://a.example","body":{},"headers":{"content-type":"text/x"}}`,
			"PUT", `{}`, "", `"made �"`},
	} {
		answer, fault := skeptest.ActIn(Fetcher{}, c.action, json.RawMessage(c.args), in)
		if fault != nil || string(answer) != c.want {
			t.Errorf("%s: %s, %v", name, answer, fault)
		}
		if got.Method != c.method || string(got.Body) != c.body || got.Headers["Content-Type"] != c.kind {
			t.Errorf("%s: sent %+v", name, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]skep.Code{"http_get": skep.Denied, "http_steal": skep.Unsupported} {
		if _, fault := skeptest.Act(Fetcher{}, action, map[string]any{"url": "https://a.example"}); fault == nil || fault.Code != want {
			t.Errorf("%s: %v", action, fault)
		}
	}
	if _, fault := skeptest.Act(Fetcher{}, "http_get", map[string]any{"url": 7}); fault == nil || fault.Code != skep.Invalid {
		t.Error(fault)
	}
	if out := skeptest.Run(Fetcher{}, skeptest.Input{}); out.Err == nil || out.Err.Code != skep.Unsupported {
		t.Error(out.Err)
	}
}
