package definition

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"

	"skep/host/internal/turn/capability"
)

// A module that a turn is run on again stays loaded while the turn runs.
func TestRerunModuleStaysLoaded(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	s, digest := h.opt.Loader.modules, h.current().own.composition.Agents[0].SHA256
	if _, err := s.Module(t.Context(), digest); err != nil {
		t.Fatal(err)
	}
	if err := s.closeUnused(t.Context(), nil); err != nil || !s.used[digest] {
		t.Errorf("the module is closed while a turn runs on it, %v", err)
	}
}

// When the last turn that was run again on a module ends, it is let go.
func TestRerunModuleIsLetGo(t *testing.T) {
	t.Parallel()
	s, digest := newTestModules(t), digestOf([]byte("one"))
	synctest.Test(t, func(t *testing.T) {
		first, endFirst := context.WithCancel(t.Context())
		second, endSecond := context.WithCancel(t.Context())
		for _, turn := range []context.Context{first, second} {
			if _, err := s.Module(turn, digest); err == nil {
				t.Error("there is a module without a copy")
			}
		}
		endFirst()
		synctest.Wait()
		if s.pinned[digest] == 0 {
			t.Error("the module is let go while a turn runs on it")
		}
		endSecond()
		synctest.Wait()
		if len(s.pinned) > 0 {
			t.Errorf("pinned are %v when no turn runs", s.pinned)
		}
	})
}

// A module without a sound copy is gone; one whose copy cannot be read now is not.
func TestModuleGone(t *testing.T) {
	t.Parallel()
	s, digest := newTestModules(t), digestOf([]byte("one"))
	var gone *capability.ModuleGoneError
	if _, err := s.Module(t.Context(), digest); !errors.As(err, &gone) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a copy: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Module(ended, digest); err == nil || errors.As(err, new(*capability.ModuleGoneError)) {
		t.Errorf("in a turn that has ended: %v", err)
	}
	if err := os.Chmod(string(s.dir), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Module(t.Context(), digest); err == nil || errors.As(err, &gone) {
		t.Errorf("in a directory that others can change: %v", err)
	}
}
