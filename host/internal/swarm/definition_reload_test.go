package swarm_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// narrower is the hive's definition, in which boss may not write to math any more.
func (h *hive) narrower() swarm.Definition {
	def := h.def
	def.Tenant = ""
	def.Agents = slices.Clone(def.Agents)
	def.Agents[0].Targets = []string{"text"}
	return def
}

// asksThenWrites is a boss that asks a person first and then writes to math.
func asksThenWrites(_ context.Context, t *swarm.Turn) swarm.Outcome {
	if t.PriorAttempt() == nil {
		return asks(t)
	}
	said := call(t, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "hello"})
	call(t, mail.ToolTaskComplete, obj{"finish_message": said})
	return swarm.Outcome{}
}

// recordStore calls reload while the first record of a turn is read.
type recordStore struct {
	swarm.Store
	reload func()
}

func (s *recordStore) Record(ctx context.Context, key swarm.TaskKey, turn int64) (swarm.Record, error) {
	s.reload()
	return s.Store.Record(ctx, key, turn)
}

// A reload that comes while the record of a turn is read holds for this turn.
func TestReloadWhileATurnIsPrepared(t *testing.T) {
	t.Parallel()
	s := &recordStore{}
	h := newHive(t, numbered, func(h *hive) {
		h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
		h.agents.by["boss"] = asksThenWrites
	})
	var reloads int
	s.reload = sync.OnceFunc(func() {
		reloads++
		if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.second()}, h.narrower()); err != nil {
			t.Error(err)
		}
	})
	if a := h.ask("asks", task("t")); a.State != swarm.StatePaused {
		t.Fatalf("%+v", a)
	}
	if a := h.ask("", task("t"), results("yes")); reloads != 1 || !strings.Contains(a.Body, `may not write to "math"`) {
		t.Errorf("%+v after %d reloads", a, reloads)
	}
}

// reloadingLibrary calls reload while it finds the first definition, and returns what it
// found before. The next is the narrower one.
type reloadingLibrary struct {
	reload          func()
	found, narrower swarm.Definition
	asked           int
}

func (l *reloadingLibrary) Definition(context.Context, string, string, string) (*swarm.Definition, error) {
	if l.asked++; l.asked > 1 {
		return &l.narrower, nil
	}
	l.reload()
	return &l.found, nil
}

// A reload that comes while the library finds the definition of a task holds for this
// task.
func TestReloadWhileATaskIsLoaded(t *testing.T) {
	t.Parallel()
	library := &reloadingLibrary{}
	h := newHive(t, numbered, func(h *hive) {
		h.opt.Library = library
		h.agents.by["boss"] = asksThenWrites
	})
	if a := h.ask("asks", task("t")); a.State != swarm.StatePaused {
		t.Fatalf("%+v", a)
	}
	h.stop()
	library.found, library.narrower = h.def, h.narrower()
	library.narrower.Tenant = h.def.Tenant
	library.reload = func() {
		if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.def}, h.narrower()); err != nil {
			t.Error(err)
		}
	}
	h.def = h.second()
	h.start()
	if a := h.ask("", task("t"), results("yes")); library.asked != 2 || !strings.Contains(a.Body, `may not write to "math"`) {
		t.Errorf("%+v after %d questions to the library", a, library.asked)
	}
}
