package main

import (
	"bytes"
	"fmt"

	"skep/host/internal/sandbox"
)

// jobs are what the benchmark's own guests do with a document.
var jobs = []struct {
	name    string
	command byte   // of our guest and of the subprocess
	export  string // of extism's
}{
	{"echo", 'E', "echo"},
	{"JSON", 'J', "json"},
}

// command makes the input of a guest that reads its command from the first byte.
func command(c byte, rest []byte) []byte { return append([]byte{c}, rest...) }

// cleanTurns compares turns from the pool with instances of extism's, one a call.
func cleanTurns(b *bench) error {
	engine, err := newEngine(b.ctx, sandbox.Options{})
	if err != nil {
		return err
	}
	defer engine.Close(b.ctx)
	for _, l := range []struct{ name, dir string }{{"std Go", "go"}, {"C", "c"}} {
		if err := cleanTurnsIn(b, engine, l.name, l.dir); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

func cleanTurnsIn(b *bench, engine *sandbox.Engine, name, dir string) error {
	agent, err := ownGuest("agent", dir)
	if err != nil {
		return err
	}
	module, err := engine.Load(b.ctx, sandbox.Source{Name: name, Wasm: agent, Trusted: true})
	if err != nil {
		return err
	}
	theirs, err := ownGuest("extism", dir)
	if err != nil {
		return err
	}
	timed, err := newExtism(b.ctx, theirs, extismTimeout)
	if err != nil {
		return err
	}
	defer timed.close(b.ctx)
	untimed, err := newExtism(b.ctx, theirs, 0)
	if err != nil {
		return err
	}
	defer untimed.close(b.ctx)
	return cleanJobs(b, name, module, timed, untimed)
}

// cleanJobs measures each job in all three.
func cleanJobs(b *bench, name string, module *sandbox.Module, timed, untimed *extismPeer) error {
	doc, err := document()
	if err != nil {
		return err
	}
	for _, j := range jobs {
		input := command(j.command, doc)
		ours := func() ([]byte, error) { return turnOf(b.ctx, module, input, answers(nil), sandbox.Limits{}) }
		with := func() ([]byte, error) { return timed.call(b.ctx, j.export, doc) }
		without := func() ([]byte, error) { return untimed.call(b.ctx, j.export, doc) }
		if err := sameAnswer(ours, with, without); err != nil {
			return err
		}
		cost, err := b.costs(repeated("pool", silent(ours)), repeated("extism", silent(with)), repeated("extism untimed", silent(without)))
		if err != nil {
			return err
		}
		title := fmt.Sprintf("%s, clean turn, %s of 1 KiB", name, j.name)
		b.report.compare(title, cost[0], seconds, "extism, an instance a call, timeout", cost[1], share(20))
		b.report.compare("the same", cost[0], seconds, "extism, an instance a call, no timeout", cost[2], none())
	}
	return nil
}

// silent forgets an answer.
func silent(f func() ([]byte, error)) func() error {
	return func() error { _, err := f(); return err }
}

// sameAnswer makes sure that all do the same work.
func sameAnswer(all ...func() ([]byte, error)) error {
	var first []byte
	for i, f := range all {
		out, err := f()
		if err != nil {
			return err
		}
		if i == 0 {
			first = out
		}
		if len(out) == 0 || !bytes.Equal(out, first) {
			return fmt.Errorf("guests disagree: %.80q and %.80q", first, out)
		}
	}
	return nil
}
