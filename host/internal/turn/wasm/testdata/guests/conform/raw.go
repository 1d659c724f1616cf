//go:build wasip1

package main

import (
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	skep "skep/sdk/go"
)

func main() {}

// own is what a turn counts in: the module's memory, which must be as new.
func own(c *conform) *conform { return c }

// The boundary itself, with pointers as the numbers they are.

//go:wasmimport skep_v1 input_read
func rawInput(off, ptr, size uint32) int32

//go:wasmimport skep_v1 output_write
func rawOutput(ptr, size uint32) int32

//go:wasmimport skep_v1 call
func rawCall(op int32, req, reqLen, rsp, rspCap uint32) int64

//go:wasmimport skep_v1 submit
func rawSubmit(op int32, req, reqLen uint32) int64

//go:wasmimport skep_v1 wait
func rawWait(handles, n uint32, timeout int32) int32

//go:wasmimport skep_v1 read
func rawRead(handle int32, ptr, size uint32) int64

//go:wasmimport skep_v1 close
func rawClose(handle int32) int32

//go:wasmimport skep_v1 abort
func rawAbort(code int32, ptr, size uint32)

// at is where a slice lies. The caller keeps it alive.
func at[T any](s []T) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(s)))) }

func abort(code int32, message string) {
	b := []byte(message)
	rawAbort(code, at(b), uint32(len(b)))
	runtime.KeepAlive(b)
}

func sum(h hash.Hash32) string { return fmt.Sprintf("%08x", h.Sum32()) }

// input reads the input again, page by page.
func input(page uint32) string {
	h, buf, off := fnv.New32a(), make([]byte, page), uint32(0)
	for {
		n := rawInput(off, at(buf), page)
		if n <= 0 {
			return fmt.Sprint(off, " ", sum(h))
		}
		h.Write(buf[:n])
		off += uint32(n)
	}
}

// call runs an op with an answer buffer of its own.
func call(op int32, request json.RawMessage, size uint32) (int64, []byte) {
	req, buf := []byte(compact(request)), make([]byte, size)
	r := rawCall(op, at(req), uint32(len(req)), at(buf), size)
	runtime.KeepAlive(req)
	return r, buf
}

// short has an answer buffer that is too small, and reads the rest.
func short(a args) string {
	r, first := call(int32(a.Op), a.Request, a.Cap)
	if r < 0 {
		return fmt.Sprint(r)
	}
	h, length, handle := fnv.New32a(), uint32(r), int32(r>>32)
	if handle == 0 {
		h.Write(first[:length])
		return fmt.Sprint(length, " ", sum(h))
	}
	h.Write(first)
	buf, reads := make([]byte, a.Page), 0
	for {
		n := rawRead(handle, at(buf), a.Page)
		if n <= 0 {
			break
		}
		h.Write(buf[:n])
		reads++
	}
	return fmt.Sprint(length, " ", reads, " ", sum(h), " ", rawClose(handle), " ", rawRead(handle, at(buf), a.Page))
}

// start submits an op.
func start(op skep.Op, request json.RawMessage) int32 {
	req := []byte(compact(request))
	handle := int32(rawSubmit(int32(op), at(req), uint32(len(req))))
	runtime.KeepAlive(req)
	return handle
}

// race tells in which order ops are ready.
func race(a args) string {
	var handles, numbers []int32
	for i, r := range a.Requests {
		handles, numbers = append(handles, start(a.Op, r)), append(numbers, int32(i))
	}
	waiting := slices.Clone(handles)
	var words []string
	for len(waiting) > 0 {
		ready := rawWait(at(waiting), uint32(len(waiting)), a.Timeout)
		if ready < 0 {
			words = append(words, fmt.Sprint(ready))
			if skep.Code(-ready) != skep.Deadline {
				break
			}
			continue
		}
		words = append(words, fmt.Sprint(numbers[ready]))
		waiting, numbers = slices.Delete(waiting, int(ready), int(ready)+1), slices.Delete(numbers, int(ready), int(ready)+1)
	}
	for _, h := range handles {
		rawClose(h)
	}
	return strings.Join(words, " ")
}

// stream reads an answer as it comes.
func stream(a args) string {
	handle, h, buf, words := start(a.Op, a.Request), fnv.New32a(), make([]byte, a.Page), []string{}
	for {
		n := rawRead(handle, at(buf), a.Page)
		words = append(words, fmt.Sprint(n))
		if n <= 0 {
			break
		}
		h.Write(buf[:n])
	}
	rawClose(handle)
	return strings.Join(append(words, sum(h)), " ")
}

// submit runs an op several times at once.
func submit(a args) string {
	var handles []int32
	for _, r := range a.Requests {
		handles = append(handles, start(a.Op, r))
	}
	for waiting := append([]int32(nil), handles...); len(waiting) > 0; {
		ready := rawWait(at(waiting), uint32(len(waiting)), -1)
		if ready < 0 {
			return fmt.Sprint(ready)
		}
		waiting[ready] = waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
	}
	var answers []string
	for _, h := range handles {
		answers = append(answers, collect(h))
	}
	return strings.Join(answers, " ")
}

// collect reads one answer to its end.
func collect(handle int32) string {
	var all []byte
	buf := make([]byte, 16)
	for {
		n := rawRead(handle, at(buf), uint32(len(buf)))
		if n < 0 {
			rawClose(handle)
			return fmt.Sprint(n)
		}
		if n == 0 {
			rawClose(handle)
			return string(all)
		}
		all = append(all, buf[:n]...)
	}
}

func waitResults() string {
	handles, buf := []int32{99}, make([]byte, 16)
	return fmt.Sprint(rawWait(at(handles), 0, 0), " ", rawWait(at(handles), 1, 0), " ", rawRead(99, at(buf), 16), " ", rawClose(99))
}

// pointer passes ranges that are not in the memory.
func pointer() string {
	const wild = 4294967280
	words := []string{
		result(int64(rawInput(0, wild, 32))),
		result(int64(rawOutput(wild, 32))),
		result(rawCall(1, wild, 32, 0, 0)),
		result(rawSubmit(1, wild, 32)),
	}
	return strings.Join(words, " ")
}

// result is a result and the reason of the last error.
func result(r int64) string {
	buf := make([]byte, 1024)
	n := rawCall(0, 0, 0, at(buf), uint32(len(buf)))
	var why struct{ Reason string }
	if err := json.Unmarshal(buf[:uint32(n)], &why); err != nil {
		return err.Error()
	}
	return fmt.Sprint(r, " ", why.Reason)
}
