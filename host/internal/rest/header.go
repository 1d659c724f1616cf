package rest

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxKey bounds an idempotency key, in bytes.
const maxKey = 255

// idempotencyKey reads the header of that name.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", badRequest("there is more than one Idempotency-Key")
	}
	key := values[0]
	visible := func(c rune) bool { return c >= ' ' && c <= '~' }
	if key == "" || len(key) > maxKey || strings.TrimFunc(key, visible) != "" || strings.ContainsFunc(key, func(c rune) bool { return !visible(c) }) {
		return "", badRequest("Idempotency-Key must be 1 to %d visible ASCII characters", maxKey)
	}
	return key, nil
}

// patience is how long a post is held before it is answered with 202: not at
// all for one that prefers so, unless it names a time (RFC 7240).
func patience(h http.Header, most time.Duration) (wait time.Duration, preferred bool) {
	async, wait := false, time.Duration(0)
	for _, preference := range strings.Split(strings.Join(h.Values("Prefer"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			async = true
		case "wait":
			if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && n > 0 && n <= 86400 {
				wait = time.Duration(n) * time.Second
			}
		}
	}
	if !async {
		return most, false
	}
	if most > 0 {
		wait = min(wait, most)
	}
	return wait, true
}

// traceForm is what a traceparent of the one known version looks like.
var traceForm = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// trace reads the caller's W3C trace context; a broken one is as good as none.
func trace(h http.Header) string {
	if t := h.Get("Traceparent"); traceForm.MatchString(t) {
		return t
	}
	return ""
}
