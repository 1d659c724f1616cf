// Command many is an agent that does what the body of its message names, for the
// sandbox's tests of ordinary Go code inside a module.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	skep "skep/sdk/go"
)

// many counts what a package variable must not keep between turns.
type many struct{ turns, warmed int }

var (
	agent   = &many{}
	started = time.Now()
	_       = skep.Run(skep.Descriptor{Name: "many", Version: "1"}, agent)
)

func main() {}

func (m *many) Warm() error {
	m.warmed++
	time.Sleep(time.Minute) // moves the image's clock, and waits for nothing
	return nil
}

func (m *many) Turn(t *skep.Turn) error {
	m.turns++
	mode, arg, _ := strings.Cut(t.Message.Body, " ")
	run, ok := modes[mode]
	if !ok {
		return skep.Errorf(skep.Invalid, "no mode %q", mode)
	}
	text, err := run(t, arg)
	if err != nil {
		return err
	}
	return t.SetState(map[string]any{"text": text, "turns": m.turns, "warmed": m.warmed})
}

var modes = map[string]func(t *skep.Turn, arg string) (string, error){
	"times":     times,
	"order":     order,
	"random":    random,
	"goroutine": goroutines,
	"timeout":   timeout,
	"panic":     func(_ *skep.Turn, arg string) (string, error) { panic(arg) },
	"nil":       func(*skep.Turn, string) (string, error) { var m *many; return fmt.Sprint(m.turns), nil },
	"deadlock":  func(*skep.Turn, string) (string, error) { <-make(chan int); return "", nil },
	"exit":      func(*skep.Turn, string) (string, error) { os.Exit(3); return "", nil },
	"print":     printed,
	"error":     func(_ *skep.Turn, arg string) (string, error) { return "", skep.Errorf(skep.Conflict, "%s", arg) },
	"long":      long,
	"file": func(_ *skep.Turn, arg string) (string, error) {
		return strings.Join(os.Args, " ") + os.Getenv(arg), nil
	},
}

// times shows what the clock does: at the start, before and after computing,
// and after a sleep.
func times(t *skep.Turn, _ string) (string, error) {
	before := t.Now()
	sum := 0
	for i := range 1_000_000 {
		sum += i
	}
	after := t.Now()
	t.Sleep(1500 * time.Millisecond)
	return fmt.Sprintf("%s %v %v %v", started.UTC().Format(time.RFC3339), after.Sub(before) == 0, time.Since(before), sum), nil
}

// order shows the order in which Go walks a map.
func order(*skep.Turn, string) (string, error) {
	m := map[int]bool{}
	for i := range 50 {
		m[i] = true
	}
	var b strings.Builder
	for k := range m {
		fmt.Fprint(&b, k, " ")
	}
	return b.String(), nil
}

func random(*skep.Turn, string) (string, error) {
	b := make([]byte, 32)
	_, err := rand.Read(b)
	return hex.EncodeToString(b), err
}

// goroutines sleep side by side.
func goroutines(*skep.Turn, string) (string, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var got []int
	for i := range 5 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			time.Sleep(time.Duration(5-i) * time.Second)
			mu.Lock()
			defer mu.Unlock()
			got = append(got, i)
		}()
	}
	wg.Wait()
	return fmt.Sprint(got), nil
}

func timeout(*skep.Turn, string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	<-ctx.Done()
	return ctx.Err().Error(), nil
}

func printed(_ *skep.Turn, arg string) (string, error) {
	fmt.Println(arg)
	_, err := fmt.Fprintln(os.Stderr, arg)
	return arg, err
}

// long asks for more history than the answer buffer holds.
func long(t *skep.Turn, _ string) (string, error) {
	entries, _, err := t.HistoryAfter(0, 1000)
	return fmt.Sprint(len(entries)), err
}
