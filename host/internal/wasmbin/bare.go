package wasmbin

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// ExportStart is the export under which [Module.MeterBare] gives the guest's
// start function, if it has one. Its type is () -> ().
const ExportStart = ReservedPrefix + "_start"

// Bare is a metered module that does nothing when it is instantiated: its active
// data lies beside it, its start function is an export. Whoever copies Data into
// the memory, in order, and then calls [ExportStart] has what an instance of
// [Module.Meter]'s output is from the beginning. So one compiled module serves
// both those who build an image of its memory and those who start from one.
type Bare struct {
	Wasm []byte
	Data []Segment
	// Restless says why an instance has state outside its memory and its exported
	// globals, so that setting these back does not make it new. Empty: it has none.
	Restless string
	// Code is the bytes of Wasm that are function bodies, Charges the places in
	// them where fuel is taken by the way and not by a length.
	Code, Charges int
}

// Segment is an active data segment, or several that lie close together. As
// always in Wasm, one that does not fit into the memory is found out when it is
// copied, after those before it.
type Segment struct {
	Index  int // of the first, in the guest's binary
	Offset uint32
	Bytes  []byte
}

// MeterBare is Meter for instances that start from an image; code, and so fuel, is
// the same. Data segments that an instruction names keep their index: an active
// one is left behind empty, as every active segment is once it has been copied.
//
// A segment whose offset is an imported global is refused: its value is not in
// the module.
func (m *Module) MeterBare(o Options) (*Bare, error) {
	data, err := m.activeData()
	if err != nil {
		return nil, err
	}
	s := m.survey()
	w, err := m.meter(o, &bareness{segments: s.segments})
	if err != nil {
		return nil, err
	}
	return &Bare{Wasm: w.out, Data: data, Restless: s.restless, Code: len(w.code), Charges: w.emit.charges}, nil
}

// bareness is what the rewriter needs to know for a bare module.
type bareness struct {
	segments uint32 // data segments that stay, from the first one on
}

// dataSection writes the segments that stay: passive ones as they are, active
// ones empty and passive.
func (w *rewriter) dataSection() []byte {
	if w.bare == nil {
		return w.copied(secData)
	}
	var out buf
	n := w.bare.segments
	w.m.eachData(func(s dataSegment) bool {
		if s.index >= int(n) {
			return false
		}
		if s.active {
			out.u32(dataPassive)
			out.u32(0)
		} else {
			out.raw(w.m.wasm[s.start:s.end])
		}
		return true
	})
	return w.prefixed(int(n), out)
}

func (w *rewriter) dataCountSection() []byte {
	switch {
	case w.bare == nil:
		return w.copied(secDataCount)
	case w.bare.segments == 0:
		return nil
	}
	var out buf
	out.u32(w.bare.segments)
	return out
}

// dataPassive is the flag of a data segment without an offset.
const dataPassive = 1

// dataSegment is an entry of the data section.
type dataSegment struct {
	span
	index   int
	active  bool
	offset  uint32
	dynamic bool // the offset is that of an imported global
	bytes   []byte
}

// eachData calls yield for the data segments in order, until it answers false.
// Admit has read the same bytes, so nothing can be wrong with them.
func (m *Module) eachData(yield func(s dataSegment) bool) {
	span := m.sections[secData]
	r := reader{b: m.wasm, pos: span.start, end: span.end}
	if span.start == span.end {
		return
	}
	for i := range int(r.u32()) {
		s := dataSegment{index: i}
		s.start = r.pos
		flags := r.u32()
		s.active = flags != dataPassive
		if flags == 2 {
			r.u32() // memory 0
		}
		if s.active {
			s.offset, s.dynamic = r.dataOffset()
		}
		s.bytes = r.bytes(r.u32())
		s.end = r.pos
		if r.err != nil || !yield(s) {
			return
		}
	}
}

// dataOffset reads the offset of an active segment, unsigned. That of a dynamic
// one is in an imported global.
func (r *reader) dataOffset() (offset uint32, dynamic bool) {
	if opcode(r.byte()) == opI32Const {
		offset = uint32(r.signed(32))
	} else {
		dynamic = true
		r.u32()
	}
	r.byte() // end
	return offset, dynamic
}

// activeData lists the active segments, and leaves nothing of the binary in use.
func (m *Module) activeData() (list []Segment, err error) {
	list = make([]Segment, 0, len(m.datas))
	m.eachData(func(s dataSegment) bool {
		switch {
		case s.dynamic:
			err = fmt.Errorf("wasmbin: the offset of data segment %d is an imported global", s.index)
		case s.active:
			list = append(list, Segment{Index: s.index, Offset: s.offset, Bytes: s.bytes})
		}
		return err == nil
	})
	if m.apart(list) {
		return joined(list), err
	}
	for i := range list {
		list[i].Bytes = bytes.Clone(list[i].Bytes)
	}
	return list, err
}

func (s *Segment) end() uint64 { return uint64(s.Offset) + uint64(len(s.Bytes)) }

// apart sorts segments by their offset if they all fit into the memory and none
// lies over another: then nobody can tell in which order they are copied.
func (m *Module) apart(list []Segment) bool {
	byOffset := slices.Clone(list)
	slices.SortStableFunc(byOffset, func(a, b Segment) int { return cmp.Compare(a.Offset, b.Offset) })
	var end uint64
	for i := range byOffset {
		if uint64(byOffset[i].Offset) < end {
			return false
		}
		end = byOffset[i].end()
	}
	if len(m.Memories) == 0 || end > uint64(m.Memories[0].Min)<<16 {
		return false
	}
	copy(list, byOffset)
	return true
}

// joinGap is the number of zero bytes for which two segments are not kept apart.
// std Go writes one segment for each run of non-zero bytes, tens of thousands.
const joinGap = 64

// joined joins neighbours: in a new memory there are zeros between them.
func joined(sorted []Segment) []Segment {
	var list []Segment
	for _, s := range sorted {
		if n := len(list); n > 0 && uint64(s.Offset)-list[n-1].end() <= joinGap {
			last := &list[n-1]
			gap := uint64(s.Offset) - last.end()
			last.Bytes = append(append(last.Bytes, make([]byte, gap)...), s.Bytes...)
			continue
		}
		s.Bytes = bytes.Clone(s.Bytes)
		list = append(list, s)
	}
	return slices.Clip(list)
}
