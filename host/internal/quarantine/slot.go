package quarantine

import (
	"encoding/binary"
	"hash/crc32"
)

// ID names a turn.
type ID = [32]byte

// state is what a slot says of its turn.
type state byte

const (
	free state = iota
	// pending is a suspect that has not had its turn since the last death.
	pending
	waiting
	computing
)

// A file is a header and slots, both of slotSize bytes. The state stands apart
// from what the sum covers, so that it changes by writing one byte.
//
// slot: state (1), crash count (1), suspect (1), 0 (1), sum (4), id (32), 0 (24)
// header: magic (8), version (1), 0 (7), life (16), ended (1), 0 (31)
const (
	slotSize = 64
	magic    = "skep-run"
	version  = 1
)

// slot is one turn in the file.
type slot struct {
	state   state
	crashes uint8
	suspect bool
	id      ID
}

func (s slot) encode() []byte {
	b := make([]byte, slotSize)
	b[0], b[1] = byte(s.state), s.crashes
	if s.suspect {
		b[2] = 1
	}
	copy(b[8:], s.id[:])
	binary.LittleEndian.PutUint32(b[4:], sum(b))
	return b
}

// decode reads a slot; ok is false for one that is torn.
func decode(b []byte) (s slot, ok bool) {
	if len(b) < slotSize || state(b[0]) > computing || b[2] > 1 || binary.LittleEndian.Uint32(b[4:]) != sum(b) {
		return slot{}, false
	}
	s = slot{state: state(b[0]), crashes: b[1], suspect: b[2] == 1}
	copy(s.id[:], b[8:])
	return s, true
}

// sum covers what is written with a slot and not changed later.
func sum(b []byte) uint32 {
	h := crc32.NewIEEE()
	h.Write(b[1:3])
	h.Write(b[8:slotSize])
	return h.Sum32()
}

// Life names the time from the opening of a running set to its end.
type Life = [16]byte

// lifeAt is where a header has its life, endedAt whether that ended in order; files of before have zeros there.
const (
	lifeAt  = 16
	endedAt = lifeAt + len(Life{})
)

func header(life Life) []byte {
	b := make([]byte, slotSize)
	copy(b, magic)
	b[len(magic)] = version
	copy(b[lifeAt:], life[:])
	return b
}

// endedHeader is the header of a life that has ended in order.
func endedHeader(life Life) []byte {
	b := header(life)
	b[endedAt] = 1
	return b
}

// isRunningSet reports whether a file is one of ours.
func isRunningSet(b []byte) bool {
	return len(b) >= slotSize && string(b[:len(magic)]) == magic && b[len(magic)] == version
}
