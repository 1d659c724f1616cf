package listener_test

import (
	"testing"

	"skep/host/internal/api/listener"
)

func TestConnectionsFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files      uint64
		most, want int
	}{
		{1024, 16_384, 512}, {20_000, 16_384, 16_384}, {20_000, 0, 19_488}, {256, 16_384, 64}, {1 << 40, 0, 0}, {1 << 40, 5, 5}, {576, 64, 64},
	} {
		if got := listener.ConnectionsFor(c.files, c.most); got != c.want {
			t.Errorf("ConnectionsFor(%d, %d) = %d, want %d", c.files, c.most, got, c.want)
		}
	}
}
