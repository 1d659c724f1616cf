package wasm

import (
	"encoding/binary"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"skep/host/internal/turn"
)

// wasiModule is WASI's first preview, see
// https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md. The sandbox
// implements the functions that reach nothing outside the turn.
const wasiModule = "wasi_snapshot_preview1"

// Error numbers of WASI.
const (
	errnoOK     = 0
	errnoBadF   = 8
	errnoFault  = 21
	errnoInval  = 28
	errnoNotSup = 58
	errnoSpipe  = 70
)

var le = binary.LittleEndian

// wasiFuncs are the functions of [wasiModule] a guest may import.
func wasiFuncs() []hostFunc {
	two, three, four := []api.ValueType{i32, i32}, []api.ValueType{i32, i32, i32}, []api.ValueType{i32, i32, i32, i32}
	one := two[:1]
	return []hostFunc{
		wasi("args_get", two, func(*run, []uint64) uint32 { return errnoOK }),
		wasi("args_sizes_get", two, (*run).noStrings),
		wasi("environ_get", two, func(*run, []uint64) uint32 { return errnoOK }),
		wasi("environ_sizes_get", two, (*run).noStrings),
		wasi("clock_res_get", two, (*run).clockRes),
		wasi("clock_time_get", []api.ValueType{i32, i64, i32}, (*run).clockTime),
		wasi("fd_close", one, (*run).checkStdio),
		wasi("fd_fdstat_get", two, (*run).fdStat),
		wasi("fd_fdstat_set_flags", two, (*run).checkStdio),
		wasi("fd_prestat_get", two, func(*run, []uint64) uint32 { return errnoBadF }),
		wasi("fd_prestat_dir_name", three, func(*run, []uint64) uint32 { return errnoBadF }),
		wasi("fd_read", four, (*run).fdRead),
		wasi("fd_seek", []api.ValueType{i32, i64, i32, i32}, (*run).fdSeek),
		wasi("fd_write", four, (*run).fdWrite),
		wasi("poll_oneoff", four, (*run).pollOneoff),
		wasi("random_get", two, (*run).randomGet),
		wasi("sched_yield", nil, func(*run, []uint64) uint32 { return errnoOK }),
		{wasiModule, "proc_exit", one, nil, (*run).procExit},
	}
}

// wasi makes an import of a function that returns an error number. It charges
// the import; f charges the bytes.
func wasi(name string, params []api.ValueType, f func(r *run, stack []uint64) uint32) hostFunc {
	return hostFunc{wasiModule, name, params, []api.ValueType{i32}, func(r *run, stack []uint64) {
		r.charge(0)
		errno := uint64(f(r, stack))
		stack[0] = errno
	}}
}

// noStrings answers that there are no arguments and no environment.
func (r *run) noStrings(s []uint64) uint32 {
	if !r.put32(u32(s[0]), 0) || !r.put32(u32(s[1]), 0) {
		return errnoFault
	}
	return errnoOK
}

func (r *run) put32(ptr, v uint32) bool {
	b, ok := r.view(ptr, 4)
	if ok {
		le.PutUint32(b, v)
	}
	return ok
}

func (r *run) put64(ptr uint32, v uint64) bool {
	b, ok := r.view(ptr, 8)
	if ok {
		le.PutUint64(b, v)
	}
	return ok
}

// Clocks of WASI that exist here; both are the turn's.
const (
	clockRealtime  = 0
	clockMonotonic = 1
)

// clockRes is clock_res_get(id, ptr).
func (r *run) clockRes(s []uint64) uint32 {
	if u32(s[0]) > clockMonotonic {
		return errnoInval
	}
	if !r.put64(u32(s[1]), 1) {
		return errnoFault
	}
	return errnoOK
}

// clockTime is clock_time_get(id, precision, ptr).
func (r *run) clockTime(s []uint64) uint32 {
	if u32(s[0]) > clockMonotonic {
		return errnoInval
	}
	if !r.put64(u32(s[2]), uint64(r.clock.Now().UnixNano())) {
		return errnoFault
	}
	return errnoOK
}

// checkStdio succeeds for the three standard descriptors, and no other.
func (r *run) checkStdio(s []uint64) uint32 {
	if u32(s[0]) > 2 {
		return errnoBadF
	}
	return errnoOK
}

// fdStat is fd_fdstat_get(fd, ptr): a character device without rights.
func (r *run) fdStat(s []uint64) uint32 {
	if errno := r.checkStdio(s); errno != errnoOK {
		return errno
	}
	b, ok := r.view(u32(s[1]), 24)
	if !ok {
		return errnoFault
	}
	clear(b)
	b[0] = 2 // character device
	return errnoOK
}

// fdRead is fd_read(fd, iovs, n, nread): standard input is at its end.
func (r *run) fdRead(s []uint64) uint32 {
	if u32(s[0]) != 0 {
		return errnoBadF
	}
	if u32(s[2]) > maxVectors {
		return errnoInval
	}
	if !r.put32(u32(s[3]), 0) {
		return errnoFault
	}
	return errnoOK
}

// fdSeek is fd_seek(fd, offset, whence, ptr): nothing here has a position.
func (r *run) fdSeek(s []uint64) uint32 {
	if errno := r.checkStdio(s); errno != errnoOK {
		return errno
	}
	return errnoSpipe
}

// fdWrite is fd_write(fd, iovs, n, nwritten): lines for the log. It takes at
// most maxWrite bytes at once, as WASI allows.
func (r *run) fdWrite(s []uint64) uint32 {
	fd, iovs, n, out := u32(s[0]), u32(s[1]), u32(s[2]), u32(s[3])
	if fd != 1 && fd != 2 {
		return errnoBadF
	}
	if n > maxVectors {
		return errnoInval
	}
	list, ok := r.view(iovs, 8*n)
	if !ok {
		return errnoFault
	}
	written := uint32(0)
	for ; len(list) > 0; list = list[8:] {
		b, ok := r.view(le.Uint32(list), le.Uint32(list[4:]))
		if !ok {
			return errnoFault
		}
		b = b[:min(len(b), maxWrite-int(written))]
		r.guestLog.write(int(fd), b)
		written += uint32(len(b))
	}
	r.charge(uint64(written))
	if !r.put32(out, written) {
		return errnoFault
	}
	return errnoOK
}

// randomGet is random_get(ptr, len). Between its chunks the limits are checked.
func (r *run) randomGet(s []uint64) uint32 {
	b, ok := r.view(u32(s[0]), u32(s[1]))
	if !ok {
		return errnoFault
	}
	for cheap := seedBytes; len(b) > 0; cheap = 0 {
		n := min(len(b), randomChunk)
		r.charge(uint64(n))
		r.chargeBytes((randomFactor - 1) * max(0, n-cheap))
		_, _ = r.random.Read(b[:n]) // documented to succeed
		if b = b[n:]; len(b) > 0 {
			r.checkLimits()
		}
	}
	return errnoOK
}

// procExit is proc_exit(code): it ends the guest, whatever the code.
func (r *run) procExit(s []uint64) {
	text := fmt.Sprintf("the module called proc_exit(%d)", u32(s[0]))
	if words := r.guestLog.lastWords(); words != "" {
		text += " (last words: " + words + ")"
	}
	r.kill(&turn.Exit{Kind: turn.ExitProc, Message: text})
}
