package acp_test

import (
	"fmt"
	"strconv"
	"testing"

	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
)

// Bounds of one socket with ten agents, both sides of it.
const (
	mostSocketBytes      = 96 << 10 // heap and stacks; 53 KiB measured with 100 and with 1,000
	mostSocketGoroutines = 4
)

// TestSocketMemory: an open socket costs so much whatever its ten agents say, and
// no more after many messages. `make acp-sockets` has a thousand of them. It is not parallel: it looks at the whole process.
func TestSocketMemory(t *testing.T) {
	n := gatewaytest.Sockets(100)
	s := newSite(t, func(o *acp.Options) { o.Sessions, o.Runtime = n, gatewaytest.Unrecorded{Runtime: o.Runtime} })
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
	before, idle := gatewaytest.Footprint()
	list := []*acptest.Socket{}
	for range n - 1 {
		c := s.dial(t)
		speak(c)
		list = append(list, c)
	}
	opened, running := gatewaytest.Footprint()
	each, goroutines := (opened-before)/int64(n-1), (running-idle)/(n-1)
	for range 5 {
		for _, c := range list {
			speak(c)
		}
	}
	after, _ := gatewaytest.Footprint()
	told := fmt.Sprintf("%d sockets: %d bytes and %d goroutines each; %d bytes more after 55 messages of each", n, each, goroutines, (after-opened)/int64(n-1))
	t.Log(told)
	if each > mostSocketBytes || goroutines > mostSocketGoroutines || (after-opened)/int64(n-1) > 16<<10 {
		t.Error(told)
	}
}
