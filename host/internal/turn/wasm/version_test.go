package wasm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
)

// A module for another host is refused with one sentence that names what both
// speak and what to do.
func TestVersions(t *testing.T) {
	t.Parallel()
	const rebuild = "rebuild the module with an SDK for ABI 1"
	const either = "upgrade skep, or " + rebuild
	marked := func(descriptor string, markers ...string) []byte {
		b := newBuilder()
		for _, m := range markers {
			b.fn(m, "", "", "")
		}
		b.fn("skep_turn", "i", "i", "", ok)
		b.mem(1)
		b.custom("skep.descriptor", descriptor)
		return b.bytes()
	}
	about := func(version int) string { return fmt.Sprintf(`{"abi":%d,"name":"x","version":"1"}`, version) }
	importing := func(module, name string) []byte {
		b := newBuilder()
		b.importFunc(module, name, "i", "i")
		return b.agent("", ok)
	}
	program := func() []byte { // as Go makes of an agent without -buildmode=c-shared
		b := newBuilder()
		for _, name := range []string{"skep_abi_v1", "_start"} {
			b.fn(name, "", "", "")
		}
		b.fn("skep_turn", "i", "i", "", ok)
		b.fn("skep_describe", "", "i", "", op(0x00))
		b.mem(1)
		return b.bytes()
	}
	tests := []struct {
		name string
		wasm []byte
		step turn.LoadStep
		want string
	}{
		{"newer", marked(about(2), "skep_abi_v2"), turn.StepABI,
			"the marker skep_abi_v2 speaks ABI version 2, this host version 1: " + either},
		{"older", marked(about(0), "skep_abi_v0"), turn.StepABI,
			"the marker skep_abi_v0 speaks ABI version 0, this host version 1: " + rebuild},
		{"no number", marked(about(1), "skep_abi_vX"), turn.StepABI,
			"the marker skep_abi_vX speaks ABI version X, this host version 1: " + rebuild},
		{"several", marked(about(1), "skep_abi_v1", "skep_abi_v2"), turn.StepABI,
			"several markers, for ABI 1 and 2, and this host speaks ABI 1: rebuild the module with one SDK, for ABI 1"},
		{"none", marked(about(1)), turn.StepABI,
			"no skep_abi_v1 export: this is no skep agent; build it with a skep SDK for ABI 1, as a reactor (-buildmode=c-shared in Go)"},
		{"a program", marked(about(1), "_start"), turn.StepABI,
			"no skep_abi_v1 export: it is built as a program; build it as a reactor (Go: -buildmode=c-shared), with a skep SDK for ABI 1"},
		{"a program that fails", program(), turn.StepDescribe,
			"it is built as a program; build it as a reactor (Go: -buildmode=c-shared); skep_describe: trap: skep_describe: unreachable"},
		{"newer descriptor", marked(about(2), "skep_abi_v1"), turn.StepDescribe,
			"the marker speaks ABI version 1, but the descriptor speaks ABI version 2, this host version 1: " + either},
		{"older descriptor", marked(`{"name":"x","version":"1"}`, "skep_abi_v1"), turn.StepDescribe,
			"the marker speaks ABI version 1, but the descriptor speaks ABI version 0, this host version 1: " + rebuild},
		{"imports of another version", importing("skep_v2", "call"), turn.StepABI,
			"the import skep_v2.call speaks ABI version 2, this host version 1: " + either},
		{"imports of a later host", importing("skep_v1", "park"), turn.StepABI,
			"imports skep_v1.park (i32) -> (i32), which this host (ABI 1) does not offer; " +
				"the module may be for a newer skep: upgrade skep, or rebuild the module without it, with an SDK for ABI 1"},
		{"imports of another system", importing("env", "fopen"), turn.StepABI,
			"imports env.fopen (i32) -> (i32), which this host (ABI 1) does not offer; only skep_v1 and a subset of wasi_snapshot_preview1 can be imported"},
	}
	for _, tt := range tests {
		_, err := engine(t).Load(t.Context(), Source{Name: "file:x.wasm", Wasm: tt.wasm})
		want := fmt.Sprintf("module file:x.wasm refused (%s): %s", tt.step, tt.want)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", tt.name, err, want)
		}
		if strings.Contains(tt.want, "ABI version") && !errors.Is(err, abi.ErrVersion) {
			t.Errorf("%s: %v is no ErrVersion", tt.name, err)
		}
	}
}
