package envelope_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/uamp/envelope"
)

// TestReadManifest (V-U14, U-100, U-106, D-U3): what the schema of appendix A.3 takes.
func TestReadManifest(t *testing.T) {
	t.Parallel()
	const good = `{"agent":"uamp/1.0","description":"x","intents":["ask"],"body_types":["text/plain"],"auth":["oauth2","mtls"],"limits":{"max_body_kb":4,"rate_lph":10}}`
	for name, c := range map[string]struct {
		old, new string
		ok       bool
	}{
		"good":               {"", "", true},
		"another minor":      {"uamp/1.0", "uamp/1.12", true},
		"no limits in it":    {`{"max_body_kb":4,"rate_lph":10}`, `{}`, true},
		"another major":      {"uamp/1.0", "uamp/2.0", false},
		"no minor":           {"uamp/1.0", "uamp/1.", false},
		"other property":     {`"auth"`, `"url":"x","auth"`, false},
		"other limit":        {`"rate_lph"`, `"rate"`, false},
		"other auth":         {`"mtls"`, `"basic"`, false},
		"auth a text":        {`["oauth2","mtls"]`, `"oauth2"`, false},
		"no agent":           {`"agent":"uamp/1.0",`, "", false},
		"no description":     {`"description":"x",`, "", false},
		"no intents":         {`"intents":["ask"],`, "", false},
		"no body types":      {`"body_types":["text/plain"],`, "", false},
		"no auth":            {`"auth":["oauth2","mtls"],`, "", false},
		"no limits":          {`,"limits":{"max_body_kb":4,"rate_lph":10}`, "", false},
		"intents of numbers": {`["ask"]`, `[1]`, false},
		"limit a text":       {`4`, `"4"`, false},
		"a part of one":      {`4`, `4.5`, false},
		"agent twice":        {`"auth"`, `"agent":"uamp/1.0","auth"`, false},
		"too large":          {`"x"`, `"` + strings.Repeat("x", 64<<10) + `"`, false},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		m, err := envelope.ReadManifest([]byte(text))
		if (err == nil) != c.ok {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if name == "good" {
			if sent, err := json.Marshal(m); err != nil || string(sent) != good {
				t.Errorf("%s, %v", sent, err)
			}
		}
	}
	if _, err := envelope.ReadManifest([]byte(`[]`)); err == nil {
		t.Error("a list is taken")
	}
}

// TestManifestCheck (U-103): what a recipient does not list, or what is too large for it,
// is refused before it is sent.
func TestManifestCheck(t *testing.T) {
	t.Parallel()
	m := envelope.Manifest{Intents: []string{"ask"}, BodyTypes: []string{"text/*", "Application/JSON; charset=utf-8"}, Limits: envelope.ManifestLimits{MaxBodyKB: 4}}
	for _, c := range []struct {
		intent envelope.Intent
		kind   string
		size   int
		want   envelope.Code
	}{
		{envelope.Ask, "text/markdown; charset=utf-8", 4096, ""},
		{envelope.Ask, "application/json", 1, ""},
		{envelope.Inform, "text/plain", 1, envelope.Unsupported},
		{envelope.Ask, "image/png", 1, envelope.Unsupported},
		{envelope.Ask, "textual/x", 1, envelope.Unsupported},
		{envelope.Ask, "text/plain", 4097, envelope.TooLarge},
	} {
		if err := m.Check(envelope.Envelope{Intent: c.intent, Body: envelope.Body{Type: c.kind}}, c.size); codeOf(t, err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (envelope.Manifest{Intents: []string{"ask"}, BodyTypes: []string{"*/*"}}).Check(envelope.Envelope{Intent: envelope.Ask, Body: envelope.Body{Type: "image/png"}}, 1<<30); err != nil {
		t.Errorf("no limit: %v", err)
	}
}

// TestReadHub (V-U15, U-102): a hub list of ours reads as it was, and one that cannot be
// used is refused; an item that cannot be has its reason.
func TestReadHub(t *testing.T) {
	t.Parallel()
	child := envelope.Child{Agent: "did:web:lab.example", URL: "https://lab.example/.well-known/agent-manifest.json", SHA256: strings.Repeat("0", 64)}
	h := envelope.Hub{Version: envelope.HubVersion, Manifests: []envelope.Child{child}, Anchors: []envelope.Anchor{{"did", "did:web:hive.example"}}, Updated: time.Date(2025, 7, 10, 10, 0, 0, 0, time.UTC)}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := envelope.ReadHub(text); err != nil || fmt.Sprint(got) != fmt.Sprint(h) {
		t.Errorf("%s: %+v, %v", text, got, err)
	}
	for _, change := range [][3]string{
		{`"1.0"`, `"2.0"`, "version 1.0"}, {child.URL, "lab.example", `item 1 of manifests, for did:web:lab.example, has no url, but "lab.example"`}, {child.Agent, "lab", `item 1 of manifests has no agent, but "lab"`},
		{child.SHA256, "00", `for did:web:lab.example, has no sha256 of 64 hexadecimal digits, but "00"`}, {`"manifests":[`, `"manifests":7,"x":[`, "version 1.0"}, {`"uamp_hub"`, `"uamp_hub":"1.0","uamp_hub"`, "the hub list"},
		{`"manifests":[`, `"manifests":[` + strings.Repeat(`{},`, 1001), "1000 manifests"},
	} {
		changed := strings.Replace(string(text), change[0], change[1], 1)
		got, err := envelope.ReadHub([]byte(changed))
		if err == nil && len(got.Manifests) == 1 { // the others of the list count
			err = got.Manifests[0].Err
		}
		if err == nil || changed == string(text) || !strings.Contains(err.Error(), change[2]) {
			t.Errorf("%.40s: %+v, %v", change[1], got, err)
		}
	}
}
