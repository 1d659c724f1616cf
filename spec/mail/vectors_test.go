package mail_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/conformance"
	"skep/spec/mail"
)

// TestMessageVectors covers, S-01, S-02
// and S-05; the vectors name theirs.
func TestMessageVectors(t *testing.T) {
	t.Parallel()
	all, err := conformance.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			m, err := mail.ParseMessage(v.Raw)
			wantFault(t, v, err)
			if err == nil {
				sameAgain(t, m, mail.ParseMessage)
			}
		})
	}
}

// TestInterswarmVectors covers.
func TestInterswarmVectors(t *testing.T) {
	t.Parallel()
	all, err := conformance.Interswarm()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			w, err := mail.ParseInterswarm(v.Raw)
			wantFault(t, v, err)
			if err == nil {
				sameAgain(t, w, mail.ParseInterswarm)
			}
		})
	}
}

func wantFault(t *testing.T, v conformance.Vector, err error) {
	t.Helper()
	if v.Fault == "" {
		if err != nil {
			t.Fatalf("valid document refused: %v\n%s", err, v.Raw)
		}
		return
	}
	var fe *mail.FieldError
	if !errors.As(err, &fe) {
		t.Fatalf("error = %v, want a *FieldError\n%s", err, v.Raw)
	}
	got := fe.Path
	if got == "" {
		got = "."
	}
	if v.Fault != "*" && got != v.Fault {
		t.Errorf("fault at %s (%v), want it at %s", got, err, v.Fault)
	}
}

// sameAgain checks that what was read can be written, and reads and writes the
// same again.
func sameAgain[T interface {
	AppendJSON([]byte) ([]byte, error)
}](t *testing.T, v T, parse func([]byte) (T, error)) {
	t.Helper()
	first, err := v.AppendJSON(nil)
	if err != nil {
		t.Fatalf("cannot write what was read: %v", err)
	}
	again, err := parse(first)
	if err != nil {
		t.Fatalf("cannot read what was written: %v\n%s", err, first)
	}
	if diff := cmp.Diff(v, again); diff != "" {
		t.Errorf("read after write (-first +again):\n%s", diff)
	}
	second, err := again.AppendJSON(nil)
	if err != nil || string(first) != string(second) {
		t.Errorf("written twice, error %v:\n%s\n%s", err, first, second)
	}
}
