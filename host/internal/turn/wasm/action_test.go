package wasm

import (
	"encoding/json"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
)

// An action of a real module answers in an instance of its own; what it says is any
// JSON value, and a failure has its reason.
func TestActionOfAModule(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "testguests/conform")
	for name, c := range map[string]struct{ input, output, exit string }{
		"an answer": {`{"name":"echo","args":{"n":[1,2]}}`, `{"action":"echo","args":{"n":[1,2]}}`, ""},
		"no input":  {`nonsense`, "", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			res := m.Action(t.Context(), turn.Turn{Input: []byte(c.input), Clock: &imageClock{imageTime}})
			exit := ""
			if res.Exit != nil {
				exit = string(res.Exit.Kind)
			}
			if exit != c.exit || c.exit == "" && string(res.Output) != c.output {
				t.Errorf("exit %v, output %s", res.Exit, res.Output)
			}
			if c.exit == "" && (res.Fuel == 0 || !json.Valid(res.Output)) {
				t.Errorf("%+v", res)
			}
		})
	}
}

// What an action leaves is judged otherwise than what a turn leaves.
func TestEndingOfAnAction(t *testing.T) {
	deep := make([]byte, 0, 600)
	for range 300 {
		deep = append(deep, '[')
	}
	for range 300 {
		deep = append(deep, ']')
	}
	for name, c := range map[string]struct {
		output string
		ok     bool
	}{
		"a number": {"7", true}, "nothing": {"", true}, "two values": {"1 2", false}, "no JSON": {"{", false},
		"no UTF-8": {"\"\xff\"", false}, "too deep": {string(deep), false},
	} {
		if exit := turn.StatusExit(abi.ExportAction, abi.StatusOK, []byte(c.output)); (exit == nil) != c.ok {
			t.Errorf("%s: %v", name, exit)
		}
	}
	if exit := turn.StatusExit(abi.ExportTurn, abi.StatusOK, []byte("7")); exit == nil {
		t.Error("a number passed as the result of a turn")
	}
}
