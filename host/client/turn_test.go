package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const endedTurn = `{"turn":1,"agent":"boss","start":"s","attempt":2,"ops":{"kv.put":3},"end":"e","exit":"fuel",` +
	`"usage":{"fuel":18446744073709551615,"cpu_ms":1.5,"wall_ms":2000,"host_calls":3,"fetches":1,"fetch_bytes":77,"tokens":12,"micro_usd":34}}`

func TestTurns(t *testing.T) {
	t.Parallel()
	open := `{"turn":2,"agent":"math","start":"s","attempt":1,"ops":{},"end":null,"exit":null,"usage":null}`
	last := `{"turn":5,"agent":"math","start":"s","attempt":1,"ops":{},"end":"e","exit":"ok","usage":{}}`
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path + "?" + r.URL.RawQuery {
		case "/skep/v1/tasks/t/1/turns?":
			reply(w, 200, `{"task_id":"t/1","turns":[`+endedTurn+`,`+open+`],"next":2}`)
		case "/skep/v1/tasks/t/1/turns?after=2":
			reply(w, 200, `{"task_id":"t/1","turns":[`+last+`],"next":null}`)
		default:
			reply(w, 404, `{"detail":"`+r.URL.String()+`"}`)
		}
	})
	var got []Turn
	for turn, err := range c.Turns(t.Context(), "t/1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, turn)
	}
	want := []Turn{
		{N: 1, Agent: "boss", Start: "s", End: "e", Exit: "fuel", Attempt: 2, Ops: map[string]int64{"kv.put": 3}, Raw: []byte(endedTurn),
			Usage: &TurnUsage{Fuel: 1<<64 - 1, CPU: 1500 * time.Microsecond, Wall: 2 * time.Second, HostCalls: 3, Fetches: 1, FetchBytes: 77, Tokens: 12, MicroUSD: 34}},
		{N: 2, Agent: "math", Start: "s", Attempt: 1, Ops: map[string]int64{}, Raw: []byte(open)},
		{N: 5, Agent: "math", Start: "s", End: "e", Exit: "ok", Attempt: 1, Ops: map[string]int64{}, Usage: &TurnUsage{}, Raw: []byte(last)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for turn := range c.Turns(t.Context(), "t/1", 0) {
		if turn.N == 2 {
			break
		}
	}
	for turn, err := range c.Turns(t.Context(), "t/1", 2) {
		if err != nil || turn.N != 5 {
			t.Errorf("after the second: %+v, %v", turn, err)
		}
	}
}

func TestTurnsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no turn":             `{"turns":[1],"next":null}`,
		"no usage":            `{"turns":[{"usage":7}],"next":null}`,
		"a circle":            `{"turns":[],"next":0}`,
		"no page":             `7`,
		"a host that repeats": `{"turns":[` + endedTurn + `],"next":1}`,
	} {
		c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, body) })
		var last error
		n := 0
		for _, err := range c.Turns(t.Context(), "t", 0) {
			last = err
			if n++; n > 3 {
				break
			}
		}
		if !errors.Is(last, ErrNotMAIL) {
			t.Errorf("%s: %v", name, last)
		}
	}
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { reply(w, 404, `{"detail":"no"}`) })
	var refusal *Error
	for _, err := range c.Turns(t.Context(), "t", 0) {
		if !errors.As(err, &refusal) || refusal.Status != 404 || !strings.Contains(fmt.Sprint(err), "no") {
			t.Errorf("%v", err)
		}
	}
}
