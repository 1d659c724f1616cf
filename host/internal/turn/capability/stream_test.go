package capability

import (
	"bytes"
	"context"
	"testing"

	"skep/abi"
)

// A reader that is far behind holds the work up, which then still can end.
func TestReaderFarBehind(t *testing.T) {
	t.Parallel()
	written := make(chan int, 100)
	o, _ := effects(t, func(_ context.Context, out *asyncOp) *abi.Error {
		for n := range 100 {
			if fault := out.write(make([]byte, maxUnread)); fault != nil {
				return fault
			}
			written <- n
		}
		return nil
	})
	a := submit(t, o)
	buf := make([]byte, maxUnread)
	for n := range 3 {
		if <-written != n {
			t.Error("out of order")
		}
		for read := 0; read < len(buf); {
			k, fault := a.Read(t.Context(), buf)
			if fault != nil {
				t.Fatal(fault)
			}
			read += k
		}
	}
	a.Close()
	if n := len(written); n > 2 {
		t.Errorf("%d pieces were written ahead", n)
	}
}

// A bug in a work is the turn's, not the process's.
func TestEffectPanics(t *testing.T) {
	t.Parallel()
	o, _ := effects(t, func(context.Context, *asyncOp) *abi.Error { panic("a bug") })
	for name, use := range map[string]func(){
		"call": func() { _, _ = o.Call(t.Context(), abi.OpLLMChat, nil) },
		"read": func() { _, _ = submit(t, o).Read(t.Context(), make([]byte, 8)) },
		"close": func() {
			a := submit(t, o)
			<-a.(*reply).async.done
			a.Close()
		},
	} {
		func() {
			defer func() {
				if v := recover(); v != "a bug" {
					t.Errorf("%s: recovered %v", name, v)
				}
			}()
			use()
		}()
	}
}

// The bytes are those that were written, however they are read.
func TestStreamKeepsItsBytes(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("0123456789"), 1000)
	o, _ := effects(t, func(_ context.Context, out *asyncOp) *abi.Error {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 77)
			if fault := out.write(rest[:n]); fault != nil {
				return fault
			}
			rest = rest[n:]
		}
		return nil
	})
	a := submit(t, o)
	defer a.Close()
	var got []byte
	for buf := make([]byte, 100); ; {
		n, fault := a.Read(t.Context(), buf)
		if fault != nil {
			t.Fatal(fault)
		}
		if n == 0 {
			break
		}
		got = append(got, buf[:n]...)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %d were written", len(got), len(want))
	}
}
