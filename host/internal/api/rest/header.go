package rest

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxIdempotencyKey bounds an idempotency key, in bytes.
const maxIdempotencyKey = 255

// idempotencyKey reads the Idempotency-Key header: a structured string in quotes
// (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/), or the
// same text without them.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", badRequest("there is more than one Idempotency-Key")
	}
	key, ok := unquote(values[0])
	if !ok {
		return "", badRequest(`Idempotency-Key begins with a quote and is no string in quotes, as in "order-17"`)
	}
	hidden := func(c rune) bool { return c < ' ' || c > '~' }
	if key == "" || len(key) > maxIdempotencyKey || strings.ContainsFunc(key, hidden) {
		return "", badRequest("Idempotency-Key must be 1 to %d visible ASCII characters", maxIdempotencyKey)
	}
	return key, nil
}

// unquote returns the text of a structured string
// (https://www.rfc-editor.org/rfc/rfc9651#section-3.3.3), or text that has no quotes
// as it is.
func unquote(s string) (text string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), i == len(s)-1
		case s[i] == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", false
}

// preferredWait returns how long a post waits before it is answered with 202.
// Prefer: respond-async means not at all, unless wait= names a time. Parameters of a
// preference are ignored, and of two with one name the first counts (RFC 7240:
// https://www.rfc-editor.org/rfc/rfc7240#section-2).
func preferredWait(h http.Header, most time.Duration) (wait time.Duration, preferred bool) {
	values := map[string]string{}
	for _, preference := range strings.Split(strings.Join(h.Values("Prefer"), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, again := values[name]; !again {
			values[name] = strings.Trim(value, ` \t"`)
		}
	}
	if _, async := values["respond-async"]; !async {
		return most, false
	}
	if n, err := strconv.Atoi(values["wait"]); err == nil && n > 0 && n <= 86400 {
		wait = time.Duration(n) * time.Second
	}
	if most > 0 {
		wait = min(wait, most)
	}
	return wait, true
}
