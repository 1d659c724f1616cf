package hosttest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"skep/host/client"
)

// CheckAnswer posts and wants an answer: it waits for the post's answer, or posts,
// follows the events, and posts again under the same key.
func CheckAnswer(ctx context.Context, c *client.Client, post client.Post, events bool, want string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if events {
		if _, err := c.PostAsync(ctx, post); err != nil {
			return fmt.Errorf("post: %w", err)
		}
		if err := Follow(ctx, c, post.Task); err != nil {
			return fmt.Errorf("events: %w", err)
		}
	}
	a, err := c.PostMessage(ctx, post)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if a.Body != want {
		return fmt.Errorf("answer %q, want %q", a.Body, want)
	}
	return nil
}

// Follow reads a task's events to its end; their cursors leave no gap.
func Follow(ctx context.Context, c *client.Client, id string) error {
	next, ends := int64(1), 0
	for e, err := range c.Stream(ctx, id, 0) {
		if err != nil {
			return err
		}
		if e.Cursor != next {
			return fmt.Errorf("event %d where %d was due", e.Cursor, next)
		}
		next++
		if e.Ends() {
			ends++
		}
	}
	if ends != 1 {
		return fmt.Errorf("%d ends", ends)
	}
	return nil
}

// Eventually waits until a condition holds, at most a minute.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never:", what)
		}
	}
}

// Fetch gets a page.
func Fetch(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	rsp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp, string(body)
}

// ReadText returns the content of a file.
func ReadText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
