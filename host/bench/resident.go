package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

// resident is what this process has in memory, in bytes, after what nobody needs
// was given back.
func resident() (float64, error) {
	runtime.GC()
	debug.FreeOSMemory()
	return status("VmRSS")
}

// status reads a size of this process from the system.
func status(key string) (float64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("memory is measured on Linux only: %w", err)
	}
	return statusField(text, key)
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
