package acp_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
)

// Bounds of one socket with ten agents, both sides of it.
const (
	mostSocketBytes      = 96 << 10 // heap and stacks; 53 KiB measured with 100 and with 1,000
	mostSocketGoroutines = 4
)

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

// TestSocketMemory: an open socket costs so much whatever its ten agents say, and
// no more after many messages. `make acp-sockets` has a thousand of them. It is not parallel: it looks at the whole process.
func TestSocketMemory(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SKEP_TEST_SOCKETS"))
	if err != nil {
		n = 100
	}
	s := newSite(t, func(o *acp.Options) { o.Sessions, o.Runtime = n, forgetful{o.Runtime} })
	first := s.dial(t)
	speak := func(c *acptest.Socket) {
		t.Helper()
		for agent := range 10 {
			if err := c.Send(t.Context(), acptest.New("ACKNOWLEDGE", "agent"+strconv.Itoa(agent), "calc", "heard").Text()); err != nil {
				t.Fatal(err)
			}
		}
		exchange(t, c, acptest.New("REQUEST", "mallory", "calc", "x").Text()) // all before it are taken
	}
	speak(first)
	before, idle := used()
	list := []*acptest.Socket{}
	for range n - 1 {
		c := s.dial(t)
		speak(c)
		list = append(list, c)
	}
	opened, running := used()
	each, goroutines := (opened-before)/int64(n-1), (running-idle)/(n-1)
	for range 5 {
		for _, c := range list {
			speak(c)
		}
	}
	after, _ := used()
	told := fmt.Sprintf("%d sockets: %d bytes and %d goroutines each; %d bytes more after 55 messages of each", n, each, goroutines, (after-opened)/int64(n-1))
	t.Log(told)
	if each > mostSocketBytes || goroutines > mostSocketGoroutines || (after-opened)/int64(n-1) > 16<<10 {
		t.Error(told)
	}
}
