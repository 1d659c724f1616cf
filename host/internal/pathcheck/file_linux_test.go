package pathcheck

import (
	"errors"
	"testing"
)

// A file that says it is empty and holds more is not read beyond the bound.
func TestSizeIsNotBelieved(t *testing.T) {
	t.Parallel()
	const path = "/proc/self/status"
	var large *SizeError
	if raw, err := ReadAny(path, 10); !errors.As(err, &large) || large.Size != 11 {
		t.Errorf("%q, %v", raw, err)
	}
}
