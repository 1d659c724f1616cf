package quarantine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// maxFile is the largest file that is read: room for a quarter of a million turns.
const maxFile = 16 << 20

// RunningSet is the running set of a host. It is safe for concurrent use. A write that
// fails is logged once: turns go on without.
type RunningSet struct {
	f   *os.File
	log *slog.Logger
	// life is this one's, prior the one whose suspects were found.
	life, prior Life
	priorEnded  bool

	mu sync.Mutex
	// begun: a turn has begun, and the file is of this life.
	begun    bool
	running  int
	suspects map[ID]suspectSlot
	unused   []int // numbers of free slots
	slots    int

	failed atomic.Bool
}

// suspectSlot is a suspect's slot.
type suspectSlot struct {
	slot    int
	crashes uint8
}

// OpenRunningSet reads what an earlier host has left in the file at path and begins it
// anew. Only one set may have a file open; the caller sees to that.
func OpenRunningSet(path string, log *slog.Logger) (*RunningSet, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &RunningSet{log: log, suspects: map[ID]suspectSlot{}}
	rand.Read(s.life[:])
	var left []slot
	var err error
	s.prior, s.priorEnded, left, err = readSlots(path)
	if err != nil {
		return nil, fmt.Errorf("running set %s: %w", path, err)
	}
	var kept []slot
	for _, l := range left {
		if l, ok := l.afterDeath(); ok {
			s.suspects[l.id] = suspectSlot{len(kept), l.crashes}
			kept = append(kept, l)
		}
	}
	head := header(s.prior)
	if s.priorEnded {
		head = endedHeader(s.prior)
	}
	// A start that fails runs nothing: the next one finds the same death, of the same life.
	if s.f, err = replaceFile(path, head, kept); err != nil {
		return nil, fmt.Errorf("running set %s: %w", path, err)
	}
	s.slots = len(kept)
	return s, nil
}

// afterDeath returns what a slot is after a death; ok is false when it is nothing.
func (s slot) afterDeath() (_ slot, ok bool) {
	switch {
	case s.state == computing && s.suspect:
		s.crashes = min(s.crashes, math.MaxUint8-1) + 1
	case s.state == computing:
		s.crashes = 0
	case s.state == free || !s.suspect:
		return slot{}, false
	}
	s.state, s.suspect = pending, true
	return s, true
}

// readSlots returns the slots of a file, whose they are and whether that life ended in order; none for a file that is
// not ours.
func readSlots(path string) (life Life, ended bool, out []slot, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return life, false, nil, nil
	}
	if err != nil {
		return life, false, nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil || !isRunningSet(b) {
		return life, false, nil, err
	}
	life, ended = Life(b[lifeAt:endedAt]), b[endedAt] == 1
	seen := map[ID]bool{}
	for b = b[slotSize:]; len(b) >= slotSize; b = b[slotSize:] {
		if s, ok := decode(b[:slotSize]); ok && s.state != free && !seen[s.id] {
			seen[s.id] = true
			out = append(out, s)
		}
	}
	return life, ended, out, nil
}

// replaceFile puts a new file in the place of the old one. A death in between leaves
// one of them whole.
func replaceFile(path string, head []byte, kept []slot) (*os.File, error) {
	content := slices.Clone(head)
	for _, s := range kept {
		content = append(content, s.encode()...)
	}
	part := path + ".part"
	if err := os.WriteFile(part, content, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(part, path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}

// Life names the time since the set was opened, PriorLife the one in which the suspects computed.
func (s *RunningSet) Life() Life { return s.life }

// PriorLife is zero where none is known.
func (s *RunningSet) PriorLife() Life { return s.prior }

// PriorEnded reports whether the life before ended in order: no turn is to blame for it.
func (s *RunningSet) PriorEnded() bool { return s.priorEnded }

// EndLife notes that this life ends in order, if no turn runs.
func (s *RunningSet) EndLife() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun && s.running == 0 {
		s.begun = false
		s.writeSlot(-1, endedHeader(s.life))
	}
}

// Suspects returns the turns that were computing when an earlier host died, with
// their crash counts.
func (s *RunningSet) Suspects() map[ID]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[ID]int, len(s.suspects))
	for id, p := range s.suspects {
		out[id] = int(p.crashes)
	}
	return out
}

// Begin notes that a turn runs; it waits. The number is for the methods below.
func (s *RunningSet) Begin(id ID) (number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		s.writeSlot(-1, header(s.life))
	}
	s.running++
	if p, ok := s.suspects[id]; ok {
		s.writeSlot(p.slot, slot{waiting, p.crashes, true, id}.encode())
		return p.slot
	}
	if n := len(s.unused); n > 0 {
		number, s.unused = s.unused[n-1], s.unused[:n-1]
	} else {
		number = s.slots
		s.slots++
	}
	s.writeSlot(number, slot{state: waiting, id: id}.encode())
	return number
}

// Computing notes that a turn computes, Waiting that it waits.
func (s *RunningSet) Computing(number int) { s.markTurn(number, computing) }

// Waiting is the opposite of Computing.
func (s *RunningSet) Waiting(number int) { s.markTurn(number, waiting) }

// markTurn takes no lock: turns come here whenever they wait.
func (s *RunningSet) markTurn(number int, st state) { s.writeSlot(number, []byte{byte(st)}) }

// End notes that a turn is over. A suspect is none any more.
func (s *RunningSet) End(id ID, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	delete(s.suspects, id)
	s.releaseSlot(number)
}

// Stop notes that a turn was stopped with the host and will be run again: a
// suspect stays what it is.
func (s *RunningSet) Stop(id ID, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if p, ok := s.suspects[id]; ok {
		s.writeSlot(p.slot, slot{pending, p.crashes, true, id}.encode())
		return
	}
	s.releaseSlot(number)
}

// Forget clears a suspect that is not run again.
func (s *RunningSet) Forget(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.suspects[id]; ok {
		delete(s.suspects, id)
		s.releaseSlot(p.slot)
	}
}

func (s *RunningSet) releaseSlot(number int) {
	s.writeSlot(number, []byte{byte(free)})
	s.unused = append(s.unused, number)
}

// writeSlot changes a slot from its begin.
func (s *RunningSet) writeSlot(number int, b []byte) {
	_, err := s.f.WriteAt(b, int64(number+1)*slotSize)
	if err != nil && s.failed.CompareAndSwap(false, true) {
		s.log.Error("cannot note which turns run; one that kills the host is not found", "err", err)
	}
}

// Close lets go of the file; nothing may be noted any more. Turns that are
// not ended look as if the host had died: a host that stops in order ends or stops
// all of them first.
func (s *RunningSet) Close() error { return s.f.Close() }
