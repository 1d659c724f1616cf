package binary_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"testing"

	"skep/host/internal/turn/wasm/binary"
)

// readAll is all that there is to read of a module, or why it is refused.
func readAll(m *binary.Module) (string, error) {
	metered, err := m.Meter(binary.Options{})
	if err != nil {
		return "", err
	}
	detached, err := m.MeterDetached(binary.Options{})
	if err != nil {
		return "", err
	}
	data := sha256.New()
	for _, segment := range detached.Data {
		data.Write(segment.Bytes)
	}
	first, _ := m.FuncType(0)
	export, _ := m.Export("memory")
	return fmt.Sprintf("%x %x %x %q %d %d %+v %+v %d %q %v %v %v", sha256.Sum256(metered), sha256.Sum256(detached.Wasm), data.Sum(nil),
		detached.HiddenState, detached.Code, detached.Charges, m.Usage(), m.Language(), m.CodeSize(),
		m.Custom("producers"), m.MutableGlobals(), first, export), nil
}

// TestConcurrentReaders has goroutines read the same bytes and the same admitted
// modules, and others beside them. Other packages' tests run without this one under the
// race detector, so this is where a thing that readers share would show.
func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	rust, err := os.ReadFile("../../../../../spec/conformance/guests/rust.wasm")
	if err != nil {
		t.Fatal(err)
	}
	files := [][]byte{rust, generate(randomBytes(1, 600)), generate(randomBytes(2, 600)), rust[:len(rust)/2], dear[0].make()}
	shared, want := make([]*binary.Module, len(files)), make([]string, len(files))
	for i, wasm := range files {
		if shared[i], err = binary.Admit(bytes.Clone(wasm), binary.DefaultCaps()); err == nil {
			want[i], err = readAll(shared[i])
		}
		if refused := i >= 3; refused != (err != nil) {
			t.Fatalf("file %d: %v", i, err)
		} else if refused {
			want[i] = err.Error()
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i, wasm := range files {
				m, err := binary.Admit(wasm, binary.DefaultCaps())
				if err != nil {
					if err.Error() != want[i] {
						t.Errorf("file %d: %v, want %s", i, err, want[i])
					}
					continue
				}
				for _, m := range []*binary.Module{m, shared[i]} {
					if got, err := readAll(m); err != nil || got != want[i] {
						t.Errorf("file %d is read in another way, %v", i, err)
					}
				}
			}
		})
	}
	wg.Wait()
}
