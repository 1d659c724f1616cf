package cli

import (
	"encoding/json"
	"testing"

	"skep/host/client"
)

// A line has the change, and not the rest of a table.
func TestChangeLine(t *testing.T) {
	t.Parallel()
	const peer = `{"allow_private":false,"auth_token":null,"base_url":"https://d.example","give_up":"30s","metadata":"{}","verify_key":"","keywords":[]}`
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for want, c := range map[string]client.Change{
		`+ peer    depot  {"base_url":"https://d.example","give_up":"30s"}`: {Kind: "peer", Name: "depot", Change: "added", Before: raw("null"), After: raw(peer)},
		`~ peer    depot  {"give_up":"30s"} → {"give_up":"1m0s"}`:           {Kind: "peer", Name: "depot", Change: "changed", Before: raw(`{"give_up":"30s"}`), After: raw(`{"give_up":"1m0s"}`)},
		`~ peer    depot  {"public":true} → {"public":false}`:               {Kind: "peer", Name: "depot", Change: "changed", Before: raw(`{"public":true}`), After: raw(`{"public":false}`)},
		`- peer    depot`:         {Kind: "peer", Name: "depot", Change: "removed", Before: raw(peer), After: raw("null")},
		`+ grant   a.kv  "agent"`: {Kind: "grant", Name: "a.kv", Change: "added", Before: raw("null"), After: raw(`"agent"`)},
		`+ limit   a.x  null`:     {Kind: "limit", Name: "a.x", Change: "added", Before: raw("null"), After: raw("null")},
	} {
		if got := newApp(Env{}).changeLine(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
