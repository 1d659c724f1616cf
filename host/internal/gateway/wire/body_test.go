package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"skep/host/internal/gateway/wire"
)

// roomy is a body that notes the most room that it was given.
type roomy struct {
	io.Reader
	most int
}

func (r *roomy) Read(p []byte) (int, error) {
	r.most = max(r.most, len(p))
	return r.Reader.Read(p)
}

// TestReadBody: a body is read whole, whatever its header announces, and takes memory when
// its bytes come.
func TestReadBody(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 100<<10)
	for _, text := range []string{"", "x", long[:64<<10-1], long[:64<<10], long} {
		for _, size := range []int64{-1, 0, 1, int64(len(text)) - 1, int64(len(text)), int64(len(text)) + 1, 1 << 40, math.MaxInt64} {
			got, err := wire.ReadBody(strings.NewReader(text), size)
			if err != nil || string(got) != text {
				t.Errorf("%d bytes, announced as %d: %d, %v", len(text), size, len(got), err)
			}
			if most := max(2*len(text)+1, 64<<10); cap(got) > most {
				t.Errorf("%d bytes, announced as %d, took %d", len(text), size, cap(got))
			}
		}
	}
	body := &roomy{Reader: strings.NewReader("x")}
	if _, err := wire.ReadBody(body, 1<<40); err != nil || body.most > 64<<10 {
		t.Errorf("room for %d bytes before they came, %v", body.most, err)
	}
	broken := errors.New("broken")
	got, err := wire.ReadBody(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), 10)
	if !errors.Is(err, broken) || !bytes.Equal(got, []byte("abc")) {
		t.Errorf("a body that breaks off: %q, %v", got, err)
	}
}
