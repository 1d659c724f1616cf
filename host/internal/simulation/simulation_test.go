package simulation

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"skep/abi"
	"skep/host/internal/schema"
)

type tools struct{ set *schema.Set }

func (b tools) Tools() (list []abi.Tool) {
	for _, t := range b.set.Tools() {
		list = append(list, abi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return list
}

func (b tools) ToolArgs(tool string, args []byte) error { return b.set.ToolArgs(tool, args) }

// testKit is the kit of this machine. One processor, and no collection of garbage while
// a seed runs, keep the order of goroutines the same.
func testKit(t *testing.T) Kit {
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	procs, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	})
	kit := Kit{Tools: tools{set}, Dir: t.TempDir(), Trace: 60}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		kit.Dir = "/dev/shm"
	}
	return kit
}

// tally sums the reports of many seeds.
type tally struct {
	seeds, failed int
	counts        map[string]int
	began         time.Time
}

func newTally() *tally { return &tally{counts: map[string]int{}, began: time.Now()} }

func (a *tally) add(rep Report) {
	a.seeds++
	for what, n := range rep.Counts {
		a.counts[what] += n
	}
}

func (a *tally) String() string {
	var list []string
	for what, n := range a.counts {
		list = append(list, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(list)
	took := time.Since(a.began)
	return fmt.Sprintf("%d seeds, %d failed, %.1f a second; %s", a.seeds, a.failed, float64(a.seeds)/took.Seconds(), strings.Join(list, ", "))
}

// runSeed runs a seed and fails the test for what it violates.
func (a *tally) runSeed(t *testing.T, kit Kit, seed uint64) (rep Report) {
	runtime.GC()
	ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		rep = Run(t, kit, seed)
		a.add(rep)
		if len(rep.Violations) > 0 {
			t.Errorf("%s\n%s\nSKEP_SEED=%d go test ./host/internal/simulation -run TestSeed$ shows all of it", strings.Join(rep.Violations, "\n"), rep.Tail, seed)
		}
	})
	if !ok {
		a.failed++
	}
	return rep
}

// testTime is how long TestSeeds runs.
const testTime = 45 * time.Second

// TestSeeds runs the same seeds each time: a change is judged by its own faults only.
// make simulate runs fresh ones.
func TestSeeds(t *testing.T) {
	kit, sum := testKit(t), newTally()
	for seed := uint64(0); time.Since(sum.began) < testTime && !t.Failed(); seed++ {
		sum.runSeed(t, kit, seed)
	}
	if !t.Failed() && sum.counts["turn without a sandbox"] == 0 {
		t.Error("no turn has given its sandbox up")
	}
	t.Log(sum)
}

// TestSeed shows the run of one seed: SKEP_SEED.
func TestSeed(t *testing.T) {
	text := os.Getenv("SKEP_SEED")
	if text == "" {
		t.Skip("SKEP_SEED names no seed")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal("SKEP_SEED: ", err)
	}
	kit := testKit(t)
	kit.Trace = 1e6
	rep := newTally().runSeed(t, kit, seed)
	t.Logf("sum %x\n%s", rep.Sum, rep.Tail)
}

// TestSimulate runs SKEP_SEEDS seeds from SKEP_SEED on and shows how far it is.
func TestSimulate(t *testing.T) {
	text := os.Getenv("SKEP_SEEDS")
	if text == "" {
		t.Skip("SKEP_SEEDS names no number of seeds")
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal("SKEP_SEEDS: ", err)
	}
	first, err := strconv.ParseUint(cmp.Or(os.Getenv("SKEP_SEED"), "0"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	kit, sum := testKit(t), newTally()
	for seed := first; seed < first+n; seed++ {
		rep := sum.runSeed(t, kit, seed)
		for _, v := range rep.Violations {
			fmt.Printf("seed %d: %s\n", seed, v)
		}
		if sum.seeds%100 == 0 {
			fmt.Println(sum)
		}
	}
	fmt.Println(sum)
}

// A seed gives the same run each time, unless Go preempts a goroutine in the middle of
// a step, as it does on a busy machine after 10 ms. Then the next run shows it.
func TestSeedRepeats(t *testing.T) {
	kit, sum := testKit(t), newTally()
	const tries = 5
	for seed := range uint64(5) {
		last := sum.runSeed(t, kit, seed)
		for try := 1; ; try++ {
			again := sum.runSeed(t, kit, seed)
			if again.Sum == last.Sum {
				break
			}
			t.Logf("seed %d: two runs of %d and %d steps", seed, last.Steps, again.Steps)
			if try == tries {
				t.Errorf("seed %d: no two of %d runs one after the other are the same", seed, tries+1)
				break
			}
			last = again
		}
	}
}
