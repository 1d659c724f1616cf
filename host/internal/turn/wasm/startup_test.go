package wasm

import (
	"runtime"
	"skep/host/internal/turn"
	"strings"
	"testing"
)

func TestStartup(t *testing.T) {
	t.Parallel()
	const large = 200 // pages
	shared := runtime.GOOS == "linux"
	tests := []struct {
		name  string
		pages int
		limit turn.Limits
		want  Reset
		why   string
	}{
		{"small", 2, turn.Limits{}, ResetCopy, ""},
		{"middle", 70, turn.Limits{}, ResetMixed, ""},
		{"large", large, turn.Limits{Memory: 256 << 20}, ResetPages, ""},
		{"too large", large, turn.Limits{Memory: 16 << 20}, ResetNone, "larger than a quarter of limits.memory"},
	}
	for _, tt := range tests {
		m := loadInto(t, engineWith(t, Options{}), patched(tt.pages))
		got, exit := m.Startup(t.Context(), tt.limit)
		if exit != nil {
			t.Errorf("%s: %v", tt.name, exit)
			continue
		}
		if !shared && tt.want != ResetNone {
			tt.want = ResetCopy
		}
		if got.Memory != int64(tt.pages)*page || got.Reset != tt.want || (got.Image > 0) != (tt.why == "") || !strings.Contains(got.NoImageReason, tt.why) {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if s := m.engine.Pool(); s.Idle != 0 || s.Images != 0 || s.Resident != 0 {
			t.Errorf("%s: something was kept: %+v", tt.name, s)
		}
	}
}

func TestStartupOfOthers(t *testing.T) {
	t.Parallel()
	m := loadInto(t, engineWith(t, Options{}), patched(2))
	m.noImageReason = "the test says so"
	if got, exit := m.Startup(t.Context(), turn.Limits{}); exit != nil || got.NoImageReason != "the test says so" || got.Memory == 0 || got.Reset != ResetNone {
		t.Errorf("one without an image: %+v, %v", got, exit)
	}
	if _, exit := m.Startup(t.Context(), turn.Limits{Memory: page}); exit == nil || exit.Kind != turn.ExitMemory {
		t.Errorf("within one page: %v", exit)
	}
	if err := m.engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, exit := m.Startup(t.Context(), turn.Limits{}); exit == nil || exit.Kind != turn.ExitHost {
		t.Errorf("in a closed engine: %v", exit)
	}
}
