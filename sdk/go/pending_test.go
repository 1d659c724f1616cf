package skep_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// answers makes an Answer of one stream or refusal for each op's request.
func answers(byName map[string]any) func(skep.Op, json.RawMessage) (any, error) {
	return func(_ skep.Op, req json.RawMessage) (any, error) {
		var name string
		if json.Unmarshal(req, &name) != nil {
			return nil, nil
		}
		if err, ok := byName[name].(error); ok {
			return nil, err
		}
		return byName[name], nil
	}
}

// play runs a turn against scripted answers, and wants it to end well.
func play(t *testing.T, byName map[string]any, turn turnFunc) skeptest.Outcome {
	t.Helper()
	out := skeptest.Run(turn, skeptest.Input{Answer: answers(byName)})
	if out.Err != nil {
		t.Error(out.Err)
	}
	return out
}

func TestOpsBesideEachOther(t *testing.T) {
	t.Parallel()
	script := map[string]any{
		"slow": skeptest.Stream{After: 3 * time.Second, Chunks: []string{`"slow"`}},
		"fast": skeptest.Stream{After: time.Second, Chunks: []string{`"fa`, `st"`}},
		"late": skeptest.Stream{After: 2 * time.Second, Chunks: []string{"{"}, Err: skep.Upstream},
		"no":   skep.Denied,
	}
	var order []string
	out := play(t, script, func(turn *skep.Turn) error {
		asks := []*skep.Pending{
			turn.Submit(skep.OpHTTPFetch, "slow"), turn.Submit(skep.OpHTTPFetch, "fast"),
			turn.Submit(skep.OpHTTPFetch, "late"), turn.Submit(skep.OpHTTPFetch, "no"), turn.Submit(skep.OpHTTPFetch, func() {}),
		}
		for {
			i, err := turn.WaitAny(skep.Forever, asks...)
			if err != nil || i < 0 {
				return err
			}
			var text string
			switch err := asks[i].Answer(&text); {
			case errors.Is(err, skep.Upstream), errors.Is(err, skep.Denied):
				text = err.Error()
			case err != nil:
				text, _, _ = strings.Cut(err.Error(), " json")
			}
			if _, err := asks[i].Read(make([]byte, 1)); err == nil {
				t.Error("something stands behind an answer")
			}
			order = append(order, text)
		}
	})
	want := []string{
		"DENIED: http.fetch is refused by the test", "http.fetch: request:", "fast", "UPSTREAM: http.fetch is refused by the test", "slow",
	}
	if !slices.Equal(order, want) || out.End.Sub(start) != 3*time.Second {
		t.Errorf("came as %q after %v", order, out.End.Sub(start))
	}
	if c := out.Calls[2]; !c.Submitted || c.Closed || c.Err == nil || c.Err.Code != skep.Upstream {
		t.Errorf("recorded %+v", c)
	}
}

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTimeouts(t *testing.T) {
	t.Parallel()
	script := map[string]any{"a": skeptest.Stream{After: time.Second}, "b": skeptest.Stream{After: 5 * time.Second}}
	out := play(t, script, func(turn *skep.Turn) error {
		a, b := turn.Submit(skep.OpHTTPFetch, "a"), turn.Submit(skep.OpHTTPFetch, "b")
		var e *skep.Error
		if i, err := turn.WaitAny(900*time.Millisecond-1, b, a); i != -1 || !errors.As(err, &e) || e.Code != skep.Deadline || e.Op != "wait" {
			t.Errorf("a wait for what is not there: %d, %v", i, err)
		}
		if i, err := turn.WaitAny(time.Second, b, a); i != 1 || err != nil {
			t.Errorf("the one that is there: %d, %v", i, err)
		}
		if err := turn.WaitAll(3*time.Second, a, b); !errors.Is(err, skep.Deadline) || turn.Now().Sub(start) != 4*time.Second {
			t.Errorf("all, in too short a time: %v at %v", err, turn.Now())
		}
		if err := turn.WaitAll(skep.Forever, a, b); err != nil {
			t.Errorf("all: %v", err)
		}
		if body, err := b.Bytes(); len(body) != 0 || err != nil {
			t.Errorf("an empty answer: %q, %v", body, err)
		}
		if i, err := turn.WaitAny(0, b); i != -1 || err != nil {
			t.Errorf("nothing left: %d, %v", i, err)
		}
		return turn.WaitAll(0)
	})
	if out.End.Sub(start) != 5*time.Second {
		t.Errorf("ended after %v", out.End.Sub(start))
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	script := map[string]any{
		"lines": skeptest.Stream{Chunks: []string{"one\ntw", "", "o\nthree"}},
		"fails": skeptest.Stream{Chunks: []string{"some"}, Err: &skep.Error{Code: skep.Limit, Reason: "host_bytes", Message: "used up"}},
	}
	out := play(t, script, func(turn *skep.Turn) error {
		var got []string
		for lines := bufio.NewScanner(turn.Submit(skep.OpLLMChat, "lines")); lines.Scan(); {
			got = append(got, lines.Text())
		}
		for chunk, err := range turn.Submit(skep.OpLLMChat, "fails").Chunks() {
			if err != nil {
				var e *skep.Error
				if !errors.As(err, &e) || e.Reason != "host_bytes" {
					t.Errorf("failed with %v", err)
				}
				chunk = []byte("error")
			}
			got = append(got, string(chunk))
		}
		left := turn.Submit(skep.OpLLMChat, "lines")
		for chunk, err := range left.Chunks() {
			got = append(got, string(chunk))
			if err != nil {
				return err
			}
			break
		}
		for chunk, err := range turn.Submit(skep.OpLLMChat, "lines").Chunks() {
			if err != nil {
				return err
			}
			got = append(got, string(chunk))
		}
		if want := []string{"one", "two", "three", "some", "error", "one\ntw", "one\ntw", "o\nthree"}; !slices.Equal(got, want) {
			t.Errorf("read %q", got)
		}
		if n, err := left.Read(make([]byte, 9)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("a stream that was left: %d, %v", n, err)
		}
		return nil
	})
	if calls := out.Calls; calls[0].Closed || calls[1].Closed || !calls[2].Closed || calls[3].Closed {
		t.Errorf("closed early: %+v", calls)
	}
}

func TestClosedOps(t *testing.T) {
	t.Parallel()
	out := play(t, map[string]any{"a": skeptest.Stream{After: time.Hour}}, func(turn *skep.Turn) error {
		p := turn.Submit(skep.OpHTTPFetch, "a")
		for range 2 {
			if err := p.Close(); err != nil {
				return err
			}
		}
		if i, err := turn.WaitAny(0, p); i != -1 || err != nil {
			t.Errorf("waits for a closed one: %d, %v", i, err)
		}
		var open []*skep.Pending
		for range 65 {
			open = append(open, turn.Submit(skep.OpHTTPFetch, "a"))
		}
		if i, err := turn.WaitAny(0, open...); i != 64 || err != nil {
			t.Errorf("the one too many is ready: %d, %v", i, err)
		}
		if _, err := open[64].Bytes(); !errors.Is(err, skep.Limit) {
			t.Errorf("one too many: %v", err)
		}
		return nil
	})
	if !out.Calls[0].Closed || !out.End.Equal(start) {
		t.Errorf("%+v, %v", out.Calls[0], out.End)
	}
}

func TestBeingCalledOff(t *testing.T) {
	t.Parallel()
	script := map[string]any{
		"half": skeptest.Stream{Chunks: []string{"half"}},
		"off":  skeptest.Stream{After: time.Second, Err: skep.Cancelled},
		"long": skeptest.Stream{After: time.Minute},
	}
	out := play(t, script, func(turn *skep.Turn) error {
		half, off, long := turn.Submit(skep.OpHTTPFetch, "half"), turn.Submit(skep.OpHTTPFetch, "off"), turn.Submit(skep.OpHTTPFetch, "long")
		if i, err := turn.WaitAny(skep.Forever, off, long); i != -1 || !errors.Is(err, skep.Cancelled) {
			t.Errorf("a wait: %d, %v", i, err)
		}
		if text, err := half.Bytes(); string(text) != "half" || !errors.Is(err, skep.Cancelled) {
			t.Errorf("what has come: %q, %v", text, err)
		}
		for _, p := range []*skep.Pending{off, long, turn.Submit(skep.OpHTTPFetch, "half")} {
			if err := p.Answer(nil); !errors.Is(err, skep.Cancelled) {
				t.Errorf("what has not: %v", err)
			}
		}
		if _, err := turn.EmitNote("x"); !errors.Is(err, skep.Cancelled) {
			t.Errorf("a call: %v", err)
		}
		turn.Log("still here")
		return turn.SetState("saved")
	})
	if string(out.State) != `"saved"` || len(out.Logs) != 1 || len(out.Emits) != 0 {
		t.Errorf("%+v", out)
	}
}

func TestCallOfAStream(t *testing.T) {
	t.Parallel()
	script := map[string]any{
		"late": skeptest.Stream{After: time.Second, Chunks: []string{`"a`, `b"`}},
		"bad":  skeptest.Stream{Chunks: []string{"1"}, Err: skep.Upstream},
	}
	play(t, script, func(turn *skep.Turn) error {
		var text string
		if err := turn.Call(skep.OpHTTPFetch, "late", &text); err != nil || text != "ab" || turn.Now().Sub(start) != time.Second {
			t.Errorf("%q, %v at %v", text, err, turn.Now())
		}
		if err := turn.Call(skep.OpHTTPFetch, "bad", &text); !errors.Is(err, skep.Upstream) {
			t.Errorf("a stream that fails: %v", err)
		}
		return nil
	})
}

func TestEmits(t *testing.T) {
	t.Parallel()
	busy := func(_ skep.Op, req json.RawMessage) (any, error) {
		if strings.Contains(string(req), "busy") {
			return map[string]string{"status": "busy"}, nil
		}
		return nil, nil
	}
	out := skeptest.Run(turnFunc(func(turn *skep.Turn) error {
		for want, emit := range map[skep.EmitStatus]string{skep.EmitOK: "a", skep.EmitBusy: "busy"} {
			if status, err := turn.EmitChunk(emit); status != want || err != nil {
				t.Errorf("chunk %s: %s, %v", emit, status, err)
			}
		}
		if _, err := turn.EmitProgress("half", 0.5); err != nil {
			return err
		}
		if _, err := turn.EmitProgress("begun", -1); err != nil {
			return err
		}
		if status, err := turn.EmitNote(""); status != skep.EmitOK || err != nil {
			t.Errorf("note: %s, %v", status, err)
		}
		return turn.Call(skep.OpEmit, map[string]any{}, nil)
	}), skeptest.Input{Answer: busy})
	if out.Err == nil || out.Err.Code != skep.Invalid {
		t.Errorf("an empty request: %v", out.Err)
	}
	if e := out.Emits; len(e) != 4 || e[0].Text != "a" || *e[1].Fraction != 0.5 || e[2].Fraction != nil || e[3].Kind != "note" {
		t.Errorf("shown: %+v", e)
	}
}
