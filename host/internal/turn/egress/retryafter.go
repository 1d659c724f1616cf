package egress

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter keeps a number of seconds within what a duration holds.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads the value of a Retry-After header (RFC 9110, section 10.2.3):
// seconds, which may have a fraction, or a date. It returns 0 for anything else.
func RetryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return clampedDuration(seconds, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// RetryAfterMS reads the value of a Retry-After-Ms header, which some providers of
// models send: milliseconds. ok is false when it is no number.
func RetryAfterMS(value string) (d time.Duration, ok bool) {
	ms, err := strconv.ParseFloat(value, 64)
	return clampedDuration(ms, time.Millisecond), err == nil
}

func clampedDuration(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // also not a number
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxRetryAfter)))
}
