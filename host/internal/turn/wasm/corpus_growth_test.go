package wasm

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// growArg makes the test binary the process whose growth is measured.
const growArg = "__grow"

const (
	// growthFactor is by how much a guest may exceed its limit and its tables.
	growthFactor = 1.25
	// plannedStack is what a host plans for the engine's own stack of a turn: its
	// frames can be larger than they are charged, it doubles, and it is copied.
	plannedStack = 100 << 20
)

// checkGrowth runs one hostile guest at a time, in a process of its own, whose peak
// of resident memory is compared with what it had when it was idle. The cache holds
// the modules' code: compiling is the child's, which has a bound of its own.
func checkGrowth(t *testing.T, dir string) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the peak of a process's memory, and lets it start anew")
	}
	budgets := growthBudgets(t)
	cmd := exec.CommandContext(t.Context(), growProgram(t), growArg, dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the measuring process: %v", err)
	}
	var worst struct {
		name  string
		bytes int64
		share float64
	}
	measured := 0
	for line := range strings.Lines(string(out)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		grown, err := strconv.ParseInt(number, 10, 64)
		budget, known := budgets[name]
		if err != nil || !known {
			t.Fatalf("unexpected line %q", line)
		}
		measured++
		if most := int64(growthFactor * float64(budget)); grown > most {
			t.Errorf("%s: the process grew by %d KiB, at most %d", name, grown>>10, most>>10)
		}
		if share := float64(grown) / float64(budget); share > worst.share {
			worst.name, worst.bytes, worst.share = name, grown, share
		}
	}
	if measured != len(budgets) {
		t.Errorf("%d modules measured of %d", measured, len(budgets))
	}
	t.Logf("%d modules; worst is %s: %d KiB, %.2f of its limit and tables", measured, worst.name, worst.bytes>>10, worst.share)
}

// growProgram is this test binary without the race detector, which would keep a shadow of
// the memory that is measured, and take ten times as long.
func growProgram(t *testing.T) string {
	if slowdown == 1 {
		return os.Args[0]
	}
	file := filepath.Join(t.TempDir(), "grow")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-trimpath", "-o", file, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, text)
	}
	return file
}

// growthBudgets are the budgets of each module that runs.
func growthBudgets(t *testing.T) map[string]int64 {
	budgets := map[string]int64{}
	for _, h := range corpus(t) {
		if h.outcome == "refused" {
			continue
		}
		admitted, err := binary.Admit(h.wasm(t), binary.DefaultCaps())
		if err != nil {
			t.Fatal(err)
		}
		budgets[h.name] = h.budget(admitted.Tables)
	}
	return budgets
}

// budget is the module's limit of memory, its tables as large as they may become,
// and what its head says it takes besides.
func (h *hostile) budget(tables []binary.Table) int64 {
	limits := h.limits.WithDefaults()
	sum := limits.Memory
	for _, table := range tables {
		most := uint32(binary.DefaultCaps().TableElements)
		if table.HasMax {
			most = min(most, table.Max)
		}
		sum += 8 * int64(most)
	}
	for _, what := range strings.Fields(h.takes) {
		sum += map[string]int64{"stack": plannedStack, "host_bytes": limits.HostBytes, "output": limits.Output}[what]
	}
	return sum
}

// grow is the measuring process: it runs each module of the corpus and writes by
// how much it has grown at most meanwhile.
func grow(dir string) error {
	e, err := New(context.Background(), Options{CacheDir: dir})
	if err != nil {
		return err
	}
	warm, err := e.Load(context.Background(), Source{Name: "warm", Wasm: newBuilder().agent("", ok), Trusted: true})
	if err != nil {
		return err
	}
	warm.Turn(context.Background(), turn.Turn{Clock: newClock(), Ops: &fakeOps{}})
	if err := e.Close(context.Background()); err != nil {
		return err
	}
	list, err := readCorpus()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(h *hostile) bool { return h.outcome == "refused" })
	for _, h := range list {
		grown, err := h.growth(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		fmt.Println(h.name, grown)
	}
	return nil
}

// growth returns the bytes by which this process grows over its idle state while
// it loads the module and runs some turns of it.
func (h *hostile) growth(dir string) (int64, error) {
	wasm, err := h.bytes()
	if err != nil {
		return 0, err
	}
	idle, err := restPeak()
	if err != nil {
		return 0, err
	}
	e, err := New(context.Background(), Options{CacheDir: dir})
	if err != nil {
		return 0, err
	}
	m, err := e.Load(context.Background(), Source{Name: h.name, Wasm: wasm})
	if err != nil {
		return 0, err
	}
	for n := range corpusTurns {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		m.Turn(ctx, h.turn(n))
		cancel()
	}
	peak, err := status("VmHWM:")
	if err != nil {
		return 0, err
	}
	return peak - idle, e.Close(context.Background())
}

// restPeak gives back what is not in use, makes the process's peak what is left,
// and returns that.
func restPeak() (int64, error) {
	runtime.GC() // the finalizers of the last module's code
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return 0, err
	}
	return status("VmRSS:")
}

// status reads a size from what the system says of this process.
func status(field string) (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == field {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", field)
}
