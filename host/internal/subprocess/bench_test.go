package subprocess_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/subprocess"
)

// BenchmarkTurn is a turn without a call, and one with a call of the host.
func BenchmarkTurn(b *testing.B) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		b.Fatal(err)
	}
	p, err := subprocess.Open(b.Context(), subprocess.Options{Command: []string{"/proc/self/exe", subprocess.Command}},
		subprocess.Source{Name: "actor", Program: program, Memory: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for _, do := range []string{"echo", "op"} {
		b.Run(do, func(b *testing.B) {
			input, _ := json.Marshal(map[string]string{"do": do, "with": "tea"})
			for b.Loop() {
				res := p.Turn(b.Context(), sandbox.Turn{Input: input, Limits: sandbox.Limits{Memory: 256 << 20}, Clock: &clock{},
					Ops: sandbox.Instant(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return []byte("{}"), nil })})
				if res.Exit != nil {
					b.Fatal(res.Exit)
				}
			}
		})
	}
}
