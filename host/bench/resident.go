package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// resident is what this process has in memory, in bytes, after unused memory was
// given back.
func resident() (float64, error) {
	runtime.GC()
	debug.FreeOSMemory()
	return status("VmRSS")
}

// status reads a size of this process from the system.
func status(key string) (float64, error) { return statusOf(os.Getpid(), key) }

// statusOf is status of any process.
func statusOf(pid int, key string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory is measured on Linux only: %w", err)
	}
	return statusField(text, key)
}

// descendantMemory is what all processes have written that a process has started, directly or
// not, in bytes.
func descendantMemory(pid int) (sum float64, err error) {
	parents, err := parents()
	if err != nil {
		return 0, err
	}
	for child := range parents {
		if !descends(parents, child, pid) {
			continue
		}
		own, err := statusOf(child, "RssAnon")
		if err != nil {
			continue // it has ended, or is about to
		}
		sum += own
	}
	return sum, nil
}

// descends reports whether a process is below another.
func descends(parents map[int]int, child, of int) bool {
	for p := parents[child]; p > 1; p = parents[p] {
		if p == of {
			return true
		}
	}
	return false
}

// parents maps each process to its parent.
func parents() (map[int]int, error) {
	list, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := map[int]int{}
	for _, path := range list {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if child, parent, ok := parentIn(string(text)); ok {
			all[child] = parent
		}
	}
	return all, nil
}

// parentIn reads a process's number and its parent's from the system's line about
// it.
func parentIn(stat string) (child, parent int, ok bool) {
	number, _, _ := strings.Cut(stat, " ")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // the name may have anything
	if len(fields) < 2 {
		return 0, 0, false
	}
	child, err := strconv.Atoi(number)
	if err != nil {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return child, parent, err == nil
}

func statusField(text []byte, key string) (float64, error) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == key+":" && string(fields[2]) == "kB" {
			kib, err := strconv.ParseFloat(string(fields[1]), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("the system tells no %s", key)
}
