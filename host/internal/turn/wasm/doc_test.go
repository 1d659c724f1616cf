package wasm

import (
	"os"
	"strings"
	"testing"
)

// The contract in prose must name every function a module can import.
func TestDocumentHasEveryImport(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../abi/ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range hostFuncs() {
		if !strings.Contains(string(text), "`"+f.name+"`") {
			t.Errorf("ABI.md lacks %s.%s", f.module, f.name)
		}
		if f.module == wasiModule {
			continue
		}
		if _, after, ok := strings.Cut(string(text), "| `"+f.name+"` | `("); !ok || f.results != nil != strings.Contains(after[:120], "-> i") {
			t.Errorf("ABI.md gives %s no type, or another result", f.name)
		}
	}
}
