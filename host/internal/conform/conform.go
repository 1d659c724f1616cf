// Package conform owns the judgement on modules: it runs the vectors of
// spec/conformance in a real sandbox and reports what differs. It must not know
// how a host grants, routes or stores: ops are answered from the vectors.
package conform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"skep/host/internal/sandbox"
	"skep/spec/conformance"
)

// Case is the verdict on one vector.
type Case struct {
	Name string `json:"name"`
	// Problems say what differs; none is a pass.
	Problems []string `json:"problems,omitempty"`
}

// Report is the verdict on a module.
type Report struct {
	Cases  []Case `json:"cases"`
	Failed int    `json:"failed"`
}

// Check runs all vectors against a module that claims to be a conformance
// guest. Each runs twice: the same turn must take the same way.
func Check(ctx context.Context, m *sandbox.Module) (Report, error) {
	vectors, err := conformance.Turns()
	if err != nil {
		return Report{}, fmt.Errorf("conform: %w", err)
	}
	var r Report
	for _, v := range vectors {
		first, second := Run(ctx, m, v), Run(ctx, m, v)
		c := Case{Name: v.Name, Problems: append(Judge(v.Want, first), repeats(first, second)...)}
		if len(c.Problems) > 0 {
			r.Failed++
		}
		r.Cases = append(r.Cases, c)
	}
	return r, nil
}

// Judge compares an outcome with what is wanted.
func Judge(want conformance.Want, got Outcome) []string {
	var problems []string
	differ := func(what, got, want string) {
		if got != want {
			problems = append(problems, fmt.Sprintf("%s\n got %s\nwant %s", what, clip(got), clip(want)))
		}
	}
	if got.Exit != want.Exit {
		return []string{fmt.Sprintf("the turn ended as %q (%s), not as %q", got.Exit, got.Message, want.Exit)}
	}
	switch {
	case want.SHA256 != "":
		differ("sha256 of the output", fmt.Sprintf("%x", sha256.Sum256(got.Output)), want.SHA256)
	case want.Exit == "" || want.Exit == string(sandbox.ExitFailed):
		differ("output", string(got.Output), string(want.Output))
	}
	if want.Message != "" {
		differ("message", got.Message, want.Message)
	}
	if want.Ops == nil {
		return problems
	}
	for i := range max(len(want.Ops), len(got.Ops)) {
		differ(fmt.Sprintf("op %d of the turn", i+1), opText(got.Ops, i), opText(want.Ops, i))
	}
	return problems
}

func opText(ops []conformance.Op, i int) string {
	if i >= len(ops) {
		return "nothing"
	}
	return fmt.Sprintf("%d %s", ops[i].Number, ops[i].Request)
}

// repeats compares two runs of the same turn.
func repeats(first, second Outcome) []string {
	switch {
	case first.Exit != second.Exit || !bytes.Equal(first.Output, second.Output):
		return []string{fmt.Sprintf("the turn did not repeat: %q %s, then %q %s",
			first.Exit, clip(string(first.Output)), second.Exit, clip(string(second.Output)))}
	case first.Fuel != second.Fuel:
		return []string{fmt.Sprintf("the turn burned %d units of fuel, then %d", first.Fuel, second.Fuel)}
	}
	return nil
}

// clip bounds what a report shows of a text.
func clip(s string) string {
	const most = 2000
	if len(s) > most {
		return fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
	}
	return s
}
