//go:build wasip1

// Command agent is the benchmark's guest for skep, against the bare ABI. The
// first byte of its input is the command: E echoes the rest, J works on it, O
// calls the host as often as the rest demands, S does so with small questions, B
// calls the host once.
package main

import (
	"runtime"
	"strconv"
	"unsafe"

	"skep/host/bench/guest/work"
)

//go:wasmimport skep_v1 input_read
func inputRead(off uint32, ptr unsafe.Pointer, size uint32) int32

//go:wasmimport skep_v1 output_write
func outputWrite(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport skep_v1 call
func call(op int32, req unsafe.Pointer, reqLen uint32, rsp unsafe.Pointer, rspCap uint32) int64

var in, out [64 << 10]byte

// What an op sends, and has room for.
const (
	question = 1024
	small    = 64
)

//go:wasmexport skep_abi_v1
func marker() {}

//go:wasmexport skep_describe
func describe() int32 {
	write([]byte(`{"abi":1,"name":"bench","version":"1"}`))
	return 0
}

// warm grows the heap to what a turn needs, before the image is taken.
//
//go:wasmexport skep_warm
func warm() int32 {
	for range 3 {
		if _, err := work.JSON([]byte(`{"state":{"id":"1","time":"2","type":"3","body":"4"}}`)); err != nil {
			return 1
		}
	}
	runtime.GC()
	return 0
}

//go:wasmexport skep_turn
func turn(size int32) int32 {
	n := inputRead(0, unsafe.Pointer(&in), uint32(size))
	switch in[0] {
	case 'E':
		write(in[1:n])
	case 'J':
		answer, err := work.JSON(in[1:n])
		if err != nil {
			return 1
		}
		write(answer)
	case 'O':
		return askOften(in[1:n], question)
	case 'S':
		return askOften(in[1:n], small)
	case 'B':
		ask(question)
	}
	return 0
}

func askOften(digits []byte, size uint32) int32 {
	times, err := strconv.Atoi(string(digits))
	if err != nil {
		return 1
	}
	for range times {
		ask(size)
	}
	return 0
}

func ask(size uint32) {
	call(2, unsafe.Pointer(&in), size, unsafe.Pointer(&out), uint32(len(out)))
}

func write(b []byte) { outputWrite(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))) }

func main() {}
