package wasm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// limitSelf bounds the data segment and the computing time of this process.
// Never the address space: a Go program reserves far more than it uses.
func limitSelf(memory, seconds int64) error {
	// Twice the budget, since the runtime keeps more mapped than it uses; the
	// parent watches the resident memory.
	data := unix.Rlimit{Cur: uint64(2 * memory), Max: uint64(2 * memory)}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &data); err != nil {
		return err
	}
	cpu := unix.Rlimit{Cur: uint64(seconds), Max: uint64(seconds) + 1}
	return unix.Setrlimit(unix.RLIMIT_CPU, &cpu)
}

// watchEvery is how often a child's memory is looked at.
const watchEvery = 10 * time.Millisecond

// watchMemory kills a process that has more than memory bytes resident.
func watchMemory(ctx context.Context, pid int, memory int64, kill context.CancelCauseFunc) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if rss, ok := resident(pid); ok && rss > memory {
			kill(fmt.Errorf("it took %d MiB of memory, at most %d", rss>>20, memory>>20))
			return
		}
	}
}

// resident reads how many bytes of a process are in memory.
func resident(pid int) (int64, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(raw)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
