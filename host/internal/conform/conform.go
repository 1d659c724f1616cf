// Package conform owns the judgement on modules: it tries a module with the
// vectors of spec/conformance in a real sandbox and reports what it cannot bear. It
// must not know how a host grants, routes or stores: ops are answered from the
// vectors.
//
// [Check] tries any agent module, whatever it does. One that claims to be a
// conformance guest is also held to what such a guest must do, byte for byte.
package conform

import (
	"context"
	"errors"
	"fmt"

	"skep/host/internal/turn/wasm"
)

// Result is what came of a check.
type Result string

// The results.
const (
	Pass Result = "pass"
	Fail Result = "fail"
	// Note is no failure, but worth a look.
	Note Result = "note"
	// NotApplicable is a check that this module gives nothing to do.
	NotApplicable Result = "not-applicable"
)

// Verdict is what one check found.
type Verdict struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Detail is what was looked at, or what to do.
	Detail string `json:"detail"`
	// Problems are what is wrong, or worth a look, each by itself.
	Problems []string `json:"problems"`
}

// Kinds of module.
const (
	KindAgent       = "agent"
	KindConformance = "conformance"
)

// guestName is the name in the descriptor of every conformance guest.
const guestName = "conform"

// Report is the verdict on a module.
type Report struct {
	File   string    `json:"file"`
	Digest string    `json:"digest"`
	Kind   string    `json:"kind"`
	Checks []Verdict `json:"checks"`
	Passed int       `json:"passed"`
	Failed int       `json:"failed"`
}

// Options are what a check may be told.
type Options struct {
	// Engine is how the sandboxes are made in which the module runs.
	Engine wasm.Options
	// Only is the name of the one check to make; empty makes all.
	Only string
	// Progress, if it is set, is told what begins: the name of a check, or
	// "load".
	Progress func(name string)
}

// ErrNoCheck: [Options.Only] names no check.
var ErrNoCheck = errors.New("there is no such check")

// Check tries a module. A module that a host would refuse is a
// *turn.LoadError; the end of ctx is its cause.
func Check(ctx context.Context, src wasm.Source, o Options) (r Report, err error) {
	list, err := chosen(o.Only)
	if err != nil {
		return r, err
	}
	progress := o.Progress
	if progress == nil {
		progress = func(string) {}
	}
	progress("load")
	s, err := newSubject(ctx, src, o.Engine)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	r = Report{File: src.Name, Digest: s.module.Digest(), Kind: s.kind(), Checks: []Verdict{}}
	for _, c := range list {
		progress(c.name)
		v := c.verdict(ctx, s)
		if ctx.Err() != nil {
			return Report{}, context.Cause(ctx)
		}
		r.add(v)
	}
	return r, nil
}

func (r *Report) add(v Verdict) {
	switch v.Result {
	case Pass:
		r.Passed++
	case Fail:
		r.Failed++
	}
	r.Checks = append(r.Checks, v)
}

// chosen lists the checks to make.
func chosen(only string) ([]check, error) {
	all := checks()
	if only == "" {
		return all, nil
	}
	for _, c := range all {
		if c.name == only {
			return []check{c}, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrNoCheck, only)
}
