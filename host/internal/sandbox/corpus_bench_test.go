package sandbox

import (
	"testing"

	"skep/host/internal/wasmbin"
)

// BenchmarkRefuse is how long it takes to refuse the modules that are refused
// before the engine sees them: from the bytes to the error.
func BenchmarkRefuse(b *testing.B) {
	for _, h := range corpus(b) {
		if h.outcome != "refused" || h.step != StepAdmit && h.step != StepABI {
			continue
		}
		wasm := h.wasm(b)
		b.Run(h.name, func(b *testing.B) {
			b.SetBytes(int64(len(wasm)))
			for b.Loop() {
				m, err := wasmbin.Admit(wasm, wasmbin.DefaultCaps())
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
