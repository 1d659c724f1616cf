package binary

// LEB128 as Wasm restricts it: at most ceil(bits/7) bytes, and the unused bits of
// the last byte must be a proper zero or sign extension.

func (r *reader) u32() uint32 {
	if r.pos < r.end && r.b[r.pos] < 0x80 {
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	return r.longU32()
}

func (r *reader) longU32() uint32 {
	off := r.pos
	var v uint32
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0f {
			r.fail(off, "integer does not fit into 32 bits")
			return 0
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

func (r *reader) s32() { r.signed(32) }
func (r *reader) s64() { r.signed(64) }

func (r *reader) s33() int64 { return r.signed(33) }

func (r *reader) signed(bits int) int64 {
	if r.pos < r.end && r.b[r.pos] < 0x80 {
		r.pos++
		return int64(int8(r.b[r.pos-1]<<1)) >> 1
	}
	return r.longSigned(bits)
}

func (r *reader) longSigned(bits int) int64 {
	off := r.pos
	var v int64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		left := bits - shift // bits that this byte may still carry
		if left < 7 && !extends(b, left) {
			r.fail(off, "integer does not fit into %d bits", bits)
			return 0
		}
		v |= int64(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if shift+7 < 64 && b&0x40 != 0 {
			v |= -1 << (shift + 7)
		}
		return v
	}
}

// extends reports whether the last byte b carries only n bits of value: no
// continuation, and the bits above them equal to the sign.
func extends(b byte, n int) bool {
	if b >= 0x80 {
		return false
	}
	top := b >> (n - 1) // the sign and everything above it
	return top == 0 || top == 0x7f>>(n-1)
}

// buf is a binary being written.
type buf []byte

func (w *buf) byte(b ...byte) { *w = append(*w, b...) }

func (w *buf) raw(b []byte) { *w = append(*w, b...) }

func (w *buf) u32(v uint32) {
	for v >= 0x80 {
		*w = append(*w, byte(v)|0x80)
		v >>= 7
	}
	*w = append(*w, byte(v))
}

func (w *buf) s64(v int64) {
	for v >= 0x40 || v < -0x40 {
		*w = append(*w, byte(v)|0x80)
		v >>= 7
	}
	*w = append(*w, byte(v)&0x7f)
}

func (w *buf) name(s string) {
	w.u32(uint32(len(s)))
	*w = append(*w, s...)
}
