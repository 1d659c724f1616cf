package binary

// Writers of single instructions.

func (w *buf) op(ops ...opcode) {
	for _, op := range ops {
		if op > 0xff {
			w.byte(byte(op >> 8))
			w.u32(uint32(op & 0xff))
			continue
		}
		w.byte(byte(op))
	}
}

// with writes an instruction and its unsigned immediates.
func (w *buf) with(op opcode, immediates ...uint32) {
	w.op(op)
	for _, v := range immediates {
		w.u32(v)
	}
}

func (w *buf) get(local uint32) { w.with(opLocalGet, local) }
func (w *buf) set(local uint32) { w.with(opLocalSet, local) }

func (w *buf) i32(v int32) {
	w.op(opI32Const)
	w.s64(int64(v))
}

func (w *buf) i64(v int64) {
	w.op(opI64Const)
	w.s64(v)
}

const emptyBlock = 0x40

func (w *buf) ifThen() { w.byte(byte(opIf), emptyBlock) }

// typeTable gives signatures to added functions and blocks. It finds the guest's own
// typeTable again, so that the section grows by a handful at most.
type typeTable struct {
	index map[string]uint32
	base  int
	added []FuncType
}

func newTypeTable(guest []FuncType) *typeTable {
	t := &typeTable{index: make(map[string]uint32, len(guest)), base: len(guest)}
	for i, g := range guest {
		key := typeKey(g.Params, g.Results)
		if _, ok := t.index[key]; !ok {
			t.index[key] = uint32(i)
		}
	}
	return t
}

func typeKey(params, results []ValType) string {
	key := make([]byte, 0, len(params)+1+len(results))
	for _, v := range params {
		key = append(key, byte(v))
	}
	key = append(key, 0)
	for _, v := range results {
		key = append(key, byte(v))
	}
	return string(key)
}

func (t *typeTable) indexOf(params, results []ValType) uint32 {
	key := typeKey(params, results)
	if i, ok := t.index[key]; ok {
		return i
	}
	i := uint32(t.base + len(t.added))
	t.index[key] = i
	t.added = append(t.added, FuncType{Params: params, Results: results})
	return i
}
