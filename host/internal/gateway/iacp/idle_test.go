package iacp_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// mostIdleGoroutines bounds an idle connection of the host.
const mostIdleGoroutines = 3

// spokesEnv makes the test binary a process with idle spokes of the gateway at an address, each
// with its agent, in place of the tests.
const spokesEnv = "SKEP_TEST_SPOKES_OF"

// spokeAgents are the agents of the spokes: their connections share them.
const spokeAgents = 200

// holdSpokes opens as many connections as a line of the standard input has, writes a line when
// all have registered, and holds them until the input ends.
func holdSpokes(addr string) error {
	in := bufio.NewReader(os.Stdin)
	var n int
	if _, err := fmt.Fscanln(in, &n); err != nil {
		return err
	}
	list := make([]*iacptest.Conn, n)
	for i := range list {
		c, err := iacptest.Dial(addr, token, "ack")
		if err != nil {
			return err
		}
		if _, err := c.Register("depot-" + strconv.Itoa(i%spokeAgents)); err != nil {
			return err
		}
		list[i] = c
	}
	fmt.Println(registeredLine)
	_, err := in.ReadByte()
	runtime.KeepAlive(list)
	return err
}

// registeredLine is what the process of the spokes writes.
const registeredLine = "registered"

// openSpokes opens n connections to a gateway in a process of their own, which ends with the
// test: files of both ends in one process would be more than it may have.
func openSpokes(t *testing.T, addr string, n int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), spokesEnv+"="+addr), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // it ends with its input
	})
	if _, err := fmt.Fprintln(in, n); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != registeredLine+"\n" {
		t.Fatalf("the spokes: %q, %v", line, err)
	}
}

// TestIdleMemory (I-059): an open connection whose agent has registered costs so much, and a
// message on another is answered beside all of them. `make iacp-connections` has ten thousand.
// It is not parallel: it looks at the whole process.
func TestIdleMemory(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SKEP_TEST_CONNECTIONS"))
	if err != nil {
		n = 300
	}
	s := newSite(t, func(o *iacp.Options) {
		o.Sessions, o.Heartbeat, o.Idle, o.Runtime = n+1, time.Hour, 2*time.Hour, gatewaytest.Unrecorded{Runtime: o.Runtime}
	})
	first := s.dial(t, "ack")
	exchange(t, first, task("warm"), "ack")
	read(t, first, "task_response")
	before, idle := gatewaytest.Footprint()
	openSpokes(t, s.addr, n)
	opened, running := gatewaytest.Footprint()
	each, goroutines := (opened-before)/int64(n), (running-idle)/n
	told := fmt.Sprintf("%d connections: %d bytes and %d goroutines each", n, each, goroutines)
	t.Log(told)
	if got := s.g.Health().Connections; each > mostIdleBytes || goroutines > mostIdleGoroutines || got != n+1 {
		t.Errorf("%s; %d are open", told, got)
	}
	exchange(t, first, task("beside them"), "ack")
	read(t, first, "task_response")
}
