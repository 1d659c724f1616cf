//go:build wasip1

// Command extism is the benchmark's guest for extism, against extism's own kit.
package main

import (
	pdk "github.com/extism/go-pdk"

	"skep/host/bench/guest/work"
)

//go:wasmexport echo
func echo() int32 {
	pdk.Output(pdk.Input())
	return 0
}

//go:wasmexport json
func json() int32 {
	answer, err := work.JSON(pdk.Input())
	if err != nil {
		pdk.SetError(err)
		return 1
	}
	pdk.Output(answer)
	return 0
}

func main() {}
