package conform

import (
	"context"
	"fmt"
)

// check is one thing a module is tried for.
type check struct {
	name, about string
	// advice is what to do when it fails.
	advice string
	// still checks look at the module without a turn.
	still bool
	run   func(ctx context.Context, s *subject) finding
}

// finding is what a check found: problems are failures, notes worth a look.
type finding struct {
	detail          string
	problems, notes []string
	idle            bool // there was nothing to do
}

// Info is a check, for a list of them.
type Info struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// List returns all checks, in the order in which they are made.
func List() []Info {
	all := checks()
	list := make([]Info, len(all))
	for i, c := range all {
		list[i] = Info{c.name, c.about}
	}
	return list
}

func checks() []check {
	return []check{
		{name: "admission", about: "how large the module is, and how near the caps", still: true, run: admission},
		{name: "contract", about: "marker, exports and imports", still: true, run: contract},
		{name: "descriptor", about: "what the module says of itself", still: true, run: descriptor,
			advice: "correct the descriptor; ABI.md section 10 says what belongs in it"},
		{name: "start", about: "_initialize and skep_warm within their limits", still: true, run: start,
			advice: "do less in _initialize and skep_warm: no op but log is granted there, and half a billion units are all"},
		{name: "image", about: "every turn starts from the same memory, whoever makes the image", run: image},
		{name: "turns", about: "typical messages end a turn well, or in a failure of the agent's own", run: turns,
			advice: "return status 0 with nothing or a turn result, status 1 with an error, or call abort; ABI.md sections 6 and 9"},
		{name: "unknown-members", about: "members that nobody knows change nothing", run: unknownMembers,
			advice: "ignore members you do not know: later hosts send more"},
		{name: "large-input", about: "an input larger than any buffer made for it", run: largeInput,
			advice: "size the buffer by the argument of skep_turn, or read page by page; abort when it is more than you can take"},
		{name: "large-answers", about: "answers that do not fit into the buffer", run: largeAnswers,
			advice: "when the upper half of call's result is not 0, it is a handle: only the buffer's bytes are there, the rest comes with read"},
		{name: "errors", about: "every error code, from every op the agent calls", run: refusals,
			advice: "look at the sign of every result; return status 1, or go on without the answer"},
		{name: "cancellation", about: "called off before the first op and in the middle of each", run: cancellation,
			advice: "return soon once an op answers CANCELLED (-6)"},
		{name: "determinism", about: "the same turn takes the same way, in another sandbox too", run: determinism,
			advice: "a module cannot bring this about by itself: please report it, with the module"},
		{name: "randomness", about: "ids of two turns differ", run: randomness},
		{name: "memory-cleanliness", about: "nothing of a turn is left in the next", run: cleanliness,
			advice: "a module cannot bring this about by itself: please report it, with the module"},
		{name: "vectors", about: "the conformance vectors, byte for byte", run: vectors,
			advice: "spec/conformance/GUEST.md says what the guest does"},
	}
}

// verdict makes the check.
func (c check) verdict(ctx context.Context, s *subject) Verdict {
	v := Verdict{Name: c.name, Result: Pass, Problems: []string{}}
	if !c.still && !s.starts(ctx) {
		v.Result, v.Detail = NotApplicable, "the module does not start"
		return v
	}
	f := c.run(ctx, s)
	v.Detail = f.detail
	switch {
	case len(f.problems) > 0:
		v.Result, v.Problems = Fail, f.problems
		if c.advice != "" {
			v.Detail = c.advice
		}
	case len(f.notes) > 0:
		v.Result, v.Problems = Note, f.notes
	case f.idle:
		v.Result = NotApplicable
	}
	return v
}

// enough is the number of problems after which a check has seen enough.
const enough = 5

// problemf adds a problem and reports whether that is enough.
func (f *finding) problemf(format string, args ...any) bool {
	if len(f.problems) < enough {
		f.problems = append(f.problems, fmt.Sprintf(format, args...))
	}
	return f.full()
}

func (f *finding) notef(format string, args ...any) {
	if len(f.notes) < enough {
		f.notes = append(f.notes, fmt.Sprintf(format, args...))
	}
}

func (f *finding) full() bool { return len(f.problems) >= enough }
