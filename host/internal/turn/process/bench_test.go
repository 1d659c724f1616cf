package process_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
)

// BenchmarkTurn is a turn without a call, and one with a call of the host.
func BenchmarkTurn(b *testing.B) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		b.Fatal(err)
	}
	p, err := process.Open(b.Context(), process.Options{Command: []string{"/proc/self/exe", process.Command}},
		process.Source{Name: "actor", Program: program, Memory: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for _, do := range []string{"echo", "op"} {
		b.Run(do, func(b *testing.B) {
			input, _ := json.Marshal(map[string]string{"do": do, "with": "tea"})
			for b.Loop() {
				res := p.Turn(b.Context(), turn.Turn{Input: input, Limits: turn.Limits{Memory: 256 << 20}, Clock: &clock{},
					Ops: turn.OpsFunc(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return []byte("{}"), nil })})
				if res.Exit != nil {
					b.Fatal(res.Exit)
				}
			}
		})
	}
}
