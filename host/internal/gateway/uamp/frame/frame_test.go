package frame_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"skep/host/internal/gateway/uamp/frame"
)

// TestFrames (V-U37, U-054, D-U10): frames come whole and in order, however they are
// spread over messages.
func TestFrames(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		var sent [][]byte
		var stream []byte
		for range r.IntN(8) {
			text := bytes.Repeat([]byte{byte(r.Uint32())}, 1+r.IntN(300))
			sent, stream = append(sent, text), frame.Append(stream, text)
		}
		d := frame.NewDecoder(300, true)
		var got [][]byte
		for len(stream) > 0 {
			n := 1 + r.IntN(len(stream))
			if r.IntN(3) == 0 {
				n = min(n, 3)
			}
			frames, err := d.Add(bytes.Clone(stream[:n]), false)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, f := range frames {
				got = append(got, bytes.Clone(f))
			}
			stream = stream[n:]
		}
		if !bytes.Equal(bytes.Join(got, []byte("|")), bytes.Join(sent, []byte("|"))) {
			t.Fatalf("seed %d: %d frames of %d", seed, len(got), len(sent))
		}
	}
}

// TestRefusedFrames (V-U37, D-U10): lengths that are reversed, too large or nothing, and
// texts without a length.
func TestRefusedFrames(t *testing.T) {
	t.Parallel()
	little := append(binary.LittleEndian.AppendUint32(nil, 2), "{}"...)
	large := binary.BigEndian.AppendUint32(nil, 1<<31)
	whole := frame.Append(nil, []byte("{}"))
	for name, c := range map[string]struct {
		message []byte
		text    bool
		strict  bool
		frames  int
		want    error
	}{
		"little-endian":      {little, false, false, 0, frame.ErrOrder},
		"2 GiB":              {large, false, false, 0, frame.ErrTooLarge},
		"just too large":     {binary.BigEndian.AppendUint32(nil, 101), false, false, 0, frame.ErrTooLarge},
		"nothing":            {make([]byte, 4), false, false, 0, frame.ErrEmpty},
		"JSON without one":   {[]byte(`{"id":1}`), false, false, 0, frame.ErrTooLarge},
		"after a good one":   {append(bytes.Clone(whole), large...), false, false, 1, frame.ErrTooLarge},
		"text":               {[]byte(`{}`), true, false, 1, nil},
		"strict text":        {[]byte(`{}`), true, true, 0, frame.ErrText},
		"empty text":         {nil, true, false, 0, frame.ErrEmpty},
		"a text too large":   {[]byte(strings.Repeat("x", 101)), true, false, 0, frame.ErrTooLarge},
		"an empty message":   {nil, false, true, 0, nil},
		"as large as it may": {frame.Append(nil, make([]byte, 100)), false, true, 1, nil},
	} {
		frames, err := frame.NewDecoder(100, c.strict).Add(c.message, c.text)
		if len(frames) != c.frames || !errors.Is(err, c.want) {
			t.Errorf("%s: %d frames, %v", name, len(frames), err)
		}
	}
	d := frame.NewDecoder(100, false)
	if _, err := d.Add(whole[:3], false); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Add([]byte("{}"), true); !errors.Is(err, frame.ErrText) {
		t.Errorf("a text within a frame: %v", err)
	}
}

// TestSmallMessages: a frame that comes byte by byte is not copied for each of them.
func TestSmallMessages(t *testing.T) {
	stream := frame.Append(nil, make([]byte, 64<<10))
	allocated := testing.AllocsPerRun(1, func() {
		d := frame.NewDecoder(64<<10, true)
		for i := range stream {
			frames, err := d.Add(stream[i:i+1], false)
			if err != nil || len(frames) != (i+1)/len(stream) {
				t.Fatalf("byte %d: %d frames, %v", i, len(frames), err)
			}
		}
	})
	if allocated > 100 {
		t.Errorf("%v allocations for 64 KiB", allocated)
	}
}

// FuzzDecoder looks for messages that are kept beyond the largest frame.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, '{'}, uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		d := frame.NewDecoder(64, false)
		for len(stream) > 0 {
			n := min(len(stream), int(size)+1)
			frames, err := d.Add(stream[:n], false)
			for _, text := range frames {
				if len(text) == 0 || len(text) > 64 {
					t.Fatalf("a frame of %d bytes", len(text))
				}
			}
			if err != nil {
				return
			}
			stream = stream[n:]
		}
	})
}
