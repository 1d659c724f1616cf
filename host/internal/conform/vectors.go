package conform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"skep/host/internal/turn"
	"skep/spec/conformance"
)

// Case is the verdict on one vector.
type Case struct {
	Name string
	// Problems are the differences; none is a pass.
	Problems []string
}

// Vectors runs all vectors for conformance guests. Each runs twice: the same
// turn must take the same way.
func Vectors(ctx context.Context, m Agent) ([]Case, error) {
	vectors, err := conformance.Turns()
	if err != nil {
		return nil, fmt.Errorf("conform: %w", err)
	}
	cases := make([]Case, len(vectors))
	for i, v := range vectors {
		first, second := Run(ctx, m, v), Run(ctx, m, v)
		cases[i] = Case{Name: v.Name, Problems: append(Compare(v.Want, first), Repeats(first, second)...)}
	}
	return cases, nil
}

// Compare compares an outcome with what is wanted.
func Compare(want conformance.Want, got Outcome) []string {
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
	case want.Exit == "" || want.Exit == string(turn.ExitFailed):
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

// Repeats lists the differences between two runs of the same turn.
func Repeats(first, second Outcome) []string {
	if first.Exit != second.Exit || first.Message != second.Message || !bytes.Equal(first.Output, second.Output) {
		return []string{fmt.Sprintf("the turn did not repeat: %q %s %s, then %q %s %s", first.Exit, first.Message,
			clip(string(first.Output)), second.Exit, second.Message, clip(string(second.Output)))}
	}
	for i := range max(len(first.Ops), len(second.Ops)) {
		if a, b := opText(first.Ops, i), opText(second.Ops, i); a != b {
			return []string{fmt.Sprintf("op %d of the turn was %s, then %s", i+1, clip(a), clip(b))}
		}
	}
	if first.Fuel != second.Fuel {
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
