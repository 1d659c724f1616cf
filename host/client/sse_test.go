package client

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// all reads a stream to its end.
func all(r io.Reader, limit int) (got []frame, err error) {
	frames := newFrames(r, limit)
	for {
		f, err := frames.next()
		if err != nil {
			return got, err
		}
		got = append(got, f)
	}
}

var oneFrame = []frame{{name: "a", id: "1", data: []byte("x")}}

var frameCases = []struct {
	name, in string
	want     []frame
	err      error
}{
	{"empty", "", nil, io.EOF},
	{"CRLF", "id: 1\r\nevent: a\r\ndata: x\r\n\r\n", oneFrame, io.EOF},
	{"LF", "id: 1\nevent: a\ndata: x\n\n", oneFrame, io.EOF},
	{"CR", "id: 1\revent: a\rdata: x\r\r", oneFrame, io.EOF},
	{"no blank after the colon", "id:1\nevent:a\ndata:x\n\n", oneFrame, io.EOF},
	{"byte order mark", "\uFEFFid: 1\nevent: a\ndata: x\n\n", oneFrame, io.EOF},
	{"comments", ": hi\n\n:\nid: 1\n: in between\nevent: a\ndata: x\n\n: bye\n", oneFrame, io.EOF},
	{"unknown fields", "retry: 5\nwhat: x\nid: 1\nevent: a\ndata: x\n\n", oneFrame, io.EOF},
	{"several lines", "data: x\ndata:\ndata:  y\n\n", []frame{{name: "message", data: []byte("x\n\n y")}}, io.EOF},
	{"data alone", "data\n\n", []frame{{name: "message"}}, io.EOF},
	{"no data is no event", "id: 1\nevent: a\n\nevent: b\ndata: x\n\n", []frame{{name: "b", data: []byte("x")}}, io.EOF},
	{"id with NUL", "id: 1\x00\ndata: x\n\n", []frame{{name: "message", data: []byte("x")}}, io.EOF},
	{"two", "data: x\n\ndata: y\n\n", []frame{{name: "message", data: []byte("x")}, {name: "message", data: []byte("y")}}, io.EOF},
	{"cut in a line", "id: 1\nevent: a\ndata: x\n\nda", oneFrame, io.ErrUnexpectedEOF},
	{"cut after a line", "id: 1\nevent: a\ndata: x\n\ndata: y\n", oneFrame, io.ErrUnexpectedEOF},
	{"too long a line", "data: " + strings.Repeat("x", 100) + "\n\n", nil, ErrTooLarge},
	{"too many lines", strings.Repeat("data: x\n", 20) + "\n", nil, ErrTooLarge},
	{"an endless comment", ":" + strings.Repeat("x", 100), nil, ErrTooLarge},
	{"endless comments", strings.Repeat(": ping\n", 100) + "\ndata: x\n\n", nil, ErrTooLarge},
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, tc := range frameCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(tc.in), "by byte": iotest.OneByteReader(strings.NewReader(tc.in)),
			} {
				got, err := all(r, 64)
				if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(frame{})); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				if !errors.Is(err, tc.err) {
					t.Errorf("%s: err = %v, want %v", name, err, tc.err)
				}
			}
		})
	}
}

// TestFrameIsNotHeldBack wants an event at once, also where its last line ends
// in a CR whose LF may still come.
func TestFrameIsNotHeldBack(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n"} {
		r, w := io.Pipe()
		go io.WriteString(w, "data: x"+end)
		if f, err := newFrames(r, 64).next(); err != nil || string(f.data) != "x" {
			t.Errorf("%q: %+v, %v", end, f, err)
		}
		r.Close()
	}
}

// FuzzFrames wants no panic, no event beyond its cap, and the same events
// however the bytes come and whatever ends the lines.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"", "id: 1\r\nevent: a\r\ndata: {\"x\":1}\r\n\r\n", ": c\n\ndata: x\ndata: y\n\n", "\uFEFFdata\r\r", "data: x", "id: \x00\ndata:\n\n",
	} {
		f.Add(seed)
	}
	const limit = 1 << 10
	f.Fuzz(func(t *testing.T, in string) {
		want, wantErr := all(strings.NewReader(in), limit)
		for _, frame := range want {
			if len(frame.data) > limit || len(frame.name) > limit {
				t.Fatalf("an event of %d bytes, at most %d", len(frame.data), limit)
			}
		}
		got, err := all(iotest.OneByteReader(strings.NewReader(in)), limit)
		if !slices.EqualFunc(want, got, same) || (err == nil) != (wantErr == nil) {
			t.Fatalf("whole: %v, %v\nbyte by byte: %v, %v", want, wantErr, got, err)
		}
		lines := strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
		if got, _ = all(strings.NewReader(lines), limit); !slices.EqualFunc(want, got, same) {
			t.Fatalf("as it is: %v\nwith LF alone: %v", want, got)
		}
	})
}

func same(a, b frame) bool {
	return a.name == b.name && a.id == b.id && string(a.data) == string(b.data)
}
