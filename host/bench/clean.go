package main

import (
	"bytes"
	"fmt"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
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
func cleanTurns(b *bench) {
	engine := must(newEngine(b.ctx, wasm.Options{}))
	defer engine.Close(b.ctx)
	for _, l := range []struct{ name, dir string }{{"std Go", "go"}, {"C", "c"}} {
		in(l.name, func() { cleanTurnsIn(b, engine, l.name, l.dir) })
	}
}

func cleanTurnsIn(b *bench, engine *wasm.Engine, name, dir string) {
	agent := must(ownGuest("agent", dir))
	module := must(engine.Load(b.ctx, wasm.Source{Name: name, Wasm: agent, Trusted: true}))
	theirs := must(ownGuest("extism", dir))
	peer := must(newExtism(b.ctx, theirs))
	defer peer.close(b.ctx)
	cleanJobs(b, name, module, peer)
}

// cleanJobs measures each job in both.
func cleanJobs(b *bench, name string, module *wasm.Module, peer *extismPeer) {
	doc := must(document())
	for _, j := range jobs {
		input := command(j.command, doc)
		ours := func() ([]byte, error) { return turnOf(b.ctx, module, input, answers(nil), turn.Limits{}) }
		theirs := func() ([]byte, error) { return peer.call(b.ctx, j.export, doc) }
		check(sameAnswer(ours, theirs))
		cost := must(b.costs(repeated("pool", silent(ours)), repeated("extism", silent(theirs))))
		title := fmt.Sprintf("%s, clean turn, %s of 1 KiB", name, j.name)
		b.report.compare(title, cost[0], seconds, "extism, an instance a call, timeout", cost[1], share(20))
	}
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
