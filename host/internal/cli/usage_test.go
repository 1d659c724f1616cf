package cli

import (
	"testing"
	"time"

	"skep/host/client"
)

// A limit that no answer can have is refused before anything is asked.
func TestUsageLimit(t *testing.T) {
	t.Parallel()
	for limit, ok := range map[int]bool{-1: false, 0: false, 1: true, maxUsageSums: true, maxUsageSums + 1: false} {
		f := usageFlags{query: client.UsageQuery{Limit: limit}}
		if err := f.read(time.Now()); (err == nil) != ok {
			t.Errorf("--limit %d: %v", limit, err)
		}
	}
}
