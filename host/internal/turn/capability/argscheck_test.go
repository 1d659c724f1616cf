package capability

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// seven takes the arguments that have the number 7.
func seven(args []byte) error {
	if strings.Contains(string(args), "7") {
		return nil
	}
	return errors.New("n: must be 7")
}

// What people would be asked has the form that the file gives, whether an agent asks
// or an action does, and where a breakpoint makes people answer for code. A turn that
// dies and is run again is told the same.
func TestForms(t *testing.T) {
	t.Parallel()
	for dies := range int64(4) {
		h := newHost(t)
		h.change = func(def *swarm.Definition) {
			def.Human = []abi.Tool{{Name: "confirm", Description: "d", Parameters: []byte(`{}`)}}
			def.BreakpointTools = []string{"stopped"}
			def.Agents[0].Actions = []string{"confirm"}
		}
		h.forms = map[string]ArgsCheck{"confirm": seven}
		stopped, _ := h.newAction("stopped", nil)
		stopped.Check = seven
		outer, _ := h.newAction("outer", func(v *visit, _ string) (string, *turn.Exit) {
			return strconv.Quote(v.call(abi.OpAction, `{"name":"confirm","args":{"n":6}}`)), nil
		})
		outer.Calls = []string{"confirm"}
		h.modules["boss"] = guest{"m1", tells(`action {"name":"confirm","args":{"n":1}}`, `action {"name":"stopped","args":{}}`, `action {"name":"outer","args":{}}`)}
		h.start(dies, true)
		got, err := h.ask()
		if err != nil {
			h.restart()
			got, err = h.ask()
		}
		want := `INVALID: the arguments of action "confirm": n: must be 7; INVALID: the arguments of action "stopped": n: must be 7; ` +
			`"INVALID: the arguments of action \"confirm\": n: must be 7"`
		if err != nil || got.Body != want {
			t.Errorf("%d: %v, %s", dies, err, got.Body)
		}
		h.stop()
	}
}

// What fits is put to a person, and so is what has no form.
func TestFormsThatFit(t *testing.T) {
	t.Parallel()
	for name, forms := range map[string]map[string]ArgsCheck{"fits": {"confirm": seven}, "no form": nil} {
		h := newShop(t, shop)
		h.forms = forms
		h.start(0, false)
		if got, err := h.ask(); err != nil || !strings.Contains(got.Body, `"name":"confirm"`) {
			t.Errorf("%s: %v, %s", name, err, got.Body)
		}
		h.stop()
	}
}
