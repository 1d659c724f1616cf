package crash_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"testing"
)

// crossing names what passes a wire for a task: its n-th request, or its n-th
// answer, which is that to an earlier request where others came to nothing.
type crossing struct {
	wire   string
	n      int
	answer bool
}

func (c crossing) String() string {
	if c.answer {
		return fmt.Sprintf("answer %d of %s", c.n, c.wire)
	}
	return fmt.Sprintf("request %d of %s", c.n, c.wire)
}

// fault is what happens to a crossing. It is held while before runs; then it passes,
// or half of it, or nothing.
type fault struct {
	before, after func()
	half, lost    bool
	// cut is how many connections the wire refuses from then on; below zero all.
	cut int
}

// network is the wires between hosts, and what has passed them for one task.
type network struct {
	mu     sync.Mutex
	task   string
	seen   []crossing
	faults map[crossing]fault
	cut    map[string]int
	// killing counts the deeds that are being done.
	active int
}

// watch begins with a task. What is left of another passes.
func (w *network) watch(task string, deeds map[crossing]fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.task, w.seen, w.faults, w.cut = task, nil, deeds, map[string]int{}
}

func (w *network) crossings() []crossing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// nextFault notes what passes for a task, and returns its fault: none, unless
// the task is watched.
func (w *network) nextFault(wire, task string, answer bool) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if task == "" || task != w.task {
		return fault{}
	}
	c := crossing{wire, 1, answer}
	for _, old := range w.seen {
		if old.wire == wire && old.answer == answer {
			c.n++
		}
	}
	w.seen = append(w.seen, c)
	d := w.faults[c]
	w.cut[wire] += d.cut
	after := d.after
	w.active++
	d.after = func() {
		if after != nil {
			after()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.active--
	}
	return d
}

// idle reports whether no fault is being injected.
func (w *network) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active == 0
}

// refuses reports whether a wire is cut, for this connection.
func (w *network) refuses(wire string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch left := w.cut[wire]; {
	case left > 0:
		w.cut[wire]--
		return true
	default:
		return left < 0
	}
}

// wire is a TCP proxy on the way from one host to another that knows where a
// request and an answer begin.
type wire struct {
	network  *network
	name, to string
	l        net.Listener
	passing  sync.WaitGroup
}

// newWire opens a wire at an address of the loopback network, to a host's address.
func newWire(t *testing.T, w *network, name, at, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", at+":0")
	if err != nil {
		t.Fatal(err)
	}
	wi := &wire{network: w, name: name, to: to, l: l}
	wi.passing.Go(wi.serve)
	t.Cleanup(func() { _ = l.Close(); wi.passing.Wait() })
	return wi
}

func (wi *wire) serve() {
	for {
		from, err := wi.l.Accept()
		if err != nil {
			return
		}
		wi.passing.Go(func() {
			defer from.Close()
			if !wi.network.refuses(wi.name) {
				wi.carry(from)
			}
		})
	}
}

// carry passes what comes over one connection until either side ends it.
func (wi *wire) carry(from net.Conn) {
	var to net.Conn
	defer func() {
		if to != nil {
			_ = to.Close()
		}
	}()
	for in := bufio.NewReader(from); ; {
		q, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		raw, err := httputil.DumpRequest(q, true)
		if err != nil {
			return
		}
		task := taskIn(raw)
		ok := pass(wi.network.nextFault(wi.name, task, false), raw, func() (io.Writer, error) {
			if to == nil {
				to, err = net.Dial("tcp", wi.to)
			}
			return to, err
		})
		if !ok || !wi.back(from, to, q, task) {
			return
		}
	}
}

// back passes the answer to a request.
func (wi *wire) back(from, to net.Conn, q *http.Request, task string) bool {
	rsp, err := http.ReadResponse(bufio.NewReader(to), q)
	if err != nil {
		return false
	}
	raw, err := httputil.DumpResponse(rsp, true)
	_ = rsp.Body.Close()
	if err != nil {
		return false
	}
	return pass(wi.network.nextFault(wi.name, task, true), raw, func() (io.Writer, error) { return from, nil }) && !rsp.Close
}

// pass does to a message what is to be done; ok: all of it has passed.
func pass(d fault, raw []byte, to func() (io.Writer, error)) (ok bool) {
	if d.before != nil {
		d.before()
	}
	if d.after != nil {
		defer d.after()
	}
	if d.lost {
		return false
	}
	out, err := to()
	if err != nil {
		return false
	}
	if d.half {
		raw = raw[:len(raw)/2]
	}
	_, err = out.Write(raw)
	return err == nil && !d.half
}

// taskIn reads which task a request is about, empty for none.
func taskIn(raw []byte) string {
	var in struct {
		Message struct {
			Payload struct {
				Task string `json:"task_id"`
			}
		}
	}
	_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	_ = json.Unmarshal(body, &in) // what is no wrapper has no task
	return in.Message.Payload.Task
}
