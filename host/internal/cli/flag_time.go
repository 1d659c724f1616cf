package cli

import "time"

// readTime reads a time, or a span before now; it is zero for an empty text.
func readTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, usagef("%s is an RFC 3339 date-time as 2026-11-20T15:52:40Z, or a span as 90m, not %s", flag, argument(text))
	}
	return at, nil
}
