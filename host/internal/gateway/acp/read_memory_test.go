package acp

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// mostRead is how many times its size a message may take from the heap while it is read.
const mostRead = 20

// TestReadMemory: a message of 1 MiB takes so many times its size from the heap while
// it is read and made an ask, whatever its text is. It is not parallel: it looks at the whole
// process.
func TestReadMemory(t *testing.T) {
	header := `"version":"1.0","sender":"agentA","receiver":"calc","type":"REQUEST","id":"m1","timestamp":"2023-10-25T10:00:00Z","content_type":"application/json"`
	fill := func(before, piece, after string) string {
		return before + strings.Repeat(piece, (MaxMessage-len(before)-len(after))/len(piece)) + after
	}
	numbered := func(before, format, after string) string {
		var b strings.Builder
		b.WriteString(before)
		for i := 0; b.Len() < MaxMessage-len(after)-40; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String() + after
	}
	nest := strings.Repeat(`{"a":[`, 28) + strings.Repeat(`]}`, 28)
	wrapped := strings.Replace(header, `"agentA"`, `{"id":"agentA"}`, 1)
	for name, text := range map[string]string{
		"a list in a header field":       fill(`{"header":{`+header+`,"x_list":[`, `1,`, `1]},"body":"{}"}`),
		"many header fields":             numbered(`{"header":{`+header, `,"x%d":1`, `},"body":"{}"}`),
		"nested header fields":           fill(`{"header":{`+header+`,"x_list":[`, nest+`,`, `1]},"body":"{}"}`),
		"a list as the sender":           fill(`{"header":{`+strings.Replace(header, `"sender":"agentA",`, ``, 1)+`,"sender":[`, `1,`, `1]},"body":"{}"}`),
		"a wrapped list as the sender":   fill(`{"header":{"sender":{"id":[`, `1,`, `1]}},"body":"{}"}`),
		"members beside header and body": numbered(`{"header":{`+header+`},"body":"{}"`, `,"x%d":1`, `}`),
		"a list in place of a message":   fill(`[`, `1,`, `1]`),
		"a list as the header":           fill(`{"header":[`, `1,`, `1],"body":"{}"}`),
		"the body is a list":             fill(`{"header":{`+header+`},"body":[`, `1,`, `1]}`),
		"the body is a list for text":    fill(`{"header":{`+strings.Replace(header, "application/json", "text/plain", 1)+`},"body":[`, `1,`, `1]}`),
		"the body is an object":          numbered(`{"header":{`+header+`},"body":{"a":1`, `,"x%d":1`, `}}`),
		"the body has objects":           fill(`{"header":{`+header+`},"body":[`, `{},`, `1]}`),
		"the body is text":               fill(`{"header":{`+header+`},"body":"`, `text`, `"}`),
		"the body is escaped":            fill(`{"header":{`+header+`},"body":"`, `\n`, `"}`),
		"the header is wrapped":          fill(`{"header":{`+wrapped+`},"body":"`, `text`, `"}`),
		"half a message":                 fill(`{"header":{`+header+`,"x_list":[`, `1,`, ``),
		"white space":                    fill(`{"header":{`+header+`},"body":`, ` `, `"{}"}`),
	} {
		for profile, r := range map[string]reader{"default": {depth: maxDepth}, "strict": {depth: maxDepth, strict: true}} {
			raw := []byte(text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			in, err := r.read(raw)
			if err == nil {
				_, err = askOf(in)
			}
			runtime.ReadMemStats(&after)
			times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(text))
			t.Logf("%s, %s: %.1f times %d bytes; %.80v", name, profile, times, len(raw), err)
			if times > mostRead {
				t.Errorf("%s, %s: takes %.1f times its size, more than %d", name, profile, times, mostRead)
			}
		}
	}
}
