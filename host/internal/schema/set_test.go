package schema_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/schema"
	"skep/spec/conformance"
	"skep/spec/mail"
)

// TestHammer: one Set, many goroutines; others load their own at the same time.
func TestHammer(t *testing.T) {
	t.Parallel()
	s := load(t)
	all, err := conformance.Messages()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			own := s
			if p == 0 {
				var err error
				if own, err = schema.Load(); err != nil {
					t.Error(err)
					return
				}
			}
			for n := range 50 {
				v := all[(n*7+p)%len(all)]
				if err := own.Message(v.Raw); (err == nil) != (v.Fault == "") {
					t.Errorf("%s: %v", v.Name, err)
				}
				if err := own.ToolArgs(mail.ToolHelp, []byte(`{}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestLimits: the decoder has the limits of package mail and says when they are
// why.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := load(t)
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	for _, tc := range []struct {
		name  string
		in    []byte
		limit bool
	}{
		{"deep", deep(mail.DefaultDepth), false},
		{"too deep", deep(mail.DefaultDepth + 1), true},
		{"far too deep", deep(1_000_000), false}, // the standard library's own limit, a fault of syntax
		{"long", []byte(`"` + strings.Repeat("x", mail.DefaultBytes-2) + `"`), false},
		{"too long", []byte(`"` + strings.Repeat("x", mail.DefaultBytes-1) + `"`), true},
	} {
		err := s.Message(tc.in)
		if err == nil || errors.Is(err, mail.ErrLimit) != tc.limit {
			t.Errorf("%s: error %.80v, want ErrLimit = %v", tc.name, err, tc.limit)
		}
	}
}
