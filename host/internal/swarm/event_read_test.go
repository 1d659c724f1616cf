package swarm

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzReadEvent has ReadEvent and package json read the same.
func FuzzReadEvent(f *testing.F) {
	at := time.Date(2026, 11, 29, 22, 0, 0, 123456000, time.UTC)
	for _, e := range []Event{
		{Name: "new_message", Time: at, Extra: json.RawMessage(`{"full_message":{"id":"1"},"cost":{"fuel":7}}`)},
		{Name: "task_complete", Time: at.In(time.FixedZone("", 3600)), Description: "done"},
		{Name: "quoted", Time: at, Description: "a \"b\"\n\u2028", Extra: json.RawMessage(`{}`)},
		{Name: "x", Time: at, Extra: json.RawMessage(`[1,{}]`)},
		{},
	} {
		raw, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, text := range []string{
		`{"event":"a","timestamp":"2026-11-29T22:00:00Z","extra_data":{},"event":"b"}`,
		`{"event":"a","timestamp":"2026-11-29T22:00:00Z","extra_data":{}} `,
		`{"event":"a","timestamp":"2026-11-29T22:00:00Z","extra_data":{}}}`,
		`{"event":"a","timestamp":"2026-11-29T22:00:00Z"`,
		`{"event":"a","timestamp":"2026-11-29T22:00:00Z","description":""}`,
		`{"event":"a","timestamp":"29.11.2026"}`,
		`{"event":"\u0061","timestamp":"2026-11-29T22:00:00Z"}`,
		"{\"event\":\"\xff\",\"timestamp\":\"2026-11-29T22:00:00Z\"}",
		"{\"event\":\"a\x00\",\"timestamp\":\"2026-11-29T22:00:00Z\"}",
		`{"event":"a","timestamp":"2026-11-29T22:00:00Z","extra_data":{"a":"` + "\xff" + `"}}`,
		``, `null`, `[]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want Event
		wantErr := json.Unmarshal(raw, &want)
		got, err := ReadEvent(raw)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, package json: %v", raw, err, wantErr)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("%q (-json +got)\n%s", raw, diff)
		}
	})
}
