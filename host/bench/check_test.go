package main

import (
	"errors"
	"testing"
)

// A part ends at its first error, which is named; other panics pass.
func TestCheck(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	went := false
	err := caught(func() {
		in("inner", func() { must(1, broken) })
		went = true
	})
	if !errors.Is(err, broken) || err.Error() != "inner: broken" || went {
		t.Errorf("%v, went on: %v", err, went)
	}
	if err := caught(func() { check(nil) }); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() != "bug" {
			t.Error("a panic is taken for an error")
		}
	}()
	_ = caught(func() { panic("bug") })
}
