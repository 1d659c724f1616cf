// A guest of the standard Go compiler for the tests: garbage collection,
// goroutine switches, reflection, deep and shallow calls.
package main

import (
	"encoding/json"
	"slices"
	"strings"
)

type mail struct {
	ID, TaskID, Sender, Subject, Body string
	Recipients                        []string
	Routing                           map[string]string
	Numbers                           []int
}

var text []byte

func init() {
	m := mail{
		ID: "00000000-0000-4000-8000-000000000001", TaskID: "task-1", Sender: "weather@example",
		Subject: "forecast", Body: strings.Repeat("rain, later sun; ", 38),
		Recipients: []string{"supervisor", "planner", "user:42"},
		Routing:    map[string]string{"stream": "yes", "priority": "3", "hop": "local"},
		Numbers:    []int{1, 2, 3, 5, 8, 13, 21, 34, 55, 89},
	}
	text, _ = json.Marshal(m)
}

//go:wasmexport json_round
func jsonRound(n int32) int32 {
	size := 0
	for range n {
		var m mail
		if err := json.Unmarshal(text, &m); err != nil {
			panic(err)
		}
		out, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		size = len(out)
	}
	return int32(size)
}

//go:wasmexport sort_round
func sortRound(n int32) int32 {
	xs := make([]int32, n)
	x := uint32(1)
	for i := range xs {
		x = x*1664525 + 1013904223
		xs[i] = int32(x >> 8)
	}
	slices.Sort(xs)
	return xs[n/2]
}

//go:wasmexport spawn
func spawn(n int32) int32 {
	ch := make(chan int32)
	for i := range n {
		go func() { ch <- i }()
	}
	var sum int32
	for range n {
		sum += <-ch
	}
	return sum
}

//go:wasmexport fib
func fib(n int32) int32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func main() {}
