package message_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"skep/host/internal/gateway/iacp/message"
)

// heartbeat is the frame of {"message_type":"heartbeat"}.
const heartbeat = "0000001c7b226d6573736167655f74797065223a22686561727462656174227d"

func frames(t *testing.T, in io.Reader, most int) (got []string, err error) {
	t.Helper()
	for r := message.NewFrameReader(in, most); ; {
		text, err := r.Next()
		if err != nil {
			return got, err
		}
		got = append(got, string(text))
	}
}

// TestFrames (V-I01, V-I02, V-I03, I-051): frames come whole and in order, however they are
// spread over writes.
func TestFrames(t *testing.T) {
	t.Parallel()
	one, err := hex.DecodeString(heartbeat)
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"message_type":"heartbeat"}`
	if got := message.AppendFrame(nil, []byte(text)); !bytes.Equal(got, one) {
		t.Errorf("the frame is %x", got)
	}
	two := append(bytes.Clone(one), one...)
	for name, in := range map[string]io.Reader{"at once": bytes.NewReader(two), "byte by byte": iotest.OneByteReader(bytes.NewReader(two)), "in halves": iotest.HalfReader(bytes.NewReader(two))} {
		got, err := frames(t, in, 100)
		if len(got) != 2 || got[0] != text || got[1] != text || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestRefusedFrames (I-006, I-052, V-I04 to V-I07, V-I09, V-I10, I-062): lengths that are none, and what
// other protocols begin with.
func TestRefusedFrames(t *testing.T) {
	t.Parallel()
	whole := message.AppendFrame(nil, []byte("{}"))
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing":       {make([]byte, 4), message.ErrEmpty},
		"one too many":  {binary.BigEndian.AppendUint32(nil, message.MaxSize+1), message.ErrTooLarge},
		"2^32-1":        {[]byte("\xff\xff\xff\xff"), message.ErrTooLarge},
		"little-endian": {append(binary.LittleEndian.AppendUint32(nil, 2), "{}"...), message.ErrOrder},
		"HTTP":          {[]byte("GET /health HTTP/1.1\r\n\r\n"), message.ErrHTTP},
		"HTTP/2":        {[]byte("PRI * HTTP/2.0\r\n"), message.ErrHTTP},
		"TLS":           {[]byte("\x16\x03\x01\x02\x00\x01\x00"), message.ErrTLS},
		"JSON alone":    {[]byte(`{"iacp_version":"1.0"}`), message.ErrTooLarge},
		"cut off":       {whole[:5], io.ErrUnexpectedEOF},
		"half a length": {whole[:2], io.ErrUnexpectedEOF},
	} {
		if got, err := frames(t, bytes.NewReader(c.in), message.MaxSize); len(got) != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestLengthOfTwoReadings (I-051, I-052): a length that is too large, and would be in order with its bytes
// the other way round, is refused with both reasons, and the frame is read past.
func TestLengthOfTwoReadings(t *testing.T) {
	t.Parallel()
	stream := append(message.AppendFrame(nil, make([]byte, 1<<16)), message.AppendFrame(nil, []byte("{}"))...) // 65,536, or 256
	r := message.NewFrameReader(bytes.NewReader(stream), 1<<15)
	if _, err := r.Next(); !errors.Is(err, message.ErrTooLarge) || !errors.Is(err, message.ErrOrder) {
		t.Fatal(err)
	}
	if skipped, err := r.Skip(); !skipped || err != nil {
		t.Fatal(skipped, err)
	}
	if text, err := r.Next(); string(text) != "{}" || err != nil {
		t.Error(string(text), err)
	}
}

// TestPromisedFrames (V-I06): memory is taken for the bytes that come.
func TestPromisedFrames(t *testing.T) {
	stream := append(binary.BigEndian.AppendUint32(nil, message.MaxSize), "{}"...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := message.NewFrameReader(bytes.NewReader(stream), message.MaxSize).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > message.MaxSize {
		t.Errorf("100 promises of 16 MiB took %d bytes", took)
	}
}

// FuzzFrames (V-I45) looks for frames beyond the limit, and for messages that are read and
// cannot be written again.
func FuzzFrames(f *testing.F) {
	f.Add(message.AppendFrame(message.AppendFrame(nil, []byte("{}")), []byte(taskRequest)))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	read := message.Reader{Depth: message.MaxDepth}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := message.NewFrameReader(bytes.NewReader(stream), 1000)
		for {
			text, err := r.Next()
			if err != nil {
				return
			}
			if len(text) == 0 || len(text) > 1000 {
				t.Fatalf("a frame of %d bytes", len(text))
			}
			m, err := read.Read(text)
			if err != nil {
				continue
			}
			again, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := read.Read(again); err != nil {
				t.Fatalf("%s was read, and %s is not: %v", text, again, err)
			}
		}
	})
}
