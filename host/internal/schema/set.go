package schema

import (
	"errors"
	"fmt"

	"github.com/xeipuuv/gojsonschema"

	"skep/abi"
	"skep/spec"
)

// Set holds the compiled schemas. It is immutable; all methods may be called by
// many goroutines at once.
type Set struct {
	message    *gojsonschema.Schema
	interswarm *gojsonschema.Schema
	tools      []abi.Tool
	args       map[string]*gojsonschema.Schema // by tool name
}

// Load compiles the embedded schemas. It takes a few milliseconds and touches
// neither disk nor network; call it once and share the Set. An error means that
// the program was built from broken schemas.
func Load() (*Set, error) {
	core, err1 := document(spec.CoreSchema)
	inter, err2 := document(spec.InterswarmSchema)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := lint(core, inter); err != nil {
		return nil, err
	}
	message, err1 := compile(core)
	interswarm, err2 := compile(inter, core)
	s := &Set{message: message, interswarm: interswarm}
	if err := errors.Join(err1, err2, s.loadTools()); err != nil {
		return nil, err
	}
	return s, nil
}

// Message returns nil if raw is one valid message,
// [Faults] if it is JSON but no message, another error if it is not JSON that can
// be read in one way only. errors.Is finds mail.ErrLimit when it is too large.
func (s *Set) Message(raw []byte) error { return validateRaw(s.message, raw) }

// Interswarm returns nil if raw is one valid wrapper; its errors
// are [Set.Message]'s.
func (s *Set) Interswarm(raw []byte) error { return validateRaw(s.interswarm, raw) }

func validateRaw(by *gojsonschema.Schema, raw []byte) error {
	doc, err := decode(raw)
	if err != nil {
		return err
	}
	return validate(by, doc)
}

func validate(by *gojsonschema.Schema, doc any) error {
	res, err := by.Validate(gojsonschema.NewRawLoader(doc))
	if err != nil {
		return fmt.Errorf("validate: %w", err)
	}
	if res.Valid() {
		return nil
	}
	return faults(res.Errors())
}
