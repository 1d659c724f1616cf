package definition

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"skep/host/internal/swarm"
)

// wideDefinition has as many agents as a definition may have. Each may ask people.
func wideDefinition(n int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"swarm":{"name":"hive","entrypoint":"boss","description":"%d"},"agents":{`, n)
	for i := range 255 {
		fmt.Fprintf(&b, `"a%d":{"source":"file:script.wasm","comm_targets":["boss","a%d"],"can_complete_tasks":true,"actions":["confirm","c1","c2","c3"]},`, i, (i+1)%255)
	}
	b.WriteString(`"boss":{"source":"file:script.wasm","enable_entrypoint":true,"can_complete_tasks":true,"actions":["confirm"],"comm_targets":["a0"]}},"actions":{`)
	for _, name := range []string{"c1", "c2", "c3", "confirm"} {
		fmt.Fprintf(&b, `%q:{"source":"human","description":"%s","parameters":{"type":"object"}},`, name, strings.Repeat("x", 1000))
	}
	b.Truncate(b.Len() - 1)
	b.WriteString(`}}`)
	return b.Bytes()
}

// heap is the size of what is reachable, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Definitions that are in force no more cost a fraction of one that is, whose agents have
// their tools ready. It measures the whole process: no other test runs beside it.
func TestOldDefinitionsAreCompact(t *testing.T) {
	h, _ := newTestLibrary(t)
	load := func(n int) {
		t.Helper()
		if _, err := h.Load(t.Context(), swarm.DefaultTenant, "ada", wideDefinition(n)); err != nil {
			t.Fatal(err)
		}
	}
	load(0)
	before := heap()
	const old = 8
	for i := range old {
		load(1 + i)
	}
	if each := (heap() - before) / old; each > 3<<19 {
		t.Errorf("an old definition of %d bytes takes %d KiB, want less than 1536", len(wideDefinition(0)), each>>10)
	}
	if _, bound := h.countOwn(t); bound != old+1 {
		t.Errorf("%d definitions can be run, want %d", bound, old+1)
	}
}
