package message_test

import (
	"runtime"
	"strings"
	"testing"

	"skep/host/internal/gateway/iacp/message"
)

// mostRead is how many times its size a message may take from the heap while it is read.
const mostRead = 20

// TestReadMemory (I-006): a message of 1 MiB takes so many times its size from the heap while
// it is read, wherever its lists are. It is not parallel: it looks at the whole process.
func TestReadMemory(t *testing.T) {
	const head = `{"iacp_version":"1.0","message_id":"123e4567-e89b-42d3-a456-426614174000","message_type":"task_request","timestamp":"2025-09-21T10:30:00Z"`
	for name, c := range map[string]struct {
		before, piece, after string
		taken                bool
	}{
		"numbers in the payload":  {`,"sender":{"agent_id":"a"},"recipient":{"agent_id":"b"},"payload":{"x":[`, `1,`, `1]}}`, true},
		"numbers in the metadata": {`,"sender":{"agent_id":"a"},"recipient":{"agent_id":"b"},"payload":{},"metadata":{"x":[`, `1,`, `1]}}`, false},
		"ids":                     {`,"sender":{"agent_id":"a"},"payload":{},"recipient":{"agent_ids":[`, `"",`, `""]}}`, false},
		"capabilities":            {`,"sender":{"agent_id":"a"},"payload":{},"recipient":{"group":{"capabilities":[`, `"",`, `""]}}}`, false},
		"other members":           {`,"sender":{"agent_id":"a"},"recipient":{"agent_id":"b"},"payload":{},"x":[`, `1,`, `1]}`, false},
	} {
		raw := []byte(head + c.before + strings.Repeat(c.piece, (1<<20)/len(c.piece)) + c.after)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := message.Reader{Depth: 8}.Read(raw)
		runtime.ReadMemStats(&after)
		if times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(raw)); times > mostRead || (err == nil) != c.taken {
			t.Errorf("%s: %.1f times its size, %v", name, times, err)
		}
	}
}
