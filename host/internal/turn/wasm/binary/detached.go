package binary

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// ExportStart is the export under which [Module.MeterDetached] exports the
// guest's start function, if it has one. Its type is () -> ().
const ExportStart = ReservedPrefix + "_start"

// Detached is a metered module that does nothing when it is instantiated: its active
// data is kept beside it, its start function is an export. After copying Data into
// the memory, in order, and calling [ExportStart], an instance is equal to an instance
// of [Module.Meter]'s output. So one compiled module serves to build an image of its
// memory and to start from the image.
type Detached struct {
	Wasm []byte
	Data []Segment
	// HiddenState is why an instance has state outside its memory and its exported
	// globals, so that resetting these does not reset it. Empty: it has none.
	HiddenState string
	// Code is the bytes of Wasm that are function bodies, Charges the places in
	// them where fuel is charged for a path and not for a length.
	Code, Charges int
}

// Segment is an active data segment, or several that lie close together. As in every
// WebAssembly module, a segment that does not fit into the memory traps when it is
// copied, after the segments before it.
type Segment struct {
	Index  int // of the first, in the guest's binary
	Offset uint32
	Bytes  []byte
}

// MeterDetached is Meter for instances that start from an image; code, and so fuel, is
// the same. Data segments that an instruction names keep their index: an active
// one is left behind empty, as every active segment is once it has been copied.
//
// A segment whose offset is an imported global is refused: its value is not in
// the module.
func (m *Module) MeterDetached(o Options) (*Detached, error) {
	data, err := m.activeData()
	if err != nil {
		return nil, err
	}
	s := m.scanState()
	w, err := m.meter(o, &detachOptions{segments: s.segments})
	if err != nil {
		return nil, err
	}
	return &Detached{Wasm: w.out, Data: data, HiddenState: s.hiddenState, Code: len(w.code), Charges: w.emit.charges}, nil
}

// detachOptions are the options of rewriting a detached module.
type detachOptions struct {
	segments uint32 // data segments that stay, from the first one on
}

// dataSection writes the segments that stay: passive ones as they are, active
// ones empty and passive.
func (w *rewriter) dataSection() []byte {
	if w.detach == nil {
		return w.copied(secData)
	}
	var out buf
	n := w.detach.segments
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
	case w.detach == nil:
		return w.copied(secDataCount)
	case w.detach.segments == 0:
		return nil
	}
	var out buf
	out.u32(w.detach.segments)
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
	dynamic bool // the offset is an imported global
	bytes   []byte
}

// eachData calls yield for the data segments in order, until it answers false.
// Admit has read the same bytes, so they are valid.
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

// dataOffset reads the offset of an active segment, unsigned. The offset of a dynamic
// one is an imported global.
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

// activeData returns copies of the active segments.
func (m *Module) activeData() (list []Segment, err error) {
	list = make([]Segment, 0, len(m.datas))
	m.eachData(func(s dataSegment) bool {
		switch {
		case s.dynamic:
			err = fmt.Errorf("binary: the offset of data segment %d is an imported global", s.index)
		case s.active:
			list = append(list, Segment{Index: s.index, Offset: s.offset, Bytes: s.bytes})
		}
		return err == nil
	})
	if m.sortDisjoint(list) {
		return mergeAdjacent(list), err
	}
	for i := range list {
		list[i].Bytes = bytes.Clone(list[i].Bytes)
	}
	return list, err
}

func (s *Segment) end() uint64 { return uint64(s.Offset) + uint64(len(s.Bytes)) }

// sortDisjoint sorts segments by their offset if they all fit into the memory and do
// not overlap: then the order of copying them has no effect.
func (m *Module) sortDisjoint(list []Segment) bool {
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

// maxMergeGap is the number of zero bytes between two segments that are still merged.
// std Go writes one segment for each run of non-zero bytes, tens of thousands.
const maxMergeGap = 64

// mergeAdjacent merges neighbours: the bytes between them are zero in a new memory.
func mergeAdjacent(sorted []Segment) []Segment {
	var list []Segment
	for _, s := range sorted {
		if n := len(list); n > 0 && uint64(s.Offset)-list[n-1].end() <= maxMergeGap {
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
