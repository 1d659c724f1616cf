package main

import (
	"encoding/json"
	"fmt"
	"time"
	"unsafe"

	skep "skep/sdk/go"
)

// probe is a call the script answers itself, to show how the host bears it.
type probe func(t *skep.Turn, args json.RawMessage) (json.RawMessage, error)

var probes = map[string]probe{
	"sleep": sleep, "burn": burn, "alloc": alloc, "loop": loop, "recurse": recurse,
	"trap": trap, "log": logLine, "now": now, "random": random,
}

func text(format string, args ...any) (json.RawMessage, error) {
	return json.Marshal(map[string]string{"text": fmt.Sprintf(format, args...)})
}

// numbers are the arguments of the probes.
type numbers struct {
	MS      *float64 `json:"ms"`
	MiB     *int     `json:"mib"`
	Message *string  `json:"message"`
}

func decode(name string, args json.RawMessage) (numbers, error) {
	var n numbers
	if err := json.Unmarshal(args, &n); err != nil {
		return n, skep.Errorf(skep.Invalid, "%s: %v", name, err)
	}
	return n, nil
}

// span reads the mandatory argument ms.
func span(name string, args json.RawMessage) (time.Duration, error) {
	n, err := decode(name, args)
	if err != nil {
		return 0, err
	}
	if n.MS == nil || *n.MS < 0 || *n.MS > 1e12 {
		return 0, skep.Errorf(skep.Invalid, "%s: ms must be a number from 0", name)
	}
	return time.Duration(*n.MS * float64(time.Millisecond)), nil
}

func sleep(t *skep.Turn, args json.RawMessage) (json.RawMessage, error) {
	d, err := span("sleep", args)
	if err != nil {
		return nil, err
	}
	t.Sleep(d)
	return text("slept %v", d)
}

// burn computes until the host's clock has moved by ms. It asks the clock
// seldom: the turn's own clock stands still meanwhile, and asking is counted.
func burn(t *skep.Turn, args json.RawMessage) (json.RawMessage, error) {
	d, err := span("burn", args)
	if err != nil {
		return nil, err
	}
	start, err := t.WallTime()
	if err != nil {
		return nil, err
	}
	for rounds := 1 << 16; ; {
		spin(rounds)
		now, err := t.WallTime()
		if err != nil {
			return nil, err
		}
		spent := now.Sub(start)
		if spent >= d {
			return text("burned %v", d)
		}
		if spent < d/32 {
			rounds *= 2
		}
	}
}

// sink keeps the compiler from dropping unread work and memory.
var sink struct {
	number uint64
	blocks [][]byte
}

func spin(rounds int) {
	x := sink.number | 1
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.number = x
}

// alloc takes memory, touches it and keeps it to the end of the turn.
func alloc(_ *skep.Turn, args json.RawMessage) (json.RawMessage, error) {
	n, err := decode("alloc", args)
	if err != nil {
		return nil, err
	}
	if n.MiB == nil || *n.MiB < 0 || *n.MiB > 4096 {
		return nil, skep.Errorf(skep.Invalid, "alloc: mib must be a whole number from 0 to 4096")
	}
	for range *n.MiB {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		sink.blocks = append(sink.blocks, block)
	}
	return text("allocated %d MiB", *n.MiB)
}

func loop(*skep.Turn, json.RawMessage) (json.RawMessage, error) {
	for {
		sink.number++
	}
}

func recurse(*skep.Turn, json.RawMessage) (json.RawMessage, error) {
	return text("returned from depth %d", descend(0))
}

//go:noinline
func descend(n uint64) uint64 {
	sink.number = n
	if n == 1<<62 {
		return n
	}
	return descend(n+1) + 1
}

// trap reads far outside the module's memory, which no recover catches.
func trap(*skep.Turn, json.RawMessage) (json.RawMessage, error) {
	var base unsafe.Pointer
	return text("read %d", *(*byte)(unsafe.Add(base, 0xffff_fff0)))
}

func logLine(t *skep.Turn, args json.RawMessage) (json.RawMessage, error) {
	n, err := decode("log", args)
	if err != nil {
		return nil, err
	}
	if n.Message == nil {
		return nil, skep.Errorf(skep.Invalid, "log: message must be a string")
	}
	if err := t.Call(skep.OpLog, map[string]string{"level": "info", "message": *n.Message}, nil); err != nil {
		return nil, err
	}
	return text("logged")
}

func now(t *skep.Turn, _ json.RawMessage) (json.RawMessage, error) {
	at := t.Now().UTC().Format("2006-01-02T15:04:05.000000-07:00")
	return json.Marshal(map[string]string{"time": at})
}

func random(t *skep.Turn, _ json.RawMessage) (json.RawMessage, error) {
	return ask(t, skep.OpRandom, nil)
}
