package process_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/guests"
	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
)

// pythonProgram builds an agent in Python, and returns the files its process must be able
// to read.
func pythonProgram(t *testing.T, agent string) (program []byte, readable []string) {
	t.Helper()
	python, readable := pythonOrSkip(t)
	file := filepath.Join(t.TempDir(), "agent")
	if out, err := exec.Command(python, filepath.Join(pythonSDK(), "build.py"), agent, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return program, readable
}

func pythonOrSkip(t *testing.T) (python string, readable []string) {
	t.Helper()
	if python, readable = guests.Python(t); python == "" {
		t.Skip("no Python with the libraries for agents; make python makes one")
	}
	return python, readable
}

func pythonSDK() string { return filepath.Join(guests.Root(), "sdk", "python") }

func pythonConform(t *testing.T) (*process.Program, error) {
	t.Helper()
	program, readable := pythonProgram(t, filepath.Join(pythonSDK(), "conformance", "conform.py"))
	log := &counted{}
	o := process.Options{Command: []string{"/proc/self/exe", process.Command}, Logger: slog.New(slog.NewTextHandler(log, nil))}
	p, err := process.Open(t.Context(), o.WithHealth(50*time.Millisecond, patience),
		process.Source{Name: "conform", Program: program, Read: readable, Memory: 256 << 20})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if strings.Contains(log.text.String(), "level=WARN") {
			t.Errorf("the host complains:\n%s", log.text.String())
		}
	})
	return p, nil
}

// The same files make the same program, which finds nothing without what it may
// read.
func TestPythonProgram(t *testing.T) {
	agent := filepath.Join(pythonSDK(), "conformance", "conform.py")
	one, _ := pythonProgram(t, agent)
	two, _ := pythonProgram(t, agent)
	if string(one) != string(two) {
		t.Error("the program differs")
	}
	python, _ := pythonOrSkip(t)
	if base, err := filepath.EvalSymlinks(python); err == nil && strings.HasPrefix(base, "/usr/") && strings.HasPrefix(guests.Root(), "/usr/") {
		t.Skip("everything lies where every process may read")
	}
	_, err := open(t, process.Source{Name: "conform", Program: one})
	if err == nil || !strings.Contains(err.Error(), "the key to change is readable") {
		t.Errorf("without readable: %v", err)
	}
}

// The SDK for Python knows the ops by the names and numbers they have.
func TestPythonKnowsTheOps(t *testing.T) {
	python, _ := pythonOrSkip(t)
	cmd := exec.Command(python, "-c", "import json, skep; print(json.dumps([skep.OPS, skep.CODES]))")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+pythonSDK(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ops, codes := map[string]abi.Op{}, []string{}
	if err := json.Unmarshal(out, &[]any{&ops, &codes}); err != nil {
		t.Fatal(err)
	}
	for number := range abi.Op(200) {
		info, known := abi.Lookup(number)
		if known && ops[info.Name] != number {
			t.Errorf("%s is %d, not %d", info.Name, ops[info.Name], number)
		}
		if !known {
			continue
		}
		delete(ops, info.Name)
	}
	if len(ops) > 0 {
		t.Errorf("unknown ops %v", ops)
	}
	for c := abi.CodeInvalid; c <= abi.CodeInternal; c++ {
		if int(c) >= len(codes) || codes[c] != c.String() {
			t.Errorf("code %d is not %s in %q", c, c, codes)
		}
	}
}

// Turns of one tenant run beside each other in one process.
func TestPythonRunsTurnsBesideEachOther(t *testing.T) {
	p, err := pythonConform(t)
	if err != nil {
		t.Fatal(err)
	}
	const turns = 8
	var all sync.WaitGroup
	meet, met := make(chan struct{}, turns), make(chan struct{})
	go func() {
		for range turns {
			<-meet
		}
		close(met)
	}()
	for range turns {
		all.Go(func() {
			res := p.Action(t.Context(), turn.Turn{
				Tenant: "default", Input: []byte(`{"name":"run","args":{"commands":[["call",{"op":20}]]},"params":{}}`), Clock: &clock{},
				Limits: turn.Limits{Memory: 256 << 20}, Ops: turn.OpsFunc(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) {
					meet <- struct{}{}
					<-met
					return []byte(`{}`), nil
				}),
			})
			if string(res.Output) != `["{}"]` || res.Exit != nil {
				t.Errorf("%s %v", res.Output, res.Exit)
			}
		})
	}
	all.Wait()
}

// A program that has ended leaves nothing in the host.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		p := openWith(t, process.Options{IdleTimeout: time.Hour})
		works(t, p)
		if _, exit := ask(t, t.Context(), p, "die", ""); exit == nil {
			t.Error("it lives")
		}
		works(t, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			var all strings.Builder
			buf := make([]byte, 1<<20)
			all.Write(buf[:runtime.Stack(buf, true)])
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, all.String())
		}
	}
}
