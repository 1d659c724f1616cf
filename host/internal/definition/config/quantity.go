package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes. It prints as people write it.
type Size int64

// Units of [Size].
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40

	terabyte Size = 1e12
)

// String gives the size in the largest unit that divides it. Terabytes are for bounds
// such as 1e15, which would be billions of KiB.
func (s Size) String() string {
	for _, u := range []struct {
		name string
		size Size
	}{{"TiB", TiB}, {"TB", terabyte}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}} {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

var sizeUnits = []struct {
	name string
	size float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// parseSize reads "64MiB", "512KB", "1.5 GiB" or a plain number of bytes.
func parseSize(s string) (int64, error) {
	lower := strings.ToLower(strings.TrimSpace(s))
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(lower, u.name)
		if !ok {
			continue
		}
		digits = strings.TrimSpace(digits)
		if digits == "" || strings.Trim(digits, "0123456789.") != "" {
			break
		}
		n, err := strconv.ParseFloat(digits, 64)
		n *= u.size
		if err != nil || n != math.Trunc(n) || n > 1<<53 {
			break
		}
		return int64(n), nil
	}
	return 0, errors.New(`a size such as "64MiB", "512KB" or 65536`)
}

// day is 24 hours, whatever a calendar says.
const day = 24 * time.Hour

// ParseDuration reads what [time.ParseDuration] does, and days before it, as in
// "7d" or "1d12h". Its error is what is wanted, to be said after "must be".
func ParseDuration(s string) (time.Duration, error) {
	n, err := parseDuration(s)
	return time.Duration(n), err
}

func parseDuration(s string) (int64, error) {
	s = strings.TrimSpace(s)
	var days uint64
	var err error
	if text, rest, ok := strings.Cut(s, "d"); ok {
		days, err = strconv.ParseUint(text, 10, 16)
		s = cmp.Or(rest, "0s")
	}
	d, wrong := time.ParseDuration(s)
	sum := time.Duration(days)*day + d
	if err != nil || wrong != nil || days > 0 && (d < 0 || sum < d) {
		return 0, errors.New(`a duration such as "30s", "1h30m" or "7d"`)
	}
	return int64(sum), nil
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0, errors.New("a whole number")
	}
	return n, nil
}

// quantity is one kind of number: how it is read and printed.
type quantity struct {
	name  string
	parse func(string) (int64, error)
	print func(int64) string
	want  string
	text  bool // may be written as a string
	plain bool // may be written as a number
}

var (
	counts = quantity{name: "number", parse: parseCount, want: "a whole number", plain: true,
		print: func(n int64) string { return strconv.FormatInt(n, 10) }}
	sizes = quantity{name: "size", parse: parseSize, want: `a size such as "64MiB"`, plain: true, text: true,
		print: func(n int64) string { return Size(n).String() }}
	durations = quantity{name: "duration", parse: parseDuration, want: `a duration such as "30s"`, text: true,
		print: func(n int64) string { return shortDuration(time.Duration(n)) }}
)

// shortDuration drops the zero units that time.Duration prints: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// bounds is what a number may be. With off, 0 is allowed below min and means
// that there is no limit.
type bounds struct {
	min, max int64
	off      bool
}

// number reads a number of any kind, or gives its default.
func (t *table) number(key string, q quantity, def int64, b bounds) int64 {
	v, sp, ok := t.lookUp(key)
	if !ok {
		return def
	}
	n, shown, ok := t.quantity(sp, v, q)
	if !ok {
		return def
	}
	if n == 0 && b.off || n >= b.min && n <= b.max {
		return n
	}
	zero := ""
	if b.off {
		zero = ", or 0 for unlimited"
	}
	t.d.atValue(sp, fmt.Sprintf("%s must be from %s to %s%s; %s is out of range",
		sp.path, q.print(b.min), q.print(b.max), zero, shown))
	return def
}

func (t *table) quantity(sp location, v any, q quantity) (n int64, shown string, ok bool) {
	switch v := v.(type) {
	case int64:
		if !q.plain && v != 0 {
			f := t.d.atValue(sp, fmt.Sprintf("%s is a duration and needs a unit", sp.path))
			f.suggest(strconv.FormatInt(v, 10) + "s")
		}
		return v, strconv.FormatInt(v, 10), q.plain || v == 0
	case string:
		ref, isRef, ok := t.reference(sp, v)
		if !isRef && q.text {
			ref, isRef, ok = value{location: sp, text: v, shown: strconv.Quote(v)}, true, true
		}
		if isRef {
			return t.parse(ref, q, ok)
		}
	}
	t.wrong(sp, q.want, v)
	return 0, "", false
}

func (t *table) parse(ref value, q quantity, ok bool) (int64, string, bool) {
	if !ok {
		return 0, "", false
	}
	n, err := q.parse(ref.text)
	if err != nil {
		f := t.d.atValue(ref.location, fmt.Sprintf("%s must be %s, which %s is not", ref.path, err, ref.shown))
		if _, err := strconv.ParseUint(ref.text, 10, 32); err == nil && !q.plain {
			f.suggest(ref.suggest(ref.text + "s"))
		}
	}
	return n, ref.shown, err == nil
}
