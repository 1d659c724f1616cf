package iacp_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// mostIdleGoroutines bounds an idle connection, both sides of it.
const mostIdleGoroutines = 3

// used is what the process holds.
func used() (bytes int64, goroutines int) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

// forgetful is a runtime that keeps no events.
type forgetful struct{ gateway.Runtime }

func (forgetful) Record(gateway.Event) {}

// TestIdleMemory (I-059): an open connection whose agent has registered costs so much, and a
// message on another is answered beside all of them. `make iacp-connections` has ten thousand.
// It is not parallel: it looks at the whole process.
func TestIdleMemory(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SKEP_TEST_CONNECTIONS"))
	if err != nil {
		n = 300
	}
	s := newSite(t, func(o *iacp.Options) {
		o.Sessions, o.Heartbeat, o.Idle, o.Runtime = n+1, time.Hour, 2*time.Hour, forgetful{o.Runtime}
	})
	first := s.dial(t, "ack")
	exchange(t, first, task("warm"), "ack")
	read(t, first, "task_response")
	before, idle := used()
	list := make([]*iacptest.Conn, n)
	for i := range list {
		list[i] = s.spoke(t, token, "depot-"+strconv.Itoa(i%200))
	}
	opened, running := used()
	each, goroutines := (opened-before)/int64(n), (running-idle)/n
	told := fmt.Sprintf("%d connections: %d bytes and %d goroutines each", n, each, goroutines)
	t.Log(told)
	if each > mostIdleBytes || goroutines > mostIdleGoroutines {
		t.Error(told)
	}
	exchange(t, first, task("beside them"), "ack")
	read(t, first, "task_response")
}
