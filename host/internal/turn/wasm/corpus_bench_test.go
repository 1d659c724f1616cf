package wasm

import (
	"testing"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// BenchmarkRefuse is how long it takes to refuse the modules that are refused
// before the engine sees them: from the bytes to the error.
func BenchmarkRefuse(b *testing.B) {
	for _, h := range corpus(b) {
		if h.outcome != "refused" || h.step != turn.StepAdmit && h.step != turn.StepABI {
			continue
		}
		wasm := h.wasm(b)
		b.Run(h.name, func(b *testing.B) {
			b.SetBytes(int64(len(wasm)))
			for b.Loop() {
				m, err := binary.Admit(wasm, binary.DefaultCaps())
				if err == nil {
					err = checkContract(m)
				}
				if err == nil {
					b.Fatal("admitted")
				}
			}
		})
	}
}
