package main

import (
	"encoding/json"
	"fmt"

	skep "skep/sdk/go"
)

// Bounds of what one request reads of the results of other steps, in bytes of JSON.
const (
	maxInputs = 256 << 10 // that it has in it, as a message
	maxRead   = 4 << 20   // that are decoded for it
)

// results finds the values of a step's references for one request.
type results struct {
	w *work
	record
	// place is the step that was read last, and last its result: a step mostly refers to one
	// several times.
	place int
	last  any
	// read and used are the bytes so far.
	read, used int
}

func (w *work) newResults(r record) *results { return &results{w: w, record: r, place: -1} }

// lookUp finds the value of a reference. A step that was not done has the result null.
func (s *results) lookUp(ref reference) (any, error) {
	i, ok := s.Steps[ref.Step]
	if !ok {
		return nil, fmt.Errorf("step %q is unknown", ref.Step)
	}
	if ref.Path[0] == "status" {
		return stateNames[s.w.Steps[i]], nil
	}
	if s.w.Steps[i] != done {
		return nil, nil
	}
	if err := s.load(i); err != nil {
		return nil, err
	}
	value, err := member(s.last, ref.Path[1:])
	if err != nil {
		return nil, fmt.Errorf("the result of step %q %w", ref.Step, err)
	}
	raw, err := encodeJSON(value)
	if s.used += len(raw); err == nil && s.used > maxInputs {
		err = skep.Errorf(skep.Limit, "the results that the step refers to have more than %d KiB", maxInputs>>10)
	}
	return value, err
}

// load decodes the result of a step.
func (s *results) load(i int) error {
	if s.place == i {
		return nil
	}
	raw, err := s.w.ends.raw(i)
	if err != nil {
		return err
	}
	s.w.read += len(raw)
	if s.read += len(raw); s.read > maxRead {
		return skep.Errorf(skep.Limit, "the step refers to results of more than %d MiB", maxRead>>20)
	}
	var e end
	if len(raw) > 0 {
		err = json.Unmarshal(raw, &e)
	}
	s.place, s.last = i, e.Result
	return err
}
