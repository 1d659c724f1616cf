package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// recovery measures from [host.New] to the first answer over HTTP on stores that
// an earlier host has left, beside an empty one. The process, the compiled module
// and the system's file cache are warm.
func recovery(b *bench) {
	p := must(newTaskTemplate(b.ctx))
	dir, remove := must2(scratch())
	defer remove()
	empty, large, busy := filepath.Join(dir, "empty"), filepath.Join(dir, "large"), filepath.Join(dir, "busy")
	begin := time.Now()
	check(seedStore(b.ctx, large, func(s *sqlite.Store) error { return b.seedRecords(s, p) }))
	b.report.fact("writing the large store", time.Since(begin).Seconds(), seconds)
	check(seedStore(b.ctx, busy, func(s *sqlite.Store) error { return b.seedRunning(s, p) }))
	var took [3][]float64
	for range b.rounds {
		for i, data := range []string{empty, large, busy} {
			seconds := b.firstAnswer(data, i == 2)
			took[i] = append(took[i], seconds)
		}
	}
	b.reportRecovery(dir, took)
}

func (b *bench) reportRecovery(dir string, took [3][]float64) {
	for i, name := range []string{"", "large", "busy"} {
		if i == 0 {
			continue
		}
		info := must(os.Stat(filepath.Join(dir, name, "skep.db")))
		what := fmt.Sprintf("%d records, %d of their tasks run", b.records(), b.records()/perTask/runningOf)
		if name == "busy" {
			what = fmt.Sprintf("%d running tasks, a message waits in each", b.runningTasks())
		}
		b.report.fact("size of the store of "+what, float64(info.Size()), bytesOf)
		b.report.compare("start to the first answer, "+what, median(took[i]), seconds, "an empty store", median(took[0]), below(2*time.Second))
	}
}

// The large store has tasks of 500 records, of which one in twenty waits for a timer.
const (
	perTask   = 500
	runningOf = 20
)

// records is how many records the large store has.
func (b *bench) records() int {
	if b.full {
		return 1_000_000
	}
	return 200_000
}

// runningTasks is how many tasks of the busy store have a message that waits.
func (b *bench) runningTasks() int {
	if b.full {
		return 10_000
	}
	return 2_000
}

func (b *bench) seedRecords(s *sqlite.Store, p taskTemplate) error {
	later := time.Now().Add(24 * time.Hour)
	return seedAll(b.records()/perTask, func(i int) error {
		more := size{events: perTask / 2, history: perTask/2 - 10, rows: 10}
		change := func(*swarm.Task, *swarm.Row) {}
		if i%runningOf == 0 {
			change = func(t *swarm.Task, r *swarm.Row) { waits(t, r); r.NotBefore = later }
		}
		return p.seed(b.ctx, s, fmt.Sprint("p", i%100), fmt.Sprintf("seed-%d", i), more, change)
	})
}

func (b *bench) seedRunning(s *sqlite.Store, p taskTemplate) error {
	return seedAll(b.runningTasks(), func(i int) error {
		return p.seed(b.ctx, s, fmt.Sprint("p", i%100), fmt.Sprintf("seed-%d", i), size{rows: 1}, waits)
	})
}

func seedStore(ctx context.Context, dir string, seed func(*sqlite.Store) error) error {
	s, err := sqlite.Open(ctx, dir, sqlite.Options{Keyring: &keyring.Options{}})
	if err != nil {
		return err
	}
	return errors.Join(seed(s), s.Close())
}

// firstAnswer starts a host on data, or on a copy, and stops it again.
func (b *bench) firstAnswer(data string, onCopy bool) float64 {
	dir, remove := must2(scratch())
	defer remove()
	if onCopy {
		to := filepath.Join(dir, "copy")
		check(os.CopyFS(to, os.DirFS(data)))
		check(private(to))
		data = to
	}
	begin := time.Now()
	url, stop := must2(runHost(b.ctx, benchSwarm, data, 0))
	defer stop()
	cl := clientOf(0)
	defer cl.CloseIdleConnections()
	check(message(url, trivialBody).expect(cl, ""))
	return time.Since(begin).Seconds()
}

// private makes a copied data directory one that a host takes.
func private(dir string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err, os.Chmod(dir, 0o700)}
	for _, e := range entries {
		errs = append(errs, os.Chmod(filepath.Join(dir, e.Name()), 0o600))
	}
	return errors.Join(errs...)
}
