package mail

import "time"

// FormatTime returns t as messages carry it: RFC 3339 in UTC with six fraction
// digits and a numeric offset, "2026-03-01T09:30:00.000000+00:00". Digits beyond
// the microsecond are cut. The year must be 0 to 9999.
func FormatTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000-07:00")
}

// ParseTime reads an RFC 3339 date-time and returns the instant in UTC. It is
// stricter than the RFC in three points, because one instant should not have
// spellings that only some readers take: 'T' and 'Z' are upper case, nothing
// else may separate date from time, and there is no second 60. Fraction digits
// beyond the nanosecond are cut. The error is a *[FieldError].
func ParseTime(s string) (time.Time, error) {
	t, ok := parseTime(s)
	if !ok {
		return time.Time{}, faultf("", "must be an RFC 3339 date-time")
	}
	return t, nil
}

func parseTime(s string) (time.Time, bool) {
	const shape = "dddd-dd-ddTdd:dd:dd"
	if len(s) <= len(shape) || !looksLike(s, shape) {
		return time.Time{}, false
	}
	year, month, day := number(s[:4]), number(s[5:7]), number(s[8:10])
	hour, minute, sec := number(s[11:13]), number(s[14:16]), number(s[17:19])
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour > 23 || minute > 59 || sec > 59 {
		return time.Time{}, false
	}
	nanos, rest, ok := cutFraction(s[len(shape):])
	if !ok {
		return time.Time{}, false
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute-offset, sec, nanos, time.UTC), true
}

// looksLike compares the start of s with a shape in which 'd' is any digit.
func looksLike(s, shape string) bool {
	if len(s) < len(shape) {
		return false
	}
	for i := range len(shape) {
		if shape[i] == 'd' {
			if !isDigit(s[i]) {
				return false
			}
		} else if s[i] != shape[i] {
			return false
		}
	}
	return true
}

// cutFraction splits an optional ".ddd…" from the front of s.
func cutFraction(s string) (nanos int, rest string, ok bool) {
	if s == "" || s[0] != '.' {
		return 0, s, true
	}
	i, unit := 1, int(time.Second)
	for ; i < len(s) && isDigit(s[i]); i++ {
		unit /= 10
		nanos += int(s[i]-'0') * unit
	}
	return nanos, s[i:], i > 1
}

// parseOffset reads "Z" or "+hh:mm" and returns minutes east of UTC.
func parseOffset(s string) (minutes int, ok bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) != len("+hh:mm") || s[0] != '+' && s[0] != '-' || !looksLike(s[1:], "dd:dd") {
		return 0, false
	}
	h, m := number(s[1:3]), number(s[4:6])
	if h > 23 || m > 59 {
		return 0, false
	}
	if s[0] == '-' {
		return -h*60 - m, true
	}
	return h*60 + m, true
}

// number returns the value of a few decimal digits that have been checked.
func number(s string) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
