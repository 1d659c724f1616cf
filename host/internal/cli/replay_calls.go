package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"skep/abi"
	"skep/host/internal/datadir"
)

// callJSON is the JSON of one call.
type callJSON struct {
	Turn    int64           `json:"turn"`
	Agent   string          `json:"agent"`
	Call    string          `json:"call"`
	Op      string          `json:"op"`
	Request json.RawMessage `json:"request"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Error   string          `json:"error,omitempty"`
	Time    string          `json:"time"`
}

func newCallJSON(turn int64, agent string, s datadir.ReplayedCall) callJSON {
	v := callJSON{turn, agent, s.Call, s.Op.String(), asJSON(s.Request), asJSON(s.Answer), "", abi.FormatTime(s.Time)}
	if s.Err != nil {
		v.Error = s.Err.Error()
	}
	return v
}

// replayCalls prints the calls as they come: all calls of a task may not fit in
// memory.
func (a *app) replayCalls(cmd *cobra.Command, opt datadir.ReplayOptions) error {
	var broken error
	out := json.NewEncoder(a.env.Stdout)
	out.SetEscapeHTML(false)
	opt.Each = func(turn int64, agent string, s datadir.ReplayedCall) {
		switch v := newCallJSON(turn, agent, s); {
		case broken != nil:
		case a.json():
			broken = out.Encode(v)
		default:
			broken = a.printCall(v, s)
		}
	}
	turns, err := a.replay(cmd, opt)
	switch {
	case err != nil:
		return err
	case broken != nil:
		return fmt.Errorf("write to stdout: %w", broken)
	case !a.json():
		return a.printReplay(opt.Task, turns)
	}
	for _, t := range turns {
		if t.Difference != "" {
			return failf(exitFailed, "turn %d of %s: %s", t.Turn, t.Agent, t.Difference)
		}
	}
	return nil
}

// printCall prints a call in a line, and its result in the next.
func (a *app) printCall(v callJSON, s datadir.ReplayedCall) error {
	st := a.dataStyle()
	if err := a.printf("turn %d  call %s  %s  %s\n", v.Turn, v.Call, v.Op, inLine(string(s.Request))); err != nil {
		return err
	}
	switch {
	case v.Error != "":
		return a.printf("  %s\n", st.red(inLine(v.Error)))
	case len(s.Answer) == 0:
		return a.printf("  %s\n", st.dim("no answer"))
	}
	return a.printf("  %s\n", st.dim("→ "+inLine(string(s.Answer))))
}
