package model_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

func limited(after map[string]string) modeltest.Reply {
	return modeltest.Reply{Status: 429, Header: after, Failure: modeltest.Failure{Type: "rate_limit_error", Message: "slow"}}
}

func TestRetry(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w := newWorld(t, provider, modeltest.InOrder(
			limited(map[string]string{"Retry-After": "3"}), limited(map[string]string{"retry-after-ms": "1500"}),
			modeltest.Reply{Status: 529}, modeltest.Reply{Status: 500}, modeltest.Reply{Text: []string{"At last."}},
		))
		w.spec.Retries = 4
		resp, _, err := ask(t, w.open(t), question, streamed)
		if err != nil || resp.Text != "At last." {
			t.Fatalf("got %q, %v", resp.Text, err)
		}
		want := []time.Duration{3 * time.Second, 1500 * time.Millisecond, time.Second, 2 * time.Second}
		if !slices.Equal(w.waited, want) {
			t.Errorf("waited %v, want %v", w.waited, want)
		}
		for i, r := range w.Requests() {
			if got := r.Header.Get("Idempotency-Key"); got != "key-1" {
				t.Errorf("try %d has the key %q", i, got)
			}
		}
	})
}

func TestNoRetry(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		name    string
		reply   modeltest.Reply
		retries int
		timeout time.Duration
		tries   int
		after   bool
	}{
		{"none left", limited(nil), 1, time.Minute, 2, false},
		{"none at all", limited(nil), 0, time.Minute, 1, false},
		{"what does not pass", modeltest.Reply{Status: 400}, 3, time.Minute, 1, false},
		{"a longer pause than is waited", limited(map[string]string{"Retry-After": "61"}), 3, time.Hour, 1, true},
		{"until a date", limited(map[string]string{"Retry-After": soon}), 3, time.Hour, 1, true},
		{"for ever", limited(map[string]string{"Retry-After": "1e300"}), 3, time.Hour, 1, true},
		{"a longer pause than there is time", limited(map[string]string{"Retry-After": "30"}), 3, 20 * time.Second, 1, true},
		{"a pause that is none", limited(map[string]string{"Retry-After": "-5"}), 1, time.Minute, 2, false},
		{"a pause that is no number", limited(map[string]string{"Retry-After": "soon", "Retry-After-Ms": "NaN"}), 1, time.Minute, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, model.OpenAI, func(modeltest.Request) modeltest.Reply { return c.reply })
			w.spec.Retries, w.spec.Timeout = c.retries, c.timeout
			_, _, err := ask(t, w.open(t), question, false)
			var e *model.Error
			if !errors.As(err, &e) || (e.RetryAfter > 0) != c.after || e.RetryAfter > 24*time.Hour {
				t.Errorf("got %v, to retry after %v", err, e.RetryAfter)
			}
			if got := len(w.Requests()); got != c.tries {
				t.Errorf("%d tries, want %d", got, c.tries)
			}
		})
	}
}

// TestPauseGrows: the pause doubles up to a limit, and half of it is random.
func TestPauseGrows(t *testing.T) {
	w := newWorld(t, model.OpenAI, func(modeltest.Request) modeltest.Reply { return modeltest.Reply{Status: 503} })
	w.spec.Retries, w.spec.Timeout = 7, time.Hour
	w.opt.Jitter = func() float64 { return 0.5 }
	_, _, err := ask(t, w.open(t), question, false)
	failed(t, err, model.Overloaded, "")
	var want []time.Duration
	for _, ms := range []int{375, 750, 1500, 3000, 6000, 6000, 6000} {
		want = append(want, time.Duration(ms)*time.Millisecond)
	}
	if !slices.Equal(w.waited, want) {
		t.Errorf("waited %v, want %v", w.waited, want)
	}
}

// TestPauseEnds: a pause ends with the caller's context.
func TestPauseEnds(t *testing.T) {
	w := newWorld(t, model.OpenAI, func(modeltest.Request) modeltest.Reply { return limited(map[string]string{"Retry-After": "50"}) })
	w.spec.Retries, w.opt.Wait = 3, nil
	why := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.opt.Jitter = func() float64 { cancel(why); return 0 }
	if _, err := w.open(t).Chat(ctx, question, "", nil); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// TestPauseIsShort: the default pause waits for the given time.
func TestPauseIsShort(t *testing.T) {
	w := newWorld(t, model.Anthropic, modeltest.InOrder(limited(map[string]string{"Retry-After-Ms": "1"}), modeltest.Reply{Text: []string{"Yes."}}))
	w.spec.Retries, w.opt.Wait, w.opt.Jitter = 1, nil, nil
	resp, err := w.open(t).Chat(t.Context(), question, "", func(abi.ChatPiece) error { return nil })
	if err != nil || resp.Text != "Yes." {
		t.Errorf("got %q, %v", resp.Text, err)
	}
}
