package wasm

import (
	"bytes"
	"context"
	"testing"

	"skep/abi"
	"skep/host/internal/guests"
	"skep/host/internal/turn"
)

// secret is planted by one turn and looked for in the next. Its first eight
// bytes fill a global.
const secret = "QxZ7-planted-secret-41e9"

// copiesOf counts the copies of the secret in the memory of an instance, and the
// globals that hold a piece of it.
func copiesOf(i *instance) (n int) {
	n = bytes.Count(i.linear.space.all[:i.memory.Size()], []byte(secret))
	for _, g := range i.globals {
		if v := g.Get(); v != 0 && (v == le.Uint64([]byte(secret)) || uint32(v) == le.Uint32([]byte(secret))) {
			n++
		}
	}
	return n
}

// spyTurn runs one turn and looks for the secret in the instance it runs in,
// while it does: in every op it calls.
func spyTurn(t *testing.T, m *Module, in []byte) (found int, used *instance) {
	t.Helper()
	r := newRun(context.Background(), m, turn.Turn{Input: in, Clock: newClock()})
	looked := 0
	r.turn.Ops = opsFunc(func() {
		looked++
		found = max(found, copiesOf(r.inst))
	})
	exit := r.guard(func() *turn.Exit {
		if exit := r.start(); exit != nil {
			return exit
		}
		used = r.inst
		r.beginTurn()
		status, exit := r.callStatus(abi.ExportTurn, uint64(len(in)))
		if exit != nil {
			return exit
		}
		return r.turnExit(abi.ExportTurn, status)
	})
	if exit != nil || looked == 0 {
		t.Fatalf("%v, looked %d times", exit, looked)
	}
	return found, used
}

// opsFunc answers every op with nothing, and looks around.
func opsFunc(f func()) turn.Ops {
	return turn.OpsFunc(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) {
		f()
		return []byte("{}"), nil
	})
}

// secretive makes an agent that writes what it reads all over its memory and
// its globals, and then calls an op.
func secretive(pages int) []byte {
	b := newBuilder()
	read := b.importFunc("skep_v1", "input_read", "iii", "i")
	call := b.importFunc("skep_v1", "call", "iiiii", "I")
	b.mem(pages)
	b.segment(100, "something of its own")
	wide, narrow := b.global('I', 1), b.global('i', 2)
	step := int64(page / 3)
	return b.agent("i",
		loop(join(get(1), i32c(0), op(0x6a), set(1), // write at every third of a page
			i32c(0), get(1), get(0), callf(read), drop,
			get(1), i32c(step), op(0x6a), op(0x22, 1), i32c(int64(pages)*page-200), op(0x49), brIf(0))),
		get(0), op(0x04, 0x40), i32c(0), op(0x29, 3, 0), gset(wide), i32c(0), load32(0), gset(narrow), op(0x0b),
		i32c(1), i32c(0), i32c(0), i32c(0), i32c(0), callf(call), drop, ok)
}

// A secret that one turn has planted everywhere is nowhere in the next turn on
// the same instance. During the first it is found, so the search finds it.
func TestPlantedSecretIsGone(t *testing.T) {
	t.Parallel()
	small, large := secretive(4), secretive(40)
	keeper := guests.Bytes(t, "testguests/keeper")
	tests := []struct {
		name        string
		wasm        []byte
		plant, next []byte
		least       int
	}{
		{"a small image", small, []byte(secret), nil, 10},
		{"a large image", large, []byte(secret), nil, 100},
		{"a Go guest", keeper, input(t, "plant "+secret), input(t, "probe"), 100},
	}
	for _, tt := range tests {
		for _, how := range []string{"warm", "given back", "copied"} {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				t.Parallel()
				m := loadInto(t, engineWith(t, Options{CopyImages: how == "copied", CacheDir: guests.CacheDir(t)}), tt.wasm)
				if how == "given back" {
					m.engine.pools.maxWarm = 0
				}
				for range 3 {
					found, first := spyTurn(t, m, tt.plant)
					if found < tt.least {
						t.Errorf("the planted secret was found %d times, want %d at least", found, tt.least)
					}
					if left := copiesOf(first); left != 0 {
						t.Errorf("%d copies wait in the pool", left)
					}
					found, second := spyTurn(t, m, tt.next)
					if second != first {
						t.Fatal("the second turn ran in another instance")
					}
					if found != 0 {
						t.Errorf("%d copies in the turn after", found)
					}
				}
			})
		}
	}
}
