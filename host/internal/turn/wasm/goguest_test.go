package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// state runs a mode of the guest many and returns the text of its state.
func state(t *testing.T, r turn.Result) (text string, turns, warmed int) {
	t.Helper()
	var out struct {
		State struct {
			Text          string
			Turns, Warmed int
		}
	}
	if r.Exit != nil {
		t.Fatal(r.Exit)
	}
	if err := json.Unmarshal(r.Output, &out); err != nil {
		t.Fatal(err)
	}
	return out.State.Text, out.State.Turns, out.State.Warmed
}

func TestGoGuestSeesTheTurnsClock(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "testguests/many")
	clock := newClock()
	start := clock.now
	text, _, _ := state(t, play(t, m, turn.Turn{Input: input(t, "times"), Clock: clock}))
	if want := "2026-01-01T00:00:00Z true 1.5s 499999500000"; text != want {
		t.Errorf("times %q, want %q", text, want)
	}
	if moved := clock.now.Sub(start); moved != 1500*time.Millisecond {
		t.Errorf("the clock moved by %v", moved)
	}
}

func TestGoGuestStartsCleanEveryTime(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "testguests/many")
	for range 3 {
		if _, turns, warmed := state(t, play(t, m, turn.Turn{Input: input(t, "order")})); turns != 1 || warmed != 1 {
			t.Errorf("turn %d of its instance, warmed %d times", turns, warmed)
		}
	}
}

// Ordinary Go code repeats exactly: same input, same fuel, same bytes.
func TestGoGuestRepeats(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "testguests/many")
	for _, mode := range []string{"times", "order", "random", "goroutine", "timeout"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			first := play(t, m, turn.Turn{Input: input(t, mode), Seed: [32]byte{7}})
			if first.Exit != nil {
				t.Fatal(first.Exit)
			}
			for range 3 {
				again := play(t, m, turn.Turn{Input: input(t, mode), Seed: [32]byte{7}})
				if again.Fuel != first.Fuel || string(again.Output) != string(first.Output) {
					t.Errorf("%d units %s; first %d %s", again.Fuel, again.Output, first.Fuel, first.Output)
				}
			}
		})
	}
}

func TestGoGuestRandomnessFollowsTheSeed(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "testguests/many")
	one, _, _ := state(t, play(t, m, turn.Turn{Input: input(t, "random"), Seed: [32]byte{1}}))
	two, _, _ := state(t, play(t, m, turn.Turn{Input: input(t, "random"), Seed: [32]byte{2}}))
	if one == two || len(one) != 64 {
		t.Errorf("%q and %q", one, two)
	}
}

func TestGoGuestGoroutinesSleepSideBySide(t *testing.T) {
	t.Parallel()
	clock := newClock()
	start := clock.now
	text, _, _ := state(t, play(t, goGuest(t, "testguests/many"), turn.Turn{Input: input(t, "goroutine"), Clock: clock}))
	if text != "[4 3 2 1 0]" || clock.now.Sub(start) != 5*time.Second {
		t.Errorf("woke in order %s after %v", text, clock.now.Sub(start))
	}
}

func TestGoGuestExits(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "testguests/many")
	tests := []struct {
		body string
		kind turn.ExitKind
		text string
	}{
		{"panic oh dear", turn.ExitAbort, "abort: INTERNAL: panic: oh dear"},
		{"nil", turn.ExitAbort, "nil pointer dereference"},
		{"error not now", turn.ExitFailed, "failed: CONFLICT: not now"},
		{"exit", turn.ExitProc, "exit: the module called proc_exit(3)"},
		{"deadlock", turn.ExitTrap, "all goroutines are asleep"},
		{"nonsense", turn.ExitFailed, `failed: INVALID: no mode "nonsense"`},
	}
	for _, tt := range tests {
		t.Run(tt.body, func(t *testing.T) {
			t.Parallel()
			r := play(t, m, turn.Turn{Input: input(t, tt.body)})
			wantExit(t, r.Exit, tt.kind, "")
			if !strings.Contains(r.Exit.Error(), tt.text) {
				t.Errorf("text %q lacks %q", r.Exit, tt.text)
			}
			if tt.kind == turn.ExitAbort && !strings.Contains(r.Exit.Message, "main.go:") {
				t.Errorf("no place in %q", r.Exit.Message)
			}
		})
	}
}

// A Go guest without the SDK would answer after a panic. It is never asked.
func TestNobodyAnswersAfterATrap(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "testguests/rude")
	r := play(t, m, turn.Turn{Input: []byte("panic")})
	wantExit(t, r.Exit, turn.ExitTrap, "")
	if !strings.Contains(r.Exit.Message, "panic: rude") {
		t.Errorf("the last words are missing: %q", r.Exit.Message)
	}
	for range 3 {
		r := play(t, m, turn.Turn{Input: []byte("{}")})
		if string(r.Output) != `{"notes":["first"]}` {
			t.Errorf("after the panic: %q, %v", r.Output, r.Exit)
		}
	}
}

func TestGoGuestPrintsToTheLog(t *testing.T) {
	t.Parallel()
	ops := &fakeOps{}
	state(t, play(t, goGuest(t, "testguests/many"), turn.Turn{Input: input(t, "print hello"), Ops: ops}))
	if len(ops.logs) != 2 || ops.logs[0].Message != "hello" || ops.logs[0].Level == ops.logs[1].Level {
		t.Errorf("logged %+v", ops.logs)
	}
}

func TestGoGuestReadsALongAnswer(t *testing.T) {
	t.Parallel()
	ops := &fakeOps{answer: func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) {
		var rsp abi.HistoryResponse
		for i := range 900 {
			rsp.Entries = append(rsp.Entries, abi.HistoryEntry{Seq: int64(i + 1), Time: "2026-11-20T12:00:00Z", Kind: abi.KindNote,
				Note: strings.Repeat("n", 100)})
		}
		body, err := json.Marshal(rsp)
		if err != nil {
			t.Error(err)
		}
		return body, nil
	}}
	text, _, _ := state(t, play(t, goGuest(t, "testguests/many"), turn.Turn{Input: input(t, "long"), Ops: ops}))
	if text != "900" {
		t.Errorf("%s entries arrived", text)
	}
}

func TestGoGuestHasNoEnvironment(t *testing.T) {
	t.Parallel()
	text, _, _ := state(t, play(t, goGuest(t, "testguests/many"), turn.Turn{Input: input(t, "file PATH")}))
	if text != "" {
		t.Errorf("arguments and environment %q", text)
	}
}

func TestTurnsRunSideBySide(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "plugins/script")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var said string
			ops := &fakeOps{answer: func(_ context.Context, _ abi.Op, req []byte) ([]byte, *abi.Error) {
				said = string(req)
				return []byte(`{"text":"SUCCESS"}`), nil
			}}
			r := play(t, m, turn.Turn{Input: input(t, fmt.Sprint("hello ", i)), Ops: ops})
			want := fmt.Sprintf(`{"tool":"task_complete","args":{"finish_message":"a got [New Message] hello %d"}}`, i)
			if r.Exit != nil || said != want {
				t.Errorf("%v, said %s, want %s", r.Exit, said, want)
			}
		})
	}
	wg.Wait()
}

// The probes of the script agent end as operators are told they do.
func TestScriptProbes(t *testing.T) {
	t.Parallel()
	m := goGuest(t, "plugins/script")
	tests := []struct {
		script string
		limits turn.Limits
		kind   turn.ExitKind
		limit  string
	}{
		{`[["loop",{}]]`, turn.Limits{Fuel: 50_000_000}, turn.ExitFuel, "limits.fuel"},
		{`[["loop",{}]]`, turn.Limits{Fuel: 1 << 60, CPU: 50 * time.Millisecond}, turn.ExitCPU, "limits.cpu"},
		{`[["recurse",{}]]`, turn.Limits{Fuel: 1 << 60}, turn.ExitStack, "limits.stack"},
		{`[["trap",{}]]`, turn.Limits{}, turn.ExitTrap, ""},
		{`[["alloc",{"mib":20}]]`, turn.Limits{}, "", ""},
		{`[["alloc",{"mib":500}]]`, turn.Limits{}, turn.ExitTrap, "limits.memory"},
		{`[["sleep",{"ms":20}],["now",{}],["log",{"message":"{{1}}"}]]`, turn.Limits{}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			r := play(t, m, turn.Turn{Input: input(t, tt.script), Limits: tt.limits})
			wantExit(t, r.Exit, tt.kind, tt.limit)
			if strings.Contains(tt.script, "500") && !strings.Contains(r.Exit.Message, "out of memory") {
				t.Errorf("last words %q", r.Exit.Message)
			}
		})
	}
}
