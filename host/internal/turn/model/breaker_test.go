package model_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

// A model whose provider fails call after call rests: calls are refused without a request,
// and say until when. After the rest one call tries it, and an answer ends the rest.
func TestDeadModelRests(t *testing.T) {
	dead := true
	w := newWorld(t, model.OpenAI, func(modeltest.Request) modeltest.Reply {
		if dead {
			return modeltest.Reply{Status: 503}
		}
		return modeltest.Reply{Text: []string{"Yes."}}
	})
	now := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	var log bytes.Buffer
	w.spec.Retries, w.spec.RestAfter, w.spec.Rest = 2, 2, time.Minute
	w.opt.Now, w.opt.Logger = func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil))
	m := w.open(t)
	call := func(kind model.Kind, requests int) *model.Error {
		t.Helper()
		before := len(w.Requests())
		_, _, err := ask(t, m, question, false)
		var e *model.Error
		if errors.As(err, &e); err != nil && (e == nil || e.Kind != kind) || err == nil && kind != "" {
			t.Fatalf("got %v, want %q", err, kind)
		}
		if n := len(w.Requests()) - before; n != requests {
			t.Fatalf("%d requests, want %d", n, requests)
		}
		return e
	}
	call(model.Overloaded, 3)
	call(model.Overloaded, 3)
	now = now.Add(20 * time.Second)
	if e := call(model.Resting, 0); e.RetryAfter != 40*time.Second || e.Billable || !strings.Contains(e.Error(), "until 2026-03-01T09:31:00") ||
		!strings.Contains(e.Error(), "rest_after") {
		t.Errorf("%v, to retry after %v", e, e.RetryAfter)
	}
	now = now.Add(40 * time.Second)
	call(model.Overloaded, 1) // a try costs no retries
	call(model.Resting, 0)
	now, dead = now.Add(time.Minute), false
	call("", 1)
	dead = true
	call(model.Overloaded, 3) // it counts from the beginning
	if text := log.String(); strings.Count(text, "a model rests:") != 1 || strings.Count(text, "a model rests no more") != 1 {
		t.Errorf("logged %s", text)
	}
}

// A provider that refuses is there: refusals and limits of rate begin no rest.
func TestRefusingModelDoesNotRest(t *testing.T) {
	for _, status := range []int{400, 401, 429} {
		w := newWorld(t, model.OpenAI, func(modeltest.Request) modeltest.Reply { return modeltest.Reply{Status: status} })
		w.spec.RestAfter, w.spec.Rest = 1, time.Minute
		m := w.open(t)
		for range 3 {
			_, _, err := ask(t, m, question, false)
			var e *model.Error
			if !errors.As(err, &e) || e.Kind == model.Resting {
				t.Errorf("status %d: %v", status, err)
			}
		}
	}
}
