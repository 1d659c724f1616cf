package skep

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"skep/sdk/go/internal/abi"
)

// buffer is a host that only takes output.
type buffer struct {
	in, out []byte
	refuse  abi.Code
}

func (b *buffer) Input() []byte { return b.in }

func (b *buffer) Output(data []byte) abi.Code {
	if b.refuse != abi.CodeOK {
		defer func() { b.refuse = abi.CodeOK }() // takes the error message
		return b.refuse
	}
	b.out = append(b.out, data...)
	return abi.CodeOK
}

func (b *buffer) Call(abi.Op, []byte) ([]byte, abi.Code) { return nil, abi.CodeUnsupported }

func (b *buffer) Submit(abi.Op, []byte) int64 { return -int64(abi.CodeUnsupported) }

func (b *buffer) Wait([]int32, int32) int32 { return -int32(abi.CodeNotFound) }

func (b *buffer) Read(int32, []byte) int64 { return -int64(abi.CodeNotFound) }

func (b *buffer) Close(int32) {}

func (b *buffer) LastError() []byte { return nil }

func (b *buffer) Now() time.Time { return time.Time{} }

func (b *buffer) Sleep(time.Duration) {}

// warmer is an agent that counts its warm-ups.
type warmer struct{ warmed int }

func (*warmer) Turn(t *Turn) error { return t.SetState("kept") }

func (w *warmer) Warm() error { w.warmed++; return nil }

func TestDescribeAndWarm(t *testing.T) {
	saved := module
	defer func() { module = saved }()
	module.agent = nil
	if status := describe(&buffer{}); status != abi.StatusNotImplemented {
		t.Errorf("describe without an agent: %d", status)
	}
	w := &warmer{}
	module.agent = w
	module.descriptor = Descriptor{Name: "w", Version: "1", Requests: []Request{{Allow: "kv", Reason: "to remember"}}}
	var b buffer
	if status := describe(&b); status != abi.StatusOK {
		t.Errorf("describe: %d", status)
	}
	if want := `{"abi":1,"name":"w","version":"1","requests":[{"allow":"kv","reason":"to remember"}]}`; string(b.out) != want {
		t.Errorf("described %s, want %s", b.out, want)
	}
	if status := warm(&b); status != abi.StatusOK || w.warmed != 1 {
		t.Errorf("warm: %d, %d times", status, w.warmed)
	}
	module.descriptor.Requests[0].Value = json.RawMessage("{")
	if status := describe(&buffer{}); status != abi.StatusError {
		t.Errorf("a descriptor that is no JSON: %d", status)
	}
}

func TestDrive(t *testing.T) {
	t.Parallel()
	if status := Drive(&buffer{}, nil); status != int32(abi.StatusNotImplemented) {
		t.Errorf("no agent: %d", status)
	}
	for _, in := range []string{"", "{", `{"message":7}`} {
		b := &buffer{in: []byte(in)}
		if status := Drive(b, &warmer{}); status != int32(abi.StatusError) || !strings.Contains(string(b.out), "turn input") {
			t.Errorf("input %q: %d %s", in, status, b.out)
		}
	}
	b := &buffer{in: []byte(`{"message":{}}`), refuse: abi.CodeLimit}
	if status := Drive(b, &warmer{}); status != int32(abi.StatusError) || !strings.Contains(string(b.out), `"LIMIT"`) {
		t.Errorf("a refused output: %d %s", status, b.out)
	}
	var silent silentAgent
	b = &buffer{in: []byte(`{"message":{}}`)}
	if status := Drive(b, silent); status != int32(abi.StatusOK) || len(b.out) != 0 {
		t.Errorf("a turn that leaves nothing wrote %q", b.out)
	}
}

type silentAgent struct{}

func (silentAgent) Turn(*Turn) error { return nil }

func TestPanicBecomesAbortWithTheAgentsFrames(t *testing.T) {
	t.Parallel()
	var said string
	guard(func(code abi.Code, message string) {
		if code != abi.CodeInternal {
			t.Errorf("code %d", code)
		}
		said = message
	}, func() abi.Status { return culprit() })
	first, rest, _ := strings.Cut(said, "\n")
	if first != "panic: oh dear" || !strings.Contains(strings.SplitN(rest, "\n", 2)[0], "culprit") || len(said) > maxPanic {
		t.Errorf("aborted with %s", said)
	}
	if status := guard(nil, func() abi.Status { return abi.StatusOK }); status != abi.StatusOK {
		t.Errorf("a call that ends well: %d", status)
	}
	if got := panicText(strings.Repeat("é", maxPanic), nil); len(got) > maxPanic || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("a long panic became %d bytes", len(got))
	}
}

//go:noinline
func culprit() abi.Status { panic("oh dear") }
