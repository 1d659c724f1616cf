package wasm

import (
	"encoding/json"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
)

// A small turn of a Go agent finds the memory it needs in its image: an instance
// that has grown is not used again. And it does not read what it is not asked for.
func TestSmallGoTurn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plugins/script", "testguests/conform"} {
		m := goGuest(t, name)
		before := int64(0)
		input := mailInput(t, `[["look",{}],["random",{}]]`)
		r := m.InspectTurn(t.Context(), turn.Turn{Input: input, Clock: newClock(), Ops: &fakeOps{}}, func(memory []byte, _ []uint64) {
			if before == 0 {
				before = int64(len(memory))
			}
		})
		if r.Exit != nil || r.Memory != before {
			t.Errorf("%s: %d bytes of memory became %d, %v", name, before, r.Memory, r.Exit)
		}
	}
	m := goGuest(t, "plugins/script")
	if r := play(t, m, turn.Turn{Input: mailInput(t, "hello")}); r.Exit != nil || r.Fuel > 2_000_000 {
		t.Errorf("the plain answer of the script agent takes %d units, %v", r.Fuel, r.Exit)
	}
}

// mailInput is an input with the tools and the message of a real one.
func mailInput(t *testing.T, body string) []byte {
	t.Helper()
	parameters := json.RawMessage(`{"type":"object","properties":{"target":{"type":"string","description":"Who is to read it, and with what in mind."}}}`)
	in := abi.TurnInput{V: abi.Version, Turn: 1, Message: json.RawMessage(
		`{"id":"i","timestamp":"2026-01-01T00:00:00.000000+00:00","msg_type":"request","message":{"task_id":"t","request_id":"r",` +
			`"sender":{"address_type":"user","address":"a"},"recipient":{"address_type":"agent","address":"boss"},"subject":"q","body":` + quoted(t, body) + `}}`)}
	for range 9 {
		in.Tools = append(in.Tools, abi.Tool{Name: "send_request", Description: "Writes to another agent.", Parameters: parameters})
	}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
