//go:build !wasip1

package main

import (
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/goproc"
)

// boundary is the host as the turn reaches it; vectors run one at a time.
var boundary skep.Process

func main() {
	goproc.ServeThrough(agent, func(p skep.Process) skep.Process {
		boundary = p
		return p
	})
}

// own is what a turn counts in. A process lives on, so it takes a copy.
func own(c *conform) *conform {
	fresh := *c
	return &fresh
}

// given is the panic that ends a turn where a module calls abort.
func abort(code int32, message string) { panic(skep.Code(code).String() + ": " + message) }

func sum(h hash.Hash32) string { return fmt.Sprintf("%08x", h.Sum32()) }

// input reads the input again.
func input(uint32) string {
	h := fnv.New32a()
	h.Write(boundary.Input())
	return fmt.Sprint(len(boundary.Input()), " ", sum(h))
}

// read reads up to size bytes, and less only at the end.
func read(handle int32, size uint32) ([]byte, int64) {
	to := make([]byte, size)
	have := 0
	for have < len(to) {
		n := boundary.Read(handle, to[have:])
		if n < 0 {
			return nil, n
		}
		if n == 0 {
			break
		}
		have += int(n)
	}
	return to[:have], int64(have)
}

// short takes an answer in two parts, which a module does with a small buffer.
func short(a args) string {
	handle := start(a.Op, a.Request)
	first, n := read(handle, a.Cap)
	if n < 0 {
		boundary.Close(handle)
		return fmt.Sprint(n)
	}
	h, length, reads := fnv.New32a(), len(first), 0
	h.Write(first)
	for {
		more, n := read(handle, a.Page)
		if n <= 0 {
			break
		}
		h.Write(more)
		length, reads = length+len(more), reads+1
	}
	closed := boundary.Close(handle)
	if reads == 0 {
		return fmt.Sprint(length, " ", sum(h))
	}
	return fmt.Sprint(length, " ", reads, " ", sum(h), " ", closed, " ", boundary.Read(handle, make([]byte, a.Page)))
}

func start(op skep.Op, request json.RawMessage) int32 {
	return int32(boundary.Submit(op, []byte(compact(request))))
}

func rawClose(handle int32) int32 { return boundary.Close(handle) }

func rawRead(handle int32, _, _ uint32) int64 { return boundary.Read(handle, nil) }

// race tells in which order ops are ready.
func race(a args) string {
	var handles, numbers []int32
	for i, r := range a.Requests {
		handles, numbers = append(handles, start(a.Op, r)), append(numbers, int32(i))
	}
	waiting := slices.Clone(handles)
	var words []string
	for len(waiting) > 0 {
		ready := boundary.Wait(waiting, a.Timeout)
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
		boundary.Close(h)
	}
	return strings.Join(words, " ")
}

// stream reads an answer as it comes.
func stream(a args) string {
	handle, h, buf, words := start(a.Op, a.Request), fnv.New32a(), make([]byte, a.Page), []string{}
	for {
		n := boundary.Read(handle, buf)
		words = append(words, fmt.Sprint(n))
		if n <= 0 {
			break
		}
		h.Write(buf[:n])
	}
	boundary.Close(handle)
	return strings.Join(append(words, sum(h)), " ")
}

// submit runs an op several times at once.
func submit(a args) string {
	var handles []int32
	for _, r := range a.Requests {
		handles = append(handles, start(a.Op, r))
	}
	for waiting := slices.Clone(handles); len(waiting) > 0; {
		ready := boundary.Wait(waiting, -1)
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

// collect reads one answer to its end, 16 bytes at a time.
func collect(handle int32) string {
	defer boundary.Close(handle)
	var all []byte
	for {
		piece, n := read(handle, 16)
		if n < 0 {
			return fmt.Sprint(n)
		}
		if n == 0 {
			return string(all)
		}
		all = append(all, piece...)
	}
}

func waitResults() string {
	return fmt.Sprint(boundary.Wait(nil, 0), " ", boundary.Wait([]int32{99}, 0), " ", boundary.Read(99, make([]byte, 16)), " ", boundary.Close(99))
}

// pointer has nothing to pass that is not in a process's memory.
func pointer() string { return "no pointers" }
