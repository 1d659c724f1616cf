// Command keeper is an agent that keeps what it is told, everywhere a Go program
// can: the sandbox's tests look for it in the turn after. It has rehearsed a turn
// before its image is taken, as a good agent does.
package main

import (
	"errors"
	"runtime"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// kept is what must not outlive a turn.
var kept struct {
	text  string
	list  []string
	table map[string][]byte
}

var _ = skep.Run(skep.Descriptor{Name: "keeper", Version: "1"}, keeper{})

func main() {}

type keeper struct{}

// Warm runs a turn against a pretended host, so that what JSON and the SDK
// prepare at their first use is in the image, and heap enough for a turn.
func (keeper) Warm() error {
	for range 3 {
		out := skeptest.Run(keeper{}, skeptest.Input{CanComplete: true, Message: skep.Message{Subject: "s", Body: "probe"}})
		if out.Err != nil {
			return out.Err
		}
	}
	runtime.GC()
	return nil
}

func (keeper) Turn(t *skep.Turn) error {
	mode, arg, _ := strings.Cut(t.Message.Body, " ")
	switch mode {
	case "plant":
		plant(arg)
		deep(20, []byte(arg))
	case "grow":
		kept.list = append(kept.list, strings.Repeat("x", 8<<20))
	case "panic":
		panic(arg)
	case "loop":
		for {
			kept.text += "x"
			kept.text = ""
		}
	case "error":
		return errors.New(arg)
	}
	t.Log("look now")
	return t.SetState(map[string]any{"text": kept.text, "entries": len(kept.table) + len(kept.list)})
}

func plant(secret string) {
	kept.text = strings.Clone(secret)
	kept.table = map[string][]byte{}
	for i := range 50 {
		kept.list = append(kept.list, strings.Clone(secret))
		kept.table[string(rune('a'+i))] = []byte(secret)
	}
	go func() { // parked on its own stack when the turn ends
		var here [64]byte
		copy(here[:], secret)
		<-make(chan int)
		runtime.KeepAlive(here)
	}()
	runtime.Gosched()
}

// deep leaves the secret in the frames of a stack that has been left.
//
//go:noinline
func deep(n int, secret []byte) byte {
	var frame [200]byte
	copy(frame[:], secret)
	if n == 0 {
		return frame[0]
	}
	return deep(n-1, secret) ^ frame[n]
}
