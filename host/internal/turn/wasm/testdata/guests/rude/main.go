// Command rude is an agent without the SDK: nothing stands between its panic
// and the host. Its second call in one instance would answer, and must not come.
package main

import "unsafe"

//go:wasmimport skep_v1 input_read
func inputRead(off uint32, ptr unsafe.Pointer, size uint32) int32

//go:wasmimport skep_v1 output_write
func outputWrite(ptr unsafe.Pointer, size uint32) int32

//go:wasmexport skep_abi_v1
func marker() {}

//go:wasmexport skep_describe
func describe() int32 {
	return write(`{"abi":1,"name":"rude","version":"1"}`)
}

var calls int

//go:wasmexport skep_turn
func turn(size int32) int32 {
	calls++
	if calls > 1 {
		return write(`{"notes":["answered after a panic"]}`)
	}
	input := make([]byte, size)
	inputRead(0, unsafe.Pointer(unsafe.SliceData(input)), uint32(size))
	if string(input) == "panic" {
		panic("rude")
	}
	return write(`{"notes":["first"]}`)
}

func write(s string) int32 {
	if outputWrite(unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))) < 0 {
		return 1
	}
	return 0
}

func main() {}
