package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"skep/host/internal/store/pgtest"
)

// engine is a PostgreSQL server of this machine, whose disk writes are synced.
type engine struct {
	*pgtest.Server
	// keyring is the file of the key that hosts need for a server.
	keyring string
	remove  func()
}

func openEngine() (_ *engine, err error) {
	dir, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	e := &engine{keyring: filepath.Join(dir, "store.key"), remove: remove}
	err = os.WriteFile(e.keyring, []byte(strings.Repeat("5e", 32)), 0o600)
	if err == nil {
		e.Server, err = pgtest.Open()
	}
	if err != nil {
		remove()
		return nil, fmt.Errorf("PostgreSQL: %w: %w", errNoProgram, err)
	}
	return e, nil
}

func (e *engine) stop() {
	_ = e.Close()
	e.remove()
}

// store is the table of a host whose store is a schema of the server.
func (e *engine) store(dsn string) string {
	return fmt.Sprintf("[store]\ndriver = \"postgres\"\ndurability = \"local\"\ndsn = %q\nkeyring = \"file::%s\"\n", dsn, e.keyring)
}

// startHost runs a host with a schema of its own in a child.
func (e *engine) startHost(ctx context.Context, swarm string) (*child, error) {
	dsn, err := e.MakeSchema(ctx)
	if err != nil {
		return nil, err
	}
	return startHost(ctx, swarm+e.store(dsn))
}

// computedBy is the computing time of a process and its descendants so far, in seconds. One that has
// ended and left no parent behind counts no more.
func computedBy(pid int) (sum float64, err error) {
	all, err := parents()
	if err != nil {
		return 0, err
	}
	for p := range all {
		if p != pid && !descends(all, p, pid) {
			continue
		}
		if one, err := computed(p); err == nil {
			sum += one
		} else if !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
	}
	return sum, nil
}

// storedHost is a host and what it needs besides.
type storedHost struct {
	on   *child
	with []int
}

// spend posts trivial tasks and returns the computing time of one, in seconds, and how many there
// are in a second.
func (b *bench) spend(s storedHost, clients int) (each, rate float64, err error) {
	before, err := s.computed()
	if err != nil {
		return 0, 0, err
	}
	n, took, err := posting(s.on.url, clients).do(b.span)
	if err != nil {
		return 0, 0, err
	}
	after, err := s.computed()
	return (after - before) / float64(n), float64(n) / took.Seconds(), err
}

func (s storedHost) computed() (sum float64, err error) {
	for _, pid := range append([]int{s.on.pid()}, s.with...) {
		one, err := computedBy(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// stores compares what a trivial task costs a host, and its server, with what it costs one whose store
// is a file.
func stores(b *bench) {
	e, err := openEngine()
	if errors.Is(err, errNoProgram) {
		b.report.print("  %v\n", err)
		return
	}
	check(err)
	defer e.stop()
	file := storedHost{on: must(startHost(b.ctx, benchSwarm))}
	defer file.on.stop()
	server := storedHost{on: must(e.startHost(b.ctx, benchSwarm)), with: []int{e.PID()}}
	defer server.on.stop()
	for _, clients := range []int{1, 16} {
		var each, rates [2][]float64
		for round := range b.rounds + 1 {
			for i, s := range []storedHost{file, server} {
				c, r := must2(b.spend(s, clients))
				if round > 0 { // the first one warms up
					each[i], rates[i] = append(each[i], c), append(rates[i], r)
				}
			}
		}
		name := fmt.Sprintf("of a trivial task, %d clients", clients)
		b.report.compare("computing "+name+", host and server", median(each[1]), seconds, "SQLite", median(each[0]), atMost(2))
		b.report.compare("rate "+name, median(rates[1]), rate, "SQLite", median(rates[0]), none())
	}
}
