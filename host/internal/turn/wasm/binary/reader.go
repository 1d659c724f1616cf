package binary

import (
	"fmt"
	"unicode/utf8"
)

// reader reads a binary. After the first fault every read returns zero and moves
// nothing, so callers check err once per entry and not per byte. Offsets count from
// the start of the binary, also inside a section.
type reader struct {
	b   []byte
	pos int
	end int // first byte that must not be read: end of the section or body
	err error
}

func (r *reader) fail(off int, format string, args ...any) {
	r.refuse(&FormatError{Offset: off, Reason: fmt.Sprintf(format, args...)})
}

func (r *reader) refuse(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = r.end
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.fail(r.pos, "unexpected end")
		return 0
	}
	b := r.b[r.pos]
	r.pos++
	return b
}

// bytes returns the next n bytes, not copied.
func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.fail(r.pos, "unexpected end: %d bytes wanted, %d left", n, r.left())
		return nil
	}
	b := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) skip(n uint32) { r.bytes(n) }

// count reads the length of a vector whose entries take at least size bytes
// each, and refuses one that the bytes left cannot hold.
func (r *reader) count(what string, size int) uint32 {
	off := r.pos
	n := r.u32()
	if r.err == nil && uint64(n)*uint64(size) > uint64(r.left()) {
		r.fail(off, "%d %s do not fit into %d bytes", n, what, r.left())
		return 0
	}
	return n
}

// maxName bounds a name in bytes. It is no cap: messages repeat names, and real
// ones have a few hundred bytes at most.
const maxName = 1024

// name reads a string and copies it: a Module must not depend on its caller
// leaving the names of the binary alone.
func (r *reader) name() string {
	off := r.pos
	n := r.u32()
	b := r.bytes(n)
	switch {
	case n > maxName:
		r.fail(off, "name of %d bytes, at most %d", n, maxName)
	case !utf8.Valid(b):
		r.fail(off, "name is not valid UTF-8")
	}
	if r.err != nil {
		return ""
	}
	return string(b)
}
