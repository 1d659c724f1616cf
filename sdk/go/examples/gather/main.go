// Command gather is an agent that asks for several pages at once: it is sent their
// addresses, shows how far it has come, and answers with what it got.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	skep "skep/sdk/go"
)

// Gather is the agent.
type Gather struct{}

var _ = skep.Run(skep.Descriptor{
	Name: "gather", Version: "1.0.0",
	Description: "Fetches several pages at once.",
	Agents:      []skep.AgentInfo{{Name: "gather", Description: "Send it addresses, with space between."}},
	Requests: []skep.Request{{
		Allow: "http", Value: json.RawMessage(`["https://example.com"]`), Reason: "to fetch the pages", Optional: true,
	}},
}, Gather{})

func main() {}

// Turn fetches the pages, and completes the task with a line for each.
func (Gather) Turn(t *skep.Turn) error {
	urls := strings.Fields(t.Message.Body)
	asks := make([]*skep.Pending, len(urls))
	for i, url := range urls {
		asks[i] = t.Submit(skep.OpHTTPFetch, skep.FetchRequest{URL: url})
	}
	lines := make([]string, len(urls))
	for done := 1; ; done++ {
		i, err := t.WaitAny(30*time.Second, asks...)
		if errors.Is(err, skep.Deadline) {
			break // with what there is
		}
		if err != nil {
			return err
		}
		if i < 0 {
			break // all have been read
		}
		lines[i] = line(asks[i])
		if _, err := t.EmitProgress(urls[i], float64(done)/float64(len(urls))); err != nil {
			t.Log("progress is not shown", "why", err)
		}
	}
	return t.TaskComplete(report(urls, lines))
}

// line reports what became of one page.
func line(p *skep.Pending) string {
	var page skep.FetchResponse
	if err := p.Answer(&page); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d, %d bytes", page.Status, len(page.Body))
}

func report(urls, lines []string) string {
	var b strings.Builder
	for i, url := range urls {
		if lines[i] == "" {
			lines[i] = "no answer"
		}
		fmt.Fprintf(&b, "%s: %s\n", url, lines[i])
	}
	return strings.TrimSpace(b.String())
}
